"""The kinds of stores that a project has in its own folder: where they lie, and which layouts read and write them."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, Fs, is_file, is_folder
from sessionary.errors import NotFound
from sessionary.layouts import registry
from sessionary.layouts.amplifier.ids import PROJECTS, project_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Layout
from sessionary.layouts.sync import SyncLayout


def _brainstorms(root: Path, fs: Fs) -> Layout:
    from sessionary.layouts.brainstorm.layout import BrainstormLayout

    return BrainstormLayout(root, fs, project=project_slug(root))


def _features(root: Path, fs: Fs) -> Layout:
    from sessionary.layouts.orchestrator.layout import FeatureLayout

    return FeatureLayout(root, fs, project=project_slug(root))


def _work_sessions(root: Path, fs: Fs) -> Layout:
    from sessionary.layouts.maestro.layout import MaestroLayout, project_of, root_in

    place = root_in(fs, root)
    return MaestroLayout(place, fs, project=project_slug(project_of(place)))


def _may_be(fs: Fs, folder: Path) -> bool:
    """True for a folder, and where the system refuses to say: its layout reports that."""
    try:
        return stat.S_ISDIR(fs.stat(str(folder)).st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


def _has_work_sessions(root: Path, fs: Fs) -> bool:
    """True for a project, and for the folder in it that the sessions lie in."""
    is_place = root.absolute().parts[-2:] == ("docs", "sessions") and _may_be(fs, root)
    return is_place or _may_be(fs, root / "docs" / "sessions") or _holds_work_session(root, fs)


def _holds_work_session(root: Path, fs: Fs) -> bool:
    try:
        names = fs.listdir(str(root))
    except OSError:
        return False
    return any(is_file(fs, f"{root}/{name}/session.json") for name in names)


class _InProject(NamedTuple):
    """A kind of session that is stored in the folder of a project.

    Attributes:
        made: makes its layout, which is imported only then: a list of what agents have said need not wait for the
            modules that read YAML.
        is_there: True if a folder has sessions of this kind.
        place: the folder that is looked for.
    """

    made: Callable[[Path, Fs], Layout]
    is_there: Callable[[Path, Fs], bool]
    place: str


IN_PROJECTS = {
    "work": _InProject(_work_sessions, _has_work_sessions, "docs/sessions"),
    "brainstorm": _InProject(
        _brainstorms,
        lambda root, fs: _may_be(fs, root / ".project-memory/brainstorm-sessions"),
        ".project-memory/brainstorm-sessions",
    ),
    "feature": _InProject(
        _features,
        lambda root, fs: (
            _may_be(fs, root / ".ai-session") or (root.name == ".ai-session" and _may_be(fs, root))
        ),
        ".ai-session",
    ),
}


KINDS = (AmplifierLayout.name, *(one.name for one in registry.AGENTS), *IN_PROJECTS)
"""Every kind of session there is."""


def layout_in(root: Path, kind: str, fs: Fs = OS_FS) -> Layout:
    """The layout of one kind of session over the project in a folder, whether it has such sessions or not."""
    return IN_PROJECTS[kind].made(root, fs)


def is_home(folder: str) -> bool:
    """True for a folder that holds the projects of an agent."""
    return is_folder(OS_FS, f"{folder}/{PROJECTS}")


def check_folder(folder: Path, *, named_by: str, fs: Fs = OS_FS) -> None:
    """Refuse a folder that a user named and that is missing. For commands that begin a store in it.

    Args:
        folder: the folder.
        named_by: how it was named, for the message: ``--home``.
        fs: the file system.

    Raises:
        NotFound: it is missing.
    """
    if not _may_be(fs, folder):
        raise NotFound(
            f"{named_by}: there is no folder {folder}",
            path=folder,
            hint="check the path for a typing error, or make the folder",
        )


def check_store(folder: Path, kind: str | None = None, *, named_by: str, fs: Fs = OS_FS) -> None:
    """Refuse a named folder that holds no store.

    Args:
        folder: the folder.
        kind: the kind of session that it must hold; None for any, those of agents too.
        named_by: how it was named, for the message: ``--home``.
        fs: the file system.

    Raises:
        NotFound: it is missing, or holds no store of that kind.
    """
    check_folder(folder, named_by=named_by, fs=fs)
    kinds = IN_PROJECTS if kind is None else {kind: IN_PROJECTS[kind]}
    if any(one.is_there(folder, fs) for one in kinds.values()):
        return
    places = [f"{one.place}/" for one in kinds.values()]
    if kind is None:
        if _may_be(fs, folder / PROJECTS):
            return
        places.insert(0, f"{PROJECTS}/")
    raise NotFound(
        f"{named_by}: {folder} holds no sessions; looked for {', '.join(places)} in it",
        path=folder,
        hint=f"{named_by} names the folder that holds {' or '.join(places)}",
    )


def _brainstorms_received(root: Path, fs: Fs) -> SyncLayout:
    from sessionary.layouts.brainstorm.sync_adapter import BrainstormSyncLayout

    return BrainstormSyncLayout(root, fs, project=project_slug(root))


def _features_received(root: Path, fs: Fs) -> SyncLayout:
    from sessionary.layouts.orchestrator.sync_adapter import FeatureSyncLayout

    return FeatureSyncLayout(root, fs, project=project_slug(root))


def _work_sessions_received(root: Path, fs: Fs) -> SyncLayout:
    from sessionary.layouts.maestro.layout import project_of, root_in
    from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout

    place = root_in(fs, root)
    return MaestroSyncLayout(place, fs, project=project_slug(project_of(place)))


SYNC_LAYOUTS = (
    _work_sessions_received,
    _brainstorms_received,
    _features_received,
)
