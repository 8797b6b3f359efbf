"""Times as agents store them, read tolerantly. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_TEXT: Final = re.compile(r"-?\d{9,20}(?:\.\d+)?")
_ZONE_WORD: Final = re.compile(r"\s*(?:Z|UTC|GMT)$")


def timestamp_of(message: Mapping[str, Any]) -> str | None:
    """The time of a stored message, as text; None if it has none.

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


def parse_time(value: object) -> datetime | None:
    """Parse a time in any common form, in UTC; None if it is not one.

    Reads ISO 8601 with any number of digits of a second, with ``Z``, an offset or neither (then it is UTC), and
    seconds, milli-, micro- or nanoseconds since 1970, distinguished by their size.
    """
    if isinstance(value, str) and value[4:5] == "-":  # as nearly all are written
        try:
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo is UTC else in_utc(moment)
        except (ValueError, OverflowError):
            pass
    try:
        if isinstance(value, str):
            return _from_text(value.strip())
        if isinstance(value, datetime):
            return in_utc(value)
        return _from_epoch(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def parse_iso(value: object) -> datetime | None:
    """Parse an ISO 8601 time into UTC; None if it is not one. Narrower than `parse_time`, for formats of our own."""
    try:
        return in_utc(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _from_text(text: str) -> datetime:
    # Digits first: Python reads a long row of them as a date, any separator, and a time.
    if text[4:5] != "-" and _EPOCH_TEXT.fullmatch(text):
        return _from_epoch(float(text) if "." in text else int(text))
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        return in_utc(datetime.fromisoformat(_ZONE_WORD.sub("+00:00", text.upper())))


def _from_epoch(number: float) -> datetime:
    size = abs(number)
    if not isfinite(size):
        raise ValueError("no time")
    # 1e11 seconds after 1970 is the year 5138, and 1e11 milliseconds is 1973.
    for limit, unit in ((1e11, 1_000_000), (1e14, 1000), (1e17, 1)):
        if size < limit:
            return _EPOCH + timedelta(microseconds=number * unit)
    return _EPOCH + timedelta(microseconds=number // 1000)
