"""Checks of a session against its neighbours: its parent, and the places of its files.

Reads only. Harmless findings are notes: trees of the original program are often irregular, and nothing is lost by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.layouts.maestro.breadcrumbs import Crumb, CrumbFile, oddities
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION
from sessionary.layouts.maestro.paths import walk
from sessionary.layouts.maestro.records import TYPES, WorkSession
from sessionary.layouts.maestro.session_file import session_in
from sessionary.model import Problem, Severity


def neighbour_problems(fs: Fs, root: str, folder: str, session: WorkSession) -> Iterator[Problem]:
    """Problems with the place of a session, its parent and its type."""
    path = f"{folder}/{SESSION}"
    closed: list[StorageFailed] = []  # reported by the listing of sessions
    places = [place for place in walk(fs, root, closed) if place.is_session]
    if session.session_type not in TYPES:
        words = f"unknown type {session.session_type!r}; known are {', '.join(sorted(TYPES))}"
        yield Problem.of_file("unknown_type", Severity.note, path, words)
    others = [place.folder for place in places if place.name == session.session_id and place.folder != folder]
    if others:
        words = f"another session has the same id: {', '.join(others)}"
        remedy = "move one of them out of the sessions folder"
        yield Problem.of_file("duplicate_session", Severity.hides_data, path, words, remedy)
    if session.parent is not None:
        folders = {place.name: place.folder for place in places}
        yield from _of_parent(fs, folders, folder, session)


def mailbox_problems(root: str, folder: str, boxes: Sequence[str]) -> Iterator[Problem]:
    """Breadcrumbs of a child at the top level, where the original program puts them."""
    for box in boxes:
        if box != folder:
            words = f"more breadcrumbs of this session are in {os.path.relpath(box, root)}; they are read"
            yield Problem.of_file("stray_breadcrumbs", Severity.note, f"{box}/{BREADCRUMBS}", words)


def crumb_problems(reads: Iterable[tuple[CrumbFile, Crumb]]) -> Iterator[Problem]:
    """Problems with readable breadcrumbs."""
    seen: dict[str, str] = {}
    for file, read in reads:
        if read.breadcrumb is None:
            continue
        yield from oddities(file, read.data)
        crumb_id = read.breadcrumb.breadcrumb_id
        if crumb_id in seen:
            words = f"the id {crumb_id} is also in {seen[crumb_id]}; consumers apply the message once"
            yield Problem.of_file("duplicate_breadcrumb", Severity.note, file.path, words)
        seen.setdefault(crumb_id, file.file)


def _of_parent(fs: Fs, folders: dict[str, str], folder: str, session: WorkSession) -> Iterator[Problem]:
    path, parent = f"{folder}/{SESSION}", session.parent or ""
    above = folders.get(parent)
    if above is None:
        words = f"its parent {parent} is missing"
        yield Problem.of_file("orphan", Severity.note, path, words)
        return
    if os.path.dirname(folder) != above:
        words = f"it is in {os.path.dirname(folder)}, its parent in {above}; the parent id is used"
        yield Problem.of_file("stray_session", Severity.note, path, words)
    ring = _ring(fs, folders, session)
    if ring:
        words = f"it is its own ancestor: {' → '.join(ring)}"
        yield Problem.of_file(
            "parent_cycle", Severity.hides_data, path, words, "set another parent for one of them"
        )
    elif not session.is_closed and (found := session_in(fs, above)) is not None and found.is_closed:
        words = f"it is {session.status}, and its parent {parent} is closed"
        yield Problem.of_file("open_below_closed", Severity.note, path, words)


def _ring(fs: Fs, folders: dict[str, str], session: WorkSession) -> list[str]:
    """The ids from a session up to itself; empty if there is no cycle."""
    seen = [session.session_id]
    current: WorkSession | None = session
    while current is not None and current.parent is not None:
        if current.parent == session.session_id:
            return [*seen, session.session_id]
        if current.parent in seen or current.parent not in folders:
            return []
        seen.append(current.parent)
        current = session_in(fs, folders[current.parent])
    return []
