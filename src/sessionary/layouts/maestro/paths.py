"""Where sessions lie below a root, found by names alone.

A child lies in the real folder of its parent, to any depth. Trees of the original look otherwise: it puts a
grandchild into a folder of its parent's id at the top, and the breadcrumbs of every child too. So a folder that has
no session.json may still hold sessions and breadcrumbs: nothing is concluded from a place but that something lies
there, and the ids in the documents count.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Set
from typing import Any

from msgspec import Struct

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import Fs, not_found, read_bytes, stat_or_none, storage_failed
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION, check_id

_PARENT_KEYS = ("parent_session_id", "parent_wsession_id")
_FILES = (".json", ".jsonl", ".tmp", ".md")
_USUAL = frozenset({SESSION, BREADCRUMBS})  # what every session has, and what is none


class Below(Struct, frozen=True, gc=False):
    """A name in a folder that may be that of a session, or of a folder that holds some.

    Attributes:
        name: the name.
        folder: the path.
        nested: False if it lies right below the root.
    """

    name: str
    folder: str
    nested: bool


class Place(Struct, frozen=True, gc=False):
    """One folder below the root, or the root. It is made of names alone, so it holds as long as these do.

    Attributes:
        name: its name, which is the id of its session unless the document says otherwise.
        folder: its path.
        session: the path of its session.json; None if none lies in it.
        below: where to look further, the first name last.
    """

    name: str
    folder: str
    session: str | None
    below: tuple[Below, ...] = ()

    @property
    def is_session(self) -> bool:
        """True if a session.json lies in it."""
        return self.session is not None


def look_into(fs: Fs, name: str, folder: str) -> Place:
    """The place that a folder is. Raises OSError."""
    return place_of(fs.listdir(folder), name, folder)


def place_of(names: list[str], name: str, folder: str) -> Place:
    """The place that a folder with these names in it is."""
    below: tuple[Below, ...] = ()
    if len(names) > len(_USUAL) or not _USUAL.issuperset(names):
        below = tuple(
            Below(each, f"{folder}/{each}", name != "")
            for each in sorted(names, reverse=True)
            if each[0] != "." and each not in _USUAL and not (name and each.endswith(_FILES))
        )
    return Place(name, folder, f"{folder}/{SESSION}" if SESSION in names else None, below)


def walk(fs: Fs, root: str, closed: list[StorageFailed] | None = None) -> Iterator[Place]:
    """Every folder below the root that may be a session or hold some, parents before children, never `breadcrumbs`.

    Args:
        fs: the file system.
        root: the root; if it is not there, nothing is.
        closed: gets the errors of folders that cannot be looked into; without it the first one is raised.
    """
    top = _look(fs, "", root, closed)
    waiting = list(top.below) if top else []
    while waiting:
        found = waiting.pop()
        if found.nested and _is_link(fs, found.folder):
            continue  # a link may lead back up
        place = _look(fs, found.name, found.folder, closed)
        if place is None or (place.session is None and _is_link(fs, found.folder)):
            continue  # a session may be kept elsewhere; whatever else a link leads to may be the whole machine
        yield place
        if place.below:
            waiting += place.below


def find_folder(fs: Fs, root: str, session_id: str) -> str | None:
    """The folder of the session of this id: the one of that name that holds a session.json, wherever it lies.

    None if there is none. The place where a session without parent lies is looked at first.

    Raises:
        InvalidId: the id cannot name a folder.
        StorageFailed: it is nowhere to be seen, and a folder cannot be looked into.
    """
    folder = f"{root}/{check_id(session_id)}"
    if stat_or_none(fs, f"{folder}/{SESSION}") is not None:
        return folder
    closed: list[StorageFailed] = []
    for place in walk(fs, root, closed):
        if place.name == session_id and place.is_session:
            return place.folder
    if closed:
        raise closed[0]
    return None


def folder_of(fs: Fs, root: str, session_id: str) -> str:
    """The folder of a session that must be there. Raises as `find_folder`, and NotFound."""
    folder = find_folder(fs, root, session_id)
    if folder is None:
        raise no_session(root, session_id)
    return folder


def no_session(root: str, session_id: str) -> NotFound:
    """The error for an id that no session has."""
    return not_found(
        root,
        f"there is no work session {session_id} in {root}",
        ["`sessionary work list` shows those that are there"],
    )


def mailboxes(fs: Fs, root: str, session_id: str, folder: str | None) -> list[str]:
    """The folders in which breadcrumbs of a session may lie: its own, then the top-level one of the original."""
    stray = f"{root}/{session_id}"
    if folder is None:
        return [stray]
    if folder == stray or stat_or_none(fs, f"{stray}/{BREADCRUMBS}") is None:
        return [folder]
    return [folder, stray]


def places_below(fs: Fs, folder: str, session_id: str, children: Set[str]) -> list[str]:
    """The folders in which the children of the session in a folder may lie; the rest of the tree is not looked into.

    They lie in its own folder, where the original puts those of a child in the one of its id at the top, and those that
    are known by their ids there too.
    """
    top = top_of(fs, folder)
    found = [place.folder for start in {folder, f"{top}/{session_id}"} for place in walk(fs, start, [])]
    return [*found, *(f"{top}/{child}" for child in sorted(children))]


def top_of(fs: Fs, folder: str) -> str:
    """The folder that holds all sessions of the tree to which the session in a folder belongs.

    Raises:
        StorageFailed: the system does not tell where the session lies.
    """
    here = folder
    while True:
        above = os.path.dirname(here)
        nested = stat_or_none(fs, os.path.join(above, SESSION)) is not None
        if above == here or not (nested or os.path.basename(above) in _parents(fs, here)):
            return above
        here = above


def _parents(fs: Fs, folder: str) -> list[Any]:
    """The id of the parent, by whichever name the document gives it."""
    try:
        document = decode(read_bytes(fs, os.path.join(folder, SESSION)) or b"null")
    except Undecodable:
        return []
    return [document.get(key) for key in _PARENT_KEYS] if isinstance(document, dict) else []


def _is_link(fs: Fs, path: str) -> bool:
    try:
        return stat.S_ISLNK(fs.lstat(path).st_mode)
    except OSError:
        return True  # gone since its name was read


def _look(fs: Fs, name: str, folder: str, closed: list[StorageFailed] | None) -> Place | None:
    try:
        return look_into(fs, name, folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        failed = storage_failed(error, "look into", folder)
        if closed is None:
            raise failed from error
        closed.append(failed)
        return None
