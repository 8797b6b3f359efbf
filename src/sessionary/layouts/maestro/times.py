"""Times: UTC when written, tolerant when read; and those of the original program, which are local without a zone.

Sessions have ISO 8601 times; breadcrumbs the form `20250131_120000_123456`, which sorts as text, can be a
file name, and has no zone. The original program writes both in local time (`datetime.now()`), we in UTC with
a zone in sessions. The `created` of a session shows which: without a zone there, all of its times are local,
and we write local times to it too, because the original program fails to compare times with and without a
zone.

No file states what zone "local" is: it is that of this machine, unless `SESSIONARY_NAIVE_TIMES` names
another. Code that must get the same result on all machines, such as a merge, reads times without a zone as
UTC.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from sessionary.errors import Invalid

SETTING = "SESSIONARY_NAIVE_TIMES"
"""The environment variable with the zone of times without a zone: ``local``, ``utc`` or a time zone."""

_STAMP = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9]{6}")


class _Local(tzinfo):
    """The zone of this machine, read for each time: its offset depends on the date."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "local"

    def fromutc(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


_LOCAL = _Local()


def naive_zone() -> tzinfo:
    """The zone of times without one. Raises Invalid if `SESSIONARY_NAIVE_TIMES` is not a zone."""
    return _zone_called(os.environ.get(SETTING, ""))


@lru_cache(maxsize=8)
def _zone_called(word: str) -> tzinfo:
    if word.casefold() in ("", "local"):
        return _LOCAL
    if word.casefold() == "utc":
        return UTC
    from zoneinfo import ZoneInfo  # imported here: rarely needed

    try:
        return ZoneInfo(word)
    except (KeyError, ValueError, OSError) as error:
        raise Invalid(
            f"{SETTING} is {word!r}, which is not a time zone known on this machine",
            hint="use 'local', 'utc', or a zone such as 'Europe/Berlin' (the package tzdata has them)",
        ) from error


def zone_signature() -> str:
    """Changes with the meaning of times without a zone: data derived from them is valid for one value of this."""
    word = os.environ.get(SETTING, "")
    return word if _zone_called(word) is not _LOCAL else f"{time.tzname}{time.timezone}{time.altzone}"


def is_naive(text: str) -> bool:
    """True for a session time without a zone; False if it is not a time."""
    try:
        return datetime.fromisoformat(text.strip()).tzinfo is None
    except ValueError:
        return False


def session_zone(created: str) -> tzinfo:
    """The zone of the breadcrumb times of a session with this creation time."""
    return naive_zone() if is_naive(created) else UTC


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """A session time: `2025-01-31T12:00:00.123456+00:00`, always with microseconds, so that text sorts as time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def session_time(moment: datetime, created: str) -> str:
    """A time for a session with this creation time: as `iso`, or without a zone if that one has none."""
    if not is_naive(created):
        return iso(moment)
    return moment.astimezone(naive_zone()).replace(tzinfo=None).isoformat(timespec="microseconds")


def stamp_of(moment: datetime, zone: tzinfo = UTC) -> str:
    """A breadcrumb time: `20250131_120000_123456`, in UTC or the zone of its session."""
    moment = moment.astimezone(zone)
    return f"{moment.year:04}{moment:%m%d_%H%M%S_%f}"  # strftime does not pad years before 1000


class Stamp(str):
    """A generated breadcrumb time, in UTC; a write converts it to the zone of its session."""


def is_stamp(text: object) -> bool:
    """True for text of the form of a breadcrumb time, which is also safe as a file name."""
    return isinstance(text, str) and _STAMP.fullmatch(text) is not None


def is_instant(stamp: object) -> bool:
    """True for a breadcrumb time whose day and hour exist."""
    return is_stamp(stamp) and _stated(stamp) is not None


def next_stamp(stamp: str) -> str:
    """The time one microsecond later."""
    return stamp_of(_moment_of(stamp).replace(tzinfo=UTC) + timedelta(microseconds=1))


def parse_time(value: Any, zone: tzinfo | None = None) -> datetime | None:
    """The instant, in UTC, that a text of either form means; None if it means none.

    Args:
        value: the text, or a datetime.
        zone: that of a time which names none; by default the one of `naive_zone`, and of a breadcrumb time UTC.

    Raises:
        Invalid: as `naive_zone`.
    """
    moment = value if isinstance(value, datetime) else _stated(value)
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone or (UTC if is_stamp(value) else naive_zone()))
    try:
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # a year that the system does not know
        return None


def _stated(value: Any) -> datetime | None:
    """The time in a text of either form, perhaps without a zone; None if it is not a time."""
    if not isinstance(value, str):
        return None
    try:
        return _moment_of(value) if is_stamp(value) else datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _moment_of(stamp: str) -> datetime:
    """The time in a text of the form of a breadcrumb time. Raises ValueError if there is no such day or hour."""
    year, month, day = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    hour, minute, second = int(stamp[9:11]), int(stamp[11:13]), int(stamp[13:15])
    return datetime(year, month, day, hour, minute, second, int(stamp[16:]))  # noqa: DTZ001 - it names no zone
