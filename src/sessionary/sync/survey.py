"""The files of one session as they are here, and how much of them the other side is known to have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sessionary.disk.fs import Fs, look
from sessionary.disk.scan import LineFile
from sessionary.errors import NotFound
from sessionary.layouts.base import SETTLED, Layout, PartKind
from sessionary.model import SessionRef
from sessionary.sync.blocks import START, Piece, cut, follow, matching, whole_lines
from sessionary.sync.rules import Rules

Stamp = tuple[int, int, int, int]


class LocalPart(NamedTuple):
    """A file that is carried, as it is here.

    Attributes:
        name: relative to the session's folder.
        kind: how it changes.
        path: where it lies.
        size: the bytes that count: of a journal, those of its whole lines.
        stamp: inode, size and times, all of the file's bytes counted.
        touched: seconds since 1970 when it was last changed.
    """

    name: str
    kind: PartKind
    path: str
    size: int
    stamp: Stamp
    touched: float

    @property
    def torn(self) -> int:
        """The bytes behind the last newline of a journal: torn, or still being written."""
        return self.stamp[1] - self.size


class Matched(NamedTuple):
    """How a file compares with what was agreed of it: how many pieces it begins with, and whether that is all."""

    pieces: int
    same: bool


def survey(fs: Fs, layout: Layout, ref: SessionRef, rules: Rules) -> dict[str, LocalPart]:
    """The files of a session that are carried. Reads the end of each journal, and no more.

    Raises:
        NotFound: the session is gone.
        StorageFailed: a file cannot be looked at.
    """
    found: dict[str, LocalPart] = {}
    for part in layout.parts(ref):
        if not rules.carries(part.kind) or (stat := look(fs, part.path)) is None:
            continue
        size = stat.st_size
        stamp = (stat.st_ino, size, stat.st_mtime_ns, stat.st_ctime_ns)
        if part.kind is not PartKind.DOCUMENT:
            with LineFile(part.path, fs) as file:
                size = whole_lines(file, size)
        touched = max(stat.st_mtime, stat.st_ctime)
        found[part.name] = LocalPart(part.name, part.kind, part.path, size, stamp, touched)
    if not found and look(fs, ref.folder) is None:
        raise NotFound(f"Session '{ref.session_id}' not found", path=ref.folder)
    return found


def match(fs: Fs, part: LocalPart, pieces: Sequence[Piece] | None, seen: Stamp | None) -> Matched:
    """How a file compares with what was agreed. Not read if it is as it was seen then, else read once.

    Args:
        fs: the file system.
        part: the file.
        pieces: what was agreed; None if nothing was.
        seen: the stamp that it had when it was what was agreed.
    """
    if pieces is None:
        return Matched(0, False)
    end = pieces[-1].end if pieces else 0
    if seen == part.stamp and end == part.size:
        return Matched(len(pieces), True)
    with LineFile(part.path, fs) as file:
        count = matching(file, part.size, pieces)
    return Matched(count, count == len(pieces) and end == part.size)


def settled(parts: Mapping[str, LocalPart], same: Sequence[str], now: float) -> dict[str, Stamp]:
    """The stamps by which these files can be known again: of those that were left alone long enough."""
    return {name: parts[name].stamp for name in same if name in parts and parts[name].touched < now - SETTLED}


def tip(fs: Fs, part: LocalPart, pieces: Sequence[Piece]) -> str:
    """The chain of a whole file that begins with these pieces."""
    at, chain = pieces[-1] if pieces else Piece(0, START)
    with LineFile(part.path, fs) as file:
        for end in cut(file, at, part.size):
            at, chain = end, follow(chain, file.read(at, end - at))
    return chain


@contextmanager
def opened(fs: Fs, part: LocalPart | None) -> Iterator[LineFile | None]:
    """The file open for reading; None if there is none."""
    if part is None:
        yield None
        return
    with LineFile(part.path, fs) as file:
        yield file
