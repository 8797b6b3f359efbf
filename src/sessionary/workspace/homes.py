"""More homes of agents that the user names in `homes.json` of the configuration folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.errors import Invalid
from sessionary.layouts import registry
from sessionary.layouts.amplifier.ids import HOME
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.xdg import config_folder

FILE = "homes.json"


def homes_of_user(fs: Fs = OS_FS) -> dict[str, list[Path]]:
    """For each kind of agent that the file names: the agent's own home, then those of the file.

    The file is an object with a list of folders for each kind: ``{"claude_code": ["/mnt/old/.claude"]}``.

    Raises:
        Invalid: the file is not like that.
        StorageFailed: it cannot be read.
    """
    folder = config_folder()
    data = None if folder is None else read_bytes(fs, f"{folder}/{FILE}")
    if data is None:
        return {}
    from sessionary.codec import Undecodable, decode  # here, since few users have the file

    usual: Mapping[str, Path] = {
        AmplifierLayout.name: Path(HOME),
        **{one.name: one.default_home() for one in registry.LAYOUTS},
    }
    path = f"{folder}/{FILE}"
    example = 'write an object such as {"claude_code": ["/mnt/old/.claude"]}'
    try:
        stated = decode(data)
    except Undecodable as error:
        raise Invalid(f"{path} cannot be read: {error}", path=path, hint=example) from None
    if not isinstance(stated, dict):
        raise Invalid(f"{path} is not an object", path=path, hint=example)
    homes: dict[str, list[Path]] = {}
    for kind, folders in stated.items():
        if kind not in usual:
            raise Invalid(f"{path}: no agent of kind {kind}", path=path, hint=f"kinds are {', '.join(usual)}")
        if not isinstance(folders, list) or not all(isinstance(one, str) and one for one in folders):
            raise Invalid(f"{path}: {kind} needs a list of folders", path=path, hint=example)
        homes[kind] = [usual[kind], *map(Path, folders)]
    return homes
