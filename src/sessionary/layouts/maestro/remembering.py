"""What earlier lists have read, believed for as long as the stats of file and folder say that nothing has changed.

A program that lists its sessions again and again, as a status line does, then opens only what was written in between.
Bytes are remembered, not records: each list makes records of its own, which its caller may change.

Nothing is remembered of what was touched less than two seconds ago: within one tick of a file system's clock a
second change would leave no trace (see `layouts.base.SETTLED`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from sessionary.disk.fs import Fs, not_found, read_bytes
from sessionary.layouts.base import SETTLED
from sessionary.layouts.maestro.names import LARGEST

MOST = 100_000
"""So many folders and files are remembered; what would be one more makes a memory begin anew."""
LARGEST_KEPT = 1 << 14
"""Bytes of a file that is remembered. A session.json has a few hundred."""

_State = tuple[int, int, int, int]
_T = TypeVar("_T")


class Memory:
    """What was read of folders and files. For one `Fs` only.

    Args:
        now: the time in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._names: dict[str, tuple[_State, list[str]]] = {}
        self._bytes: dict[str, tuple[_State, bytes]] = {}

    def listdir(self, fs: Fs, folder: str) -> list[str]:
        """The names in a folder, not to be changed. Raises OSError."""
        found = fs.stat(folder)
        state = _state(found)
        known = self._names.get(folder)
        if known is not None and known[0] == state:
            return known[1]
        names = fs.listdir(folder)
        if self._is_settled(found):
            _keep(self._names, folder, (state, names))
        return names

    def read(self, fs: Fs, path: str) -> bytes:
        """The content of a file.

        Raises:
            NotFound: there is none.
            StorageFailed: it cannot be read.
        """
        found = _look(fs, path)
        known = self._bytes.get(path)
        if known is not None and found is not None and known[0] == _state(found):
            return known[1]
        data = read_bytes(fs, path, operation="load", limit=LARGEST)
        if data is None:
            raise not_found(path, f"there is no work session in {path}")
        if found is not None and len(data) <= LARGEST_KEPT and self._is_settled(found):
            _keep(self._bytes, path, (_state(found), data))
        return data

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
