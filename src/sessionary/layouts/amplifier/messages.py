"""Rules about the messages and metadata of the amplifier layout: what is dropped, kept, stamped, redacted. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sessionary.codec import sanitize

DROPPED_ROLES = ("system", "developer")  # a tuple: a role of any type can be looked up in it
SECRET_KEYS = frozenset(
    {
        "api_key",
        "apikey",
        "api-key",
        "secret",
        "password",
        "token",
        "credential",
        "credentials",
        "private_key",
        "privatekey",
        "auth",
        "authorization",
    }
)
REDACTED = "[REDACTED]"

_FRACTION = re.compile(r"\.(\d+)")


def as_dict(message: Any) -> dict[str, Any]:
    """The message itself, or what its `model_dump` gives.

    Raises:
        AttributeError: it is neither a dict nor has `model_dump`.
    """
    if type(message) is dict or isinstance(message, dict):
        return message
    dumped: dict[str, Any] = message.model_dump()
    return dumped


def clean_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it is stored: a fresh JSON-able dict. Whether it is kept at all, its role says."""
    clean: dict[str, Any] = sanitize(message)
    if "thinking_block" in message and "thinking_text" not in clean:
        text = _thinking_text(message["thinking_block"])
        if text is not None:
            clean["thinking_text"] = text
    return clean


def _thinking_text(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return str(text) if isinstance(text, str) else None


def timestamp_of(message: Mapping[str, Any]) -> str | None:
    """When a message was said, from any of the three places where writers put it; None if none does."""
    for place in ("timestamp", "ts"):
        value = message.get(place)
        if value:
            return str(value)
    metadata = message.get("metadata")
    value = metadata.get("timestamp") if isinstance(metadata, dict) else None
    return str(value) if value else None


def stamp(now: datetime) -> str:
    """A time as messages carry it: UTC, milliseconds, ``+00:00``."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds")


def redact(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON-able copy in which the text under the name of a secret is replaced.

    Only text: a number or a flag under such a name (``usage.token: 5``) is no secret.
    """
    redacted: dict[str, Any] = _redact(sanitize(dict(metadata)))
    return redacted


def _redact(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: REDACTED if isinstance(item, str) and name.lower() in SECRET_KEYS else _redact(item)
            for name, item in value.items()
        }
    return [_redact(item) for item in value] if isinstance(value, list) else value


def parse_time(value: Any) -> datetime | None:
    """A time from any spelling met in sessions, in UTC; None if it is none.

    ISO 8601 with ``Z``, an offset or neither (then UTC), any number of fraction digits; seconds or milliseconds
    since 1970 as a number.
    """
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        if not isinstance(value, str):
            return None
        text = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), value.strip())
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
