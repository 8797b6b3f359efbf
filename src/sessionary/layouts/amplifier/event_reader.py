"""EventReader: questions to a session's audit log, answered without loading it.

Nearly all of a log's bytes lie in the `data` of few events. `heads`, `tail` and `summary` look at no more than the
first bytes of a long line; `fields` and `usage` take the lines that are asked for into memory, one at a time, and
build only the fields that are wanted; `event` alone builds a whole record.

No line stops the reading. What is damaged is skipped and told in `problems`, as `codec` judges it. What is not looked
at is not judged: damage in the middle of a line longer than its head is met by `fields` and `usage`, not by `heads`.
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
# A huge line that is no object is not loaded to be judged; so much of it says what it is.
SAMPLE = 1 << 16
# So many bytes lie between two words about how far a reading has come.
STEP = 1 << 23


@dataclass(frozen=True, slots=True)
class EventSummary:
    """What a log holds, counted.

    Attributes:
        total: readable events.
        events: how many there are of each name; those without a name under the empty one.
        levels: how many there are of each level; None for those without one.
        first_ts: the earliest time; the order in the file may be another.
        last_ts: the latest time.
        bytes: the size of the file.
        longest: the bytes of the longest event.
        longest_at: its offset.
        skipped: damaged stretches.
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
    """What some responses of a model have cost. Only what they tell is summed; nothing is guessed.

    Attributes:
        responses: how many there were.
        without_usage: how many of them tell nothing of their usage.
        tokens: the sums of all counts that they tell, such as ``input_tokens``.
        cost_usd: the sum of the costs that they tell; None if none tells any.
        without_cost: how many of them tell no cost.
    """

    responses: int = 0
    without_usage: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    cost_usd: Decimal | None = None
    without_cost: int = 0

    def add(self, usage: Any) -> None:
        """Count one response with the usage that it tells, if it is one."""
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
        """Add what other responses have cost."""
        self.responses += other.responses
        self.without_usage += other.without_usage
        self.without_cost += other.without_cost
        for name, number in other.tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + number
        if other.cost_usd is not None:
            self.cost_usd = other.cost_usd + (self.cost_usd or 0)


@dataclass(slots=True)
class UsageTotals:
    """The usage of a session: of all responses, and of those of each model (None: they do not name theirs)."""

    total: Usage = field(default_factory=Usage)
    models: dict[str | None, Usage] = field(default_factory=dict)


class EventReader:
    """Reads the audit log of a session.

    Args:
        path: the folder of the session, or the log itself.
        fs: the file system it lies on.
        passed: told now and then up to which byte a method has come that goes through the whole log.

    Every method that reads raises NotFound if there is no log, and StorageFailed if it cannot be read; one that
    gives an iterator does so at the first step. The filters are described at `EventFilter`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fs: Fs = OS_FS,
        *,
        passed: Callable[[int], object] | None = None,
    ) -> None:
        self.path: str = _log_path(fs, expanded(path))
        self._fs = fs
        self._passed = passed
        self._problems: dict[tuple[int, str], Problem] = {}

    @property
    def problems(self) -> list[Problem]:
        """The damage met so far, each once, in the order of the file."""
        return [self._problems[key] for key in sorted(self._problems)]

    def heads(self, **wanted: Unpack[EventFilter]) -> Iterator[EventHead]:
        """The events in the order of the file, without their data.

        Raises:
            Invalid: a time to filter by that is none.
        """
        with self._open() as file:
            for head, top in self._events(file, wanted):
                yield top.at(head)

    def tail(self, count: int) -> list[EventHead]:
        """The last `count` events in the order of the file. Costs what they weigh, whatever lies before them."""
        with self._open() as file:
            return [top.at(head) for head, top in self._chosen(file, count, {})]

    def fields(self, paths: Sequence[str], **wanted: Unpack[EventFilter]) -> Iterator[dict[str, Any]]:
        """Chosen fields of each wanted event, by their paths; a path that an event does not have is left out.

        Args:
            paths: for example ``["ts", "data.usage.input_tokens"]``; see `Paths`.
            **wanted: which events.

        Raises:
            Invalid: a path that is none, or a time to filter by that is none.
        """
        chosen = Paths(paths)
        with self._open() as file:
            for head, _ in self._events(file, wanted):
                if (found := self._fields(file, head, chosen)) is not None:
                    yield found

    def views(
        self, paths: Sequence[str], *, last: int | None = None, **wanted: Unpack[EventFilter]
    ) -> Iterator[tuple[EventHead, dict[str, Any]]]:
        """Each wanted event as its head and those of the chosen fields that it has; see `heads` and `fields`.

        Args:
            paths: the fields.
            last: only so many, the last ones; costs what lies behind the first of them.
            **wanted: which events.

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
        """The bytes of each wanted event, without the newline, however many they are; `last` is that of `views`.

        Raises:
            Invalid: a time to filter by that is none.
        """
        with self._open() as file:
            for head, _ in self._chosen(file, last, wanted):
                yield _raw(file, head)

    def event(self, byte: int) -> dict[str, Any]:
        """The whole event at an offset, as a head tells it.

        Raises:
            Invalid: no line begins there.
            Corrupt: that line is no event.
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
        """The wanted events, counted; all, if none are said.

        Raises:
            Invalid: a time to filter by that is none.
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
        """Tokens and cost of the `llm:response` events among the wanted ones, in total and by model.

        Raises:
            Invalid: a time to filter by that is none.
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
        told = 0
        for head in file.heads(width=WIDTH):
            if head.byte - told > STEP and self._passed is not None:
                told = head.byte
                self._passed(told)
            top = self._top(file, head)
            if top is not None and is_wanted(top):
                yield head, top

    def _chosen(self, file: LineFile, last: int | None, wanted: EventFilter) -> Iterator[tuple[Head, Top]]:
        """The wanted events, or the last ones of them, in the order of the file."""
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
        """What a line tells of its event; None if it is blank or damaged."""
        top = top_of_line(head.head) if head.length <= WIDTH else top_of_head(head)
        return self._read_top(file, head) if top is None else top

    def _read_top(self, file: LineFile, head: Head) -> Top | None:
        """The same for a line whose head does not tell."""
        if head.length > HUGE and not _is_object(head):
            self._judge(head, file.read(head.byte, SAMPLE))
            return None
        raw = _raw(file, head)
        top = top_of_line(raw)
        if top is None and (value := self._judge(head, raw)) is not None:
            return top_of_value(value)
        return top

    def _fields(self, file: LineFile, head: Head, chosen: Paths) -> dict[str, Any] | None:
        raw = _raw(file, head)
        try:
            return chosen.of_line(raw)
        except REFUSED:
            value = self._judge(head, raw)
            return None if value is None else chosen.of_value(value)

    def _judge(self, head: Head, raw: bytes) -> dict[str, Any] | None:
        """What is to be said of an unusual line: its record, if there is one after all, or else its damage."""
        data = raw + b"\n" if head.whole else raw
        reading = read_lines(data, self.path, line=head.line or 1, byte=head.byte)
        for problem in reading.problems:
            if problem.severity > Severity.note:
                span = problem.span if len(raw) == head.length else head.length
                self._tell(problem._replace(line=head.line, span=span))
        return reading.values[0] if reading.values else None

    def _tell(self, problem: Problem) -> None:
        """Add a problem; one that is known already is told again only to give it a line number."""
        key = problem.byte or 0, problem.code
        if key not in self._problems or problem.line is not None:
            self._problems[key] = problem

    def _corrupt(self, byte: int, reason: str, code: str) -> Corrupt:
        return Corrupt(
            f"The event at byte {byte} of {self.path} cannot be read: {reason}",
            operation="load",
            path=self.path,
            details={"byte": byte, "code": code},
            hint="`sessionary check` tells what is damaged in the file",
        )


def _log_path(fs: Fs, path: str) -> str:
    """The log in a folder; anything else is taken for the log, and its absence is told when it is read."""
    try:
        is_folder = stat.S_ISDIR(fs.stat(path).st_mode)
    except OSError:
        is_folder = False
    return os.path.join(path, EVENTS) if is_folder else path


def _is_object(head: Head) -> bool:
    """Whether a line begins and ends as an object does."""
    return head.head.lstrip(b" \t\r\xef\xbb\xbf").startswith(b"{") and head.end.rstrip().endswith(b"}")


def _raw(file: LineFile, head: Head) -> bytes:
    return head.head if len(head.head) == head.length else file.read(head.byte, head.length)


def _count(told: Any) -> int | None:
    if isinstance(told, float) and told.is_integer():
        return int(told)
    return told if isinstance(told, int) and not isinstance(told, bool) else None


def _money(told: Any) -> Decimal | None:
    """An amount, given as a number or as text. A float stands for the digits that it prints."""
    if isinstance(told, bool) or not isinstance(told, str | int | float):
        return None
    try:
        amount = Decimal(str(told).strip())
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
