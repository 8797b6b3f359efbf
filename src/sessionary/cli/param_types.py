"""Types of options: times, time zones, and finite numbers.

A time is ``3d``, ``1h30m``, ``2 weeks ago``, ``yesterday``, ``last week``, ``2026-03``, or ISO 8601. A word is a range
of time: a day, a week, a month. ``--since`` uses its beginning and ``--until`` its end, so that ``--since monday`` and
``--until monday`` both include the whole day. A time without an offset is local.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import click

_PART = (
    r"(\d{1,6}\s*|an?\s+)"
    r"(s|m|h|d|w|mo|y|secs?|mins?|hrs?|seconds?|minutes?|hours?|days?|weeks?|months?|years?)(?![a-z])"
)
_AGO = rf"{_PART}(?:(?:\s*,)?(?:\s*and)?\s*{_PART})*(?:\s+ago)?"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "mo": 30 * 86400, "y": 365 * 86400}
_DATE = r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = timedelta(days=1)


class Stretch(NamedTuple):
    """A range from `start` up to `end`; equal for a moment."""

    start: datetime
    end: datetime


def stretch(words: str, now: datetime, zone: tzinfo | None = None) -> Stretch:
    """Return the range of time that the words name, in a time zone; None for the local one.

    Raises:
        ValueError: they are not a time.
    """
    text = " ".join(words.lower().split())
    if re.fullmatch(_AGO, text):
        moment = now - timedelta(seconds=sum(_seconds(*part) for part in re.findall(_PART, text)))
        return Stretch(moment, moment)
    days = _dated(text) or _named(text, now.astimezone(zone).date())
    if days is not None:
        return Stretch(_midnight(days[0], zone), _midnight(days[1], zone))
    moment = datetime.fromisoformat(words.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)  # None counts as local
    moment = moment.astimezone(UTC)
    return Stretch(moment, moment)


def _seconds(number: str, unit: str) -> int:
    """The length of ``2 weeks``."""
    return (1 if number.startswith("a") else int(number)) * _UNITS["mo" if unit.startswith("mo") else unit[0]]


def _dated(text: str) -> tuple[date, date] | None:
    """A year, a month or a day, in digits."""
    match = re.fullmatch(_DATE, text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
    first = date(year, month, day)
    if match[3]:
        return first, first + _DAY
    return first, _months_later(first, 1 if match[2] else 12)


def _named(text: str, today: date) -> tuple[date, date] | None:
    """A day, week, month or year by its name, as seen from today."""
    monday, month, year = today - today.weekday() * _DAY, today.replace(day=1), today.replace(month=1, day=1)
    if text in _WEEKDAYS:  # the most recent one
        day = today - (today.weekday() - _WEEKDAYS.index(text)) % 7 * _DAY
        return day, day + _DAY
    named = {
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + 7 * _DAY),
        "last week": (monday - 7 * _DAY, monday),
        "this month": (month, _months_later(month, 1)),
        "last month": (_months_later(month, -1), month),
        "this year": (year, _months_later(year, 12)),
        "last year": (_months_later(year, -12), year),
    }
    return named.get(text)


def _months_later(first: date, count: int) -> date:
    months = first.year * 12 + first.month - 1 + count
    return date(months // 12, months % 12 + 1, 1)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


class When(click.ParamType[datetime]):
    """An option that is a time."""

    name = "time"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        zone = None if ctx is None else ctx.params.get("zone")
        try:
            found = stretch(value, datetime.now(UTC), zone if isinstance(zone, tzinfo) else None)
        except (ValueError, OverflowError):
            words = (
                "write 3d, 1h30m, '2 weeks ago', today, 'last week', 2026-03, 2026-03-14 or 2026-03-14T09:30"
            )
            self.fail(f"{value!r} is not a time; {words}", param, ctx)
        return found.end if self._end else found.start


class Zone(click.ParamType[tzinfo]):
    """A time zone by its IANA name."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        from zoneinfo import (
            ZoneInfo,
            ZoneInfoNotFoundError,
            available_timezones,
        )  # here, since few commands ask for it

        if isinstance(value, tzinfo):
            return value
        try:
            return ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            if not available_timezones():
                self.fail("this system has no time zones; install the package tzdata", param, ctx)
            words = "write an IANA name, such as Europe/Berlin, America/New_York or UTC"
            self.fail(f"{value!r} is not a known time zone; {words}", param, ctx)


class Finite(click.FloatRange):
    """A finite number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises BadParameter if it is not a finite number, or out of bounds."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number
