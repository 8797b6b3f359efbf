"""Reading one page of a session of Codex: what of it is shown, what only counts, and what repeats another session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, field, msgpack

from sessionary.layouts.agents.codex_records import Decoder, mark_of
from sessionary.layouts.jsonl import Stored
from sessionary.model import Aside, Cursor, Item, Message, Problem, Record, Severity

ROLLED_BACK = "thread_rolled_back"
MOST_GAPS = 20
"""Gaps between ordinals that are reported for a page."""
_RECENT = 16


class Page(NamedTuple):
    """A page of the line of a session; `end` is the offset at which the next page continues."""

    path: str
    end: int | None


class Lines(Struct, array_like=True):
    """State of reading a page: the next ordinal, the number of gaps, marks of the last lines in their order."""

    next: int | None = None
    gaps: int = 0
    recent: dict[int, None] = field(default_factory=dict)

    def repeats(self, record: Record) -> bool:
        """True if the same line occurred shortly before."""
        if "timestamp" not in record.value:
            return False
        recent, mark = self.recent, mark_of(record.raw)
        if mark in recent:
            return True
        recent[mark] = None
        if len(recent) > _RECENT:
            del recent[next(iter(recent))]
        return False

    def gap(self, record: Record, path: str) -> Iterator[Problem]:
        """A problem if the ordinal of a record is not the next one."""
        ordinal, expected = record.value.get("ordinal"), self.next
        if not isinstance(ordinal, int):
            return
        self.next = ordinal + 1
        if expected not in (None, ordinal) and self.gaps < MOST_GAPS:
            self.gaps += 1
            words = f"the ordinal is {ordinal} instead of {expected}: Codex reads no further"
            yield Problem("ordinal_gap", Severity.stops_resume, path, record.line, record.byte, words)


class Copied(NamedTuple):
    """Detects records of a page that repeat records of the parent of the fork.

    Attributes:
        line: those before this line; None if no own record is stored yet.
        start: those before this ordinal, if it is stated, until the first own record.
        unknown: the other session is missing, so its records are unknown.
        final: records that are added later do not change this.
    """

    line: int | None = 0
    start: int | None = None
    unknown: bool = False
    final: bool = True

    def has(self, record: Record) -> bool:
        """True for a record that repeats another session."""
        ordinal = record.value.get("ordinal")
        if self.start is not None and isinstance(ordinal, int):
            return ordinal < self.start
        return self.line is None or record.line < self.line


class State(Struct, array_like=True):
    """Content of a cursor besides the position in the last page."""

    position: bytes
    decoder: Decoder
    lines: Lines
    copied: Copied


class Reading:
    """Takes the records of a page in order.

    Args:
        decoder: what was read before.
        lines: the lines that were read before.
        dropped: the first and last numbers of records that were rolled back.
    """

    def __init__(
        self, page: Page, decoder: Decoder, lines: Lines, copied: Copied, dropped: list[tuple[int, int]]
    ) -> None:
        self._page, self._lines, self._copied, self._dropped = page, lines, copied, dropped
        self._decoder = decoder
        self._behind: Decoder | None = None  # decodes what follows the end of the page
        self._hidden = self._repeated = 0
        self._last: Cursor | None = None  # where the file ends
        self._copies = copied.line != 0 or copied.start is not None
        self._is_plain = page.end is None and not self._copies and not copied.unknown and not dropped

    def take_all(self, stored: Iterable[Stored]) -> list[Item]:
        """The items of records, and the problems between them, in order."""
        items, take = list[Item](), self.take
        for found in stored:
            if isinstance(found, Record):
                items += take(found)
            elif isinstance(found, Problem):
                items.append(found)
            elif isinstance(found, Cursor):
                self._last = found
        return items

    def take(self, found: Record) -> Sequence[Item]:
        """The items of a record."""
        value, page = found.value, self._page
        gaps = tuple(self._lines.gap(found, page.path)) if "ordinal" in value else ()
        if self._lines.repeats(found):
            return gaps
        if self._is_plain:
            said = self._decoder.decode(found, page.path)
            return (*gaps, *said) if gaps else said
        return (*gaps, *self._take_judged(found))

    def _take_judged(self, found: Record) -> Iterator[Item]:
        """The same in a page of which not all is shown."""
        value, page = found.value, self._page
        if page.end is not None and found.byte >= page.end and self._behind is None:
            self._behind = msgpack.decode(msgpack.encode(self._decoder), type=Decoder)
        decoder = self._behind or self._decoder
        if self._copied.unknown and decoder.session and is_other_session(value, decoder.session):
            yield _missing_parent(page.path, found)
            self._copied = self._copied._replace(unknown=False)
        items = decoder.decode(found, page.path)
        if self._copies and value.get("type") != "session_meta":
            if self._copied.has(found):
                self._repeated += 1
                return
            self._copies = False
            self._copied = self._copied._replace(start=None)
            yield from self._report_repeated()
        if self._behind is not None or (self._dropped and self._is_dropped(decoder.number)):
            self._hidden += sum(isinstance(item, Message) for item in items)
            yield from (Aside(item) if isinstance(item, Message) else item for item in items)
        else:
            yield from items
        if self._hidden and event_of(value) == ROLLED_BACK:
            yield from self._report_hidden("of turns that were rolled back")

    def _is_dropped(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self._dropped)

    def end(self) -> Iterator[Problem | Cursor]:
        """Items that follow the last record."""
        yield from self._report_repeated()
        yield from self._report_hidden("behind the point to which the session was reverted")
        if self._last is not None and self._page.end is None:
            yield from self._cursor(self._last)

    def _cursor(self, found: Cursor) -> Iterator[Cursor]:
        """The cursor behind the last record; none where more records may change what was read."""
        if not self._copied.final or self._copied.start is not None:
            return
        try:
            yield Cursor(msgpack.encode(State(found.state, self._decoder, self._lines, self._copied)))
        except (MsgspecError, UnicodeEncodeError, OverflowError):  # a lone surrogate, a number of 65 bits
            return

    def _report_repeated(self) -> Iterator[Problem]:
        if self._repeated:
            yield note(self._page.path, self._repeated, "record", "that the session it was forked from has")
            self._repeated = 0

    def _report_hidden(self, what: str) -> Iterator[Problem]:
        if self._hidden:
            yield note(self._page.path, self._hidden, "message", what)
            self._hidden = 0


def state_of(after: Cursor) -> State | None:
    """The content of a cursor; None if it is of another version."""
    try:
        return msgpack.decode(after.state, type=State)
    except MsgspecError:
        return None


def event_of(record: dict[str, Any]) -> str | None:
    """The type of an event; None for any other record."""
    payload = record.get("payload")
    kind = payload.get("type") if record.get("type") == "event_msg" and isinstance(payload, dict) else None
    return kind if isinstance(kind, str) else None


def turn_of(record: dict[str, Any]) -> str | None:
    """The id of the turn that a record begins."""
    payload = record.get("payload")
    begins = record.get("type") == "turn_context" or event_of(record) in ("task_started", "turn_started")
    turn = payload.get("turn_id") if begins and isinstance(payload, dict) else None
    return turn if isinstance(turn, str) else None


def is_other_session(record: dict[str, Any], session: str) -> bool:
    """True for the `session_meta` of another session."""
    payload = record.get("payload")
    return record.get("type") == "session_meta" and isinstance(payload, dict) and payload.get("id") != session


def note(path: str, count: int, unit: str, what: str) -> Problem:
    """A note on what is in a file and is not shown."""
    words = f"1 {unit} {what} is not shown" if count == 1 else f"{count:,} {unit}s {what} are not shown"
    remedy = "none needed; `sessionary show --branches` shows what was left"
    return Problem.of_file("not_shown", Severity.note, path, words, remedy)


def _missing_parent(path: str, record: Record) -> Problem:
    words = "it repeats records of a session that is missing: they are counted here"
    return Problem("missing_parent", Severity.note, path, record.line, record.byte, words, "none needed")
