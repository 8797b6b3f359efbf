"""Commands that a history logs, as messages: features have no other conversation.

Such a line says what was run and how it went, with no role in it. Here it becomes a message of the role `command`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLE = "command"


def is_logged(record: Mapping[str, Any]) -> bool:
    """True for a line of a history: a command with its time, and no message of anybody."""
    return (
        isinstance(record.get("command"), str)
        and isinstance(record.get("timestamp"), str)
        and record.keys().isdisjoint(("role", "content", "message", "type"))
    )


def as_message(record: dict[str, Any]) -> dict[str, Any]:
    """The line as a message; what is none stays the very same object."""
    if not is_logged(record):
        return record
    words = [record["command"], record.get("phase"), record.get("arguments")]
    text = " ".join(str(word) for word in words if isinstance(word, str) and word)
    if isinstance(record.get("error"), str):
        text += f"\n{record['error']}"
    return {"role": ROLE, "content": text, "timestamp": record["timestamp"]}
