"""Reading a session that is one JSON Lines file, in two passes and from a cursor.

The first pass finds out which records count in the end: a log keeps what a rewind took back, and later versions of
earlier records (`Plan`). The second pass yields the messages of those. Behind a cursor both passes read only what was
added, unless that changes what was yielded before.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from sessionary.disk.fs import Fs, is_file
from sessionary.layouts.abilities import KnownTime, Recency
from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import MayMatch
from sessionary.layouts.jsonl import (
    Stored,
    by_windows,
    may_hold,
    raw_line,
    read_jsonl,
    read_range,
    read_windows,
    recency,
)
from sessionary.model import (
    Aside,
    Cursor,
    Fact,
    Item,
    Message,
    Part,
    Place,
    Problem,
    Record,
    Reset,
    SessionRef,
    Severity,
    UsageEvent,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck

_SHOWS_THEM = "none needed; `sessionary show --branches` shows them"

OPENING = 1 << 16
"""Bytes at the beginning of a file in which a record that states the folder is looked for."""

KEPT = 1 << 20
"""Bytes of a file whose records are kept between both passes; those of a larger one are read twice."""

Memory = dict[str, Any]
"""State that a layout carries from record to record. Cursors store it, so values are plain, small, and replaced."""


class Verdict(Enum):
    """The use of a record of a log."""

    SHOWN = "shown"
    ASIDE = "aside"
    """It is outside of the conversation; its usage counts."""
    COPY = "copy"


class Plan(Protocol):
    """Decides which records of a file count.

    Attributes:
        hidden: the number of records that are not shown, by the words that say which they are.
        is_plain: all records that were surveyed are shown as they are, so `newest` and `verdict` need not be asked.
    """

    hidden: Counter[str]
    is_plain: bool

    def survey(self, found: Record) -> None:
        """Add the next record of a file that is read from its start."""

    def follow(self, record: dict[str, Any]) -> bool:
        """Add the next record behind a cursor; False if it changes what earlier records mean."""
        ...

    def settle(self) -> None:
        """Decide, once all records were surveyed."""

    def newest(self, record: dict[str, Any]) -> tuple[int, int] | None:
        """The line and byte of the last version of a record that is stored several times; None for any other."""
        ...

    def verdict(self, record: dict[str, Any]) -> Verdict:
        """The use of a record. Called once for each record, in the order of the file."""
        ...

    def state(self) -> bytes:
        """The state that a later `follow` needs, as bytes."""
        ...


def aside(item: Message | UsageEvent) -> Aside | UsageEvent:
    """Items for a message outside of the conversation."""
    return Aside(item) if isinstance(item, Message) else item


class _State(Struct, array_like=True):
    """Content of a cursor: the position in the file, the plan, the id of the last message, and the memory."""

    position: bytes
    plan: bytes
    last: str | None
    memory: Memory


class Reading(Struct):
    """One reading: from where, up to where (None if no later one can go on there), by which plan.

    `last` is the id of the last message that was read.
    """

    start: Cursor | None
    end: Cursor | None
    plan: Plan
    last: str | None
    memory: Memory
    kept: list[Stored] | None = None
    """The content of a small file, which is then read only once."""
    surveyed: int = 0
    """Records that begin before this byte were surveyed."""


class LogLayout(AgentLayout):
    """The sessions of an agent that stores each in a JSON Lines file.

    Attributes:
        versions: the agent itself stores a record several times under one id.
    """

    versions: ClassVar[bool] = False

    _watch: LogCheck | None = None
    """Receives each record of a session that is read."""

    @abstractmethod
    def _plan(self, ref: SessionRef, state: bytes | None) -> Plan:
        """A plan for a file that is read from its start (None), or from a cursor with this state.

        Raises:
            MsgspecError: the state is damaged.
        """

    @abstractmethod
    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterable[Message | UsageEvent]:
        """The messages that a record holds, and usage that belongs to none."""

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterable[Fact]:
        """Facts of the session in a record. Called for every record, whether it counts or not."""
        return ()

    def opening(self, ref: SessionRef) -> Iterator[Fact]:
        """The facts of the first records, up to one that states the folder."""
        memory: Memory = {}
        for record in first_records(self._fs, ref.locator):
            facts = list(self._facts(ref, record, memory))
            yield from facts
            if any(fact.name == "cwd" for fact in facts):
                break

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """As `Layout.read`. A message may be made of several records, so a file with a match is read as a whole."""
        if may_match is not None and not may_hold(self._fs, ref.locator, may_match):
            return iter(())
        return super().read(ref, after)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        watching = copy(self)
        watching._watch = check = self._check_of(ref)
        yield from watching._problems(ref)
        yield from check.problems()

    def _check_of(self, ref: SessionRef) -> LogCheck:
        """The receiver of the records of a session that is checked."""
        from sessionary.layouts.agents.log_check import LogCheck  # here and below: a list checks nothing

        return LogCheck(ref, versions=self.versions)

    def _watched(self, ref: SessionRef, stored: Iterable[Stored]) -> Iterable[Stored]:
        """The stored records of a session; each is also passed to a check."""
        watch = self._watch_of(ref)
        return stored if watch is None else watch.passing(stored)

    def _watch_of(self, ref: SessionRef) -> LogCheck | None:
        """The receiver of the records of this session; None for another session that is read too."""
        watch = self._watch
        return watch if watch is not None and watch.ref.locator == ref.locator else None

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        """As `Layout.raw`; older versions of some agents store a session as one JSON document."""
        if not (place.path or ref.locator).endswith(".json"):
            return super().raw(ref, place)
        from sessionary.layouts.agents.documents import raw_value

        return raw_value(self._fs, ref.locator, place.byte or 0)

    def recency(self, ref: SessionRef, known: KnownTime | None = None) -> Recency:
        return recency(self._fs, ref.locator, self._now(), known, self._salt(ref))

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        reading = None if after is None else self._further(ref, after)
        if reading is None:
            if after is not None:
                yield Reset()
            reading = self._whole(ref)
            yield from self.stated(ref)
            yield from _notes(ref.locator, reading.plan.hidden)
        yield from _whole_messages(self._taken(ref, reading), reading)
        if reading.end is not None:
            state = _State(reading.end.state, reading.plan.state(), reading.last, reading.memory)
            if (data := _encoded(state)) is not None:
                yield Cursor(data)

    def _taken(self, ref: SessionRef, reading: Reading) -> Iterator[Item]:
        """The items of the records."""
        stored = self._surveyed(ref, reading)
        return by_windows(stored, lambda window: self._taken_from(ref, reading, window))

    def _surveyed(self, ref: SessionRef, reading: Reading) -> Iterable[Iterable[Stored]]:
        """The records of a reading once more, without those that were added to the file since."""
        if reading.kept is not None:
            return (reading.kept,)
        return windows(self._fs, ref.locator, reading.start, reading.end)

    def _taken_from(self, ref: SessionRef, reading: Reading, window: Iterable[Stored]) -> Iterator[Item]:
        watch, path, memory = self._watch_of(ref), ref.locator, reading.memory
        plain_until = reading.surveyed if watch is None and reading.plan.is_plain else 0
        for found in self._watched(ref, window):
            if isinstance(found, Record):
                value, place = found.value, Place(path, found.line, found.byte)
                if facts := self._facts(ref, value, memory):
                    yield from facts
                if found.byte < plain_until:
                    yield from self._messages(ref, value, place, memory)
                    continue
                at = reading.plan.newest(value)
                verdict = reading.plan.verdict(value)
                if verdict is not Verdict.COPY:
                    if at is not None and (newest := self._record_at(ref, at[1])) is not None:
                        value, place = newest, Place(path, *at)
                    messages = self._messages(ref, value, place, memory)
                    if watch is not None and verdict is Verdict.SHOWN:
                        messages = iter(held := list(messages))
                        watch.kept(Record(value, place.line or 1, place.byte or 0, b""), held)
                    yield from messages if verdict is Verdict.SHOWN else map(aside, messages)
            elif isinstance(found, Problem):
                yield found

    def _record_at(self, ref: SessionRef, byte: int) -> dict[str, Any] | None:
        """The record at an offset; None if it is not alone on its line."""
        from sessionary.codec import Undecodable, decode

        try:
            value = decode(raw_line(self._fs, ref.locator, byte))
        except Undecodable:
            return None
        return value if isinstance(value, dict) else None

    def _whole(self, ref: SessionRef) -> Reading:
        plan, end, kept, surveyed = self._plan(ref, None), None, list[Stored](), 0
        is_small = True
        for found in records(self._fs, ref.locator):
            if isinstance(found, Record):
                end, surveyed = None, found.byte + 1
                plan.survey(found)
                if is_small and found.byte + len(found.raw) > KEPT:
                    is_small = False
                    kept.clear()
            else:
                end = found if isinstance(found, Cursor) else None
            if is_small:
                kept.append(found)
        plan.settle()
        return Reading(None, end, plan, None, {}, kept or None, surveyed)

    def _further(self, ref: SessionRef, after: Cursor) -> Reading | None:
        """Items added after a cursor; None if the file must be read from its start."""
        try:
            state = msgpack.decode(after.state, type=_State)
            plan = self._plan(ref, state.plan)
        except MsgspecError:
            return None
        start, end, first, memory = Cursor(state.position), None, state.last is not None, dict(state.memory)
        for found in records(self._fs, ref.locator, start):
            end = found if isinstance(found, Cursor) else None
            if isinstance(found, Reset) or (isinstance(found, Record) and not plan.follow(found.value)):
                return None
            if first and isinstance(found, Record):
                list(self._facts(ref, found.value, memory))
                for message in self._messages(ref, found.value, Place(ref.locator), memory):
                    if isinstance(message, Message):
                        if message.id == state.last:
                            return None  # more of a message that was yielded
                        first = False
        return Reading(start, end, plan, state.last, state.memory)


def origin_of(record: dict[str, Any]) -> str | None:
    """The session that a fork states for a record that it copied: as its origin, or as that of the request."""
    stated = object_of(record.get("forkedFrom")).get("sessionId") or record.get("requestSessionId")
    return text_or_none(stated)


def copied_from(fs: Fs, ref: SessionRef, record: dict[str, Any]) -> str | None:
    """The session that a fork copied a record from, if it is stored beside the fork; then its usage counts there."""
    origin = origin_of(record)
    if origin is None or "/" in origin or origin == ref.session_id:
        return None
    return origin if is_file(fs, f"{os.path.dirname(ref.locator)}/{origin}.jsonl") else None


def records(fs: Fs, path: str, after: Cursor | None = None) -> Iterator[Stored]:
    """As `read_jsonl`, with the whole records that a damaged line holds."""
    return read_jsonl(fs, path, after, salvage=True)


def windows(
    fs: Fs, path: str, after: Cursor | None = None, until: Cursor | None = None
) -> Iterator[Iterable[Stored]]:
    """As `records`, window by window, up to a cursor."""
    return read_windows(fs, path, after, salvage=True, until=until)


def first_records(fs: Fs, path: str) -> Iterator[dict[str, Any]]:
    """The records in the first `OPENING` bytes of a file; damaged lines are left out.

    Raises:
        NotFound: the file does not exist.
        StorageFailed: it cannot be read.
    """
    from sessionary.codec import Undecodable, decode

    for line in read_range(fs, path, 0, OPENING).split(b"\n"):
        with suppress(Undecodable):
            if isinstance(value := decode(line), dict):
                yield value


def only_records(fs: Fs, path: str) -> Iterator[Record]:
    """The records of a file, in order."""
    return (found for found in records(fs, path) if isinstance(found, Record))


def _encoded(state: _State) -> bytes | None:
    try:
        return msgpack.encode(state)
    except (MsgspecError, UnicodeEncodeError, OverflowError):  # a lone surrogate, a number of 65 bits
        return None


def _notes(path: str, hidden: Counter[str]) -> Iterator[Problem]:
    """Report what is in the file and is not shown."""
    for what, count in hidden.items():
        words = f"1 record {what} is not shown" if count == 1 else f"{count:,} records {what} are not shown"
        yield Problem.of_file("not_shown", Severity.note, path, words, _SHOWS_THEM)


def _whole_messages(items: Iterator[Item], reading: Reading) -> Iterator[Item]:
    """The items, with consecutive messages of one id joined to one, in the place of the first."""
    pending: Message | Aside | None = None
    last: Message | None = None
    behind: list[Item] = []
    for item in items:
        if isinstance(item, Message):
            message, reading.last = item, item.id
        elif isinstance(item, Aside):
            message = item.message
        else:
            behind.append(item)
            continue
        if pending is not None and last is not None:
            if last.id == message.id and last.role == message.role and last.id is not None:
                pending = _joined(pending, item)
                last = pending if isinstance(pending, Message) else pending.message
                continue
            yield pending
        if behind:
            yield from behind
            behind = []
        pending, last = item, message
    yield from (*(() if pending is None else (pending,)), *behind)


def _joined(one: Message | Aside, other: Message | Aside) -> Message | Aside:
    """One message from two of its records, each of which states the usage so far."""
    first = one if isinstance(one, Message) else one.message
    second = other if isinstance(other, Message) else other.message
    usage = first.usage
    if usage is None or (second.usage is not None and second.usage.output > usage.output):
        usage = second.usage
    shown = [each for each in (one, other) if isinstance(each, Message)]
    parts = list[Part]()
    for part in (part for each in shown for part in each.parts):
        if part not in parts:
            parts.append(part)
    lead = shown[0] if shown else first
    places = dict.fromkeys((*first.further, second.place, *second.further))
    further = tuple(place for place in (first.place, *places) if place != lead.place)
    whole = replace(lead, parts=tuple(parts), usage=usage, model=first.model or second.model, further=further)
    return whole if shown else Aside(whole)
