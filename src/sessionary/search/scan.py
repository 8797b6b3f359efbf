"""Exact scan: conversations are searched as bytes in bounded memory; only possible matches are decoded.

A hit has the index of its message among the readable records, as `show` uses it. In a clean file the index is the
number of records before it, which are counted at the first hit of the file. If a file is not plainly clean before a
hit or on a line with a possible match, the scan reads the rest of that file record by record, like every other
reader. So damage never stops a search: it costs time in that one file, and is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, READ, Fs, read_at, reason_of, require_regular
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.base import Layout
from sessionary.layouts.summary import summary_of
from sessionary.model import PERSON, Message, Problem, SessionRef, Severity
from sessionary.search.fast_lines import NotClean, count_clean, last_time, plain_record
from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.prefilter import looked_ahead
from sessionary.search.text_parts import CALL, Piece, pieces
from sessionary.transcript.typed import message_of, numbered

# Fits into the processor cache between reading and searching.
WINDOW = 1 << 18
AROUND = 240
# Clocks of two machines differ, and a file may have been closed a little before its last message says.
_SLACK = 24 * 3600.0


class Place(NamedTuple):
    """A conversation to search.

    Attributes:
        ref: its session.
        layout: the layout of the session.
        path: its file; None if it is not one file of records and must be read record by record.
        changed: its modification time, in seconds since 1970; None if unknown.
        size: the size of the file in bytes.
    """

    ref: SessionRef
    layout: Layout
    path: str | None
    changed: float | None
    size: int


@dataclass(frozen=True, slots=True)
class Query:
    """Search conditions. A hit meets all of them.

    Attributes:
        needles: the message contains all of these, each in any of its texts.
        roles: it has one of these roles; ``person``: the user wrote it.
        tools: it calls one of these tools; only the arguments are then searched.
        parts: search only these texts; see `Piece`.
        since: it is at or after this time.
        until: it is before this time.
    """

    needles: tuple[Needle, ...]
    roles: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that matches.

    Attributes:
        ref: its session.
        index: its index among the readable records, from 0.
        byte: the offset of its line.
        role: its role; None if missing.
        person: True if the user wrote it.
        time: its time, UTC; None if missing.
        about: its time, or that of the last earlier message with one.
        part: the kind of text that matches.
        tool: the called tool, if the text is its arguments.
        text: an excerpt of that text, each run of blanks as one.
        marks: positions of the words in the excerpt.
        cut: whether text was omitted before and behind the excerpt.
    """

    ref: SessionRef
    index: int
    byte: int
    role: str | None
    person: bool
    time: datetime | None
    about: datetime | None
    part: str
    tool: str | None
    text: str
    marks: list[Span]
    cut: tuple[bool, bool]


@dataclass(slots=True)
class SearchStats:
    """Statistics and problems of a search.

    Attributes:
        sessions: number of conversations that were searched to their end.
        bytes: the size of their files.
        older: number of conversations skipped because they last changed before the requested time.
        undated: number of messages skipped because neither they nor earlier ones have a time, and one was requested.
        damaged: unreadable ranges by session, where they may have hidden a match.
    """

    sessions: int = 0
    bytes: int = 0
    older: int = 0
    undated: int = 0
    damaged: list[tuple[SessionRef, Problem]] = field(default_factory=list)

    @property
    def problems(self) -> list[Problem]:
        """The problems without their sessions."""
        return [problem for _, problem in self.damaged]


class Search:
    """A search; `told` is updated while `hits` is iterated.

    Args:
        query: the conditions.
        fs: the file system.
    """

    def __init__(self, query: Query, fs: Fs = OS_FS) -> None:
        self.told = SearchStats()
        self._query = query
        self._fs = fs
        # A call without a tool name is shown as "?", which is not in the file.
        tools = [Needle(name, case=True) for name in query.tools if len(query.tools) == 1 and name != "?"]
        self._probe = ByteFilter((*query.needles, *tools))

    def hits(
        self, places: Iterable[Place], *, passed: Callable[[int], object] | None = None
    ) -> Iterator[Hit]:
        """Yield the hits, conversation by conversation, each in file order.

        Args:
            places: the conversations.
            passed: called with the size in bytes of each finished conversation.
        """
        since = self._query.since
        oldest = None if since is None else since.timestamp() - _SLACK
        wanted = []
        for place in places:
            if oldest is not None and place.changed is not None and place.changed < oldest:
                self.told.older += 1
            else:
                wanted.append((place.size, place))
        for place, quiet in looked_ahead(wanted, self._is_quiet):
            if not quiet:
                yield from self._in_file(place)
            self.told.sessions += 1
            self.told.bytes += place.size
            if passed is not None:
                passed(place.size)

    def _is_quiet(self, place: Place, unused: Event) -> bool:
        """True if no line of a conversation may match, and nothing about it must be reported."""
        if place.path is None or self._probe.blind:
            return False
        try:
            return _File(self, place, place.path, self._fs).is_quiet(unused)
        except (NotClean, OSError):
            return False

    def _in_file(self, place: Place) -> Iterator[Hit]:
        """Yield the hits of one conversation, by the fast path as far as possible."""
        if place.path is None:
            yield from self._patiently(place, 0)
            return
        done = 0
        try:
            try:
                for hit in _File(self, place, place.path, self._fs).hits():
                    yield hit
                    done = hit.byte + 1
            except NotClean:
                yield from self._patiently(place, done)
        except FileNotFoundError:
            pass  # a session without a conversation
        except OSError as error:
            self._tell_unreadable(place, place.path, error)

    def _patiently(self, place: Place, done: int) -> Iterator[Hit]:
        """Yield the hits behind byte `done`, reading record by record."""
        time = None
        try:
            for one in numbered(place.layout.read(place.ref)):
                message, byte = one.message, one.message.place.byte or 0
                found = self.match(message) if byte >= done else None
                if found and (hit := self.hit(place, found, one.index, byte, time)):
                    yield hit
                time = message.time or time
            problems = summary_of(place.layout, place.ref).problems
        except NotFound:
            return  # moved to the trash meanwhile
        except StorageFailed as error:
            self._tell_unreadable(place, error.path or place.ref.locator, error)
            return
        self.told.damaged += [
            (place.ref, problem) for problem in problems if _hides_words(problem, place.path)
        ]

    def _tell_unreadable(self, place: Place, path: str, error: OSError) -> None:
        message = f"cannot be read: {reason_of(error)}"
        remedy = "check its owner and mode"
        problem = Problem("unreadable_file", Severity.stops_resume, path, None, None, message, remedy)
        self.told.damaged.append((place.ref, problem))

    def candidates(self, data: bytes, end: int) -> Iterator[Span]:
        """Yield the lines of ``data[:end]`` that may match."""
        return self._probe.lines(data, end)

    def has_candidates(self, data: bytes, end: int) -> bool:
        """True if there is any such line."""
        return self._probe.finds(data, end)

    def match(self, message: Message) -> _Found | None:
        """Return the match in a message if it meets all conditions except time; else None."""
        roles = self._query.roles
        if roles and message.role not in roles and not (PERSON in roles and message.origin == PERSON):
            return None
        return _best(self._query, list(self._texts(message)), message)

    def _texts(self, message: Message) -> Iterator[_Text]:
        """Yield the texts to search."""
        query = self._query
        for piece in pieces(message):
            if query.tools and not (piece.part == CALL and piece.tool in query.tools):
                continue
            if not query.parts or piece.part in query.parts:
                yield _Text(piece, one_spaced(piece.text))

    def hit(self, place: Place, found: _Found, index: int, byte: int, before: datetime | None) -> Hit | None:
        """Return the hit if its time is requested; `before` is the time of the last earlier message with one."""
        message, piece = found.message, found.text.piece
        own = message.time
        if not self._in_time(place, own or before):
            return None
        excerpt, marks, cut = _excerpt(found.text.text, found.marks)
        return Hit(
            place.ref,
            index,
            byte,
            message.role,
            message.origin == PERSON,
            own,
            own or before,
            piece.part,
            piece.tool,
            excerpt,
            marks,
            cut,
        )

    def _in_time(self, place: Place, time: datetime | None) -> bool:
        """True if a message of this time is requested.

        A message without a time is older than its file, by an unknown amount.
        """
        since, until = self._query.since, self._query.until
        if time is not None:
            return (since is None or time >= since) and (until is None or time < until)
        if since is None and (
            until is None or (place.changed is not None and place.changed < until.timestamp())
        ):
            return True
        self.told.undated += 1
        return False


class _File:
    """The fast path through one conversation."""

    def __init__(self, search: Search, place: Place, path: str, fs: Fs) -> None:
        self._search = search
        self._place = place
        self._path = path
        self._fs = fs
        self._fd = -1
        # Up to this byte the file is clean: number of records before it, and their last time.
        self._counted = 0
        self._records = 0
        self._time: datetime | None = None

    def hits(self) -> Iterator[Hit]:
        """Yield the hits.

        Raises:
            NotClean: something unusual is before the next hit, or in it.
            OSError: the file cannot be read.
        """
        self._fd = self._fs.open(self._path, READ)
        try:
            for low, data, end in self._windows():
                for begin, stop in self._search.candidates(data, end):
                    found = self._search.match(message_of(plain_record(data, begin, stop)))
                    if found is not None:
                        self._count(low + begin)
                        hit = self._search.hit(self._place, found, self._records, low + begin, self._time)
                        if hit is not None:
                            yield hit
        finally:
            self._fs.close(self._fd)

    def is_quiet(self, unused: Event) -> bool:
        """True if it has no possible match; False also if the result is not needed any more. Raises as `hits`."""
        self._fd = self._fs.open(self._path, READ)
        try:
            for _, data, end in self._windows():
                if unused.is_set() or self._search.has_candidates(data, end):
                    return False
            return True
        finally:
            self._fs.close(self._fd)

    def _windows(self) -> Iterator[tuple[int, bytes, int]]:
        """Yield windows of the file: an offset, the bytes from there on, and the length of the whole lines in them.

        Bytes behind the last newline are read again with the next window, which is cheaper than joining. Bytes
        appended meanwhile are left to the next search.
        """
        total = require_regular(self._fs.fstat(self._fd)).st_size
        low, size = 0, WINDOW
        while low < total:
            wanted = min(size, total - low)
            data = read_at(self._fs, self._fd, wanted, low)
            if not low and not data.startswith(b"{"):
                raise NotClean  # perhaps not text at all
            if len(data) < wanted or low + wanted == total:  # the file may have been truncated meanwhile
                yield low, data, len(data)
                return
            end = data.rfind(b"\n") + 1
            if end:
                yield low, data, end
            low, size = low + end, WINDOW if end else 2 * size  # a line may be longer than the window

    def _count(self, byte: int) -> None:
        """Count the records before the line that begins at `byte`."""
        size = WINDOW
        while self._counted < byte:
            data = read_at(self._fs, self._fd, min(size, byte - self._counted), self._counted)
            end = data.rfind(b"\n") + 1
            if not end:
                if not data:
                    raise NotClean  # the file was truncated meanwhile
                size *= 2
                continue
            data = data[:end]
            self._records += count_clean(data)
            self._time = last_time(data) or self._time
            self._counted += end


class _Text(NamedTuple):
    piece: Piece
    text: str


class _Found(NamedTuple):
    """A matching message, and the positions."""

    message: Message
    text: _Text
    marks: list[Span]


def _best(query: Query, texts: list[_Text], message: Message) -> _Found | None:
    """Return the text with most of the needles, and their positions; None unless each needle is in some text."""
    found = [[needle.spans(text.text) for needle in query.needles] for text in texts]
    if not texts or not all(any(row[at] for row in found) for at in range(len(query.needles))):
        return None
    at = max(range(len(texts)), key=lambda row: sum(map(bool, found[row])))
    return _Found(message, texts[at], _merged(span for spans in found[at] for span in spans))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, adjacent ones merged."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _excerpt(text: str, marks: list[Span]) -> tuple[str, list[Span], tuple[bool, bool]]:
    """Return the text around the first mark, cut between words if possible, with the marks in it."""
    first = marks[0] if marks else Span(0, 0)
    start, end = max(first.start - AROUND, 0), min(first.end + AROUND, len(text))
    if start and 0 <= (blank := text.find(" ", start, start + 20)) < first.start:
        start = blank + 1
    if end < len(text) and (blank := text.rfind(" ", end - 20, end)) >= first.end:
        end = blank
    inside = [Span(m.start - start, m.end - start) for m in marks if m.start >= start and m.end <= end]
    return text[start:end], inside, (start > 0, end < len(text))


def _hides_words(problem: Problem, path: str | None) -> bool:
    """True if a damaged range may hide a match: a range of the one file, or any file of a session with several."""
    if problem.code in _READ:
        return False
    if path is None:
        return problem.severity > Severity.cosmetic
    return problem.path == path and problem.severity > Severity.note and problem.byte is not None


# Problems that hide no text: about the conversation, a name or the tree of sessions.
_READ = frozenset(
    "orphaned_call orphaned_result repeated_result duplicate_session parent_cycle slug_differs odd_name".split()
)
