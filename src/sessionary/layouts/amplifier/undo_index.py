"""The changes that can be undone in a folder of sessions, from rewinds to the trash.

`transactions.undo` undoes the last operation on one session, `trash.bring_back` restores a session from the
trash, `restore_conflict` a version that a save replaced. A user's "undo" means the latest of them. This
module only reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from stat import S_ISDIR

from msgspec.structs import replace

from sessionary.disk import transaction
from sessionary.disk.fs import Fs, names_in, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.files import TRANSCRIPT
from sessionary.layouts.amplifier.trash import all_files
from sessionary.layouts.changing import Trashed, Undoable
from sessionary.layouts.trash import TRASH as TRASH_FOLDER
from sessionary.layouts.trash import trashed
from sessionary.model import SessionRef

TRASH, CONFLICT = "trash", "conflict"
_CONFLICT = f"{TRANSCRIPT}.conflict-"

RefOf = Callable[[str], SessionRef]
"""The session of an id in one folder of sessions."""


def undoable(
    fs: Fs, root: str, ref_of: RefOf, session_id: str | None, closed: list[StorageFailed]
) -> list[Undoable]:
    """The changes of the sessions in a folder (or of one of them) that can be undone, oldest first.

    Args:
        ref_of: the session of an id.
        closed: errors of unreadable folders are added there.
    """
    found = _gathered(_in_trash(fs, root, ref_of, session_id), os.path.join(root, TRASH_FOLDER), closed)
    for name in [session_id] if session_id is not None else names_in(fs, root, closed) or ():
        found += _gathered(_in_folder(fs, ref_of(name)), os.path.join(root, name), closed)
    # At equal times: a conflict made by `restore_conflict` comes before that operation, which undoes it as
    # well.
    return sorted(found, key=lambda one: (one.at, one.operation != CONFLICT))


def in_trash(
    fs: Fs, root: str, ref_of: RefOf, closed: list[StorageFailed] | None = None
) -> Iterator[Trashed]:
    """The sessions in the trash of a folder of sessions; for `closed` see `trash.trashed`."""
    for row in trashed(fs, root, closed):
        ref = ref_of(row.session_id)
        yield Trashed(ref, replace(ref, locator=row.path), row.at, size_of(fs, row.path))


def _in_trash(fs: Fs, root: str, ref_of: RefOf, session_id: str | None) -> Iterator[Undoable]:
    for one in in_trash(fs, root, ref_of):
        if session_id in (None, one.ref.session_id):
            yield Undoable(one.ref, TRASH, one.at, one.size, one.stored.locator, {})


def _in_folder(fs: Fs, ref: SessionRef) -> Iterator[Undoable]:
    folder, name = ref.locator, ref.session_id
    inside = [] if name.startswith(".") else names_in(fs, folder) or []
    if transaction.UNDO in inside:
        for entry in transaction.entries(fs, folder):
            yield Undoable(ref, entry.operation, entry.at, entry.size, entry.path, entry.facts)
    for file in inside:
        if file.startswith(_CONFLICT):
            path = os.path.join(folder, file)
            yield Undoable(ref, CONFLICT, file.removeprefix(_CONFLICT), fs.stat(path).st_size, path, {})


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
