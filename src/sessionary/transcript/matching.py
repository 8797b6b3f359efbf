"""Pairing of calls and results, message by message.

A `Matcher` is the only place that decides which call a result belongs to. It holds the open calls, the results
without a call, and a hash of each id; so it needs a few bytes per call, and its state can be stored and restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from sessionary.codec.seen import Seen, digest_of
from sessionary.model import Place, ToolCall, ToolResult
from sessionary.transcript.messages import UNNAMED, bears_results, holds_more, parts

NOWHERE = Place(None)


class Call(Struct, frozen=True, array_like=True, gc=False):
    """A tool call and its position.

    Attributes:
        index: index of the message.
        call_id: its id.
        nth: 0, or more if the message uses the same id again. A call in a block and its copy in `tool_calls` count as
            one.
        name: the tool.
        place: where the message is stored.
    """

    index: int
    call_id: str
    nth: int = 0
    name: str | None = None
    place: Place = NOWHERE


class Answer(Struct, frozen=True, array_like=True, gc=False):
    """A result and its position: a block of the message, or the message itself if `block` is None."""

    index: int
    block: int | None
    call_id: str
    place: Place = NOWHERE


class Pair(Struct, frozen=True, gc=False):
    """A result, its call, and whether only other results are between them."""

    call: Call
    answer: Answer
    in_place: bool


class Taken(Struct, frozen=True, gc=False):
    """The outcome of one message.

    Attributes:
        pairs: its results whose call is known.
        repeats: its results of calls that have one already.
        repeated: its calls whose id an earlier call uses.
    """

    pairs: Sequence[Pair] = ()
    repeats: Sequence[Answer] = ()
    repeated: Sequence[Call] = ()


NOTHING = Taken()


class Matcher(Struct, array_like=True):
    """Pairs calls and results. A result belongs to the newest open call with its id, else to a later call.

    Attributes:
        waiting: the open calls by id, in message order.
        early: the results without an earlier call with their id.
        called: the ids of all calls.
        run: the last message with calls, while only results follow; -1 otherwise.
    """

    waiting: dict[str, list[Call]] = {}
    early: list[Answer] = []
    called: Seen = field(default_factory=Seen)
    run: int = -1

    def take(self, index: int, found: Sequence[Call | Answer], *, results: bool, more: bool) -> Taken:
        """Process the next message.

        Args:
            index: its index.
            found: its calls and results, in order.
            results: it may contain results.
            more: it has content besides results; a result after it is not in place.
        """
        calls = Call in map(type, found)
        run = self.run if results and not calls else -1
        self.run = index if calls else -1 if more else run
        if not found:
            return NOTHING
        pairs: list[Pair] = []
        repeats: list[Answer] = []
        repeated: list[Call] = []
        for part in found:
            call_id = part.call_id
            if isinstance(part, Call):
                if self.called.add(digest_of(call_id), index) is not None:
                    repeated.append(part)
                self.waiting.setdefault(call_id, []).append(part)
            elif call_id in self.waiting:
                call = self._newest(call_id)
                pairs.append(Pair(call, part, call.index == run))
            else:
                (repeats if digest_of(call_id) in self.called else self.early).append(part)
        return Taken(pairs, repeats, repeated) if pairs or repeats or repeated else NOTHING

    def settled(self) -> tuple[list[Pair], list[Answer], list[Call]]:
        """Return the results before their call, the results without a call, and the calls without a result."""
        waiting = {call_id: list(calls) for call_id, calls in self.waiting.items()}
        pairs: list[Pair] = []
        strays: list[Answer] = []
        for answer in self.early:
            if waiting.get(answer.call_id):
                pairs.append(Pair(waiting[answer.call_id].pop(0), answer, False))
            else:
                strays.append(answer)
        return pairs, strays, in_order(call for calls in waiting.values() for call in calls)

    def _newest(self, call_id: str) -> Call:
        """Remove and return the first call of the last message that has one: agents answer in call order."""
        calls = self.waiting[call_id]
        if len(calls) == 1:
            return self.waiting.pop(call_id)[0]
        last = calls[-1].index
        return calls.pop(next(at for at, call in enumerate(calls) if call.index == last))


class Matching(Struct):
    """The calls and answers of a conversation in memory.

    Attributes:
        calls: in message order.
        answer: the answer to each answered call, wherever it is, even before the call.
        strays: answers without a call.
        repeats: surplus answers to answered calls.
        repeated: calls whose id an earlier call uses.
        misplaced: answered calls whose answer is not directly behind them, and the answer.
        ends: for each message with calls the end of the results directly behind it, the place of their answers.
    """

    calls: list[Call] = field(default_factory=list)
    answer: dict[Call, Answer] = field(default_factory=dict)
    strays: list[Answer] = field(default_factory=list)
    repeats: list[Answer] = field(default_factory=list)
    repeated: list[Call] = field(default_factory=list)
    misplaced: list[tuple[Call, Answer]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    def orphans(self) -> list[Call]:
        """The calls without an answer."""
        return [call for call in self.calls if call not in self.answer]


def match(messages: Sequence[Any]) -> Matching:
    """Pair calls and answers."""
    matcher, found = Matcher(), Matching()
    pairs: list[Pair] = []
    for index, message in enumerate(messages):
        here = parts_of(message, index)
        results = isinstance(message, Mapping) and bears_results(message)
        before = matcher.run
        taken = matcher.take(index, here, results=results, more=results and holds_more(message))
        if results and before >= 0 and matcher.run != index:
            found.ends[before] = index + 1
        found.calls += [part for part in here if isinstance(part, Call)]
        pairs += taken.pairs
        found.repeats += taken.repeats
        found.repeated += taken.repeated
    early, found.strays, _orphans = matcher.settled()
    pairs += early
    found.answer = {pair.call: pair.answer for pair in pairs}
    away = {pair.call for pair in pairs if not pair.in_place}
    found.misplaced = [(call, found.answer[call]) for call in found.calls if call in away]
    return found


def unanswered(messages: Sequence[Any]) -> list[str]:
    """Return the ids of tool calls that no later message answers, in call order."""
    matcher = Matcher()
    for index, message in enumerate(messages):
        matcher.take(index, parts_of(message, index), results=False, more=False)
    waiting = in_order(call for calls in matcher.waiting.values() for call in calls)
    return list(dict.fromkeys(call.call_id for call in waiting))


def in_order(calls: Iterable[Call]) -> list[Call]:
    """Sort calls by their messages; calls of one message stay in their order."""
    return sorted(calls, key=lambda call: call.index)


def parts_of(message: Any, index: int) -> list[Call | Answer]:
    """Return the calls and answers of one stored message in order."""
    found: list[Call | Answer] = []
    if type(message) is not dict and not isinstance(message, Mapping):
        return found
    seen: dict[str, int] = {}
    for block, part in parts(message):
        if isinstance(part, ToolResult) and part.call_id is not None:
            found.append(Answer(index, block, part.call_id))
        elif isinstance(part, ToolCall) and part.call_id is not None:
            name = None if part.name == UNNAMED else part.name
            nth = seen.get(part.call_id, 0)
            found.append(Call(index, part.call_id, nth, name))
            seen[part.call_id] = nth + 1
    return found
