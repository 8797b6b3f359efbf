"""What only a look at the neighbours tells of a session: whether its parent is there, and where everything lies.

Reads only. What an ordinary user need not act on is a note: trees of the original are odd in many of these ways, and
nothing is lost by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from sessionary.disk.fs import Fs
from sessionary.errors import SessionaryError, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import CrumbFile, oddities
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION
from sessionary.layouts.maestro.paths import walk
from sessionary.layouts.maestro.records import TYPES, WorkSession
from sessionary.layouts.maestro.session_file import read_session
from sessionary.model import Problem, Severity


def neighbour_problems(fs: Fs, root: str, folder: str, session: WorkSession) -> Iterator[Problem]:
    """What is odd about the place of a session, its parent and its type."""
    path = f"{folder}/{SESSION}"
    closed: list[StorageFailed] = []  # whoever lists the sessions tells of these
    places = [place for place in walk(fs, root, closed) if place.is_session]
    if session.session_type not in TYPES:
        words = f"the type {session.session_type!r} is none of {', '.join(sorted(TYPES))}"
        yield Problem("unknown_type", Severity.note, path, None, None, words)
    others = [place.folder for place in places if place.name == session.session_id and place.folder != folder]
    if others:
        words = f"another session has the same id: {', '.join(others)}"
        yield Problem(
            "duplicate_session", Severity.hides_data, path, None, None, words, "move one of the two away"
        )
    if session.parent is not None:
        folders = {place.name: place.folder for place in places}
        yield from _of_parent(fs, folders, folder, session)


def mailbox_problems(root: str, folder: str, boxes: Sequence[str]) -> Iterator[Problem]:
    """That breadcrumbs of a child lie at the top, where the original puts them."""
    for box in boxes:
        if box != folder:
            words = f"breadcrumbs of this session lie in {os.path.relpath(box, root)} too; they are read"
            yield Problem("stray_breadcrumbs", Severity.note, f"{box}/{BREADCRUMBS}", None, None, words)


def crumb_problems(fs: Fs, files: Sequence[CrumbFile], ids: Sequence[str]) -> Iterator[Problem]:
    """What is odd about breadcrumbs that can be read; `ids` are theirs, in the same order."""
    seen: dict[str, str] = {}
    for file, crumb_id in zip(files, ids, strict=True):
        yield from oddities(fs, file)
        if crumb_id in seen:
            words = f"the id {crumb_id} stands in {seen[crumb_id]} too; consumers take the message once"
            yield Problem("duplicate_breadcrumb", Severity.note, file.path, None, None, words)
        seen.setdefault(crumb_id, file.file)


def _of_parent(fs: Fs, folders: dict[str, str], folder: str, session: WorkSession) -> Iterator[Problem]:
    path, parent = f"{folder}/{SESSION}", session.parent or ""
    above = folders.get(parent)
    if above is None:
        words = f"its parent {parent} is not there"
        yield Problem("orphan", Severity.note, path, None, None, words)
        return
    if os.path.dirname(folder) != above:
        words = f"it lies in {os.path.dirname(folder)}, and its parent in {above}; the parent id counts"
        yield Problem("stray_session", Severity.note, path, None, None, words)
    ring = _ring(fs, folders, session)
    if ring:
        words = f"it is its own ancestor: {' → '.join(ring)}"
        yield Problem(
            "parent_cycle", Severity.hides_data, path, None, None, words, "give one of them another parent"
        )
    elif not session.is_closed and (found := _session(fs, above)) is not None and found.is_closed:
        words = f"it is {session.status}, and its parent {parent} is closed"
        yield Problem("open_below_closed", Severity.note, path, None, None, words)


def _ring(fs: Fs, folders: dict[str, str], session: WorkSession) -> list[str]:
    """The ids from a session up to itself; empty if its parents end somewhere else."""
    seen = [session.session_id]
    current: WorkSession | None = session
    while current is not None and current.parent is not None:
        if current.parent == session.session_id:
            return [*seen, session.session_id]
        if current.parent in seen or current.parent not in folders:
            return []
        seen.append(current.parent)
        current = _session(fs, folders[current.parent])
    return []


def _session(fs: Fs, folder: str) -> WorkSession | None:
    try:
        return read_session(f"{folder}/{SESSION}", fs=fs)
    except SessionaryError:
        return None
