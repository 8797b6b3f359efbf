"""Redaction of typed messages, and of titles that were cut."""

from __future__ import annotations

from msgspec.structs import replace

from sessionary.model import Message, Other, Part, Place, Text, Thinking, ToolCall, ToolResult
from sessionary.redaction import Redaction

_CUT = "…"
"""Ends a title that is the beginning of a longer text. Its last word may be half a secret, so it is left out."""


def without_half_word(title: str | None) -> str | None:
    """The title without its last word, if it was cut there."""
    if title is None or not title.endswith(_CUT):
        return title
    words = title.removesuffix(_CUT).split(" ")
    return " ".join([*words[:-1], _CUT])


def redacted_message(message: Message, redaction: Redaction) -> Message:
    """The message with each text in it redacted."""

    def optional(text: str | None) -> str | None:
        return None if text is None else redaction.text(text)

    place = message.place
    return replace(
        message,
        role=optional(message.role),
        parts=tuple(_part(part, redaction) for part in message.parts),
        id=optional(message.id),
        parent=optional(message.parent),
        model=optional(message.model),
        place=Place(optional(place.path), place.line, place.byte),
    )


def _part(part: Part, redaction: Redaction) -> Part:
    if isinstance(part, Text):
        return Text(redaction.value(part.text))
    if isinstance(part, Thinking):
        return Thinking(redaction.value(part.text))
    call_id = None
    if isinstance(part, ToolCall | ToolResult) and part.call_id is not None:
        call_id = redaction.text(part.call_id)
    if isinstance(part, ToolCall):
        return ToolCall(call_id, redaction.text(part.name), redaction.value(part.arguments))
    if isinstance(part, ToolResult):
        return ToolResult(call_id, redaction.value(part.stored), part.is_error)
    return Other(redaction.text(part.kind), redaction.value(part.value))
