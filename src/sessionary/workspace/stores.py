"""The kinds of sessions: those in the folder of a project, with their layouts; and the homes that the user names."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sessionary.disk.fs import OS_FS, Fs, is_file, is_folder, read_bytes
from sessionary.errors import Invalid, NotFound
from sessionary.layouts import registry
from sessionary.layouts.amplifier.ids import HOME, PROJECTS, project_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Layout
from sessionary.xdg import config_folder

if TYPE_CHECKING:
    from sessionary.layouts.sync import SyncLayout


class _InProject(NamedTuple):
    """A kind of session that is stored in the folder of a project.

    Its package is imported on first use: a list of what agents have said does not need the modules that read YAML.

    Attributes:
        package: the package below `layouts`.
        layout: the class in its module `layout`, which reads the sessions.
        sync_layout: the class in its module `sync_adapter`.
    """

    package: str
    layout: str
    sync_layout: str
    place: str


IN_PROJECTS = {
    "work": _InProject("maestro", "MaestroLayout", "MaestroSyncLayout", "docs/sessions"),
    "brainstorm": _InProject(
        "brainstorm", "BrainstormLayout", "BrainstormSyncLayout", ".project-memory/brainstorm-sessions"
    ),
    "feature": _InProject("orchestrator", "FeatureLayout", "FeatureSyncLayout", ".ai-session"),
}

KINDS = (AmplifierLayout.name, *(one.name for one in registry.LAYOUTS), *IN_PROJECTS)
"""Every kind of session there is."""


def layout_in(root: Path, kind: str, fs: Fs = OS_FS) -> Layout:
    """The layout of one kind of session over the project in a folder, whether it has such sessions or not."""
    layout: Layout = _made(root, kind, "layout", IN_PROJECTS[kind].layout, fs)
    return layout


def sync_layout_in(root: Path, kind: str, fs: Fs) -> SyncLayout:
    """As `layout_in`, with what sync must know."""
    layout: SyncLayout = _made(root, kind, "sync_adapter", IN_PROJECTS[kind].sync_layout, fs)
    return layout


def _made(root: Path, kind: str, module: str, name: str, fs: Fs) -> Any:
    place = project = root
    if kind == "work":
        from sessionary.layouts.maestro.layout import project_of, root_in

        place = root_in(fs, root)
        project = project_of(place)
    made = getattr(import_module(f"sessionary.layouts.{IN_PROJECTS[kind].package}.{module}"), name)
    return made(place, fs, project=project_slug(project))


def has_sessions(root: Path, kind: str, fs: Fs) -> bool:
    """True if a folder is a project with sessions of this kind; of work and features also for their own folder."""
    place = IN_PROJECTS[kind].place
    if _may_be(fs, root / place):
        return True
    if kind == "work" and _holds_work_session(root, fs):
        return True
    is_place = root.absolute().parts[-len(Path(place).parts) :] == Path(place).parts
    return is_place and kind != "brainstorm" and _may_be(fs, root)


def _holds_work_session(root: Path, fs: Fs) -> bool:
    try:
        names = fs.listdir(str(root))
    except OSError:
        return False
    return any(is_file(fs, f"{root}/{name}/session.json") for name in names)


def _may_be(fs: Fs, folder: Path) -> bool:
    """True for a folder, and where the system refuses to say: its layout reports that."""
    try:
        return stat.S_ISDIR(fs.stat(str(folder)).st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


def _holds(fs: Fs, folder: Path, place: str) -> bool:
    """True if a folder holds a place: a folder if it ends with a slash, else a file; `*` stands for any characters."""
    first, _, rest = place.partition("/")
    if "*" not in first:
        return _may_be(fs, folder / place) if place.endswith("/") else is_file(fs, str(folder / place))
    try:
        names = [name for name in fs.listdir(str(folder)) if fnmatchcase(name, first) and name[0] != "."]
    except OSError:
        return False
    return any(_holds(fs, folder / name, rest) if rest else is_file(fs, str(folder / name)) for name in names)


def is_home(folder: str) -> bool:
    """True for a folder that holds the projects of an agent."""
    return is_folder(OS_FS, f"{folder}/{PROJECTS}")


def check_folder(folder: Path, *, named_by: str) -> None:
    """Refuse a folder that a user named and that is missing. For commands that begin a store in it.

    Args:
        named_by: how it was named, for the message: ``--home``.

    Raises:
        NotFound: it is missing.
    """
    if not _may_be(OS_FS, folder):
        raise NotFound(
            f"{named_by}: there is no folder {folder}",
            path=folder,
            hint="check the path for a typing error, or make the folder",
        )


def check_store(folder: Path, kind: str | None = None, *, named_by: str) -> None:
    """Refuse a named folder that holds no store.

    Args:
        kind: the kind of session that it must hold; None for any, those of agents too.
        named_by: how it was named, for the message: ``--home``.

    Raises:
        NotFound: it is missing, or holds no store of that kind.
    """
    check_folder(folder, named_by=named_by)
    kinds = list(IN_PROJECTS) if kind is None else [kind]
    if any(has_sessions(folder, one, OS_FS) for one in kinds):
        return
    lacks = ""
    hint = "name the folder of an agent, as ~/.claude, or of a project; `sessionary doctor` shows those known"
    if kind is not None:
        lacks = f"; it has no {IN_PROJECTS[kind].place}/"
        hint = f"{named_by} names the folder that holds {IN_PROJECTS[kind].place}/"
    elif any(
        _holds(OS_FS, folder, place)
        for place in (f"{PROJECTS}/", *chain.from_iterable(one.places for one in registry.LAYOUTS))
    ):
        return
    raise NotFound(f"{named_by}: {folder} holds no sessions{lacks}", path=folder, hint=hint)


HOMES_FILE = "homes.json"


def homes_of_user() -> dict[str, list[Path]]:
    """For each kind of agent that the file names: the agent's own home, then those of the file.

    The file is an object with a list of folders for each kind: ``{"claude_code": ["/mnt/old/.claude"]}``.

    Raises:
        Invalid: the file is not like that.
    """
    folder = config_folder()
    data = None if folder is None else read_bytes(OS_FS, f"{folder}/{HOMES_FILE}")
    if data is None:
        return {}
    from sessionary.codec import Undecodable, decode  # here, since few users have the file

    usual: Mapping[str, Path] = {
        AmplifierLayout.name: Path(HOME),
        **{one.name: one.default_home() for one in registry.LAYOUTS},
    }
    path = f"{folder}/{HOMES_FILE}"
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
