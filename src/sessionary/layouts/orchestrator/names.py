"""The files of a feature, and how features are called.

A new id follows the contract: a slug and a real date. What is read may be called anything that is one folder name and
not hidden, because the contract's own scripts never checked and real stores hold ids like ``abc``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import count

from sessionary.errors import InvalidId

HOME = ".ai-session"
INDEX = "active-features.yaml"
README = "README.md"
ACKNOWLEDGMENT = "contract-acknowledgment.md"
INDEX_LOCK = ".index.lock"
ARCHIVE = ".archive"
FAILED = ".failed-"
BUILDING = ".create-"

STATE = "state.yaml"
PLAN = "implementation-plan.yaml"
HISTORY = "history.jsonl"
ARTIFACTS = "artifacts"
LOCK = ".sessionary.lock"
SCRIPT_LOCK = ".state.lock"
"""The lock of the contract's own scripts: it exists while one of them writes, and while we do."""

FILES = (STATE, PLAN, HISTORY)

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-(\d{4}-\d{2}-\d{2})")
_UNSAFE = re.compile(r"^\.|[/\\\0]")
_NO_SLUG = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 200


def check_new_id(feature_id: str) -> str:
    """Refuse an id that is not ``{slug}-{YYYY-MM-DD}`` with a date of the calendar.

    Raises:
        InvalidId: it is something else; the message says what is wrong.
    """
    reason = why_irregular(feature_id)
    if reason:
        raise InvalidId(
            f"Invalid feature id {feature_id!r}: {reason}",
            session=feature_id,
            hint="an id is lower-case words and a date, joined by hyphens: ai-orchestrator-2025-01-09",
        )
    return feature_id


def check_id(feature_id: str) -> str:
    """Refuse what cannot be the folder of a feature. Ids of before the contract pass.

    Raises:
        InvalidId: blank, hidden, or more than one folder name.
    """
    if not feature_id.strip() or _UNSAFE.search(feature_id):
        raise InvalidId(
            f"Invalid feature id {feature_id!r}",
            session=feature_id,
            hint="an id is the name of one folder, never a path, and does not begin with a dot",
        )
    return feature_id


def why_irregular(feature_id: str) -> str | None:
    """What the contract has against an id; None if nothing."""
    match = _ID.fullmatch(feature_id)
    if match is None:
        return "it is not lower-case words and a date, joined by hyphens"
    if date_of(feature_id) is None:
        return f"{match[1]} is no date"
    if len(feature_id) > MAX_SLUG + 11:
        return f"it is longer than {MAX_SLUG + 11} characters"
    return None


def is_text(feature_id: str) -> bool:
    """False for the name of a folder that is not UTF-8: the list is text and cannot hold it."""
    return not any("\ud800" <= char <= "\udfff" for char in feature_id)


def date_of(feature_id: str) -> date | None:
    """The date at the end of an id; None if there is none, or none of the calendar."""
    try:
        return date.fromisoformat(feature_id[-10:])
    except ValueError:
        return None


def day_of(feature_id: str) -> datetime | None:
    """The first moment, UTC, of the date at the end of an id; None if there is none."""
    day = date_of(feature_id)
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


def free_id(name: str, day: date, taken: Callable[[str], bool]) -> str:
    """The id of a feature of this name that was begun on this day: the first of its numbers that is not taken.

    Raises:
        InvalidId: the name has no letter or digit that a slug can hold.
    """
    return next(made for made in _ids(name, day) if not taken(made))


def _ids(name: str, day: date) -> Iterator[str]:
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    slug = _NO_SLUG.sub("-", plain).strip("-")[:MAX_SLUG].strip("-")
    if not slug:
        raise InvalidId(
            f"No id can be made of the name {name!r}",
            hint="give an id, or a name with Latin letters or digits",
        )
    yield f"{slug}-{day.isoformat()}"
    for number in count(2):
        yield f"{slug}-{number}-{day.isoformat()}"
