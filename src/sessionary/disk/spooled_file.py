"""Temporary bytes that may not fit into memory.

A small amount stays in memory. Beyond that it goes to an unnamed file, which is gone with the process. Nothing is
flushed.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sessionary.disk.atomic import NO_NAMELESS, temp_name
from sessionary.disk.fs import (
    CREATE,
    FILE_MODE,
    NAMELESS,
    O_TMPFILE,
    OS_FS,
    Fs,
    make_dirs,
    read_at,
    storage_failed,
    write_all,
)
from sessionary.disk.lifetime import ClosedOnExit

IN_MEMORY = 4 << 20
_CLOSED = -1  # an invalid descriptor: using it raises EBADF


class Slot(NamedTuple):
    """Position of bytes in a spool."""

    at: int
    length: int


class Spool(ClosedOnExit):
    """Temporary bytes that can be read in any order and any number of times until it is closed. For one thread.

    Close it with a ``with`` block: a stored exception would keep the file open.

    Args:
        folder: the folder of the file if one is needed; it exists, unless `make` is set. By default the system's
            folder for temporary files, which may be in memory.
        in_memory: number of bytes to keep in memory before a file is used.
    """

    def __init__(
        self, folder: str | None = None, *, make: bool = False, in_memory: int = IN_MEMORY, fs: Fs = OS_FS
    ) -> None:
        self._folder = folder
        self._make = make
        self._fs = fs
        self._most = in_memory
        self._size = 0
        self._held = bytearray()
        self._fd: int | None = None
        self._end: Callable[[], object] = lambda: None

    def close(self) -> None:
        """Close the file and drop all bytes."""
        self._held = bytearray()
        self._fd = _CLOSED
        self._end()

    def put(self, data: bytes) -> Slot:
        """Store bytes; return their position."""
        slot = Slot(self._size, len(data))
        self._size += len(data)
        if self._fd is None and self._size <= self._most:
            self._held += data
            return slot
        try:
            if self._fd is None:
                self._fd = self._open()
                write_all(self._fs, self._fd, bytes(self._held))
                self._held = bytearray()
            write_all(self._fs, self._fd, data)
        except OSError as error:
            raise storage_failed(error, "store temporary bytes in", self._place()) from error
        return slot

    def get(self, slot: Slot) -> bytes:
        """Read the bytes at a position."""
        if self._fd is None:
            return bytes(self._held[slot.at : slot.at + slot.length])
        try:
            data = read_at(self._fs, self._fd, slot.length, slot.at)
            if len(data) < slot.length:
                raise OSError(f"{slot.length - len(data)} bytes are missing")
        except OSError as error:
            raise storage_failed(error, "read temporary bytes from", self._place()) from error
        return data

    def _place(self) -> str:
        return tempfile.gettempdir() if self._folder is None else self._folder

    def _open(self) -> int:
        if self._make:
            make_dirs(self._fs, self._place())
        fd, path = self._file()
        self._end = weakref.finalize(self, _end, self._fs, fd, path)
        return fd

    def _file(self) -> tuple[int, str | None]:
        """Open a file; return its descriptor, and the name to remove on close, if it still has one."""
        if O_TMPFILE:
            try:
                return self._fs.open(self._place(), NAMELESS, FILE_MODE), None
            except OSError as error:
                if error.errno not in NO_NAMELESS:
                    raise
        path = temp_name(os.path.join(self._place(), "spool"))
        fd = self._fs.open(path, CREATE, FILE_MODE)
        try:
            self._fs.unlink(path)
        except OSError:  # Windows keeps the name of an open file
            return fd, path
        return fd, None


def _end(fs: Fs, fd: int, path: str | None) -> None:
    with suppress(OSError):
        fs.close(fd)
        if path is not None:
            fs.unlink(path)
