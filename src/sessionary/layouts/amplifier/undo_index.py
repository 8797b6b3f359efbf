"""The changes that can be undone in a folder of sessions, from rewinds to the trash.

`transactions.undo` undoes the last operation on one session, `trash.bring_back` restores a session from the
trash, `restore_conflict` a version that a save replaced. A user's "undo" means the latest of them. This
module only reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from stat import S_ISDIR
from typing import Any, NamedTuple

from sessionary.disk import transaction
from sessionary.disk.fs import OS_FS, Fs, names_in, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.files import TRANSCRIPT
from sessionary.layouts.amplifier.trash import all_files
from sessionary.layouts.trash import TRASH as TRASH_FOLDER
from sessionary.layouts.trash import moment, trashed

TRASH, CONFLICT = "trash", "conflict"
_CONFLICT = f"{TRANSCRIPT}.conflict-"


class Undoable(NamedTuple):
    """A change that can be undone.

    Attributes:
        session_id: the session.
        operation: ``rewind``, ``repair``, ``restore-backup``, ``restore-conflict``, ``undo``; ``trash``; or
        ``conflict``: a save replaced what another program had stored.
        at: the time, as text that sorts.
        kept_in: the folder, or the file, with the replaced data.
        size: its size in bytes.
        facts: details of the operation.
        next: True if `undo` of this session undoes this one.
    """

    session_id: str
    operation: str
    at: str
    kept_in: str
    size: int
    facts: dict[str, Any]
    next: bool = False

    @property
    def when(self) -> datetime | None:
        """The time of the change; None if its name has none."""
        return moment(self.at)


def undoable(
    root: str, session_id: str | None = None, *, fs: Fs = OS_FS, closed: list[StorageFailed] | None = None
) -> list[Undoable]:
    """The changes of the sessions in a folder (or of one of them) that can be undone, newest first.

    Args:
        closed: if given, errors of unreadable folders are added there.
    """
    failures: list[StorageFailed] = [] if closed is None else closed
    found = _gathered(_in_trash(fs, root, session_id), os.path.join(root, TRASH_FOLDER), failures)
    for name in [session_id] if session_id is not None else names_in(fs, root, failures) or ():
        found += _gathered(_in_folder(fs, root, name), os.path.join(root, name), failures)
    if closed is None and failures:
        raise failures[0]
    # At equal times: a conflict made by `restore_conflict` comes after that operation, which undoes it as
    # well.
    found.sort(key=lambda one: (one.at, one.operation != CONFLICT), reverse=True)
    seen: set[str] = set()
    marked = []
    for one in found:
        marked.append(one._replace(next=one.session_id not in seen))
        seen.add(one.session_id)
    return marked


def _in_trash(fs: Fs, root: str, session_id: str | None) -> Iterator[Undoable]:
    for one in trashed(fs, root):
        if session_id in (None, one.session_id):
            yield Undoable(one.session_id, TRASH, one.at, one.path, size_of(fs, one.path), {})


def _in_folder(fs: Fs, root: str, name: str) -> Iterator[Undoable]:
    folder = os.path.join(root, name)
    inside = [] if name.startswith(".") else names_in(fs, folder) or []
    if transaction.UNDO in inside:
        for entry in transaction.entries(fs, folder):
            yield Undoable(name, entry.operation, entry.at, entry.path, entry.size, entry.facts)
    for file in inside:
        if file.startswith(_CONFLICT):
            path = os.path.join(folder, file)
            yield Undoable(name, CONFLICT, file.removeprefix(_CONFLICT), path, fs.stat(path).st_size, {})


def _gathered(found: Iterator[Undoable], place: str, closed: list[StorageFailed]) -> list[Undoable]:
    """All changes found; errors of unreadable folders are added to `closed`."""
    gathered: list[Undoable] = []
    try:
        gathered.extend(found)
    except StorageFailed as error:
        closed.append(error)
    except OSError as error:
        closed.append(storage_failed(error, "read", place))
    return gathered


def size_of(fs: Fs, folder: str) -> int:
    """The size of all files below a folder; links are not followed."""
    found = [fs.lstat(path) for path in all_files(fs, folder)]
    return sum(one.st_size for one in found if not S_ISDIR(one.st_mode))
