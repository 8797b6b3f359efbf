"""Find sessions below a root, by names alone.

A child is in the real folder of its parent, to any depth. Trees of the original program differ: it puts a
grandchild into a folder with its parent's id at the top, and the breadcrumbs of every child too. So a folder
without a session.json may still contain sessions and breadcrumbs, and relations come from the ids in the
documents, not from the places.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Set
from typing import Any, NamedTuple

from sessionary.codec import decode_object
from sessionary.disk.fs import Fs, names_in, not_found, read_bytes, stat_or_none
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION, check_id
from sessionary.model import Problem, Severity

_PARENT_KEYS = ("parent_session_id", "parent_wsession_id")
_FILES = (".json", ".jsonl", ".tmp", ".md")
_KNOWN = (SESSION, BREADCRUMBS)  # present in every session, and not sessions


class Place(NamedTuple):
    """A folder below the root.

    Attributes:
        name: its name, which is the id of its session unless the document has another.
        folder: its path.
        is_session: True if it has a session.json.
    """

    name: str
    folder: str
    is_session: bool


def walk(fs: Fs, root: str, closed: list[StorageFailed] | None = None) -> Iterator[Place]:
    """Every folder below the root that may be a session or contain some, parents before children, never `breadcrumbs`.

    Args:
        root: the root; a missing one has no folders.
        closed: gets the errors of unreadable folders; without it the first one is raised.
    """
    waiting = [("", root, False)]
    while waiting:
        name, folder, nested = waiting.pop()
        if nested and _is_link(fs, folder):
            continue  # a link may point upwards
        names = names_in(fs, folder, closed)
        if names is None or (name and SESSION not in names and _is_link(fs, folder)):
            continue  # a linked session is accepted; any other link may lead to the whole file system
        if name:
            yield Place(name, folder, SESSION in names)
        waiting += [
            (each, f"{folder}/{each}", name != "")
            for each in sorted(names, reverse=True)
            if each[0] != "." and each not in _KNOWN and not (name and each.endswith(_FILES))
        ]


def find_folder(fs: Fs, root: str, session_id: str) -> str | None:
    """The folder of the session with this id: the one of that name with a session.json, at any depth.

    None if there is none. The place of a session without parent is tried first.

    Raises:
        InvalidId: the id cannot name a folder.
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
    """The folder of an existing session. Raises as `find_folder`, and NotFound."""
    folder = find_folder(fs, root, session_id)
    if folder is None:
        raise no_session(root, session_id)
    return folder


def no_session(root: str, session_id: str) -> NotFound:
    """The error for an id without a session."""
    return not_found(root, f"no work session {session_id} in {root}", ["`sessionary work list` lists all"])


def closed_folder(error: StorageFailed) -> Problem:
    """A folder that cannot be read may contain sessions that are not listed."""
    return Problem.of_file("unreadable_folder", Severity.hides_data, error.path or "", str(error), error.hint)


def mailboxes(fs: Fs, root: str, session_id: str, folder: str | None) -> list[str]:
    """The folders that may hold breadcrumbs of a session: its own, then the top-level one of the original program."""
    stray = f"{root}/{session_id}"
    if folder is None:
        return [stray]
    if folder == stray or stat_or_none(fs, f"{stray}/{BREADCRUMBS}") is None:
        return [folder]
    return [folder, stray]


def places_below(fs: Fs, folder: str, session_id: str, children: Set[str]) -> list[str]:
    """The folders that may hold the children of the session in a folder; the rest of the tree is not searched.

    These are its own folder, and those at the top that the original program uses: the folder with its id, and
    those with the ids of its children.
    """
    top = top_of(fs, folder)
    found = [place.folder for start in {folder, f"{top}/{session_id}"} for place in walk(fs, start, [])]
    return [*found, *(f"{top}/{child}" for child in sorted(children))]


def top_of(fs: Fs, folder: str) -> str:
    """The folder that contains all sessions of the tree of a session."""
    here = folder
    while True:
        above = os.path.dirname(here)
        nested = stat_or_none(fs, os.path.join(above, SESSION)) is not None
        if above == here or not (nested or os.path.basename(above) in _parents(fs, here)):
            return above
        here = above


def _parents(fs: Fs, folder: str) -> list[Any]:
    """The id of the parent, by either name in the document."""
    document = decode_object(read_bytes(fs, os.path.join(folder, SESSION)) or b"") or {}
    return [document.get(key) for key in _PARENT_KEYS]


def _is_link(fs: Fs, path: str) -> bool:
    try:
        return stat.S_ISLNK(fs.lstat(path).st_mode)
    except OSError:
        return True  # removed since its name was read
