"""Times: UTC out, tolerant in.

Sessions have ISO 8601 times, breadcrumbs the form `20250131_120000_123456`, which sorts as text and can be a file
name. The original wrote both in local time without saying which; such a time is read as UTC, because no file says
where it was written.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

_STAMP = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9]{6}")
_INSTANT = re.compile(r"([0-9]{8})_(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]_[0-9]{6}")
_STEP = timedelta(microseconds=1)


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """A session time: `2025-01-31T12:00:00.123456+00:00`, always with microseconds, so that text sorts as time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def stamp_of(moment: datetime) -> str:
    """A breadcrumb time: `20250131_120000_123456`, UTC."""
    # Cut out by hand: strftime takes twice as long, and does not fill up the years before 1000.
    text = moment.astimezone(UTC).isoformat("_", "microseconds")
    return f"{text[:4]}{text[5:7]}{text[8:13]}{text[14:16]}{text[17:19]}_{text[20:26]}"


def is_stamp(text: object) -> bool:
    """True for a text of the form of a breadcrumb time, which is also safe as a file name."""
    return isinstance(text, str) and _STAMP.fullmatch(text) is not None


def is_instant(stamp: object) -> bool:
    """True for a breadcrumb time whose day and hour exist. Without parsing it: each put asks."""
    found = _INSTANT.fullmatch(stamp) if isinstance(stamp, str) else None
    return found is not None and _is_day(found[1])


@lru_cache(maxsize=64)
def _is_day(text: str) -> bool:
    try:
        date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return False
    return True


def next_stamp(stamp: str) -> str:
    """The time one microsecond later."""
    return stamp_of(_moment_of(stamp) + _STEP)


def parse_time(value: Any) -> datetime | None:
    """The instant that a text of either form means; a time without a zone is UTC. None if it means none."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if not isinstance(value, str):
        return None
    try:
        if _STAMP.fullmatch(value):
            return _moment_of(value)
        found = datetime.fromisoformat(value.strip())
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _moment_of(stamp: str) -> datetime:
    """The instant of a text of the form of a breadcrumb time. By hand: strptime takes longer than the write.

    Raises:
        ValueError: there is no such day or hour.
    """
    date = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    return datetime(
        *date, int(stamp[9:11]), int(stamp[11:13]), int(stamp[13:15]), int(stamp[16:]), tzinfo=UTC
    )
