"""Durations of the tools of a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sessionary.model import Item
from sessionary.transcript.typed import numbered


@dataclass(slots=True)
class ToolTime:
    """One call of a tool.

    Attributes:
        name: the tool.
        index: the index of the message that calls it, from 0.
        turn: its turn, from 1; 0 before the first.
        begun: the time of that message (UTC); None if it has none.
        seconds: the time from that message to the one with the result; None if there is no result, if one of both
            has no time, or if they are the same message.
        answered: True if there is a result.
        failed: True if the result is an error.
    """

    name: str
    index: int
    turn: int
    begun: datetime | None
    seconds: float | None = None
    answered: bool = False
    failed: bool = False


def tool_times(read: Iterable[Item]) -> list[ToolTime]:
    """The calls of tools in a conversation, in their order.

    A call that waited for the consent of the user includes that wait: agents store no other time.
    """
    found: list[ToolTime] = []
    waiting: dict[str, ToolTime] = {}
    for one in numbered(read):
        for call in one.message.calls:
            found.append(ToolTime(call.name, one.index, one.turn, one.message.time))
            if call.call_id is not None:
                waiting[call.call_id] = found[-1]
        for result in one.message.results:
            asked = waiting.pop(result.call_id, None) if result.call_id is not None else None
            if asked is None:
                continue
            asked.answered, asked.failed = True, result.is_error
            if asked.begun is not None and one.message.time is not None and asked.index != one.index:
                asked.seconds = max((one.message.time - asked.begun).total_seconds(), 0.0)
    return found
