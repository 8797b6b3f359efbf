"""EventReader: queries on a session's event log, without loading it.

Nearly all bytes of a log are in the `data` of few events. `heads`, `tail` and `summary` read only the first
bytes of a long line; `fields` and `usage` load the requested lines, one at a time, and build only the wanted
fields; only `event` builds a whole record.

No line stops the reading. Damage is skipped and reported in `problems`, as classified by `codec`. Bytes that
are not read are not checked: damage in the middle of a line longer than its head is found by `fields` and
`usage`, not by `heads`.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Unpack

from sessionary.codec import Undecodable, decode, read_lines
from sessionary.codec.decode import REFUSED
from sessionary.disk.fs import OS_FS, Fs, expanded
from sessionary.disk.line_reader import Head, LineFile
from sessionary.errors import Corrupt
from sessionary.layouts.amplifier.event_fields import Paths
from sessionary.layouts.amplifier.event_heads import (
    HUGE,
    WIDTH,
    EventFilter,
    EventHead,
    Top,
    compile_filter,
    top_of_head,
    top_of_line,
    top_of_value,
)
from sessionary.layouts.amplifier.files import EVENTS
from sessionary.model import Problem, Severity

RESPONSE = "llm:response"
# A huge line that is not an object is not loaded to be classified; this many bytes suffice.
SAMPLE = 1 << 16
# Bytes between two progress reports.
STEP = 1 << 23


@dataclass(frozen=True, slots=True)
class EventSummary:
    """Counts of a log.

    Attributes:
        total: readable events.
        events: number of events of each name; those without a name under the empty one.
        levels: number of events of each level; None for those without one.
        first_ts: the earliest time; the order in the file may differ.
        last_ts: the latest time.
        bytes: the size of the file.
        longest: the size of the longest event in bytes.
        longest_at: its offset.
        skipped: number of damaged parts.
    """

    total: int
    events: dict[str, int]
    levels: dict[str | None, int]
    first_ts: datetime | None
    last_ts: datetime | None
    bytes: int
    longest: int
    longest_at: int | None
    skipped: int


@dataclass(slots=True)
class Usage:
    """Tokens and cost of model responses. Missing figures are counted, not estimated.

    Attributes:
        responses: number of responses.
        without_usage: number of those without usage.
        tokens: the sums of all counts, such as ``input_tokens``.
        cost_usd: the sum of all costs; None if there are none.
        without_cost: number of responses without a cost.
    """

    responses: int = 0
    without_usage: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    cost_usd: Decimal | None = None
    without_cost: int = 0

    def add(self, usage: Any) -> None:
        """Add one response, if the event is one."""
        self.responses += 1
        if not isinstance(usage, dict) or not usage:
            self.without_usage += 1
            self.without_cost += 1
            return
        for name, count in usage.items():
            if name.endswith("_tokens") and (number := _count(count)) is not None:
                self.tokens[name] = self.tokens.get(name, 0) + number
        cost = _money(usage.get("cost_usd"))
        if cost is None:
            self.without_cost += 1
        else:
            self.cost_usd = cost + (self.cost_usd or 0)

    def merge(self, other: Usage) -> None:
        """Add the figures of other responses."""
        self.responses += other.responses
        self.without_usage += other.without_usage
        self.without_cost += other.without_cost
        for name, number in other.tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + number
        if other.cost_usd is not None:
            self.cost_usd = other.cost_usd + (self.cost_usd or 0)


@dataclass(slots=True)
class UsageTotals:
    """The usage of a session: of all responses, and by model (None: not named)."""

    total: Usage = field(default_factory=Usage)
    models: dict[str | None, Usage] = field(default_factory=dict)


class EventReader:
    """Reads the event log of a session.

    Args:
        path: the folder of the session, or the log itself.
        passed: called now and then with the offset reached, by methods that read the whole log.

    Every method that reads raises NotFound if the log is missing, and StorageFailed if it cannot be read; an
    iterator does so at its first step. The filters are described at `EventFilter`.
    """

    def __init__(
        self, path: str | os.PathLike[str], fs: Fs = OS_FS, *, passed: Callable[[int], object] | None = None
    ) -> None:
        self.path: str = _log_path(fs, expanded(path))
        self._fs = fs
        self._passed = passed
        self._problems: dict[tuple[int, str], Problem] = {}

    @property
    def problems(self) -> list[Problem]:
        """The damage found so far, each once, in the order of the file."""
        return [self._problems[key] for key in sorted(self._problems)]

    def heads(self, **wanted: Unpack[EventFilter]) -> Iterator[EventHead]:
        """The events in the order of the file, without their data.

        Raises:
            Invalid: a time of a filter is not valid.
        """
        return (head for head, _ in self.views((), **wanted))

    def tail(self, count: int) -> list[EventHead]:
        """The last `count` events in the order of the file. Reads only those."""
        return [head for head, _ in self.views((), last=count)]

    def fields(self, paths: Sequence[str], **wanted: Unpack[EventFilter]) -> Iterator[dict[str, Any]]:
        """Selected fields of each matching event, by their paths; missing ones are left out.

        Args:
            paths: for example ``["ts", "data.usage.input_tokens"]``; see `Paths`.
            **wanted: the filter.

        Raises:
            Invalid: a path or a time of a filter is not valid.
        """
        return (found for _, found in self.views(paths, **wanted))

    def views(
        self, paths: Sequence[str], *, last: int | None = None, **wanted: Unpack[EventFilter]
    ) -> Iterator[tuple[EventHead, dict[str, Any]]]:
        """Each matching event as its head and its selected fields; see `heads` and `fields`.

        Args:
            paths: the fields.
            last: at most so many, the last ones; reads only from the first of them on.
            **wanted: the filter.

        Raises:
            Invalid: as `fields`.
        """
        chosen = Paths(paths) if paths else None
        with self._open() as file:
            for head, top in self._chosen(file, last, wanted):
                found = {} if chosen is None else self._fields(file, head, chosen)
                if found is not None:
                    yield top.at(head), found

    def lines(self, *, last: int | None = None, **wanted: Unpack[EventFilter]) -> Iterator[bytes]:
        """The bytes of each matching event, without the newline, however long; `last` is that of `views`.

        Raises:
            Invalid: a time of a filter is not valid.
        """
        with self._open() as file:
            for head, _ in self._chosen(file, last, wanted):
                yield file.raw(head)

    def event(self, byte: int) -> dict[str, Any]:
        """The whole event at an offset, as given by a head.

        Raises:
            Invalid: no line begins there.
            Corrupt: that line is not an event.
        """
        with self._open() as file:
            raw = file.line(byte)
        try:
            value = decode(raw)
        except Undecodable as error:
            raise self._corrupt(byte, str(error), error.code) from None
        if not isinstance(value, dict):
            raise self._corrupt(byte, "JSON, but not an object", "not_an_object")
        return value

    def summary(self, **wanted: Unpack[EventFilter]) -> EventSummary:
        """Counts of the matching events; without a filter, of all.

        Raises:
            Invalid: a time of a filter is not valid.
        """
        names: Counter[str] = Counter()
        levels: Counter[str | None] = Counter()
        first: datetime | None = None
        last: datetime | None = None
        longest: EventHead | None = None
        with self._open() as file:
            for head, top in self._events(file, wanted):
                event = top.at(head)
                names[event.event] += 1
                levels[event.lvl] += 1
                if longest is None or event.length > longest.length:
                    longest = event
                if event.ts is not None:
                    first = event.ts if first is None else min(first, event.ts)
                    last = event.ts if last is None else max(last, event.ts)
            size = file.size()
        length, at = (longest.length, longest.byte) if longest else (0, None)
        total = names.total()
        return EventSummary(
            total, dict(names), dict(levels), first, last, size, length, at, len(self._problems)
        )

    def usage(self, **wanted: Unpack[EventFilter]) -> UsageTotals:
        """Tokens and cost of the matching `llm:response` events, in total and by model.

        Raises:
            Invalid: a time of a filter is not valid.
        """
        totals = UsageTotals()
        wanted.setdefault("event", RESPONSE)
        for found in self.fields(["data.model", "data.usage"], **wanted):
            model = found.get("data.model")
            usage = found.get("data.usage")
            totals.total.add(usage)
            totals.models.setdefault(model if isinstance(model, str) else None, Usage()).add(usage)
        return totals

    def _open(self) -> LineFile:
        return LineFile(self.path, self._fs)

    def _events(self, file: LineFile, wanted: EventFilter) -> Iterator[tuple[Head, Top]]:
        is_wanted = compile_filter(wanted)
        reported = 0
        for head in file.heads(width=WIDTH):
            if head.byte - reported > STEP and self._passed is not None:
                reported = head.byte
                self._passed(reported)
            top = self._top(file, head)
            if top is not None and is_wanted(top):
                yield head, top

    def _chosen(self, file: LineFile, last: int | None, wanted: EventFilter) -> Iterator[tuple[Head, Top]]:
        """The matching events, or the last ones of them, in the order of the file."""
        if last is None:
            yield from self._events(file, wanted)
            return
        is_wanted = compile_filter(wanted)
        found: list[tuple[Head, Top]] = []
        lines = file.heads_back(width=WIDTH)
        while len(found) < last and (head := next(lines, None)):
            top = self._top(file, head)
            if top is not None and is_wanted(top):
                found.append((head, top))
        yield from reversed(found)

    def _top(self, file: LineFile, head: Head) -> Top | None:
        """The head of a line; None if it is blank or damaged."""
        top = top_of_line(head.head) if head.length <= WIDTH else top_of_head(head)
        return self._read_top(file, head) if top is None else top

    def _read_top(self, file: LineFile, head: Head) -> Top | None:
        """The head of a line that has to be parsed as a whole."""
        if head.length > HUGE and not _is_object(head):
            self._judge(head, file.read(head.byte, SAMPLE))
            return None
        raw = file.raw(head)
        top = top_of_line(raw)
        if top is None and (value := self._judge(head, raw)) is not None:
            return top_of_value(value)
        return top

    def _fields(self, file: LineFile, head: Head, chosen: Paths) -> dict[str, Any] | None:
        raw = file.raw(head)
        try:
            return chosen.of_line(raw)
        except REFUSED:
            value = self._judge(head, raw)
            return None if value is None else chosen.of_value(value)

    def _judge(self, head: Head, raw: bytes) -> dict[str, Any] | None:
        """Handle an unusual line: return its record, if there is one, or else report its damage."""
        data = raw + b"\n" if head.whole else raw
        reading = read_lines(data, self.path, line=head.line or 1, byte=head.byte)
        for problem in reading.problems:
            if problem.severity > Severity.note:
                span = problem.span if len(raw) == head.length else head.length
                self._add(problem._replace(line=head.line, span=span))
        return reading.values[0] if reading.values else None

    def _add(self, problem: Problem) -> None:
        """Add a problem; a known one is added again only with a line number."""
        key = problem.byte or 0, problem.code
        if key not in self._problems or problem.line is not None:
            self._problems[key] = problem

    def _corrupt(self, byte: int, reason: str, code: str) -> Corrupt:
        return Corrupt(
            f"The event at byte {byte} of {self.path} cannot be read: {reason}",
            operation="load",
            path=self.path,
            details={"byte": byte, "code": code},
            hint="run `sessionary check` for details",
        )


def _log_path(fs: Fs, path: str) -> str:
    """The log in a folder; any other path is taken as the log itself, and a missing one is reported when it is read."""
    try:
        is_folder = stat.S_ISDIR(fs.stat(path).st_mode)
    except OSError:
        is_folder = False
    return os.path.join(path, EVENTS) if is_folder else path


def _is_object(head: Head) -> bool:
    """Whether a line begins and ends as an object does."""
    return head.head.lstrip(b" \t\r\xef\xbb\xbf").startswith(b"{") and head.end.rstrip().endswith(b"}")


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _money(value: Any) -> Decimal | None:
    """An amount, given as a number or as text. A float has the value of its printed digits."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        amount = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
