"""Local files of a session, and how much of them the remote is known to have.

Not every part is a file on disk: immutable files are sent together as one bundle, and with redaction the redacted
copy is sent. Both are derived files: their bytes are stored once, in the folder of the sync state, and compared and
split like any file. They depend only on the files of the session: a derived file is identified by the state of its
source, and rebuilt when that changes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import zip_longest
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_dirs, names_in, read_bytes, stat_or_none, storage_errors
from sessionary.disk.line_reader import LineFile
from sessionary.errors import NotFound
from sessionary.layouts.clock import changed_at
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.blocks import START, Piece, chunks, cut, follow, matching, part_key, whole_lines
from sessionary.sync.heads import Head, kind_of
from sessionary.sync.links import Links
from sessionary.sync.report import Outcome
from sessionary.sync.rules import Rules

Stamp = tuple[int, int, int, int]


class LocalPart(NamedTuple):
    """A local file to synchronise.

    Attributes:
        name: path relative to the session's folder.
        path: path of the bytes to send.
        size: number of bytes to send: of a journal, those of its whole lines.
        stamp: inode, full size and times of the file.
        touched: time of its last change, in seconds since 1970.
        torn: number of bytes behind the last newline of a journal: torn, or still being written.
        origin: path of the original, if a redacted copy is sent; else ``""``.
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
        """Return the time of its last change, by those of its times that are plausible at this moment."""
        modified, status = self.stamp[2] / 1e9, self.stamp[3] / 1e9
        return max(changed_at(now, modified, status), changed_at(now, status, modified))


class Matched(NamedTuple):
    """Comparison with the agreed version.

    The number of agreed pieces that a file starts with, and whether it is the same.
    """

    pieces: int
    same: bool


class Surveyor:
    """Reads the files of sessions."""

    def __init__(self, fs: Fs, layout: SyncLayout, rules: Rules, folder: str) -> None:
        self._fs = fs
        self._layout = layout
        self._rules = rules
        self._copies = os.path.join(folder, "copies")
        self.links = Links(fs, layout)
        self._left_out: dict[str, dict[str, str]] = {}

    def survey(self, ref: SessionRef) -> dict[str, LocalPart]:
        """Return the files of a session to synchronise. Reads the end of each journal, and files that must be copied.

        Files outside the store are left out, and all immutable files if one of them is outside: see `left_out`.

        Raises:
            NotFound: the session does not exist any more.
            Invalid: a file cannot be redacted without breaking it.
            Unsupported: the session is outside the store.
        """
        self.links.refuse(ref)
        found: dict[str, LocalPart] = {}
        once: list[tuple[Part, Stamp, float]] = []
        left_out = self._left_out[ref.locator] = {}
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
        if not found and stat_or_none(self._fs, ref.locator) is None:
            raise NotFound(f"Session '{ref.session_id}' not found", path=ref.locator)
        return found

    def left_out(self, ref: SessionRef, names: Iterable[str] = ()) -> dict[str, str]:
        """Return the files that the last survey of a session left out, with the links that lead out of the store.

        Also those of `names` that are outside the store, whether they exist or not.
        """
        found = dict(self._left_out.get(ref.locator, {}))
        for name in names:
            if name != bundles.NAME and name not in found:
                link = self.links.of(ref, self._layout.path_of(ref, name))
                found |= {} if link is None else {name: link}
        return found

    def with_left_out(self, ref: SessionRef, outcome: Outcome, head: Head | None) -> Outcome:
        """Return the outcome with the files that were left out, including those that only a head names."""
        parts = head.parts if head is not None and not head.deleted else ()
        names = (part.name for part in parts if self._rules.carries(kind_of(part)))
        return self.links.with_left_out(ref, outcome, self.left_out(ref, names))

    def is_open(self, ref: SessionRef) -> bool:
        """False if a file of a session is outside the store. Reads no file."""
        return all(
            self.links.of(ref, part.path) is None
            for part in self._layout.parts(ref)
            if self._is_carried(part)
        )

    def closed(self, ref: SessionRef, names: Iterable[str] = ()) -> set[str]:
        """Return what the last survey left out, and those of these parts that are outside the store."""
        found = {*self.left_out(ref, names)}
        return found | {bundles.NAME} if any(map(self._is_once, found)) else found

    def _is_once(self, name: str) -> bool:
        return self._layout.rule(name).policy is Policy.IMMUTABLE

    def _is_carried(self, part: Part) -> bool:
        """False for files that the rules exclude, and for files that no other device accepts."""
        return self._rules.carries(part.kind) and self._layout.part_kind(part.name) is not None

    def items(self, ref: SessionRef) -> dict[str, bundles.Item]:
        """Return the immutable files of a session by path, in the form in which they are sent."""
        found = {}
        for part in self._layout.parts(ref):
            if self._is_carried(part) and self._is_once(part.name):
                data = read_bytes(self._fs, part.path)
                if data is not None:
                    found[part.path] = self._item(part.name, data)
        return found

    def derived(self, session: str, name: str, state: bytes, make: Callable[[], Iterator[bytes]]) -> str:
        """Return the path of a derived file for this state of its source; made if missing.

        Args:
            state: everything that its bytes depend on.
            make: yields the bytes.

        Durability: none needed; a derived file is never visible in part.
        """
        digest = sha256(session.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        folder, key = os.path.join(self._copies, digest), part_key(name)
        path = os.path.join(folder, f"{key}-{sha256(state).hexdigest()[:24]}")
        if stat_or_none(self._fs, path) is None:
            with storage_errors("make", folder):
                make_dirs(self._fs, folder, durable=False)
            old = [name for name in names_in(self._fs, folder) or () if name.startswith(key)]
            atomic.replace(path, make(), fs=self._fs, durable=False)
            for name in old:
                with suppress(OSError):  # a leftover is replaced by the next one
                    self._fs.unlink(os.path.join(folder, name))
        return path

    def _item(self, name: str, data: bytes) -> bundles.Item:
        one = bundles.item(name, data)
        redaction = self._rules.redact
        return one if redaction is None else bundles.Item(one.name, redaction.document(one.name, data))

    def _local(self, ref: SessionRef, part: Part, stamp: Stamp, touched: float) -> LocalPart:
        size = stamp[1]
        if part.kind is not PartKind.DOCUMENT and not self._rules.exact:
            with LineFile(part.path, self._fs) as file:
                size = whole_lines(file, size)
        plain = LocalPart(part.name, part.kind, part.path, size, stamp, touched, stamp[1] - size)
        return plain if self._rules.redact is None else self._redacted_part(ref, plain)

    def _redacted_part(self, ref: SessionRef, plain: LocalPart) -> LocalPart:
        assert self._rules.redact is not None
        state = self._rules.redact.digest + _packed(plain.stamp)
        path = self.derived(ref.locator, plain.name, state, lambda: self._redacted_bytes(plain))
        size = self._fs.stat(path).st_size
        with LineFile(path, self._fs) as copy, LineFile(plain.path, self._fs) as file:
            if size == plain.size and _alike(copy, file, size):
                return plain
        return plain._replace(path=path, size=size, origin=plain.path)

    def _redacted_bytes(self, plain: LocalPart) -> Iterator[bytes]:
        redaction = self._rules.redact
        assert redaction is not None
        if plain.kind is PartKind.DOCUMENT:
            yield redaction.document(plain.name, read_bytes(self._fs, plain.path) or b"")
            return
        with LineFile(plain.path, self._fs) as file:
            yield from redaction.lines(lines_until(file, plain.size))

    def _bundle(self, ref: SessionRef, once: list[tuple[Part, Stamp, float]]) -> LocalPart:
        redaction = self._rules.redact
        state = b"".join(
            part.path.encode("utf-8", "surrogateescape") + _packed(stamp) for part, stamp, _ in once
        )
        state += redaction.digest if redaction else b""

        def make() -> Iterator[bytes]:
            return bundles.pack_items(self.items(ref).values())

        path = self.derived(ref.locator, bundles.NAME, state, make)
        digest = int.from_bytes(sha256(state).digest()[:7], "big")
        newest = max(stamp[2] for _, stamp, _ in once), max(stamp[3] for _, stamp, _ in once)
        size = self._fs.stat(path).st_size
        stamp = (digest, size, *newest)
        return LocalPart(bundles.NAME, PartKind.BUNDLE, path, size, stamp, max(at for *_, at in once))


def lines_until(file: LineFile, size: int) -> Iterator[bytes]:
    """Yield the lines of the first `size` bytes of a file, without their newlines."""
    rest = b""
    for chunk in chunks(file, 0, size):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def _alike(one: LineFile, other: LineFile, size: int) -> bool:
    """True if both files start with the same `size` bytes."""
    return all(a == b for a, b in zip_longest(chunks(one, 0, size), chunks(other, 0, size)))


def _packed(stamp: Stamp) -> bytes:
    return struct.pack("=Qqqq", *stamp)


def match(fs: Fs, part: LocalPart, pieces: Sequence[Piece] | None, seen: Stamp | None) -> Matched:
    """Compare a file with the agreed version. Not read if its stamp is unchanged, else read once.

    Args:
        pieces: the agreed pieces; None if there are none.
        seen: its stamp when it had the agreed content.
    """
    if pieces is None:
        return Matched(0, False)
    end = pieces[-1].end if pieces else 0
    if seen == part.stamp and end == part.size:
        return Matched(len(pieces), True)
    with LineFile(part.path, fs) as file:
        count = matching(file, part.size, pieces)
    return Matched(count, count == len(pieces) and end == part.size)


def matched_all(
    fs: Fs, mine: Mapping[str, LocalPart], pieces: Mapping[str, list[Piece]], seen: Mapping[str, Stamp]
) -> dict[str, Matched]:
    """Compare all files of a session with the agreed version; see `match`."""
    return {name: match(fs, here, pieces.get(name), seen.get(name)) for name, here in mine.items()}


def settled(parts: Mapping[str, LocalPart], same: Sequence[str], now: float) -> dict[str, Stamp]:
    """Return the stamps that identify unchanged files later: of files that were quiet for long enough."""
    return {
        name: parts[name].stamp for name in same if name in parts and parts[name].touched < now - MTIME_GRACE
    }


def tip(fs: Fs, part: LocalPart, pieces: Sequence[Piece]) -> str:
    """Return the chain of a whole file that starts with these pieces."""
    at, chain = pieces[-1] if pieces else Piece(0, START)
    with LineFile(part.path, fs) as file:
        for end in cut(file, at, part.size):
            at, chain = end, follow(chain, file.read(at, end - at))
    return chain


def begins_with(fs: Fs, part: LocalPart, other: LocalPart) -> bool:
    """True if the second file starts with all bytes of the first; False for redacted files, which are not compared."""
    if part.origin or other.size < part.size:
        return False
    with LineFile(part.path, fs) as file, LineFile(other.path, fs) as longer:
        return _alike(file, longer, part.size)


@contextmanager
def opened(fs: Fs, part: LocalPart | None) -> Iterator[LineFile | None]:
    """Open the file for reading; None without a file."""
    if part is None:
        yield None
        return
    with LineFile(part.path, fs) as file:
        yield file
