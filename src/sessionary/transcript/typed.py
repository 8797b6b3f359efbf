"""Stored records as typed messages, whatever shape they have.

Read are the shapes of `transcript.messages` (Amplifier, OpenAI, Anthropic), messages that a record wraps under
``message``, and the commands of a feature's history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sessionary.codec.times import parse_time, timestamp_of
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Entry,
    Message,
    Other,
    Part,
    Place,
    Problem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sessionary.transcript import is_real_user, results, tool_calls
from sessionary.transcript.history_messages import ROLE, as_message
from sessionary.transcript.messages import CALLS, RESULT, TEXT

COMMAND = ROLE
"""The role of a command in the history of a feature; each begins a turn."""


NOWHERE = Place(None)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A message with its place in a conversation.

    Attributes:
        index: its place among the messages, from 0.
        turn: the turn that it belongs to, from 1; 0 before the first turn.
        message: the message.
    """

    index: int
    turn: int
    message: Message


def numbered(read: Iterable[Message | Problem]) -> Iterator[Numbered]:
    """The messages of a conversation with their indexes and turns; problems are left out."""
    turn = 0
    messages = (one for one in read if isinstance(one, Message))
    for index, message in enumerate(messages):
        turn += message.origin == PERSON or message.role == COMMAND
        yield Numbered(index, turn, message)


def typed(entries: Iterable[Entry], path: str | None = None) -> Iterator[Message]:
    """Stored records as messages.

    Args:
        entries: the records.
        path: the file that they are stored in.
    """
    for entry in entries:
        record = entry.record
        yield message_of(record.value, Place(path, record.line, record.byte))


def message_of(record: dict[str, Any], place: Place = NOWHERE) -> Message:
    """A stored record as a message. One that is no message has the role None, and itself as its only part."""
    message = _unwrapped(record)
    role = message.get("role")
    if not isinstance(role, str):
        return Message(None, HARNESS, (Other("record", record),), _time(message), place=place)
    parts = tuple(_parts(message))
    return Message(role, _origin(message, role), parts, _time(message), _word(message.get("id")), place=place)


def _unwrapped(record: dict[str, Any]) -> dict[str, Any]:
    """The message within a record: the record itself, or what it wraps (other agents keep it under ``message``)."""
    inner = record.get("message")
    if "role" in record or not isinstance(inner, dict):
        return as_message(record)
    return {**inner, "timestamp": record.get("timestamp")}


def _origin(message: Mapping[str, Any], role: str) -> str:
    if is_real_user(message):
        return PERSON
    if role in ("tool", ROLE) or (role == "user" and results(message)):
        return TOOL
    return AGENT if role == "assistant" else HARNESS


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    answers = results(message)
    content = message.get("content")
    is_answer = bool(answers) and (message.get("role") == "tool" or "tool_call_id" in message)
    if isinstance(content, str):
        if not is_answer:
            yield Text(content)
    elif isinstance(content, list):
        yield from _blocks(content, is_answer=is_answer)
    if isinstance(message.get("thinking_text"), str):
        yield Thinking(message["thinking_text"])
    for call in tool_calls(message):
        yield ToolCall(call.call_id, call.name, call.arguments)
    for answer in answers:
        yield ToolResult(answer.call_id, answer.stored, answer.is_error)


def _blocks(content: list[Any], *, is_answer: bool) -> Iterator[Part]:
    """The blocks of a message that are neither calls nor results, which are read from the whole message."""
    for block in content:
        if isinstance(block, str):
            if not is_answer:
                yield Text(block)
        elif isinstance(block, dict):
            kind, text = block.get("type"), block.get("text")
            if isinstance(block.get("thinking"), str):
                yield Thinking(block["thinking"])
            elif kind in TEXT and isinstance(text, str):
                if not is_answer:
                    yield Text(text)
            elif kind not in CALLS and kind != RESULT and not is_answer:
                yield Other(str(kind))


def _time(message: Mapping[str, Any]) -> Any:
    return parse_time(timestamp_of(message))


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
