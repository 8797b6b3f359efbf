"""The summary of a conversation, folded from its messages: counts, title, times, usage, calls without a result.

A fold can be stored at any message and continued later: it is a plain value, and `state` is its bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import date, datetime

from msgspec import MsgspecError, Struct, field, msgpack
from msgspec.structs import replace

from sessionary.model import (
    CONTEXTS,
    NO_MODEL,
    NO_USAGE,
    PERSON,
    Aside,
    Cursor,
    Fact,
    Item,
    Message,
    Problem,
    Reset,
    Severity,
    TimedUsage,
    Usage,
    UsageEvent,
)
from sessionary.transcript.diagnosis import Diagnosis
from sessionary.transcript.history_messages import begins_turn

TITLE = 200
_EPOCH = date(1970, 1, 1).toordinal()
LARGEST_STATE = 1 << 12
"""Bytes that are stored of a session: of its fold and its cursor. One with more open calls or problems is read anew."""
LARGEST_WITH_FINDINGS = 1 << 16
"""The same of a session of which all findings are kept, for a repair."""
RECENT_CALLS = 64
"""Ids of calls that are stored of a fold. Behind a cursor, only these are known as used before; a check reads all."""
UNPAIRED = {
    "orphaned_call": Severity.stops_resume,
    "orphaned_result": Severity.stops_resume,
    "repeated_call": Severity.stops_resume,
    "repeated_result": Severity.stops_resume,
}
"""Findings about calls and results that are reported of sessions of any agent."""


class Fold(Struct, array_like=True):
    """What the messages of one conversation add up to.

    Attributes:
        diagnosis: what keeps them from being resumed.
        turns: how many turns, each begun by the user.
        title: the first words of the user, on one line; None without any.
        created: the time of the first message that has one.
        updated: the latest time of a message.
        usage: the usage by `TimedUsage.quarter`, model and `TimedUsage.context`.
        facts: what the stream says of the session, by name.
        problems: what could not be read.
    """

    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    turns: int = 0
    title: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    usage: dict[tuple[int, str, int], Usage] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return self.diagnosis.messages

    def take(self, item: Item) -> None:
        """Add the next item of a session; after a `Reset` the fold is void, so the caller begins a new one."""
        if isinstance(item, Message):
            self._add(item)
        elif isinstance(item, UsageEvent):
            self._count(item, item.usage)
        elif isinstance(item, Problem):
            self.problems.append(item)
        elif isinstance(item, Fact):
            known = self.facts.get(item.name)
            if known is None or item.rank >= known.rank:
                self.facts[item.name] = item
        elif isinstance(item, Aside):
            if item.message.usage is not None:
                self._count(item.message, item.message.usage)
        elif isinstance(item, Reset):
            raise ValueError("a fold does not go on after a Reset")

    def _add(self, message: Message) -> None:
        self.diagnosis.take(message)
        self.turns += begins_turn(message)
        if self.title is None and message.origin == PERSON:
            self.title = short_title(message.text)
        if (time := message.time) is not None:
            self.created = self.created or time
            if self.updated is None or time > self.updated:
                self.updated = time
        if message.usage is not None or message.model is not None:
            self._count(message, message.usage or NO_USAGE)

    def _count(self, stated: Message | UsageEvent, usage: Usage) -> None:
        time, context = stated.time, usage.context
        # By the fields of the time, which is UTC: `timestamp` takes twice as long.
        quarter = 0 if time is None else (time.toordinal() - _EPOCH) * 96 + time.hour * 4 + time.minute // 15
        if context <= CONTEXTS[0] or (isinstance(stated, UsageEvent) and stated.summed):
            larger = 0
        else:
            larger = CONTEXTS[bisect_left(CONTEXTS, context) - 1]
        key = max(quarter, 0), stated.model or NO_MODEL, larger
        known = self.usage.get(key)
        if known is None:
            self.usage[key] = usage
        elif usage is not NO_USAGE:
            self.usage[key] = known.plus(usage)

    def fact(self, name: str) -> str | None:
        """A fact that the stream states; None if it states none."""
        found = self.facts.get(name)
        return None if found is None else found.value

    def timed_usage(self) -> list[TimedUsage]:
        """The usage, sorted."""
        return [TimedUsage(*key, self.usage[key]) for key in sorted(self.usage)]

    def unpaired(self, remedy: str, *, is_idle: bool = False) -> list[Problem]:
        """A problem for each call and result that has no counterpart, or several.

        Args:
            remedy: what repairs it.
            is_idle: no tool is at work, so the calls of the last message count as well.
        """
        return [
            Problem(
                found.code,
                UNPAIRED[found.code],
                found.place.path or "",
                found.place.line,
                found.place.byte,
                f"{found.message}: providers refuse the conversation, and some agents do",
                remedy,
            )
            for found in self.diagnosis.findings()
            if found.code in UNPAIRED
            and (is_idle or found.code != "orphaned_call" or found.index != self.messages - 1)
        ]

    def state(self, *, findings: bool = True) -> bytes | None:
        """The fold without its usage as bytes; None if it cannot be encoded.

        Args:
            findings: keep all findings; False for those of `unpaired`.
        """
        found = self.diagnosis
        marks = found.marks if findings else [mark for mark in found.marks if mark.code in UNPAIRED]
        matcher = replace(found.matcher, called=found.matcher.called.newest(RECENT_CALLS))
        try:
            return msgpack.encode(
                replace(self, usage={}, diagnosis=replace(found, matcher=matcher, marks=marks))
            )
        except (MsgspecError, UnicodeEncodeError, OverflowError):  # a lone surrogate, a number of 65 bits
            return None


class Progress(Struct, frozen=True):
    """The progress of a fold: the cursor behind the last item, the state of the fold, and the usage."""

    cursor: Cursor
    state: bytes
    usage: list[TimedUsage]


def resumed(progress: Progress) -> Fold | None:
    """The fold that was stored; None if its bytes are not a state."""
    try:
        fold = msgpack.decode(progress.state, type=Fold)
    except MsgspecError:
        return None
    fold.usage = {(one.quarter, one.model, one.context): one.usage for one in progress.usage}
    return fold


def short_title(text: str | None) -> str | None:
    """A text as a title: on one line, shortened with an ellipsis; None for an empty one."""
    text = (text or "").lstrip()
    words = " ".join(text[:TITLE].split())
    return words + ("…" if len(text) > TITLE else "") if words else None
