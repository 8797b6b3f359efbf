"""Removal of lines from the end of a journal to which other programs append at any time, safe at interruption.

Implements `Cut` of `transaction`. The bytes before the first removed line are neither read nor written: the journal
is truncated there, and the lines to keep are appended again. Programs that take no lock open the file for each line
that they append, so the inode must stay the same, and their lines must be kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Number of times a journal that grows during the cut is read again."""


def known_by(fs: Fs, fd: int, offset: int) -> str:
    """Return the last bytes before an offset, as hex: they identify the journal. Raises OSError."""
    start = max(0, offset - KNOWN_BY)
    return read_at(fs, fd, offset - start, start).hex()


def continues(log: LineFile, cut: Mapping[str, Any], kept: Iterable[bytes]) -> bool:
    """True if a journal starts with the result of a `Cut`, given as in `Entry.record`."""
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
    """Remove lines from the journal at `path`. Idempotent: an interrupted cut is continued.

    Args:
        place: the folder with the old end of the journal (``.tail``) and the lines of it to keep (``.kept``).
        cut: ``name``, ``offset`` and ``before`` (see `known_by`).

    Raises:
        OSError: the cut failed, or is incomplete.
    """
    try:
        fd = fs.open(path, APPEND)
    except FileNotFoundError:
        return  # the journal was removed meanwhile: nothing to cut
    try:
        if fs.fstat(fd).st_size >= cut["offset"] and known_by(fs, fd, cut["offset"]) == cut["before"]:
            _Cutting(fs, fd, os.path.join(place, cut["name"]), cut["offset"]).run()
    finally:
        fs.close(fd)


class _Cutting:
    """A journal that is being cut."""

    def __init__(self, fs: Fs, fd: int, stem: str, offset: int) -> None:
        self.fs = fs
        self.fd = fd
        self.offset = offset
        self.behind = stem + BEHIND
        self.before = [stem + TAIL, self.behind]
        self.after = [stem + KEPT, self.behind]

    def run(self) -> None:
        """Bring the journal from either of two states to the third.

        Either it is as it was when it was read, with lines of others behind it; or it was truncated at the offset,
        and a part of the kept lines was appended, with lines of others behind that. The truncation is flushed before
        anything is appended: otherwise a power cut could leave a mixture of both.
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
        """Save the lines of others, truncate, and append the kept lines. Up to `size` the lines of others are known."""
        for _ in range(LOOKS):
            if theirs:
                known = read_bytes(self.fs, self.behind) or b""
                atomic.replace(self.behind, (known, theirs), fs=self.fs)
            theirs = b"".join(blocks(self.fs, self.fd, size, self._size()))
            if not theirs:
                break
            size += len(theirs)
        # A line that is appended in the microseconds between here and the truncation is lost.
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
        """Return the lines of others in a file with only a part of our lines, or with holes, after a kill.

        There may be no newline between our line and the first of theirs, and lines of ours may follow a hole.
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
        # An unfinished last line of theirs may be completed at any moment.
        return theirs.removesuffix(b"\n") if not data.endswith((b"\n", b"\0")) else theirs

    def _size(self) -> int:
        return self.fs.fstat(self.fd).st_size

    def _lengths(self, paths: list[str]) -> int:
        return sum(len(block) for path in paths for block in content(self.fs, path))


def blocks(fs: Fs, fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of an open file from `start` to `end`, or to its end."""
    while start < end and (block := fs.pread(fd, min(BLOCK, end - start), start)):
        yield block
        start += len(block)


def content(fs: Fs, path: str, start: int = 0, end: int = maxsize) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks; nothing if it does not exist. Raises OSError.

    The file is opened for each block: a generator that is dropped half way would keep its descriptor open for an
    unknown time.
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


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences, of bytes or lines for example."""
    same = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(same, min(len(one), len(other)))


def common(fs: Fs, fd: int, offset: int, paths: list[str]) -> int:
    """Return how many bytes of an open file, from `offset` on, equal the concatenation of these files."""
    same = 0
    for path in paths:
        for block in content(fs, path):
            found = read_at(fs, fd, len(block), offset + same)
            if found != block:
                return same + common_prefix(found, block)
            same += len(block)
    return same
