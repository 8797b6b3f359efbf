"""Rules over messages: who speaks, what a turn is, which result answers which tool call.

A turn begins where a person speaks. The role alone does not tell: hooks put their reminders, and Anthropic-shaped
agents their tool results, into messages of the role ``user`` too, and an agent that counts those tells its user
about turns that nobody took.

Tool calls come in three shapes: Amplifier's `tool_calls` list with ``tool`` and ``arguments``, OpenAI's with
``function`` and its arguments as JSON text, and content blocks (``tool_call`` or ``tool_use``) with ``name`` and
``input``. Amplifier stores the same call in a block and in the list. Results are messages of their own, or
``tool_result`` blocks. What is read here was written by many hands, so no rule trusts a type, and none raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from sessionary import codec

Message = Mapping[str, Any]
Place = TypeVar("Place")

REMINDER = "<system-reminder>"
_TEXT = ("text", "input_text", "output_text")
_CALLS = ("tool_call", "tool_use")


class ToolCall(NamedTuple):
    """One call of a tool, with its arguments as they are stored: an object, or JSON text."""

    call_id: str | None
    name: str
    stored: Any

    @property
    def arguments(self) -> Any:
        """What the tool was given; text that a model wrote as JSON but did not finish stays text."""
        if not isinstance(self.stored, str):
            return self.stored
        try:
            return codec.decode(self.stored.encode("utf-8", "surrogatepass"))
        except codec.Undecodable:
            return self.stored


class ToolResult(NamedTuple):
    """What a tool answered, as it is stored, and to which call."""

    call_id: str | None
    stored: Any
    is_error: bool

    @property
    def text(self) -> str:
        """The answer in words; of a block that is no text, only its type."""
        if isinstance(self.stored, str):
            return self.stored
        if isinstance(self.stored, list):
            return "\n".join(_block_text(block) or f"[{block.get('type')}]" for block in _blocks(self.stored))
        return "" if self.stored is None else str(self.stored)


def is_real_user(message: Message) -> bool:
    """True if a person wrote this message: not a hook's reminder, not the result of a tool."""
    if message.get("role") != "user" or "tool_call_id" in message:
        return False
    content = message.get("content")
    if isinstance(content, str):
        return not content.lstrip().startswith(REMINDER)
    blocks = list(_blocks(content))
    texts = [text for block in blocks if (text := _block_text(block))]
    if texts:
        return any(not text.lstrip().startswith(REMINDER) for text in texts)
    return not blocks or any(block.get("type") != "tool_result" for block in blocks)


def count_turns(messages: Iterable[Message]) -> int:
    """How often a person spoke."""
    return sum(map(is_real_user, messages))


def text_of(message: Message) -> str:
    """What the message says in words: its text blocks, one after the other; no thinking, no tool traffic."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _blocks(content) if (text := _block_text(block)))


def tool_calls(message: Message) -> list[ToolCall]:
    """The tool calls of a message in their order; a call that stands in the list and in a block counts once."""
    listed = message.get("tool_calls")
    calls = [_listed(call) for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    known = {call.call_id for call in calls} - {None}
    for block in _blocks(message.get("content")):
        call_id = _word(block.get("id"))
        if block.get("type") in _CALLS and call_id not in known:
            calls.append(ToolCall(call_id, _word(block.get("name")) or "?", block.get("input")))
    return calls


def results(message: Message) -> list[ToolResult]:
    """The tool results that a message carries: the message itself, or its ``tool_result`` blocks."""
    content = message.get("content")
    if message.get("role") == "tool" or "tool_call_id" in message:
        return [ToolResult(_word(message.get("tool_call_id")), content, message.get("is_error") is True)]
    return [
        ToolResult(_word(block.get("tool_use_id")), block.get("content"), block.get("is_error") is True)
        for block in _blocks(content)
        if block.get("type") == "tool_result"
    ]


@dataclass(slots=True)
class Pairing(Generic[Place]):
    """Calls and results of one conversation, matched while its messages go by in order.

    Attributes:
        waiting: calls that have no result yet: id -> the place that `add` was told.
        strays: results without a call before them, as (id, place).
        repeats: results of calls that were answered already, as (id, place).
    """

    waiting: dict[str, Place] = field(default_factory=dict)
    strays: list[tuple[str, Place]] = field(default_factory=list)
    repeats: list[tuple[str, Place]] = field(default_factory=list)
    _answered: set[str] = field(default_factory=set)

    def add(self, message: Message, place: Place) -> None:
        """Take the next message into account; `place` (an index, a line) is what the findings will carry."""
        content = message.get("content")
        if isinstance(content, list):
            for block in content:
                if isinstance(block, dict):
                    self._block(block, place)
        if "tool_call_id" in message:
            self._answer(message["tool_call_id"], place)
        listed = message.get("tool_calls")
        if isinstance(listed, list):
            for call in listed:
                if isinstance(call, dict) and isinstance(call.get("id"), str):
                    self.waiting[call["id"]] = place

    def _block(self, block: Mapping[str, Any], place: Place) -> None:
        kind = block.get("type")
        if kind == "tool_result":
            self._answer(block.get("tool_use_id"), place)
        elif kind in _CALLS and isinstance(block.get("id"), str):
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
    """The ids of the tool calls that no later message answers, in the order of the calls."""
    pairing: Pairing[int] = Pairing()
    for place, message in enumerate(messages):
        pairing.add(message, place)
    return list(pairing.waiting)


def _blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    """The content blocks; a bare string among them stands for a text block."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block
        elif isinstance(block, str):
            yield {"type": "text", "text": block}


def _block_text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) and block.get("type") in _TEXT else ""


def _listed(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    name = _word(inner.get("name")) or _word(call.get("tool")) or "?"
    return ToolCall(_word(call.get("id")), name, inner.get("arguments"))


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
