"""Format numbers, times and health as short text."""

from __future__ import annotations

import os
from datetime import datetime
from functools import lru_cache

from sessionary.cli.text import shell_line
from sessionary.errors import Corrupt, SessionaryError, StorageFailed
from sessionary.model import Severity

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# The sign is seen first, the word states its meaning; the colour only repeats the sign.
_VERDICTS = {
    "ok": ("✓ ok", "green"),
    Severity.note.name: ("✓ ok", "green"),
    Severity.cosmetic.name: ("! stray", "yellow"),
    Severity.hides_data.name: ("! hides", "yellow"),
    Severity.stops_resume.name: ("✗ stops", "red"),
    Severity.lost_data.name: ("✗ lost", "red"),
}


def size(count: int) -> str:
    """A number of bytes in at most six characters: ``659 B``, ``1.2 MB``."""
    if count < 1000:
        return f"{count} B"
    unit, one = 0, 1000
    while count >= 999.5 * one and unit < len(_UNITS) - 1:
        unit, one = unit + 1, one * 1000
    tenths = (10 * count + one // 2) // one
    return (
        f"{tenths // 10}.{tenths % 10} {_UNITS[unit]}"
        if tenths < 100
        else f"{(count + one // 2) // one} {_UNITS[unit]}"
    )


def quantity(number: int) -> str:
    """A number in at most five characters: ``659``, ``1.2M``."""
    digits, _, unit = size(number).partition(" ")
    return digits if unit == "B" else digits + unit[0]


def ago(when: datetime | None, now: datetime) -> str:
    """The age of a time; a date after more than a week, with the year if it is not this one."""
    if when is None:
        return "?"
    past = now - when
    seconds = past.seconds
    if 0 < past.days < 7:
        return f"{past.days} d"
    if past.days:
        local = datetime.fromtimestamp(when.timestamp())  # noqa: DTZ006 - as `astimezone`, in half the time
        return day(local, now)
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"


def day(when: datetime, now: datetime) -> str:
    """A local date, with the year if it is not this one: ``Mar  4``, ``Nov 27 2025``."""
    date = f"{_MONTHS[when.month - 1]} {when.day:2}"
    return date if when.year == _local_year(now) else f"{date} {when.year}"


@lru_cache(maxsize=1)
def _local_year(now: datetime) -> int:
    """The local year, the same for all rows of a table."""
    return now.astimezone().year


def verdict(health: str) -> str:
    """Health as a sign and a word, in at most seven characters."""
    return _VERDICTS[health][0]


def clock(when: datetime) -> str:
    """The time of day, local: ``14:02:31``."""
    return when.astimezone().strftime("%H:%M:%S")


def stamp(when: datetime, now: datetime) -> str:
    """Day and time, local: ``Mar  4 14:02``, with the year if it is not this one."""
    local = when.astimezone()
    year = "" if local.year == _local_year(now) else f" {local.year}"
    return f"{_MONTHS[local.month - 1]} {local.day}{year} {local:%H:%M}"


def sign(health: str) -> str:
    """The sign alone."""
    return _VERDICTS[health][0][0]


def colour(health: str) -> str:
    """The colour that repeats the sign."""
    return _VERDICTS[health][1]


def message(error: SessionaryError) -> str:
    """The message of an error; that of damage or of a failed call names the file."""
    is_of_file = isinstance(error, Corrupt | StorageFailed) and error.path is not None
    if not is_of_file or os.path.basename(str(error.path)) in error.message:
        return error.message
    return f"{error.path}: {error.message}"


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 session``, ``2 sessions``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def command(name: str, *words: str) -> str:
    """A command line to copy, for the same homes."""
    from sessionary.cli.homes import as_options

    return shell_line(["sessionary", name, *as_options(), *words])
