"""Times: UTC with six fraction digits out, tolerant in, and never backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

TICK = timedelta(microseconds=1)
LAST = datetime.max.replace(tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """``2025-01-09T15:30:45.000000Z``. A time without a zone is taken as UTC.

    Always of one width, so that texts sort as times do.
    """
    return in_utc(moment).isoformat(timespec="microseconds")[:-6] + "Z"


def parse(value: Any) -> datetime | None:
    """A time as ISO 8601 in any spelling that Python reads, in UTC; None if it is none, or only a date."""
    if isinstance(value, datetime):
        return in_utc(value)
    if not isinstance(value, str) or len(value) < 16:
        return None
    try:
        return in_utc(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None


def later(now: datetime, stored: datetime | None) -> datetime:
    """`now`, or where the clock stands still or went back, the first moment after the stored one.

    After the last moment that a time can be there is no other, so that one stays.
    """
    now = in_utc(now)
    return now if stored is None or now > stored else stored + min(TICK, LAST - stored)


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
