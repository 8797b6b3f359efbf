"""The ends of hash chains that `check --chain --remember` keeps apart from the sessions, by the path of the session.

Their file is ``chain-heads.json`` in the state folder. Keep a copy of it on another machine: a user who can change both
it and the sessions can hide a change.
"""

from __future__ import annotations

import os

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, Invalid
from sessionary.layouts.base import ChainHead
from sessionary.xdg import file_in, state_folder

FILE = "chain-heads.json"


def known_heads(fs: Fs) -> dict[str, ChainHead]:
    """All remembered heads.

    Raises:
        Corrupt: the file is damaged.
        StorageFailed: it cannot be read.
    """
    path = _path()
    data = read_bytes(fs, path)
    try:
        return {} if data is None else msgspec.json.decode(data, type=dict[str, ChainHead])
    except msgspec.MsgspecError as error:
        hint = "restore it from a copy; without it the end of a chain cannot be checked"
        raise Corrupt(f"{path} is damaged: {error}", path=path, hint=hint) from None


def remember_head(fs: Fs, session: str, head: ChainHead) -> None:
    """Keep the head of a session instead of the one before.

    Durability: when this returns, it survives a power cut; until then the old one does.

    Raises:
        Corrupt, Locked, StorageFailed: the file cannot be read or written.
    """
    path = _path()
    make_folder(fs, os.path.dirname(path))
    lock = FileLock(f"{path}.lock", fs)
    with lock.held():
        known = known_heads(fs)
        if known.get(session) != head:
            data = msgspec.json.encode({**known, session: head}, order="sorted")
            atomic.replace(path, (msgspec.json.format(data, indent=1), b"\n"), fs=fs)
    lock.close()


def _path() -> str:
    path = file_in(state_folder(), FILE)
    if path is None:
        raise Invalid("no home directory for the state", hint="set XDG_STATE_HOME")
    return path
