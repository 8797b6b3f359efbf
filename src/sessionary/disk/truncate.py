"""Taking lines out of a journal, when it may be cut off anywhere and others may add lines at any time.

The part of `transaction` that is about a `Cut`. The bytes before the first line that goes are neither read nor written:
the journal is cut there, and what stays of its end is added again. Programs that take no lock open the file for each
line that they add, so it must remain the same file, and their lines must remain in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from sys import maxsize
from typing import Any

from sessionary.codec import split_glued
from sessionary.disk import atomic
from sessionary.disk.fs import APPEND, READ, Fs, read_at, read_bytes, write_all
from sessionary.disk.journal import is_json_text
from sessionary.disk.line_reader import LineFile

TAIL, KEPT, BEHIND = ".tail", ".kept", ".behind"
BLOCK = 1 << 20
KNOWN_BY = 64
LOOKS = 4
"""How often a journal that grows while it is to be cut is looked at again."""


def known_by(fs: Fs, fd: int, offset: int) -> str:
    """The last bytes before an offset, by which a journal is known again. Raises OSError."""
    start = max(0, offset - KNOWN_BY)
    return read_at(fs, fd, offset - start, start).hex()


def continues(log: LineFile, cut: Mapping[str, Any], kept: Iterable[bytes]) -> bool:
    """True if a journal still is what a `Cut`, as `Entry.record` tells it, has made of it, and more behind that.

    Raises:
        StorageFailed: it cannot be read.
    """
    offset = cut["offset"]
    start = max(0, offset - KNOWN_BY)
    if log.size() < offset or log.read(start, offset - start).hex() != cut["before"]:
        return False
    for block in kept:
        if log.read(offset, len(block)) != block:
            return False
        offset += len(block)
    return True


def cut_journal(fs: Fs, path: str, place: str, cut: Mapping[str, Any]) -> None:
    """Take the lines out of the journal at `path`, as often as needed: it may have been begun before.

    Args:
        fs: the file system.
        path: the journal.
        place: the folder in which the end that it had (``.tail``) and what stays of it (``.kept``) lie.
        cut: ``name``, ``offset`` and ``before`` (see `known_by`).

    Raises:
        OSError: it could not be done, or not wholly.
    """
    try:
        fd = fs.open(path, APPEND)
    except FileNotFoundError:
        return  # somebody has taken the journal away: nothing is left to cut
    try:
        if fs.fstat(fd).st_size >= cut["offset"] and known_by(fs, fd, cut["offset"]) == cut["before"]:
            _Cutting(fs, fd, os.path.join(place, cut["name"]), cut["offset"]).run()
    finally:
        fs.close(fd)


class _Cutting:
    """One journal that is being cut."""

    def __init__(self, fs: Fs, fd: int, stem: str, offset: int) -> None:
        self.fs = fs
        self.fd = fd
        self.offset = offset
        self.behind = stem + BEHIND
        self.before = [stem + TAIL, self.behind]
        self.after = [stem + KEPT, self.behind]

    def run(self) -> None:
        """Bring the journal from either of two states to the third.

        It is as it was when we looked, with lines of others behind it; or it was cut at the offset, and a part of what
        stays was added, with lines of others behind that. A cut is flushed before anything is added, or a power cut
        could leave a mixture of the two.
        """
        size = self._size()
        same = common(self.fs, self.fd, self.offset, self.before)
        if same == self._lengths(self.before):
            theirs = b"".join(blocks(self.fs, self.fd, self.offset + same, size))
        else:
            same = common(self.fs, self.fd, self.offset, self.after)
            if same == self._lengths(self.after):
                self.fs.fsync(self.fd)
                return
            theirs = self._of_others(self.offset + same, size)
        self._cut(size, theirs)

    def _cut(self, size: int, theirs: bytes) -> None:
        """Store what others added, cut, and add what stays. `size` is up to where their lines are known."""
        for _ in range(LOOKS):
            if theirs:
                known = read_bytes(self.fs, self.behind) or b""
                atomic.replace(self.behind, (known, theirs), fs=self.fs)
            theirs = b"".join(blocks(self.fs, self.fd, size, self._size()))
            if not theirs:
                break
            size += len(theirs)
        # From here to the cut lie a few microseconds; a line that is added within them is lost.
        late = theirs + b"".join(blocks(self.fs, self.fd, size, self._size()))
        self.fs.truncate(self.fd, self.offset)
        self.fs.fsync(self.fd)
        for path in self.after:
            for block in content(self.fs, path):
                write_all(self.fs, self.fd, block)
        if late:
            write_all(self.fs, self.fd, late)
        self.fs.fsync(self.fd)

    def _of_others(self, differs: int, size: int) -> bytes:
        """What others added to a file to which we had added only a part, or holes, when we were killed.

        Between our line and the first of theirs may be no newline, and behind a hole may lie lines of ours.
        """
        ours = b"".join(block for path in self.after for block in content(self.fs, path))
        start = self.offset + ours.rfind(b"\n", 0, differs - self.offset) + 1
        missing = set(ours[start - self.offset :].split(b"\n"))
        data = b"".join(blocks(self.fs, self.fd, start, size))
        found: list[bytes] = []
        for line in data.split(b"\n"):
            whole = line.strip(b"\0")
            if not whole or whole in missing or any(mine.startswith(whole) for mine in missing):
                continue
            pieces = [whole[slice(*span)] for span in split_glued(whole)]
            found += [whole] if is_json_text(whole) or not pieces else pieces
        theirs = b"".join(line + b"\n" for line in found if line not in missing)
        # A last line of theirs that has no end yet may get it at any moment.
        return theirs.removesuffix(b"\n") if not data.endswith((b"\n", b"\0")) else theirs

    def _size(self) -> int:
        return self.fs.fstat(self.fd).st_size

    def _lengths(self, paths: list[str]) -> int:
        return sum(len(block) for path in paths for block in content(self.fs, path))


def blocks(fs: Fs, fd: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes of an open file from `start` to `end`, or to its end."""
    while start < end and (block := fs.pread(fd, min(BLOCK, end - start), start)):
        yield block
        start += len(block)


def content(fs: Fs, path: str, start: int = 0, end: int = maxsize) -> Iterator[bytes]:
    """The bytes of a file, a block at a time; none if it is not there. Raises OSError.

    The file is opened for each block: a generator that is left half way, by an error of who writes the bytes, would
    hold a descriptor for nobody knows how long.
    """
    while start < end:
        try:
            fd = fs.open(path, READ)
        except FileNotFoundError:
            return
        try:
            block = fs.pread(fd, min(BLOCK, end - start), start)
        finally:
            fs.close(fd)
        if not block:
            return
        yield block
        start += len(block)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes two pieces have in common from their beginning."""
    same = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(same, min(len(one), len(other)))


def common(fs: Fs, fd: int, offset: int, paths: list[str]) -> int:
    """How many bytes an open file has in common, from `offset` on, with these files one behind the other."""
    same = 0
    for path in paths:
        for block in content(fs, path):
            found = read_at(fs, fd, len(block), offset + same)
            if found != block:
                return same + _alike(found, block)
            same += len(block)
    return same
