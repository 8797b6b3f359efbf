"""What a message and the metadata of an amplifier session may hold, when it was said, and what is not kept of it.

Pure rules: nothing here knows of files. The original SessionStore drops more than we do. Its readers ignore what
they do not know, so a richer line costs them nothing, and what is dropped here nobody can bring back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from math import isfinite
from typing import Any, Final

from sessionary.codec import sanitize
from sessionary.codec.encodings import is_bytes_form
from sessionary.errors import Invalid

# A tuple, not a set: a role of any type can be looked up in it.
DROPPED_ROLES: Final = ("system", "developer")
REDACTED: Final = "[REDACTED]"
SECRET_KEYS: Final = frozenset(
    "api_key apikey api-key secret password token credential credentials private_key privatekey"
    " auth authorization".split()
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_TEXT: Final = re.compile(r"-?\d{9,20}(?:\.\d+)?")
_ZONE_WORD: Final = re.compile(r"\s*(?:Z|UTC|GMT)$")


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

    `sessionary.codec.sanitize` has the forms. Beside a ``thinking_block``, which the original drops, stands its text
    as ``thinking_text``, which is what the original keeps of it.
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


def timestamp_of(message: Mapping[str, Any]) -> str | None:
    """The time that a stored message bears, in the words it is written in there; None if it bears none.

    Writers put it in three places: ``timestamp``, ``ts`` and ``metadata.timestamp``; the first that is filled counts.
    """
    usual = message.get("timestamp")
    if type(usual) is str and usual and not usual.isspace():
        return usual
    metadata = message.get("metadata")
    inner = metadata.get("timestamp") if metadata is not None and isinstance(metadata, Mapping) else None
    for found in (usual, message.get("ts"), inner):
        text = "" if found is None else str(found)
        if text.strip():
            return text
    return None


def stamp(now: datetime) -> str:
    """The time as the original wrote it: UTC, milliseconds, ``+00:00``. A time without a zone is taken as UTC."""
    return _in_utc(now).isoformat(timespec="milliseconds")


def parse_time(value: object) -> datetime | None:
    """A time as anybody may have stored it, in UTC; None if it is none.

    Reads ISO 8601 with any number of digits of a second, with ``Z``, an offset or neither (then it is UTC), and
    seconds, milli-, micro- or nanoseconds since 1970, told apart by their size.
    """
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float):
            return _from_epoch(value)
        if isinstance(value, datetime):
            return _in_utc(value)
        return _from_text(value.strip()) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


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


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _from_text(text: str) -> datetime:
    # Digits first: Python reads a long row of them as a date, any separator, and a time.
    if text[4:5] != "-" and _EPOCH_TEXT.fullmatch(text):
        return _from_epoch(float(text) if "." in text else int(text))
    try:
        return _in_utc(datetime.fromisoformat(text))
    except ValueError:
        return _in_utc(datetime.fromisoformat(_ZONE_WORD.sub("+00:00", text.upper())))


def _from_epoch(number: float) -> datetime:
    size = abs(number)
    if not isfinite(size):
        raise ValueError("no time")
    # 1e11 seconds after 1970 is the year 5138, and 1e11 milliseconds is 1973.
    for limit, unit in ((1e11, 1_000_000), (1e14, 1000), (1e17, 1)):
        if size < limit:
            return _EPOCH + timedelta(microseconds=number * unit)
    return _EPOCH + timedelta(microseconds=number // 1000)
