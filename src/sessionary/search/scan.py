"""The scan: every conversation read as bytes in little memory, and decoded only where it may hold the words.

A hit is told by its index among the readable records, because that is how `show` finds it again. In a clean file the
index follows from the records before it, which are decoded when the first hit of their file makes it worth while.
Wherever a file is not plainly clean, be it before a hit or on a line that may be one, the scan gives up its short cut
there and goes through that file record by record, as every other reader of it does. So damage never stops a search;
it costs time, in that one file, and is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any, NamedTuple

from sessionary.disk.fs import OS_FS, READ, Fs, read_at, reason_of, require_regular
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.base import Layout
from sessionary.model import Problem, SessionRef, Severity
from sessionary.search.fast_lines import NotClean, count_clean, last_time, plain_record, time_of
from sessionary.search.needle import ByteFilter, Needle, Span, one_spaced
from sessionary.search.prefilter import looked_ahead
from sessionary.search.text_parts import CALL, Piece, pieces
from sessionary.turns import is_real_user
from sessionary.turns.history_messages import as_message

# Small enough to stay in the cache of the processor from the read to the search.
WINDOW = 1 << 18
AROUND = 240
PERSON = "person"
# Clocks of two machines differ, and a file may have been closed a little before its last message says.
_SLACK = 24 * 3600.0


class Place(NamedTuple):
    """One conversation to search.

    Attributes:
        ref: its session.
        layout: the layout to which that belongs.
        path: its file; None if it is not one file of records, and so must be read record by record.
        changed: when that last changed, in seconds since 1970; None if nobody knows.
        size: the bytes of the file.
    """

    ref: SessionRef
    layout: Layout
    path: str | None
    changed: float | None
    size: int


@dataclass(frozen=True, slots=True)
class Query:
    """What is wanted. A message is a hit if it meets every condition given.

    Attributes:
        needles: it holds all of these, each in any of its texts.
        roles: it has one of these roles; ``person``: a person wrote it.
        tools: it calls one of these tools; only what they are given is then looked into.
        parts: only these texts are looked into; see `Piece`.
        since: it is not from before this time.
        until: it is from before this time.
    """

    needles: tuple[Needle, ...]
    roles: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One message that was found.

    Attributes:
        ref: its session.
        index: its place among the readable records, from 0.
        byte: the offset of its line.
        role: who speaks; None if the record does not say.
        person: True if a person does.
        time: when, UTC; None if the record does not say.
        about: that, or the time of the last message before that bears one.
        part: which of its texts holds the words.
        tool: the tool that is called, if that text is what it was given.
        text: an excerpt of that text, each run of blanks as one.
        marks: where the words stand in the excerpt.
        cut: whether something was left out before the excerpt, and behind it.
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
    """What there is to say about a search besides its hits.

    Attributes:
        sessions: conversations that were looked through to their end.
        bytes: the size of their files.
        older: conversations left out unread, since they last changed before the time asked for.
        undated: messages left out because neither they nor any before them bear a time, and one was asked for.
        damaged: what could not be read and in which session, where that may have mattered.
    """

    sessions: int = 0
    bytes: int = 0
    older: int = 0
    undated: int = 0
    damaged: list[tuple[SessionRef, Problem]] = field(default_factory=list)

    @property
    def problems(self) -> list[Problem]:
        """What could not be read."""
        return [problem for _, problem in self.damaged]


class Search:
    """One search; `told` grows while `hits` is iterated.

    Args:
        query: what is wanted.
        fs: the file system.
    """

    def __init__(self, query: Query, fs: Fs = OS_FS) -> None:
        self.told = SearchStats()
        self._query = query
        self._fs = fs
        # A call that does not name its tool is one of "?", which then does not stand in the file.
        tools = [Needle(name, case=True) for name in query.tools if len(query.tools) == 1 and name != "?"]
        self._probe = ByteFilter((*query.needles, *tools))

    def hits(
        self, places: Iterable[Place], *, passed: Callable[[int], object] | None = None
    ) -> Iterator[Hit]:
        """The hits, conversation by conversation, each in the order of its file.

        Args:
            places: where to look.
            passed: told the bytes of each conversation that is done.
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

    def _is_quiet(self, place: Place, nobody: Event) -> bool:
        """True if no line of a conversation may be a hit, and nothing about it needs to be told."""
        if place.path is None or self._probe.blind:
            return False
        try:
            return _File(self, place, place.path, self._fs).is_quiet(nobody)
        except (NotClean, OSError):
            return False

    def _in_file(self, place: Place) -> Iterator[Hit]:
        """The hits of one conversation, by the short way as far as that leads."""
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
        """The hits behind the byte `done`, found by reading record by record."""
        time = None
        try:
            for entry in place.layout.entries(place.ref):
                record = entry.record
                found = self.match(record.value) if record.byte >= done else None
                if found and (hit := self.hit(place, found, entry.index, record.byte, time)):
                    yield hit
                time = time_of(record.value) or time
            problems = place.layout.summary(place.ref).problems
        except NotFound:
            return  # moved to the trash meanwhile
        except StorageFailed as error:
            self._tell_unreadable(place, error.path or place.ref.folder, error)
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
        """The lines of ``data[:end]`` that may be hits."""
        return self._probe.lines(data, end)

    def has_candidates(self, data: bytes, end: int) -> bool:
        """Whether there are any."""
        return self._probe.finds(data, end)

    def match(self, message: dict[str, Any]) -> _Found | None:
        """Where a message holds the words, if it does and is otherwise wanted; its time is another matter."""
        message = as_message(message)
        roles = self._query.roles
        if roles and message.get("role") not in roles and not (PERSON in roles and is_real_user(message)):
            return None
        return _best(self._query, list(self._texts(message)), message)

    def _texts(self, message: dict[str, Any]) -> Iterator[_Text]:
        """The texts that are looked into."""
        query = self._query
        for piece in pieces(message):
            if query.tools and not (piece.part == CALL and piece.tool in query.tools):
                continue
            if not query.parts or piece.part in query.parts:
                yield _Text(piece, one_spaced(piece.text))

    def hit(self, place: Place, found: _Found, index: int, byte: int, before: datetime | None) -> Hit | None:
        """The hit at this place, if its time is wanted; `before` is the time of the last message that bears one."""
        message, piece = found.message, found.text.piece
        own = time_of(message)
        if not self._in_time(place, own or before):
            return None
        excerpt, marks, cut = _excerpt(found.text.text, found.marks)
        role, person = message.get("role"), is_real_user(message)
        return Hit(
            place.ref,
            index,
            byte,
            role if isinstance(role, str) else None,
            person,
            own,
            own or before,
            piece.part,
            piece.tool,
            excerpt,
            marks,
            cut,
        )

    def _in_time(self, place: Place, time: datetime | None) -> bool:
        """Whether a message of this time is wanted. One without is older than its file, and nobody knows how much."""
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
    """The short way through one conversation."""

    def __init__(self, search: Search, place: Place, path: str, fs: Fs) -> None:
        self._search = search
        self._place = place
        self._path = path
        self._fs = fs
        self._fd = -1
        # Up to this byte the file is clean; it has so many records there, and this is the last time they bear.
        self._counted = 0
        self._records = 0
        self._time: datetime | None = None

    def hits(self) -> Iterator[Hit]:
        """The hits.

        Raises:
            NotClean: before the next hit, or in it, is something unusual.
            OSError: the file cannot be read.
        """
        self._fd = self._fs.open(self._path, READ)
        try:
            for low, data, end in self._windows():
                for begin, stop in self._search.candidates(data, end):
                    found = self._search.match(plain_record(data, begin, stop))
                    if found is not None:
                        self._count(low + begin)
                        hit = self._search.hit(self._place, found, self._records, low + begin, self._time)
                        if hit is not None:
                            yield hit
        finally:
            self._fs.close(self._fd)

    def is_quiet(self, nobody: Event) -> bool:
        """True if it has no candidates; False also if nobody wants to know any more. Raises as `hits`."""
        self._fd = self._fs.open(self._path, READ)
        try:
            for _, data, end in self._windows():
                if nobody.is_set() or self._search.has_candidates(data, end):
                    return False
            return True
        finally:
            self._fs.close(self._fd)

    def _windows(self) -> Iterator[tuple[int, bytes, int]]:
        """The file piece by piece: an offset, bytes from there on, and how many of them are whole lines.

        What follows the last newline of a piece is read again with the next one: cheaper than joining the two. What is
        appended meanwhile is left to the next search.
        """
        total = require_regular(self._fs.fstat(self._fd)).st_size
        low, size = 0, WINDOW
        while low < total:
            wanted = min(size, total - low)
            data = read_at(self._fs, self._fd, wanted, low)
            if not low and not data.startswith(b"{"):
                raise NotClean  # perhaps no text at all
            if len(data) < wanted or low + wanted == total:  # it may have become shorter meanwhile
                yield low, data, len(data)
                return
            end = data.rfind(b"\n") + 1
            if end:
                yield low, data, end
            low, size = low + end, WINDOW if end else 2 * size  # a line may be longer than a piece

    def _count(self, byte: int) -> None:
        """Count the records before the line that begins at `byte`."""
        size = WINDOW
        while self._counted < byte:
            data = read_at(self._fs, self._fd, min(size, byte - self._counted), self._counted)
            end = data.rfind(b"\n") + 1
            if not end:
                if not data:
                    raise NotClean  # the file became shorter meanwhile
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
    """A message that holds the words, and where."""

    message: dict[str, Any]
    text: _Text
    marks: list[Span]


def _best(query: Query, texts: list[_Text], message: dict[str, Any]) -> _Found | None:
    """The text that holds most of the needles, and where; None unless each of them is in some text."""
    found = [[needle.spans(text.text) for needle in query.needles] for text in texts]
    if not texts or not all(any(row[at] for row in found) for at in range(len(query.needles))):
        return None
    at = max(range(len(texts)), key=lambda row: sum(map(bool, found[row])))
    return _Found(message, texts[at], _merged(span for spans in found[at] for span in spans))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch each other as one."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _excerpt(text: str, marks: list[Span]) -> tuple[str, list[Span], tuple[bool, bool]]:
    """The text around the first mark, cut between words where that is near, with the marks in it."""
    first = marks[0] if marks else Span(0, 0)
    start, end = max(first.start - AROUND, 0), min(first.end + AROUND, len(text))
    if start and 0 <= (blank := text.find(" ", start, start + 20)) < first.start:
        start = blank + 1
    if end < len(text) and (blank := text.rfind(" ", end - 20, end)) >= first.end:
        end = blank
    inside = [Span(m.start - start, m.end - start) for m in marks if m.start >= start and m.end <= end]
    return text[start:end], inside, (start > 0, end < len(text))


def _hides_words(problem: Problem, path: str | None) -> bool:
    """Whether words may stand in what is wrong: a place in the one file, or any file of a session that has many."""
    if problem.code in _READ:
        return False
    if path is None:
        return problem.severity > Severity.cosmetic
    return problem.path == path and problem.severity > Severity.note and problem.byte is not None


# What is wrong with these is the conversation, a name or the family; their words are there.
_READ = frozenset(
    "orphaned_call orphaned_result repeated_result duplicate_session parent_cycle slug_differs odd_name".split()
)
