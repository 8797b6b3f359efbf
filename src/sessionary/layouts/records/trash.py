"""The trash of the sessions of a framework: `.trash/<time>/<name>.records` in its folder.

The quarantined lines of a session move with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, names_in, not_found, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, NotFound, StorageFailed
from sessionary.layouts.records.journal import LOCK_SUFFIX
from sessionary.layouts.records.names import SUFFIX
from sessionary.layouts.trash import ERASING, TRASH, newest, remove_empty, trash_name, trashed
from sessionary.layouts.trash import Trashed as Row
from sessionary.model import SessionRef

TIMEOUT = 30.0
_SIDES = (".torn-", ".corrupt-")


@contextmanager
def held(fs: Fs, ref: SessionRef, *, note: str | None = None) -> Iterator[None]:
    """Hold the lock of a session that is there.

    Raises:
        NotFound: it is gone.
        Locked: another process holds it.
    """
    lock = FileLock(ref.locator + LOCK_SUFFIX, fs)
    _require(fs, ref)
    try:
        with lock.held(TIMEOUT, note=note):
            _require(fs, ref)
            yield
    finally:
        lock.close()


def _require(fs: Fs, ref: SessionRef) -> None:
    if stat_or_none(fs, ref.locator) is None:
        raise not_found(ref.locator, f"Session '{ref.session_id}' not found")


def discard(fs: Fs, path: str, now: datetime) -> str:
    """Move a session to the trash; return its place there. The caller holds its lock.

    Durability: when this returns, the move survives a power cut.
    """
    folder, name = os.path.split(path)
    target = trash_name(fs, folder, name, now)
    atomic.move_folder(path, target, fs=fs)
    _move_sides(fs, folder, name, os.path.dirname(target))
    return target


def restore(fs: Fs, ref: SessionRef) -> None:
    """As `Reverts.restore`."""
    folder, name = os.path.split(ref.locator)
    there = newest(fs, folder, name)
    if there is None:
        raise NotFound(
            f"Session '{ref.session_id}' is not in the trash",
            path=os.path.join(folder, TRASH),
            session=ref.session_id,
        )
    place = os.path.join(folder, TRASH, there[0])
    lock = FileLock(ref.locator + LOCK_SUFFIX, fs)
    try:
        with lock.held(TIMEOUT, note="undo"):
            atomic.move_folder(os.path.join(place, name), ref.locator, fs=fs)
            _move_sides(fs, place, name, folder)
    except AlreadyExists as error:
        error.hint = "move the session that has this id now to the trash, then undo again"
        raise
    finally:
        lock.close()
    remove_empty(fs, place)


def rows(fs: Fs, folder: str, closed: list[StorageFailed]) -> list[Row]:
    """The sessions in the trash of a folder, each with its file, the newest first."""
    return [row for row in trashed(fs, folder, closed) if row.session_id.endswith(SUFFIX)]


def size_of(fs: Fs, path: str) -> int:
    """The bytes of a session in the trash, with its quarantined lines."""
    place, name = os.path.split(path)
    found = (stat_or_none(fs, f"{place}/{one}") for one in (name, *_sides(fs, place, name)))
    return sum(one.st_size for one in found if one is not None)


def delete(fs: Fs, path: str) -> bool:
    """As `Reverts.delete_trashed`."""
    place, name = os.path.split(path)
    trash, time = os.path.split(place)
    erasing = os.path.join(trash, ERASING)
    found = stat_or_none(fs, path) is not None
    for one in (name, *_sides(fs, place, name)) if found else ():
        atomic.move_folder(f"{place}/{one}", f"{erasing}/{time}/{one}", fs=fs)
    remove_empty(fs, place)
    if stat_or_none(fs, erasing) is not None:
        atomic.erase_tree(erasing, fs=fs)
    return found


def _move_sides(fs: Fs, source: str, name: str, target: str) -> None:
    for side in _sides(fs, source, name):
        atomic.move_folder(f"{source}/{side}", f"{target}/{side}", fs=fs)


def _sides(fs: Fs, folder: str, name: str) -> list[str]:
    """The files with quarantined lines of a session. Another session's id may begin with the name of its file."""
    begins = tuple(name + side for side in _SIDES)
    return [
        one for one in names_in(fs, folder) or () if one.startswith(begins) and SUFFIX not in one[len(name) :]
    ]
