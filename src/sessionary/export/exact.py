"""Data of messages and sessions beyond the fields of a foreign format, so that an import gives back the same.

A format maps a message (as `documents.of_content` has it) to its own fields. It reads these back as an import does;
where that gives another message, the whole one is kept under ``sessionary``, where the format has room for extensions.
"""

from __future__ import annotations

from typing import Any

from sessionary.codec import sanitize
from sessionary.distinct_keys import with_distinct_keys
from sessionary.errors import Invalid
from sessionary.escaping import is_utf8
from sessionary.layouts.agents.fields import object_of
from sessionary.layouts.records.values import marked, unmarked

OWN = "sessionary"
"""The key of what is ours."""
_HEADER = ("role", "origin", "timestamp", "id", "parent", "model", "usage")


def plain(value: Any) -> Any:
    """The value as JSON that every reader accepts: no numbers that are not finite, and no lone surrogates."""
    return _without_surrogates(sanitize(value))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_utf8(value) else text(value)
    if isinstance(value, list):
        return [_without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return with_distinct_keys((text(key), _without_surrogates(one)) for key, one in value.items())
    return value


def text(value: str) -> str:
    """The text with a replacement character for each lone surrogate."""
    return value if is_utf8(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def kept(value: Any) -> tuple[Any, bool]:
    """A value as strict JSON that `unmarked` reads, and whether it is the whole value."""
    try:
        strict = marked(value)
    except (Invalid, RecursionError):
        return sanitize(value), False
    stored = sanitize(strict)
    return stored, stored == strict


def own(holder: Any) -> dict[str, Any]:
    """Our part of an object with extensions; empty if there is none."""
    found = holder.get(OWN) if isinstance(holder, dict) else None
    return object_of(unmarked(found))


def whole_message(ours: dict[str, Any]) -> dict[str, Any] | None:
    """The message that is kept as a whole, if there is one."""
    found = ours.get("message")
    return found if isinstance(found, dict) and isinstance(found.get("parts"), list) else None


def header_beyond(document: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message, without its parts, that differ from what the format says of it."""
    return {name: document[name] for name in _HEADER if document[name] != known.get(name)}


def with_header(known: dict[str, Any], beyond: Any, parts: list[Any]) -> dict[str, Any]:
    """A message of the fields that a format says, and those that `header_beyond` kept."""
    beyond = object_of(beyond)
    return {**{name: beyond.get(name, known.get(name)) for name in _HEADER}, "parts": parts}
