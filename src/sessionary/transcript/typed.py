"""Stored records as typed messages, whatever shape they have.

Read are the shapes of `transcript.messages` (Amplifier, OpenAI, Anthropic), messages that a record wraps under
``message``, and the commands of a feature's history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from sessionary.codec.times import parse_time, timestamp_of
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Aside,
    Inherited,
    Item,
    Message,
    Other,
    Part,
    Place,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sessionary.transcript.history_messages import ROLE, as_message, begins_turn
from sessionary.transcript.messages import TEXT, bears_results, is_real_user, is_result, part_of_block, word
from sessionary.transcript.messages import parts as stored_parts

NOWHERE = Place(None)
_OF_TOOLS = (ToolCall, ToolResult)

_NONE: list[dict[str, Any]] = []


class Numbered(Struct, frozen=True):
    """A message with its place in a conversation.

    Attributes:
        index: its place among the messages, from 0.
        turn: the turn that it belongs to, from 1; 0 before the first turn.
        message: the message.
        outside: True for one outside of the conversation; its index and turn are those of the next message.
        inherited: True for one of another session, with which this one begins; its index and turn are 0.
        preceding: True for one before the first that was asked for, see `Workspace.messages`.
    """

    index: int
    turn: int
    message: Message
    outside: bool = False
    inherited: bool = False
    preceding: bool = False


def numbered(read: Iterable[Item], *, asides: bool = False, inherited: bool = False) -> Iterator[Numbered]:
    """The messages of a conversation with their indexes and turns; everything else is left out.

    Args:
        read: what reading a session yields.
        asides: yield the messages outside of the conversation too, where they are stored.
        inherited: yield the messages of another session too, with which this one begins.
    """
    index, turn = 0, 0
    for one in read:
        if isinstance(one, Message):
            turn += begins_turn(one)
            yield Numbered(index, turn, one)
            index += 1
        elif asides and isinstance(one, Aside):
            yield Numbered(index, turn, one.message, outside=True)
        elif inherited and isinstance(one, Inherited):
            yield Numbered(0, 0, one.message, inherited=True)


def message_of(record: dict[str, Any], place: Place = NOWHERE) -> Message:
    """A stored record as a message. One that is not a message has the role None, and itself as its only part."""
    message = record if "role" in record else _unwrapped(record)
    if isinstance(message.get("role"), str):
        return typed_message(message, place)
    return Message(None, HARNESS, (Other("record", record),), _time(message), place=place)


def time_of(record: dict[str, Any]) -> datetime | None:
    """The time of a stored record, whether it is a message or not."""
    message = record if "role" in record else _unwrapped(record)
    return _time(message if isinstance(message.get("role"), str) else record)


def typed_message(message: Any, place: Place = NOWHERE) -> Message:
    """A value that is stored as a message, without looking for one that it may wrap."""
    role, origin, parts = author_and_parts(message)
    if role is None:
        return Message(None, HARNESS, parts, place=place)
    return Message(role, origin, parts, _time(message), word(message.get("id")), place=place)


def author_and_parts(message: Any) -> tuple[str | None, str, tuple[Part, ...]]:
    """The role, origin and parts of a stored message; the role is None if the value is not a message."""
    role = message.get("role") if type(message) is dict or isinstance(message, Mapping) else None
    if not isinstance(role, str):
        return None, HARNESS, (Other("record", message),)
    content = message.get("content")
    found: list[Part] = []
    if role == "tool" or "tool_calls" in message or "tool_call_id" in message or "thinking_text" in message:
        found += typed_parts(message)
    elif isinstance(content, str):
        found.append(Text(content))
    elif isinstance(content, list):
        for block in content:
            found.append(_typed(part_of_block(block, _NONE)))
    parts = tuple(found)
    return role, AGENT if role == "assistant" else _origin(message, role, parts), parts


def _unwrapped(record: dict[str, Any]) -> dict[str, Any]:
    """The message within a record: the record itself, or what it wraps (other agents keep it under ``message``)."""
    inner = record.get("message")
    if not isinstance(inner, dict):
        return as_message(record)
    return {**inner, "timestamp": record.get("timestamp")}


def _origin(message: Mapping[str, Any], role: str, parts: tuple[Part, ...]) -> str:
    if role in ("tool", ROLE):
        return TOOL
    if role != "user":
        return HARNESS
    results = 0
    for part in parts:
        if isinstance(part, ToolResult):
            results += 1
    if results and results == len(parts):
        return TOOL  # as most messages of this role
    if is_real_user(message):
        return PERSON
    return TOOL if results else HARNESS


def typed_parts(message: Mapping[str, Any]) -> Iterator[Part]:
    """The parts of a stored message, in order."""
    content = message.get("content")
    if isinstance(content, str) and not is_result(message):
        yield Text(content)
    for _block, part in stored_parts(message):
        yield _typed(part)
    if isinstance(message.get("thinking_text"), str) and not bears_results(message):
        yield Thinking(message["thinking_text"])


def _typed(part: Any) -> Part:
    if isinstance(part, dict):
        if isinstance(thinking := part.get("thinking"), str):
            return Thinking(thinking)
        kind, text = part.get("type"), part.get("text")
        return Text(text) if kind in TEXT and isinstance(text, str) else Other(str(kind))
    if isinstance(part, _OF_TOOLS):
        return part
    return Text(part) if isinstance(part, str) else Other(type(part).__name__)


def _time(message: Mapping[str, Any]) -> datetime | None:
    return parse_time(timestamp_of(message))
