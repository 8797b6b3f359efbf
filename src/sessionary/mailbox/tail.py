"""Follow a line file that others append to: each check costs one stat, and reads only new lines.

The two records of a consumer (applied and failed messages) are such files. Their writers hold the lock of the
session and never change a complete line, so a reader without a lock only needs its position and the identity
of the file: a failed flush makes a writer replace the file, and a restore may put back an older one.

The last line may lack its newline. If it is a whole object, the next writer ends and keeps it, so a reader
that ignored it would write the same record twice. With `unended` such a line is returned, and returned again
once it is ended; without, only then. Half an object is not JSON, and is ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from sessionary.codec import decode_object
from sessionary.disk.fs import OS_FS, READ, Fs, require_regular, stat_or_none, storage_errors, storage_failed

BLOCK = 1 << 22

State = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime: equal as long as nothing was written. A truncated half line may be replaced
by a whole one of the same length, so the size is not enough; a writer may restore the old mtime."""
NOTHING: State = (0, 0, 0, 0, 0)
_CUT_OFF: State = (-1, -1, -1, -1, -1)
"""Set while lines are processed: after an interruption, or a read error, the next refresh starts from the beginning."""


class Line(NamedTuple):
    """One line: its number from 1, the offset of its first byte, its bytes without the newline."""

    number: int
    byte: int
    raw: bytes


class Follower:
    """The position of one reader in one line file.

    Attributes:
        path: the file; it may not exist yet.
        unended: whether a last line without a newline is returned as well.
        state: the version of the file at the last refresh, in short; `found`: in full, None if it did not exist.
        restarts: number of times that the file was replaced or truncated, which voids what was read before.
    """

    def __init__(self, path: str, fs: Fs = OS_FS, *, unended: bool = False) -> None:
        self.path = path
        self.unended = unended
        self.state = NOTHING
        self.found: os.stat_result | None = None
        self.restarts = 0
        self._fs = fs
        self._offset = 0
        self._number = 0

    def changed(self) -> bool:
        """Check the file; True if there may be new lines.

        Raises:
            StorageFailed: the file cannot be checked, or is not a regular file.
        """
        self.found = stat_or_none(self._fs, self.path)
        state = _state(self.found)
        if state == self.state:
            return False
        if self.found is not None:
            with storage_errors("read", self.path):
                require_regular(
                    self.found
                )  # a pipe would look like an empty file, as of a consumer that has not started
        if state[:2] != self.state[:2] or state[2] < self._offset:
            self.restarts += self.state != NOTHING
            self._offset = self._number = 0
        self.state = state
        return state != NOTHING

    def lines(self) -> Iterator[Line]:
        """The lines after the last one returned, up to the state of the last refresh. Blank ones are left out."""
        seen, self.state = self.state, _CUT_OFF
        try:
            fd = self._fs.open(self.path, READ)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error
        try:
            found = self._fs.fstat(fd)
            if (found.st_dev, found.st_ino) == seen[:2]:  # else replaced since: the next refresh detects it
                yield from self._lines_of(fd, seen[2])
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error
        finally:
            self._fs.close(fd)
        self.state = seen

    def _lines_of(self, fd: int, end: int) -> Iterator[Line]:
        rest = b""
        at = self._offset
        while at < end and (block := self._fs.pread(fd, min(BLOCK, end - at), at)):
            at += len(block)
            *whole, rest = (rest + block).split(b"\n")
            for raw in whole:
                line = Line(self._number + 1, self._offset, raw)
                self._number += 1
                self._offset += len(raw) + 1
                if raw:
                    yield line
        if self.unended and rest.endswith(b"}") and decode_object(rest) is not None:
            yield Line(self._number + 1, self._offset, rest)


def _state(found: os.stat_result | None) -> State:
    if found is None:
        return NOTHING
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def beside(folder: str, stem: str, consumer: str) -> str:
    """The path of a consumer's line file in the folder of a session."""
    return os.path.join(folder, f"{stem}.{consumer}.jsonl")
