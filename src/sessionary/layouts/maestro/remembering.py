"""What earlier lists have read, believed for as long as the stats of file and folder say that nothing has changed.

A program that lists its sessions again and again, as a status line does, then opens only what was written in between.
Each list gets records of its own, which its caller may change: copies, which take less time than the bytes take to
be read as JSON.

Nothing is remembered of what was touched less than two seconds ago: within one tick of a file system's clock a
second change would leave no trace (see `layouts.base.SETTLED`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from sessionary.disk.fs import Fs, not_found, read_bytes
from sessionary.layouts.base import SETTLED
from sessionary.layouts.maestro.documents import parse_session
from sessionary.layouts.maestro.names import LARGEST
from sessionary.layouts.maestro.placement import Place, place_of
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.usual import Mould

MOST = 100_000
"""So many folders and files are remembered; what would be one more makes a memory begin anew."""
LARGEST_KEPT = 1 << 14
"""Bytes of a file that is remembered. A session.json has a few hundred."""

_State = tuple[int, int, int, int]
_T = TypeVar("_T")


class _Folder(Struct, frozen=True, gc=False):
    """What a folder was in a state."""

    state: _State
    place: Place


class _File(Struct, frozen=True, gc=False):
    """What a file held in a state, and the mould of the record in it, if it has one."""

    state: _State | None
    data: bytes
    mould: Mould | None


class Memory:
    """What was read of folders and files. For one `Fs` only.

    Args:
        now: the time in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._places: dict[str, _Folder] = {}
        self._files: dict[str, _File] = {}

    def place(self, fs: Fs, name: str, folder: str) -> Place:
        """The place that a folder is, see `placement.look_into`. Raises OSError."""
        found = fs.stat(folder)
        state = _state(found)
        key = folder if name else f"{folder}/"  # one list's root may lie below that of another
        known = self._places.get(key)
        if known is not None and known.state == state:
            return known.place
        place = place_of(fs.listdir(folder), name, folder)
        if self._is_settled(found):
            _keep(self._places, key, _Folder(state, place))
        return place

    def session(self, fs: Fs, path: str) -> WorkSession:
        """The work session in a session.json, for the caller to change.

        Raises:
            NotFound: there is no such file.
            StorageFailed: it cannot be read.
            Corrupt, SchemaError: as `parse_session`.
        """
        file = self._file(fs, path)
        return parse_session(file.data, path) if file.mould is None else file.mould.record()

    def _file(self, fs: Fs, path: str) -> _File:
        found = _look(fs, path)
        state = None if found is None else _state(found)
        known = self._files.get(path)
        if known is not None and known.state == state:
            return known
        data = read_bytes(fs, path, operation="load", limit=LARGEST)
        if data is None:
            raise not_found(path, f"there is no work session in {path}")
        file = _File(state, data, Mould.of(data))
        if found is not None and len(data) <= LARGEST_KEPT and self._is_settled(found):
            _keep(self._files, path, file)
        return file

    def _is_settled(self, found: os.stat_result) -> bool:
        return max(found.st_mtime, found.st_ctime) < self._now() - SETTLED


def _look(fs: Fs, path: str) -> os.stat_result | None:
    try:
        return fs.stat(path)
    except OSError:
        return None  # reading it will say why


def _state(found: os.stat_result) -> _State:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _keep(known: dict[str, _T], path: str, value: _T) -> None:
    if len(known) >= MOST:
        known.clear()
    known[path] = value
