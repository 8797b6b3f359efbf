"""The files of one session as they are here, and how much of them the other side is known to have.

What is carried is not always a file as it lies here: the files that are made once and never changed go as one bundle,
and where text is blacked out, what goes is the black one. Either is laid down as a copy, and a file like any other from
then on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from sessionary.disk.fs import Fs, read_bytes, stat_or_none
from sessionary.disk.line_reader import LineFile
from sessionary.errors import NotFound
from sessionary.layouts.base import MTIME_GRACE, Part, PartKind
from sessionary.layouts.clock import changed_at
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.blocks import START, Piece, cut, follow, matching, whole_lines
from sessionary.sync.derived_files import Copies
from sessionary.sync.heads import Head, kind_of
from sessionary.sync.links import Links
from sessionary.sync.report import Outcome
from sessionary.sync.rules import Rules

Stamp = tuple[int, int, int, int]
CHUNK = 1 << 20


class LocalPart(NamedTuple):
    """A file that is carried, as it is here.

    Attributes:
        name: relative to the session's folder.
        kind: how it changes.
        path: where its bytes lie that are carried.
        size: the bytes that count: of a journal, those of its whole lines.
        stamp: inode, size and times, all of the file's bytes counted.
        touched: seconds since 1970 when it was last changed.
        torn: the bytes behind the last newline of a journal: torn, or still being written.
        origin: where it lies itself, if what is carried is a copy of it with something blacked out; else ``""``.
    """

    name: str
    kind: PartKind
    path: str
    size: int
    stamp: Stamp
    touched: float
    torn: int = 0
    origin: str = ""

    def changed(self, now: float) -> float:
        """When it was changed last, by those of its times that can be believed at that moment."""
        modified, status = self.stamp[2] / 1e9, self.stamp[3] / 1e9
        return max(changed_at(now, modified, status), changed_at(now, status, modified))


class Matched(NamedTuple):
    """How a file compares with what was agreed of it: how many pieces it begins with, and whether that is all."""

    pieces: int
    same: bool


class Surveyor:
    """Looks at the files of sessions.

    Args:
        fs: the file system.
        layout: the layout of the sessions.
        rules: what is carried, and what is blacked out.
        copies: where bundles and black text are laid down.
    """

    def __init__(self, fs: Fs, layout: SyncLayout, rules: Rules, copies: Copies) -> None:
        self._fs = fs
        self._layout = layout
        self._rules = rules
        self._copies = copies
        self.links = Links(fs, layout)
        self._left_out: dict[str, dict[str, str]] = {}

    def survey(self, ref: SessionRef) -> dict[str, LocalPart]:
        """The files of a session that are carried. Reads the end of each journal, and what has to be copied.

        Files that lie out of the store are left out, and all that are made once if one of those does: see `left_out`.

        Raises:
            NotFound: the session is gone.
            StorageFailed: a file cannot be looked at.
            Invalid: a file cannot be blacked out without breaking it.
            Unsupported: the session lies out of the store.
        """
        self.links.refuse(ref)
        found: dict[str, LocalPart] = {}
        once: list[tuple[Part, Stamp, float]] = []
        left_out = self._left_out[ref.folder] = {}
        for part in self._layout.parts(ref):
            if not self._is_carried(part):
                continue
            if (link := self.links.of(ref, part.path)) is not None:
                left_out[part.name] = link
                continue
            if (stat := stat_or_none(self._fs, part.path)) is None:
                continue
            stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            touched = max(stat.st_mtime, stat.st_ctime)
            if self._is_once(part.name):
                once.append((part, stamp, touched))
            else:
                found[part.name] = self._local(ref, part, stamp, touched)
        if once and not any(self._is_once(name) for name in left_out):
            found[bundles.NAME] = self._bundle(ref, once)
        if not found and stat_or_none(self._fs, ref.folder) is None:
            raise NotFound(f"Session '{ref.session_id}' not found", path=ref.folder)
        return found

    def left_out(self, ref: SessionRef, names: Iterable[str] = ()) -> dict[str, str]:
        """The files that the last survey of a session has left out, each with the link out of the store.

        And those of these names that lie out of the store, be they there or not.
        """
        found = dict(self._left_out.get(ref.folder, {}))
        for name in names:
            if name != bundles.NAME and name not in found:
                link = self.links.of(ref, self._layout.path_of(ref, name))
                found |= {} if link is None else {name: link}
        return found

    def told(self, ref: SessionRef, outcome: Outcome, head: Head | None) -> Outcome:
        """An outcome that says which files were left out, those that only a head names included."""
        parts = head.parts if head is not None and not head.deleted else ()
        names = (part.name for part in parts if self._rules.carries(kind_of(part)))
        return self.links.told(ref, outcome, self.left_out(ref, names))

    def is_open(self, ref: SessionRef) -> bool:
        """False if a file of a session lies out of the store. Reads none."""
        return all(
            self.links.of(ref, part.path) is None
            for part in self._layout.parts(ref)
            if self._is_carried(part)
        )

    def closed(self, ref: SessionRef, names: Iterable[str] = ()) -> set[str]:
        """What the last survey has left out, and those of these parts that lie out of the store too."""
        found = {*self.left_out(ref, names)}
        return found | {bundles.NAME} if any(map(self._is_once, found)) else found

    def _is_once(self, name: str) -> bool:
        return self._layout.rule(name).policy is Policy.IMMUTABLE

    def _is_carried(self, part: Part) -> bool:
        """False for what the rules leave out, and for what no other device would take."""
        return self._rules.carries(part.kind) and self._layout.part_kind(part.name) is not None

    def items(self, ref: SessionRef) -> dict[str, bundles.Item]:
        """The files of a session that are made once, by their paths, as they are carried."""
        found = {}
        for part in self._layout.parts(ref):
            if self._is_carried(part) and self._is_once(part.name):
                data = read_bytes(self._fs, part.path)
                if data is not None:
                    found[part.path] = self._item(part.name, data)
        return found

    def _item(self, name: str, data: bytes) -> bundles.Item:
        one = bundles.item(name, data)
        black = self._rules.redact
        return one if black is None else bundles.Item(one.name, black.document(one.name, data))

    def _local(self, ref: SessionRef, part: Part, stamp: Stamp, touched: float) -> LocalPart:
        size = stamp[1]
        if part.kind is not PartKind.DOCUMENT:
            with LineFile(part.path, self._fs) as file:
                size = whole_lines(file, size)
        plain = LocalPart(part.name, part.kind, part.path, size, stamp, touched, stamp[1] - size)
        return plain if self._rules.redact is None else self._blacked_out(ref, plain)

    def _blacked_out(self, ref: SessionRef, plain: LocalPart) -> LocalPart:
        assert self._rules.redact is not None
        state = self._rules.redact.digest + _packed(plain.stamp)
        path = self._copies.get(ref.folder, plain.name, state, lambda: self._black(plain))
        size = self._fs.stat(path).st_size
        with LineFile(path, self._fs) as copy, LineFile(plain.path, self._fs) as file:
            if size == plain.size and _alike(copy, file, size):
                return plain
        return plain._replace(path=path, size=size, origin=plain.path)

    def _black(self, plain: LocalPart) -> Iterator[bytes]:
        black = self._rules.redact
        assert black is not None
        if plain.kind is PartKind.DOCUMENT:
            yield black.document(plain.name, read_bytes(self._fs, plain.path) or b"")
            return
        with LineFile(plain.path, self._fs) as file:
            yield from black.lines(lines_until(file, plain.size))

    def _bundle(self, ref: SessionRef, once: list[tuple[Part, Stamp, float]]) -> LocalPart:
        black = self._rules.redact
        state = b"".join(
            part.path.encode("utf-8", "surrogateescape") + _packed(stamp) for part, stamp, _ in once
        )
        state += black.digest if black else b""

        def make() -> Iterator[bytes]:
            return bundles.pack_items(self.items(ref).values())

        path = self._copies.get(ref.folder, bundles.NAME, state, make)
        digest = int.from_bytes(sha256(state).digest()[:7], "big")
        newest = max(stamp[2] for _, stamp, _ in once), max(stamp[3] for _, stamp, _ in once)
        size = self._fs.stat(path).st_size
        stamp = (digest, size, *newest)
        return LocalPart(bundles.NAME, PartKind.BUNDLE, path, size, stamp, max(at for *_, at in once))


def lines_until(file: LineFile, size: int) -> Iterator[bytes]:
    """The lines of the first `size` bytes of a file, without their newlines."""
    rest, at = b"", 0
    while at < size:
        chunk = file.read(at, min(CHUNK, size - at))
        if not chunk:
            return
        at += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def _alike(one: LineFile, other: LineFile, size: int) -> bool:
    return all(one.read(at, CHUNK) == other.read(at, min(CHUNK, size - at)) for at in range(0, size, CHUNK))


def _packed(stamp: Stamp) -> bytes:
    return struct.pack("=Qqqq", *stamp)


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
    return {
        name: parts[name].stamp for name in same if name in parts and parts[name].touched < now - MTIME_GRACE
    }


def tip(fs: Fs, part: LocalPart, pieces: Sequence[Piece]) -> str:
    """The chain of a whole file that begins with these pieces."""
    at, chain = pieces[-1] if pieces else Piece(0, START)
    with LineFile(part.path, fs) as file:
        for end in cut(file, at, part.size):
            at, chain = end, follow(chain, file.read(at, end - at))
    return chain


def begins_with(fs: Fs, part: LocalPart, other: LocalPart) -> bool:
    """True if the second file begins with all bytes of the first; what is blacked out is not compared, so False."""
    if part.origin or other.size < part.size:
        return False
    with LineFile(part.path, fs) as file, LineFile(other.path, fs) as longer:
        return all(
            file.read(at, min(CHUNK, part.size - at)) == longer.read(at, min(CHUNK, part.size - at))
            for at in range(0, part.size, CHUNK)
        )


@contextmanager
def opened(fs: Fs, part: LocalPart | None) -> Iterator[LineFile | None]:
    """The file open for reading; None if there is none."""
    if part is None:
        yield None
        return
    with LineFile(part.path, fs) as file:
        yield file
