"""A record as a message that can be shown: who, when, what, which tools; whatever shape it was stored in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sessionary.layouts.amplifier.messages import parse_time, timestamp_of
from sessionary.model import Entry
from sessionary.turns import ToolCall, ToolResult, is_real_user, results, text_of, tool_calls
from sessionary.turns.history_messages import ROLE, as_message


@dataclass(frozen=True, slots=True)
class Said:
    """One message.

    Attributes:
        index: its place among the readable records, from 0.
        line: its line in the file, from 1.
        turn: the turn that it belongs to, from 1; 0 before a person spoke.
        role: who speaks; None if the record does not say.
        person: True if a person does.
        text: the words.
        time: when, UTC; None if the record does not say.
        calls: the tools that are called.
        results: what tools answered.
        record: the record as it is stored.
    """

    index: int
    line: int
    turn: int
    role: str | None
    person: bool
    text: str
    time: datetime | None
    calls: list[ToolCall]
    results: list[ToolResult]
    record: dict[str, Any]


def said(entries: Iterable[Entry]) -> Iterator[Said]:
    """The records as messages, their turns counted."""
    turn = 0
    for entry in entries:
        record = entry.record.value
        message = _message(record)
        person = is_real_user(message)
        turn += person or message.get("role") == ROLE
        answers = results(message)
        role = message.get("role")
        yield Said(
            entry.index,
            entry.record.line,
            turn,
            role if isinstance(role, str) else None,
            person,
            "\n".join(answer.text for answer in answers) if role == "tool" else text_of(message),
            parse_time(timestamp_of(message)),
            tool_calls(message),
            answers,
            record,
        )


def as_object(message: Said) -> dict[str, Any]:
    """A message with the field names of docs/cli-json.md."""
    return {
        "index": message.index,
        "line": message.line,
        "turn": message.turn,
        "role": message.role,
        "text": message.text,
        "timestamp": message.time,
        "tools": [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in message.calls
        ],
        "results": [
            {"id": result.call_id, "text": result.text, "is_error": result.is_error}
            for result in message.results
        ],
    }


def _message(record: dict[str, Any]) -> dict[str, Any]:
    """The message within a record: the record itself, or what it wraps (other agents keep it under ``message``)."""
    inner = record.get("message")
    if "role" in record or not isinstance(inner, dict):
        return as_message(record)
    return {**inner, "timestamp": record.get("timestamp")}
