"""Pairing of the calls and answers of a conversation in memory, with their positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessionary.transcript.messages import (
    bears_results,
    block_answers,
    block_calls,
    called_name,
    entry_calls,
    holds_more,
    is_result,
    listed,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call and its position.

    Attributes:
        index: index of the message.
        call_id: its id.
        nth: 0, or more if the message uses the same id again. A call in a block and its copy in `tool_calls` count as
            one.
        name: the tool.
    """

    index: int
    call_id: str
    nth: int = 0
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A result and its position: a block of the message, or the message itself if `block` is None."""

    index: int
    block: int | None
    call_id: str


@dataclass(slots=True)
class Matching:
    """The calls and answers of a conversation.

    Attributes:
        calls: in message order.
        answer: the answer to each answered call, wherever it is, even before the call.
        strays: answers without a call.
        repeats: surplus answers to answered calls.
    """

    calls: list[Call] = field(default_factory=list)
    answer: dict[Call, Answer] = field(default_factory=dict)
    strays: list[Answer] = field(default_factory=list)
    repeats: list[Answer] = field(default_factory=list)

    def orphans(self) -> list[Call]:
        """The calls without an answer."""
        return [call for call in self.calls if call not in self.answer]


def match(messages: Sequence[Any]) -> Matching:
    """Pair calls and answers. An answer belongs to the newest open call with its id, else to a later call."""
    found = Matching()
    waiting: dict[str, list[Call]] = {}
    for index, message in enumerate(messages):
        for part in parts_of(message, index):
            if isinstance(part, Call):
                found.calls.append(part)
                waiting.setdefault(part.call_id, []).append(part)
            elif waiting.get(part.call_id):
                found.answer[_newest(waiting[part.call_id])] = part
            else:
                (found.repeats if part.call_id in waiting else found.strays).append(part)
    early, found.strays = found.strays, []
    for part in early:
        if waiting.get(part.call_id):
            found.answer[waiting[part.call_id].pop(0)] = part
        else:
            found.strays.append(part)
    return found


def unanswered(messages: Sequence[Any]) -> list[str]:
    """Return the ids of tool calls that no later message answers, in call order."""
    waiting: dict[str, None] = {}
    for index, message in enumerate(messages):
        for part in parts_of(message, index):
            if isinstance(part, Call):
                waiting[part.call_id] = None
            else:
                waiting.pop(part.call_id, None)
    return list(waiting)


def _newest(waiting: list[Call]) -> Call:
    """Pop the first call of the last message that has one: agents answer in the order of the calls."""
    last = waiting[-1].index
    return waiting.pop(next(at for at, call in enumerate(waiting) if call.index == last))


def parts_of(message: Any, index: int) -> Iterator[Call | Answer]:
    """Yield the calls and answers of one message in order."""
    if not isinstance(message, Mapping):
        return
    if is_result(message):
        if isinstance(message["tool_call_id"], str):
            yield Answer(index, None, message["tool_call_id"])
        return
    in_blocks: Counter[str] = Counter()
    for number, block in enumerate(listed(message.get("content"))):
        if (call_id := block_answers(block)) is not None:
            yield Answer(index, number, call_id)
        elif (call_id := block_calls(block)) is not None:
            yield Call(index, call_id, in_blocks[call_id], called_name(block))
            in_blocks[call_id] += 1
    in_list: Counter[str] = Counter()
    for entry in listed(message.get("tool_calls")):
        if (call_id := entry_calls(entry)) is not None:
            if in_list[call_id] >= in_blocks[call_id]:
                yield Call(index, call_id, in_list[call_id], called_name(entry))
            in_list[call_id] += 1


def result_run(messages: Sequence[Any], index: int, calling: frozenset[int]) -> range:
    """Return the range in which answers to the calls of message `index` belong: the results directly behind it.

    Args:
        messages: the conversation.
        index: a message with calls.
        calling: indexes of all messages with calls; such a message ends the range, and so does any message without
            results. A message with results and other content is the last one in the range.
    """
    stop = index + 1
    while stop < len(messages) and stop not in calling:
        message = messages[stop]
        if not isinstance(message, Mapping) or not bears_results(message):
            break
        stop += 1
        if holds_more(message):
            break
    return range(index + 1, stop)


def repeated_calls(calls: Sequence[Call]) -> list[Call]:
    """Return the calls whose id an earlier call uses."""
    seen: set[str] = set()
    repeated = []
    for call in calls:
        if call.call_id in seen:
            repeated.append(call)
        seen.add(call.call_id)
    return repeated


def out_of_place(messages: Sequence[Any], matching: Matching) -> list[tuple[Call, Answer]]:
    """Return the answered calls whose answer is outside the range of results behind them."""
    calling = frozenset(call.index for call in matching.calls)
    runs = {index: result_run(messages, index, calling) for index in calling}
    pairs = ((call, matching.answer[call]) for call in matching.calls if call in matching.answer)
    return [(call, answer) for call, answer in pairs if answer.index not in runs[call.index]]
