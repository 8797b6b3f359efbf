"""Times: UTC with six digits when written, tolerant when read, and never decreasing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sessionary.codec.times import in_utc, parse_iso
from sessionary.errors import SchemaError

TICK = timedelta(microseconds=1)
AHEAD: Final = timedelta(days=1)
"""Maximum time that a given time may be ahead of the clock: clocks differ, and time zones are mistaken."""
LAST = datetime.max.replace(tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """``2025-01-09T15:30:45.000000Z``. A time without a zone is read as UTC.

    Always of one width, so that text sorts as time.
    """
    return in_utc(moment).isoformat(timespec="microseconds")[:-6] + "Z"


def parse(value: Any) -> datetime | None:
    """A time as ISO 8601 in any form that Python reads, in UTC; None if it is invalid, or only a date."""
    if isinstance(value, datetime):
        return in_utc(value)
    return parse_iso(value) if isinstance(value, str) and len(value) >= 16 else None


def later(now: datetime, stored: datetime | None) -> datetime:
    """`now`; if the clock stands still or went back, the first time after the stored one.

    The last representable time has no successor and stays.
    """
    now = in_utc(now)
    return now if stored is None or now > stored else stored + min(TICK, LAST - stored)


def moment_of(name: str, value: datetime | str, now: datetime | None = None) -> datetime:
    """Parse a time given by a caller. With `now`, a time far after it is refused: all later ones would follow it.

    Raises:
        SchemaError: it is not a time, or more than a day after `now`.
    """
    moment = parse(value)
    if moment is None:
        raise SchemaError(
            f"{name} is {value!r}",
            faults=[f"{name}: not an ISO 8601 timestamp"],
            hint="for example 2025-01-09T15:30:45Z",
        )
    if now is not None and moment > in_utc(now) + AHEAD:
        raise SchemaError(
            f"{name} {stamp(moment)} is in the future: it is {stamp(now)} now",
            faults=[f"{name}: is more than a day in the future"],
            hint="correct the time, or the clock; nothing was written",
        )
    return moment
