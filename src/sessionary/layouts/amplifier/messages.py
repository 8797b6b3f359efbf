"""Messages and metadata of an amplifier session: allowed values, times, and what a save drops.

Pure rules: nothing here knows of files. The original SessionStore drops more than we do. Its readers ignore what
they do not know, so a richer line costs them nothing; a dropped field cannot be recovered.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sessionary.codec import sanitize
from sessionary.codec.encodings import is_bytes_form
from sessionary.codec.times import in_utc
from sessionary.errors import Invalid

# A tuple, not a set: a role of any type can be looked up in it.
DROPPED_ROLES: Final = ("system", "developer")
REDACTED: Final = "[REDACTED]"
SECRET_KEYS: Final = frozenset(
    "api_key apikey api-key secret password token credential credentials private_key privatekey"
    " auth authorization".split()
)


def as_dict(message: Any) -> dict[str, Any]:
    """The message itself, or what its ``model_dump()`` returns; not a copy.

    Raises:
        AttributeError: it is neither a dict nor has ``model_dump()``, as in the original.
        Invalid: ``model_dump()`` returned no dict.
    """
    if isinstance(message, dict):
        return message
    dumped = message.model_dump()
    if isinstance(dumped, dict):
        return dumped
    words = f"a message must be a dict, but {type(message).__name__}.model_dump() returned"
    raise Invalid(f"{words} {type(dumped).__name__}", hint="let model_dump() return a dict")


def is_kept(message: Mapping[str, Any]) -> bool:
    """False for system and developer prompts: an agent writes them anew at each start."""
    role = message.get("role")
    return (role.value if isinstance(role, Enum) else role) not in DROPPED_ROLES


def clean_dict(message: dict[str, Any]) -> dict[str, Any]:
    """The message in its stored form: a new dict that holds everything the message holds.

    `sessionary.codec.sanitize` has the forms. A ``thinking_block``, which the original drops, is kept; its
    text, all that the original keeps of it, is also stored as ``thinking_text``.
    """
    clean: dict[str, Any] = sanitize(message)
    if "thinking_block" in message and "thinking_text" not in clean:
        text = _thinking_text(message["thinking_block"])
        if text is not None:
            clean["thinking_text"] = text
    return clean


def _thinking_text(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return str.__str__(text) if isinstance(text, str) else None


def stamp(now: datetime) -> str:
    """The time as the original wrote it: UTC, milliseconds, ``+00:00``. A time without a zone is taken as UTC."""
    return in_utc(now).isoformat(timespec="milliseconds")


def redact(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON-able copy of the metadata with its secrets replaced by ``[REDACTED]``.

    A secret is text (or bytes) under a key like ``password`` or ``token``, in any case, at any depth, also inside of
    a list or dict under such a key. Numbers, booleans and None stay: ``usage.token: 5`` is a count. Names must match
    as a whole: ``github_token`` stays, as in the original.
    """
    redacted: dict[str, Any] = _redact(sanitize(dict(metadata)), False)
    return redacted


def _redact(value: Any, secret: bool) -> Any:
    if secret and (isinstance(value, str) or is_bytes_form(value)):
        return REDACTED
    if isinstance(value, dict):
        return {key: _redact(item, secret or key.lower() in SECRET_KEYS) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact(item, secret) for item in value]
    return value
