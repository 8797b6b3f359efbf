"""Where sessions lie below a root, found by names alone.

A child lies in the real folder of its parent, to any depth. Trees of the original look otherwise: it puts a
grandchild into a folder of its parent's id at the top, and the breadcrumbs of every child too. So a folder that has
no session.json may still hold sessions and breadcrumbs: nothing is concluded from a place but that something lies
there, and the ids in the documents count.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import NamedTuple

from sessionary.disk.fs import Fs, look, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION, check_id
from sessionary.layouts.maestro.remembering import Memory

_FILES = (".json", ".jsonl", ".tmp", ".md")
_USUAL = frozenset({SESSION, BREADCRUMBS})  # what every session has, and what is none


class Place(NamedTuple):
    """One folder below the root.

    Attributes:
        name: its name, which is the id of its session unless the document says otherwise.
        folder: its path.
        names: what lies in it.
    """

    name: str
    folder: str
    names: list[str]

    @property
    def is_session(self) -> bool:
        """True if a session.json lies in it."""
        return SESSION in self.names


def walk(
    fs: Fs, root: str, closed: list[StorageFailed] | None = None, memory: Memory | None = None
) -> Iterator[Place]:
    """Every folder below the root that may be a session or hold some, parents before children, never `breadcrumbs`.

    Args:
        fs: the file system.
        root: the root; if it is not there, nothing is.
        closed: gets the errors of folders that cannot be looked into; without it the first one is raised.
        memory: what earlier walks have read of the folders.
    """
    top = _names(fs, root, closed, memory) or ()
    waiting = [(name, f"{root}/{name}", 1) for name in sorted(top, reverse=True) if _may_be_session(name)]
    while waiting:
        name, folder, depth = waiting.pop()
        if depth > 1 and (name.endswith(_FILES) or _is_link(fs, folder)):
            continue  # a link may lead back up
        names = _names(fs, folder, closed, memory)
        if names is None or (SESSION not in names and _is_link(fs, folder)):
            continue  # a session may be kept elsewhere; whatever else a link leads to may be the whole machine
        yield Place(name, folder, names)
        if len(names) > 2 or not _USUAL.issuperset(names):
            below = sorted(filter(_may_be_session, names), reverse=True)
            waiting += [(each, f"{folder}/{each}", depth + 1) for each in below]


def _may_be_session(name: str) -> bool:
    return name[0] != "." and name not in _USUAL


def find_folder(fs: Fs, root: str, session_id: str) -> str | None:
    """The folder of the session of this id: the one of that name that holds a session.json, wherever it lies.

    None if there is none. The place where a session without parent lies is looked at first.

    Raises:
        InvalidId: the id cannot name a folder.
        StorageFailed: it is nowhere to be seen, and a folder cannot be looked into.
    """
    folder = f"{root}/{check_id(session_id)}"
    if look(fs, f"{folder}/{SESSION}") is not None:
        return folder
    closed: list[StorageFailed] = []
    for place in walk(fs, root, closed):
        if place.name == session_id and place.is_session:
            return place.folder
    if closed:
        raise closed[0]
    return None


def mailboxes(fs: Fs, root: str, session_id: str, folder: str | None) -> list[str]:
    """The folders in which breadcrumbs of a session may lie: its own, then the top-level one of the original."""
    stray = f"{root}/{session_id}"
    if folder is None:
        return [stray]
    if folder == stray or look(fs, f"{stray}/{BREADCRUMBS}") is None:
        return [folder]
    return [folder, stray]


def _is_link(fs: Fs, path: str) -> bool:
    try:
        return stat.S_ISLNK(fs.lstat(path).st_mode)
    except OSError:
        return True  # gone since its name was read


def _names(
    fs: Fs, folder: str, closed: list[StorageFailed] | None, memory: Memory | None
) -> list[str] | None:
    try:
        return fs.listdir(folder) if memory is None else memory.listdir(fs, folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        failed = storage_failed(error, "look into", folder)
        if closed is None:
            raise failed from error
        closed.append(failed)
        return None
