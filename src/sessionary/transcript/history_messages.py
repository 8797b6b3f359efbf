"""Conversion of command history lines to messages: features have no other conversation.

A history line has a command and its result, but no role; the message gets the role `command`, which begins a turn,
or `phase` for a phase within a command, as the contract's scripts log it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionary.model import PERSON, Message

ROLE = "command"


def is_logged(record: Mapping[str, Any]) -> bool:
    """True for a history line: a command with a timestamp, and no message fields."""
    return (
        isinstance(record.get("command"), str)
        and isinstance(record.get("timestamp"), str)
        and record.keys().isdisjoint(("role", "content", "message", "type"))
    )


def as_message(record: dict[str, Any]) -> dict[str, Any]:
    """Convert a history line to a message; other records are returned as the same object."""
    if not is_logged(record):
        return record
    words = [record["command"], record.get("phase"), record.get("arguments")]
    text = " ".join(str(word) for word in words if isinstance(word, str) and word)
    if isinstance(record.get("error"), str):
        text += f"\n{record['error']}"
    return {"role": "phase" if "phase" in record else ROLE, "content": text, "timestamp": record["timestamp"]}


def begins_turn(message: Message) -> bool:
    """True for a message of the user, and for a command in the history of a feature."""
    return message.origin == PERSON or message.role == ROLE
