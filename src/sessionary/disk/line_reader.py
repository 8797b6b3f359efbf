"""Reading of line files of any size in bounded memory: position, length and first bytes of each line.

Event logs grow to gigabytes and single lines to 20 MB, yet most questions ("where does each turn begin?", "what
happened last?") are answered by the first few hundred bytes of a line. So the unit here is the `Head` of a line. The
file passes through one block of memory; only `LineFile.line` reads a whole line.

Lines end at byte 0x0A only: carriage returns and other Unicode line ends are content.

No lock is taken. Writers only append whole lines, or replace the file; the old bytes then stay readable through our
descriptor. So only the last line can be incomplete: a line without its newline has `whole=False`, whether it is torn
or still being written. A scan ends at the end of the file that it finds.

Newlines are found with `bytes.find` (memchr of the C library) and counted with stringzilla. Both keep up with
reading, so the cost of a scan depends on bytes, not on lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from sys import maxsize
from typing import NamedTuple

import stringzilla

from sessionary.disk.fs import OS_FS, READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.disk.lifetime import ClosedOnExit
from sessionary.errors import Invalid

# Fits into the processor cache between reading and searching.
BLOCK = 1 << 18
# First step of a search for a line end, forwards or backwards: most lines are short.
FIRST_STEP = 1 << 14
WIDTH = 512


class Head(NamedTuple):
    """Position and first bytes of a line.

    Attributes:
        line: line number, from 1; None if the lines before it were not counted.
        byte: offset of its first byte.
        length: its length in bytes, without the newline.
        head: its first bytes, at most the requested width.
        whole: False for a last line without a newline.
        end: its last two bytes, without the newline: shows whether an object was closed.
    """

    line: int | None
    byte: int
    length: int
    head: bytes
    whole: bool
    end: bytes


class LineFile(ClosedOnExit):
    """A line file, open for reading at any offset.

    All methods use one descriptor, so their results refer to the same bytes even if the file is replaced meanwhile.
    Iterators are independent of each other.

    Args:
        block: number of bytes to hold in memory at a time.

    Raises:
        NotFound: the file does not exist.
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
            raise not_found(path, f"File not found: {path}") from None
        except OSError as error:
            self.close()
            raise storage_failed(error, "read", path) from error

    def close(self) -> None:
        """Close the descriptor. Closing twice is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._fs.close(fd)

    def size(self) -> int:
        """Return the current size of the file in bytes."""
        try:
            return self._fs.fstat(self._fd).st_size
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error

    def read(self, byte: int, length: int) -> bytes:
        """Read bytes at an offset; fewer only at the end of the file."""
        try:
            return read_at(self._fs, self._fd, length, byte)
        except OSError as error:
            raise storage_failed(error, "read", self.path) from error

    def raw(self, head: Head) -> bytes:
        """Return the bytes of a line, without its newline."""
        return head.head if len(head.head) == head.length else self.read(head.byte, head.length)

    def heads(self, *, width: int = WIDTH, start: int = 0, stop: int | None = None) -> Iterator[Head]:
        """Yield the lines in file order.

        Args:
            width: number of first bytes of each line to return.
            start: offset at which a line begins; lines have no number unless it is 0.
            stop: leave out lines that begin at or after this offset.
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
                    # The constructor of the named tuple would take a third of the time per line.
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
        """Yield the lines backwards from the last one, without numbers. Reads only as far as the consumer iterates."""
        size = low = self.size()
        end, whole = size, False
        step = min(FIRST_STEP, self._block)
        while low:
            high, low = low, max(0, low - step)
            block = b""  # free the old block first, so that the new one reuses its pages
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
        """Return the whole line that begins at an offset, with its newline; a line without one is torn.

        Raises:
            Invalid: no line begins at this offset.
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
            hint="use the offset of a head; offsets change when a file is rewritten",
        )

    def count(self) -> int:
        """Return the number of whole lines; a torn last line is not counted."""
        return sum(stringzilla.count(block, b"\n") for _, block in self._blocks(0))

    def _blocks(self, low: int) -> Iterator[tuple[int, bytes]]:
        """Yield blocks with their offsets; only the last one is shorter."""
        while block := self.read(low, self._block):
            yield low, block
            if len(block) < self._block:
                return
            low += len(block)

    def _line_end(self, low: int) -> tuple[int, bool]:
        """Return the offset of the next newline from `low` on and True; or the end of the file and False."""
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
        """Return the bytes from `first` to `last`, from the block at offset `low` if possible, else from the file."""
        if low <= first and last <= low + len(block):
            return block[first - low : last - low]
        return self.read(first, last - first)


def tail_heads(fs: Fs, path: str, count: int, *, width: int = WIDTH) -> list[Head]:
    """Return the last `count` lines of a file in file order, without numbers; see `LineFile.heads_back`."""
    with LineFile(path, fs) as file:
        return list(islice(file.heads_back(width=width), max(0, count)))[::-1]


def count_lines(fs: Fs, path: str) -> int:
    """Return the number of whole lines of a file; see `LineFile.count`."""
    with LineFile(path, fs) as file:
        return file.count()
