"""Trash folders: trashed sessions, by the time of the move.

The trash is `<folder>/.trash/<time>/<name>`: on the same file system, so that a move is one rename, and behind a dot,
so that it is hidden from lists. It is never emptied automatically.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, names_in
from sessionary.errors import StorageFailed
from sessionary.layouts.clock import moment

TRASH = ".trash"
ERASING = ".erasing"
"""Where what is deleted permanently is moved first: an interrupted deletion leaves parts that are hidden from lists."""


class Trashed(NamedTuple):
    """A folder or file in the trash.

    Attributes:
        session_id: its name: the id of a session that is a folder.
        at: when it was trashed, as text that sorts.
    """

    session_id: str
    at: str
    path: str

    @property
    def when(self) -> datetime | None:
        """When it was trashed; None for a folder with a foreign name."""
        return moment(self.at)


def trashed(fs: Fs, root: str, closed: list[StorageFailed] | None = None) -> list[Trashed]:
    """The trash of a folder, newest first.

    Args:
        closed: if given, an unreadable trash is added there, and treated as empty.
    """
    try:
        return [Trashed(name, at, os.path.join(root, TRASH, at, name)) for at, name in _trashed(fs, root)]
    except StorageFailed as error:
        if closed is None:
            raise
        closed.append(error)
        return []


def newest(fs: Fs, root: str, name: str | None) -> tuple[str, str] | None:
    """The time and the name of what was trashed last (under that name); None if the trash has none."""
    return next((pair for pair in _trashed(fs, root) if name in (None, pair[1])), None)


def trash_name(fs: Fs, root: str, name: str, now: datetime) -> str:
    """A free place in the trash; two calls in one microsecond get neighbouring times."""
    times = atomic.numbered(os.path.join(root, TRASH, atomic.timestamp_name(now)))
    return atomic.unused(fs, (os.path.join(time, name) for time in times))


def remove_empty(fs: Fs, folder: str) -> None:
    """Remove a folder of the trash, unless others were trashed at the same time."""
    with suppress(OSError):
        fs.rmdir(folder)


def _trashed(fs: Fs, root: str) -> list[tuple[str, str]]:
    """(time, name) of what is in the trash, newest first."""
    trash = os.path.join(root, TRASH)
    times = sorted((name for name in names_in(fs, trash) or () if not name.startswith(".")), reverse=True)
    # A foreign file has no names in it.
    return [(time, name) for time in times for name in sorted(names_in(fs, os.path.join(trash, time)) or ())]
