"""Steps as JSON objects, in the shape of the published JSON Schema (docs/export.schema.json)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sessionary.codec import encode_line, sanitize
from sessionary.escaping import harmless_json
from sessionary.export.steps import Head
from sessionary.model import Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from sessionary.transcript.typed import Numbered


def json_text(document: Any) -> str:
    """A value as JSON on one line: valid whatever the value holds, and without characters that a terminal obeys."""
    return harmless_json(encode_line(sanitize(document)).decode())


def of_head(head: Head) -> dict[str, Any]:
    """A session."""
    return {
        **head._asdict(),
        "models": list(head.models),
        "created": of_time(head.created),
        "updated": of_time(head.updated),
        "usage": of_usage(head.usage),
        "cost": None if head.cost is None else round(head.cost, 6),
    }


def of_message(numbered: Numbered) -> dict[str, Any]:
    """A message."""
    message = numbered.message
    place = {"index": numbered.index, "turn": numbered.turn, "outside": numbered.outside}
    content = of_content(message)
    parts = content.pop("parts")
    return {**place, **content, "line": message.place.line, "parts": parts}


def of_content(message: Message) -> dict[str, Any]:
    """The content of a message, wherever it is stored. The layout of records reads it back."""
    return {
        "role": message.role,
        "origin": message.origin,
        "timestamp": of_time(message.time),
        "id": message.id,
        "parent": message.parent,
        "model": message.model,
        "usage": of_usage(message.usage),
        "parts": [of_part(part) for part in message.parts],
    }


def of_part(part: Part) -> dict[str, Any]:
    """A part of a message."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thinking):
        return {"type": "thinking", "text": part.text}
    if isinstance(part, ToolCall):
        return {"type": "tool_call", "id": part.call_id, "name": part.name, "arguments": part.arguments}
    if isinstance(part, ToolResult):
        return {"type": "tool_result", "id": part.call_id, "content": part.stored, "is_error": part.is_error}
    return {"type": "other", "kind": part.kind, "value": part.value}


def of_usage(usage: Usage | None) -> dict[str, Any] | None:
    """Tokens and cost."""
    if usage is None:
        return None
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def of_time(time: datetime | None) -> str | None:
    """A time in UTC, as RFC 3339."""
    return None if time is None else time.astimezone(UTC).isoformat().replace("+00:00", "Z")
