"""A line file that others append to, followed: each look costs one stat, and reads only what is new.

The two records of a consumer (what it has applied, what has failed) are such files. Their writers hold the lock of
the session and never change a line once it is ended, so a reader without a lock needs to know only how far it has
come, and in which file: a flush that failed makes a writer replace the file, and a restore may put back an older one.

The last line may lack its newline. If it is a whole object, the next writer will end it and keep it, so whoever
ignored it would write the same record a second time. With `unended` it is told, and told again once it is ended;
without, only then. Half an object is no JSON, and means nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import OS_FS, READ, Fs, require_regular, stat_or_none, storage_failed

BLOCK = 1 << 22

State = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime: equal as long as nothing was written. Half a line that is cut off may give way
to a whole one of its length, so the size alone would not do; whoever changes a file may set its old mtime again."""
NOTHING: State = (0, 0, 0, 0, 0)
_CUT_OFF: State = (-1, -1, -1, -1, -1)
"""While lines are taken: whoever is interrupted in that, or cannot read on, begins anew at the next look."""


class Piece(NamedTuple):
    """Some lines as they lie in the file: number and offset of the first one, and the bytes of all of them."""

    number: int
    byte: int
    data: bytes

    def lines(self) -> Iterator[Line]:
        """The lines one by one, but for blank ones."""
        number, byte = self.number, self.byte
        for raw in self.data.removesuffix(b"\n").split(b"\n"):
            if raw:
                yield Line(number, byte, raw)
            number, byte = number + 1, byte + len(raw) + 1


class Line(NamedTuple):
    """One line: its number from 1, the offset of its first byte, its bytes without the newline."""

    number: int
    byte: int
    raw: bytes


class Follower:
    """How far one reader has come in one line file.

    Attributes:
        path: the file; it may not be there yet.
        unended: whether a last line without a newline is told as well.
        state: what the file was at the last look, in short; `found`: in full, None if it was not there.
        restarts: how often the file has turned out to be another one, or shorter: what was known of it is void then.
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
        """Look at the file; True if there may be lines to take.

        Raises:
            StorageFailed: the system does not tell, or it is no regular file.
        """
        self.found = stat_or_none(self._fs, self.path)
        state = _state(self.found)
        if state == self.state:
            return False
        if self.found is not None:
            try:
                require_regular(
                    self.found
                )  # a pipe would be taken for an empty file: for somebody who has done nothing yet
            except OSError as error:
                raise storage_failed(error, "read", self.path) from error
        if state[:2] != self.state[:2] or state[2] < self._offset:
            self.restarts += self.state != NOTHING
            self._offset = self._number = 0
        self.state = state
        return state != NOTHING

    def lines(self) -> Iterator[Line]:
        """The lines behind the last one taken, as far as the last look saw them. Blank ones are left out.

        Raises:
            StorageFailed: the file cannot be read.
        """
        for piece in self.pieces():
            yield from piece.lines()

    def pieces(self) -> Iterator[Piece]:
        """The same, many lines at once.

        Raises:
            StorageFailed: the file cannot be read.
        """
        seen, self.state = self.state, _CUT_OFF
        try:
            fd = self._fs.open(self.path, READ)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error
        try:
            found = self._fs.fstat(fd)
            if (found.st_dev, found.st_ino) == seen[:2]:  # else replaced since: the next look will see it
                yield from self._pieces_of(fd, seen[2])
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error
        finally:
            self._fs.close(fd)
        self.state = seen

    def skip(self, found: os.stat_result, length: int, count: int) -> bool:
        """Pass over lines that the caller has just appended itself; False if there is anything else to read.

        Args:
            found: what the file is now.
            length: the bytes of the lines.
            count: how many they are.
        """
        state = _state(found)
        if state[:2] != self.state[:2] or self._offset + length != state[2]:
            return False
        self.found, self.state = found, state
        self._offset += length
        self._number += count
        return True

    def _pieces_of(self, fd: int, end: int) -> Iterator[Piece]:
        rest = b""
        at = self._offset
        while at < end and (block := self._fs.pread(fd, min(BLOCK, end - at), at)):
            at += len(block)
            ended = (rest + block).rpartition(b"\n")
            whole, rest = ended[0] + ended[1], ended[2]
            if whole:
                piece = Piece(self._number + 1, self._offset, whole)
                self._number += whole.count(b"\n")
                self._offset += len(whole)
                yield piece
        if self.unended and rest.endswith(b"}") and _is_object(rest):
            yield Piece(self._number + 1, self._offset, rest)


def _state(found: os.stat_result | None) -> State:
    if found is None:
        return NOTHING
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_object(raw: bytes) -> bool:
    try:
        return isinstance(decode(raw), dict)
    except Undecodable:
        return False


def beside(folder: str, stem: str, consumer: str) -> str:
    """The path of a consumer's line file in the folder of a session."""
    return os.path.join(folder, f"{stem}.{consumer}.jsonl")
