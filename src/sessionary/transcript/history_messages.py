"""Conversion of command history lines to messages: features have no other conversation.

A history line has a command and its result, but no role; the message gets the role `command`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    return {"role": ROLE, "content": text, "timestamp": record["timestamp"]}
