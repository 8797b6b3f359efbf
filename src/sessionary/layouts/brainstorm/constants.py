"""Constants of the format: allowed values, session names, times.

An enumeration limits calls, not files: an unknown value in a file is kept and reported.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from sessionary.codec.times import parse_iso
from sessionary.errors import Invalid, InvalidId

FOLDER: Final = ".project-memory/brainstorm-sessions"
SUFFIX: Final = ".yaml"
VERSION: Final = "1.2"
READABLE: Final = ("1.0", "1.2")  # there never was a 1.1

STATUSES: Final = ("in_progress", "completed", "abandoned")
PHASES: Final = ("divergent", "transition", "convergent")
MODES: Final = ("standard", "party", "panel")
PERSONAS: Final = ("architecte", "sparring", "pragmatique")
SOURCES: Final = ("auto", "manual", "random", "progressive")
PANEL_PHASES: Final = ("discussion", "debate", "socratic")

AXES: Final = {"Clarte": 25, "Profondeur": 20, "Couverture": 20, "Decisions": 20, "Actionnabilite": 15}
"""The axes of the score and their weights in percent; each is 0 to 100."""

WEAK: Final = 50
"""Below this an axis is weak."""

MOST_BACK: Final = 5
PAUSE: Final = timedelta(minutes=30)
"""Longest time between changes that counts as work."""
DAYS_KEPT: Final = 30

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_SLUG = 200  # with suffixes, times and a temporary name it stays below the limit of file systems


def check_slug(slug: Any) -> str:
    """Return the slug itself, if it may name a file.

    Raises:
        InvalidId: it is not text of lower-case letters and digits with single hyphens between.
    """
    if is_slug(slug):
        return str(slug)
    raise InvalidId(
        f"{slug!r} cannot name a brainstorm session",
        session=slug if isinstance(slug, str) else None,
        hint="use lower-case letters and digits with single hyphens between, for example feature-auth",
    )


def is_slug(slug: Any) -> bool:
    """True if the text may name a session."""
    return isinstance(slug, str) and len(slug) <= _LONGEST_SLUG and _SLUG.fullmatch(slug) is not None


def session_id(slug: str, now: datetime) -> str:
    """The id of a session that starts now: its slug and the date, in UTC."""
    return f"{slug}-{now.astimezone(UTC):%Y-%m-%d}"


def is_id(text: Any, slug: Any) -> bool:
    """True if the text is the slug with a valid date."""
    if not isinstance(text, str) or not text.startswith(f"{slug}-"):
        return False
    try:
        day = date.fromisoformat(text[len(f"{slug}-") :])
    except ValueError:
        return False
    return text.endswith(day.isoformat())


def write_time(now: datetime) -> str:
    """A time in the format: UTC, whole seconds, a Z at the end."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: Any) -> datetime | None:
    """Parse a time, in UTC; None if it is not valid. Without a zone it is read as UTC."""
    return parse_iso(text.strip()) if isinstance(text, str) else None


def one_of(value: str, choices: tuple[str, ...], what: str) -> str:
    """Return the value, if it is one of the choices. Raises Invalid if it is not."""
    if value in choices:
        return value
    raise Invalid(f"{value!r} is not a {what}", hint=f"use one of: {', '.join(choices)}")


def whole(value: Any, low: int, high: int | None, what: str) -> int:
    """Return the value, if it is a whole number within its bounds. Raises Invalid if it is not."""
    if is_whole(value, low, high):
        return int(value)
    bounds = f"from {low} to {high}" if high is not None else f"from {low}"
    raise Invalid(f"{what} is {value!r}", hint=f"use a whole number {bounds}")


def is_whole(value: Any, low: int, high: int | None) -> bool:
    """True for an integer within its bounds, both included."""
    return type(value) is int and value >= low and (high is None or value <= high)


def score_of(axes: dict[str, int]) -> int:
    """The score of five axes: their weighted mean, half a point rounded up."""
    return (sum(axes[name] * weight for name, weight in AXES.items()) + 50) // 100
