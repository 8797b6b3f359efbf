"""Events of removed turns in a log, found by their content and not by their number.

The log and the transcript are written by two programs that share no numbering. Events are tied to messages
by, from the strongest to the weakest: the id of a message or of a tool call; the exact text of a prompt (the
dropped prompts are matched in order, from the last one backwards); the span of an event that is already tied;
otherwise the time. The time alone would be wrong at the boundary: a prompt is logged before its message gets
its time, and writers put the time of a message in three places, or nowhere. An event without any tie goes
with the one before it.

The log is read backwards and only as far as needed: through the removed turns, and the last turn that stays,
whose first event is the prompt at which reading stops. So removing the last turn of a log of a gigabyte costs
what that turn has logged. Of a line only its head is parsed, unless it is one of the kinds with ids.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf, isnan, nan
from typing import Any, NamedTuple

from sessionary.codec.decode import REFUSED
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk.line_reader import Head, LineFile
from sessionary.layouts.amplifier.event_fields import Paths
from sessionary.layouts.amplifier.event_heads import WIDTH, Top, top_of_head, top_of_line
from sessionary.transcript.messages import is_real_user, results, text_of, tool_calls

PROMPT = "prompt:submit"
LONGEST_WITH_ID = 1 << 20
"""Longer lines are tied by span and time alone, to limit the cost of reading."""

_WITH_IDS = (
    "tool:",
    "content_block:",
    "llm:response",
    "message:",
    "provider:response",
    "approval:",
    "artifact:",
)
_ID_PATHS = Paths(
    [
        *(
            "tool_call_id",
            "data.tool_call_id",
            "data.tool_use_id",
            "data.call_id",
            "data.message_id",
            "data.id",
        ),
        *("data.tool_call.id", "data.block.id", "data.content_block.id", "data.message.id"),
    ]
)
_PROMPT_PATHS = Paths(["data.prompt", "data.content", "data.text", "data.message"])
_KEPT, _DROPPED, _OPEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Ties:
    """The ties between events and messages.

    Attributes:
        kept_ids: ids of the last turn that stays.
        dropped_ids: ids of the removed turns, and of no other.
        kept_prompt: the prompt of the last turn that stays.
        dropped_prompts: the prompts of the removed turns, in order.
        since: when the first message that goes was written.
    """

    kept_ids: frozenset[str] = frozenset()
    dropped_ids: frozenset[str] = frozenset()
    kept_prompt: str | None = None
    dropped_prompts: tuple[str, ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventCut:
    """The lines of a log that go.

    Attributes:
        offset: where the first of them begins.
        size: where the last whole line ends.
        stays: the ranges between the two that stay, as (start, end).
        kept: how many events stay of those that were looked at.
        dropped: number of removed events.
        by_time: number of those matched by time or place alone.
    """

    offset: int
    size: int
    stays: tuple[tuple[int, int], ...]
    kept: int
    dropped: int
    by_time: int

    @property
    def kept_bytes(self) -> int:
        """The bytes of the ranges that stay."""
        return sum(end - start for start, end in self.stays)


def ties_of(last_kept: Sequence[Mapping[str, Any]], dropped: Sequence[Mapping[str, Any]]) -> Ties:
    """The ties of events to the last turn that stays and to the removed messages."""
    kept_ids = _ids_of(last_kept)
    gone_ids = _ids_of(dropped)
    both = kept_ids & gone_ids
    prompts = [text_of(message).strip() for message in last_kept if is_real_user(message)]
    times = (parse_time(timestamp_of(message)) for message in dropped)
    return Ties(
        frozenset(kept_ids - both),
        frozenset(gone_ids - both),
        prompts[-1] if prompts else None,
        tuple(text_of(message).strip() for message in dropped if is_real_user(message)),
        next((time for time in times if time is not None), None),
    )


def _ids_of(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    found: set[str] = set()
    for message in messages:
        found.update(call.call_id for call in tool_calls(message) if call.call_id)
        found.update(result.call_id for result in results(message) if result.call_id)
        found.update(
            value
            for key in ("id", "uuid", "message_id")
            if isinstance(value := message.get(key), str) and value
        )
    return found


def find_cut(file: LineFile, ties: Ties) -> EventCut | None:
    """The lines of the log that belong to removed turns; None if there are none, or if it cannot be determined."""
    rows = _Rows()
    walk = _Walk(ties)
    for head in file.heads_back(width=WIDTH):
        if not head.whole:
            continue  # truncated, or being written: it cannot be assigned, and stays
        row = walk.row(file, head)
        rows.add(head, row)
        if row.verdict == _KEPT and row.prompt:
            break
    rows.reverse()
    seam = walk.seam(ties)
    return None if seam is None else _judge(rows, seam)


class _Row(NamedTuple):
    verdict: int
    time: float
    span: str | None
    parent: str | None
    prompt: bool


class _Seam(NamedTuple):
    """The start of the removed turns: the first prompt's offset (inf if it was not found) and its time (or nan)."""

    byte: float
    time: float

    def drops(self, byte: int, time: float) -> bool | None:
        """Whether a line is removed because of its time or place; None if neither decides."""
        if isnan(time) or isnan(self.time):
            return None
        return time > self.time or (time == self.time and (self.byte == inf or byte >= self.byte))


class _Walk:
    """The backward pass through the log, with the dropped prompts still to be matched."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._left = list(ties.dropped_prompts)
        self._first = inf  # offset of the first dropped prompt found so far
        self._time = nan
        self._since = ties.since.timestamp() if ties.since else nan

    def row(self, file: LineFile, head: Head) -> _Row:
        """The tie of this line."""
        top = _top(file, head)
        if top is None:
            return _Row(_OPEN, nan, None, None, False)
        moment = parse_time(top.ts)
        time = nan if moment is None else moment.timestamp()
        if top.event == PROMPT:
            return _Row(self._prompt(file, head, time), time, top.span_id, top.parent_span_id, True)
        verdict = _OPEN
        if head.length <= LONGEST_WITH_ID and (top.event or "").startswith(_WITH_IDS):
            found = {value for value in _fields(file, head, _ID_PATHS).values() if isinstance(value, str)}
            if found & self._ties.dropped_ids:
                verdict = _DROPPED
            elif found & self._ties.kept_ids:
                verdict = _KEPT
        return _Row(verdict, time, top.span_id, top.parent_span_id, False)

    def _prompt(self, file: LineFile, head: Head, time: float) -> int:
        prompt = next(iter(_fields(file, head, _PROMPT_PATHS).values()), None)
        text = text_of({"content": prompt}).strip()
        # The same text may occur in a turn that stays: then, and only then, the time decides.
        early = not isnan(time) and not isnan(self._since) and time < self._since - _SLACK
        if text in self._left and not (early and text == self._ties.kept_prompt):
            place = len(self._left) - 1 - self._left[::-1].index(text)
            del self._left[place:]
            return self._drop(head, time)
        if not self._left or text == self._ties.kept_prompt:
            return _KEPT
        if isnan(time) or isnan(self._since):
            return _OPEN
        return _KEPT if early else self._drop(head, time)

    def _drop(self, head: Head, time: float) -> int:
        self._first = head.byte
        self._time = time
        return _DROPPED

    def seam(self, ties: Ties) -> _Seam | None:
        """The start of the removed turns after the pass; None if it cannot be determined."""
        if self._first == inf and isnan(self._since) and not ties.dropped_ids:
            return None
        if self._left or isnan(self._time):  # the first of the prompts was not found
            times = [time for time in (self._time, self._since) if not isnan(time)]
            return _Seam(self._first, min(times, default=nan))
        return _Seam(self._first, self._time)


_SLACK = 5.0
"""Usual seconds between the log of a prompt and the time of its message."""


@dataclass(slots=True)
class _Rows:
    """The lines that were read, in little memory: a log may have millions."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))
    verdicts: bytearray = field(default_factory=bytearray)
    spans: array[int] = field(default_factory=lambda: array("i"))
    parents: array[int] = field(default_factory=lambda: array("i"))
    names: dict[str | None, int] = field(default_factory=lambda: {None: 0})

    def add(self, head: Head, row: _Row) -> None:
        self.starts.append(head.byte)
        self.ends.append(head.byte + head.length + 1)
        self.times.append(row.time)
        self.verdicts.append(row.verdict)
        self.spans.append(self.names.setdefault(row.span, len(self.names)))
        self.parents.append(self.names.setdefault(row.parent, len(self.names)))

    def reverse(self) -> None:
        for column in (self.starts, self.ends, self.times, self.verdicts, self.spans, self.parents):
            column.reverse()


def _judge(rows: _Rows, seam: _Seam) -> EventCut | None:
    """Decide each line, in the order of the file."""
    spans = _tied_spans(rows)
    verdicts = bytearray()
    by_time = 0
    before = _KEPT
    for place, judged in enumerate(rows.verdicts):
        verdict: int | None = judged
        byte, time = rows.starts[place], rows.times[place]
        if judged == _OPEN:
            verdict = spans.get(rows.spans[place], spans.get(rows.parents[place]))
            late = seam.drops(byte, time)
            if verdict == _DROPPED and late is False and byte < seam.byte:
                verdict = None  # one span may hold a whole session, and events before the boundary stay
            if verdict is None:
                verdict = _by_time(late, before, byte, seam)
                by_time += verdict == _DROPPED
            elif rows.spans[place]:
                spans.setdefault(rows.spans[place], verdict)
        assert verdict is not None
        before = verdict
        verdicts.append(verdict)
    first = verdicts.find(_DROPPED)
    if first < 0:
        return None
    dropped = verdicts.count(_DROPPED)
    stays = tuple(_ranges(rows, verdicts, first))
    return EventCut(rows.starts[first], rows.ends[-1], stays, len(verdicts) - dropped, dropped, by_time)


def _by_time(late: bool | None, before: int, byte: int, seam: _Seam) -> int:
    if late is None:
        return before if byte < seam.byte or seam.byte == inf else _DROPPED
    return _DROPPED if late else _KEPT


def _tied_spans(rows: _Rows) -> dict[int, int]:
    """The spans of events that are tied by themselves; one with both kinds decides nothing."""
    tied: dict[int, int] = {}
    for place, verdict in enumerate(rows.verdicts):
        span = rows.spans[place]
        if verdict != _OPEN and span and tied.setdefault(span, verdict) != verdict:
            tied[span] = _OPEN
    return {span: verdict for span, verdict in tied.items() if verdict != _OPEN}


def _ranges(rows: _Rows, verdicts: bytearray, first: int) -> Iterator[tuple[int, int]]:
    """The lines that stay after the first removed one, neighbours as one range."""
    start: int | None = None
    for place in range(first, len(verdicts)):
        if verdicts[place] == _KEPT and start is None:
            start = rows.starts[place]
        elif verdicts[place] == _DROPPED and start is not None:
            yield start, rows.starts[place]
            start = None
    if start is not None:
        yield start, rows.ends[-1]


def _top(file: LineFile, head: Head) -> Top | None:
    """The identifying fields of an event; None for a line that is not an event."""
    if head.length <= WIDTH:
        return top_of_line(head.head)
    top = top_of_head(head)
    return top if top is not None or head.length > LONGEST_WITH_ID else top_of_line(file.raw(head))


def _fields(file: LineFile, head: Head, paths: Paths) -> dict[str, Any]:
    try:
        return paths.of_line(file.raw(head))
    except REFUSED:
        return {}
