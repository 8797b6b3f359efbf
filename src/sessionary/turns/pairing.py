"""Streaming pairing of calls and results, for files of any size.

Only ids are kept, and order is not checked. `matching` does that for a conversation in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sessionary.turns.messages import CALLS, RESULT, SPEAKERS, Message

Place = TypeVar("Place")


@dataclass(slots=True)
class Pairing(Generic[Place]):
    """Pairs the calls and results of one conversation while its messages arrive in order.

    Attributes:
        waiting: calls without a result yet: id -> the place passed to `add`.
        strays: results without an earlier call, as (id, place).
        repeats: results of calls that were answered before, as (id, place).
    """

    waiting: dict[str, Place] = field(default_factory=dict)
    strays: list[tuple[str, Place]] = field(default_factory=list)
    repeats: list[tuple[str, Place]] = field(default_factory=list)
    _answered: set[str] = field(default_factory=set)

    def add(self, message: Message, place: Place) -> None:
        """Process the next message; `place` (an index, a line) is stored with the findings."""
        if "tool_call_id" in message and message.get("role") not in SPEAKERS:
            self._answer(message["tool_call_id"], place)
            return
        content = message.get("content")
        if isinstance(content, list):
            for block in content:
                if isinstance(block, dict):
                    self._block(block, place)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict) and isinstance(call.get("id"), str):
                    self.waiting[call["id"]] = place

    def _block(self, block: Mapping[str, Any], place: Place) -> None:
        kind = block.get("type")
        if kind == RESULT:
            self._answer(block.get("tool_use_id"), place)
        elif kind in CALLS and isinstance(block.get("id"), str):
            self.waiting[block["id"]] = place

    def _answer(self, call_id: Any, place: Place) -> None:
        if not isinstance(call_id, str):
            return
        if call_id in self.waiting:
            del self.waiting[call_id]
            self._answered.add(call_id)
        elif call_id in self._answered:
            self.repeats.append((call_id, place))
        else:
            self.strays.append((call_id, place))


def unanswered(messages: Iterable[Message]) -> list[str]:
    """Return the ids of tool calls that no later message answers, in call order."""
    pairing: Pairing[int] = Pairing()
    for place, message in enumerate(messages):
        pairing.add(message, place)
    return list(pairing.waiting)
