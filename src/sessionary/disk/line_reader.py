"""Line files of any size, read in little memory: what a line says at its head, where it lies, and no more.

An event log grows to gigabytes, and a single line of it to 20 MB, yet nearly every question about it ("where does
each turn begin?", "what happened last?") is answered by the first few hundred bytes of its lines. So the unit
here is the `Head`: place, length and first bytes of a line. The file passes through one block of memory; only
`LineFile.line` takes a whole line into memory, because its caller asked for that one.

Lines end at byte 0x0A and nowhere else: carriage returns and the other line ends of Unicode are content.

No lock is taken. Writers only add whole lines at the end, or replace the file, whose old bytes then live as long
as our descriptor. What can be seen half is therefore the last line alone: a line without its newline has
`whole=False`, be it torn for good or still being written. A scan ends where the file ended when it got there.

A newline is searched with `bytes.find`, which for a single byte is the memchr of the C library; how many there are is
counted with stringzilla. Both keep up with reading, so that a scan costs the bytes it passes and not the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from sys import maxsize
from types import TracebackType
from typing import NamedTuple, Self

import stringzilla

from sessionary.disk.fs import OS_FS, READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.errors import Invalid

# Small enough to stay in the cache of the processor from the read to the search.
BLOCK = 1 << 18
# A search for one end of a line, forwards or backwards, begins with so much: most lines are short.
FIRST_STEP = 1 << 14
WIDTH = 512


class Head(NamedTuple):
    """One line, known by its beginning.

    Attributes:
        line: line number, from 1; None where the lines before it were not counted.
        byte: offset of its first byte.
        length: its bytes, without the newline.
        head: its first bytes, as many as were asked for.
        whole: False for a last line that has no newline (yet).
        end: its last two bytes, without the newline: enough to see whether an object was closed.
    """

    line: int | None
    byte: int
    length: int
    head: bytes
    whole: bool
    end: bytes


class LineFile:
    """A line file, open for reading at any offset.

    One descriptor serves all questions, so their answers concern the same bytes even if the file is replaced
    meanwhile. Methods that iterate may be mixed freely: each keeps its own place.

    Args:
        path: the file.
        fs: the file system it lies on.
        block: how many bytes to hold in memory at a time.

    Raises:
        NotFound: there is no such file.
        StorageFailed: it cannot be read. Every method may raise it.
    """

    def __init__(self, path: str, fs: Fs = OS_FS, *, block: int = BLOCK) -> None:
        self.path = path
        self._fs = fs
        self._block = block
        self._fd = -1
        try:
            self._fd = fs.open(path, READ)
            require_regular(fs.fstat(self._fd))
        except FileNotFoundError:
            raise not_found(path, f"There is no file {path}") from None
        except OSError as error:
            self.close()
            raise storage_failed(error, "read", path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back. Closing twice is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._fs.close(fd)

    def size(self) -> int:
        """The bytes of the file at this moment."""
        try:
            return self._fs.fstat(self._fd).st_size
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error

    def read(self, byte: int, length: int) -> bytes:
        """The bytes at an offset; fewer only where the file ends."""
        try:
            return read_at(self._fs, self._fd, length, byte)
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error

    def heads(self, *, width: int = WIDTH, start: int = 0, stop: int | None = None) -> Iterator[Head]:
        """The lines in order.

        Args:
            width: how many bytes of each to give.
            start: the offset at which a line begins; from a later one than 0 on, lines have no number.
            stop: leave out the lines that begin at this offset or behind it.
        """
        number = None if start else 1
        last = maxsize if stop is None else stop - 1
        begin = low = start
        block = b""
        for low, block in self._blocks(start):
            at = 0
            while begin <= last and (newline := block.find(b"\n", at)) >= 0:
                if begin < low:
                    yield self._head(number, begin, low + newline, True, width, low, block)
                else:
                    size = newline - at
                    head = block[at : at + width if size > width else newline]
                    tail = block[newline - 2 if size > 2 else at : newline]
                    # The constructor of a named tuple would take a third of the time that a line costs.
                    yield tuple.__new__(Head, (number, begin, size, head, True, tail))
                at = newline + 1
                begin = low + at
                number = number and number + 1
            if begin > last:
                return
        end = low + len(block)
        if begin < end:
            yield self._head(number, begin, end, False, width, low, block)

    def heads_back(self, *, width: int = WIDTH) -> Iterator[Head]:
        """The lines from the last one backwards, without numbers. Costs what lies behind the one last taken."""
        size = low = self.size()
        end, whole = size, False
        step = min(FIRST_STEP, self._block)
        while low:
            high, low = low, max(0, low - step)
            block = b""  # let go of the old block first: the new one then takes its place, and no new pages
            block = self.read(low, high - low)
            at = len(block)
            while (newline := block.rfind(b"\n", 0, at)) >= 0:
                begin = low + newline + 1
                if begin < size:
                    yield self._head(None, begin, end, whole, width, low, block)
                end, whole, at = low + newline, True, newline
            step = min(step * 2, self._block)
        if size:
            yield self._head(None, 0, end, whole, width, 0, b"")

    def line(self, byte: int) -> bytes:
        """The whole line that begins at an offset, with its newline; one that has none is torn.

        Raises:
            Invalid: no line begins there.
        """
        begins = byte == 0 or (byte > 0 and self.read(byte - 1, 1) == b"\n")
        if begins:
            end, whole = self._line_end(byte)
            if end + whole > byte:
                return self.read(byte, end + whole - byte)
        raise Invalid(
            f"No line begins at byte {byte} of {self.path}",
            operation="read",
            path=self.path,
            hint="offsets are those of a head; they change when a file is rewritten",
        )

    def count(self) -> int:
        """How many whole lines there are; a torn last one does not count."""
        return sum(stringzilla.count(block, b"\n") for _, block in self._blocks(0))

    def _blocks(self, low: int) -> Iterator[tuple[int, bytes]]:
        """Blocks with their offsets; only the last one is shorter than the others."""
        while block := self.read(low, self._block):
            yield low, block
            if len(block) < self._block:
                return
            low += len(block)

    def _line_end(self, low: int) -> tuple[int, bool]:
        """Where the line that goes on at `low` ends: the offset of its newline, or of the end of the file and False."""
        step = min(FIRST_STEP, self._block)
        while block := self.read(low, step):
            newline = block.find(b"\n")
            if newline >= 0:
                return low + newline, True
            low += len(block)
            step = min(step * 2, self._block)
        return low, False

    def _head(
        self, number: int | None, begin: int, end: int, whole: bool, width: int, low: int, block: bytes
    ) -> Head:
        head = self._piece(begin, min(end, begin + width), low, block)
        return Head(
            number, begin, end - begin, head, whole, self._piece(max(begin, end - 2), end, low, block)
        )

    def _piece(self, first: int, last: int, low: int, block: bytes) -> bytes:
        """The bytes from `first` to `last`, cut out of the block that lies at `low` if it holds them, else read."""
        if low <= first and last <= low + len(block):
            return block[first - low : last - low]
        return self.read(first, last - first)


def tail_heads(fs: Fs, path: str, count: int, *, width: int = WIDTH) -> list[Head]:
    """The last `count` lines of a file in order, without numbers; see `LineFile.heads_back`."""
    with LineFile(path, fs) as file:
        return list(islice(file.heads_back(width=width), max(0, count)))[::-1]


def count_lines(fs: Fs, path: str) -> int:
    """How many whole lines a file has; see `LineFile.count`."""
    with LineFile(path, fs) as file:
        return file.count()
