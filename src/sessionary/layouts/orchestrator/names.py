"""Names of the files of a feature, and ids of features.

A new id follows the contract: a slug and a valid date. Existing ids may be any name of one folder that is not
hidden, because the contract's own scripts never checked them and real stores hold ids like ``abc``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
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
"""The lock of the contract's own scripts: it exists while one of them writes, and while we write."""

FILES = (STATE, PLAN, HISTORY)

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-(\d{4}-\d{2}-\d{2})")
_UNSAFE = re.compile(r"^\.|[/\\\0]")
_NO_SLUG = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 200


def check_new_id(feature_id: str) -> str:
    """Refuse an id that is not ``{slug}-{YYYY-MM-DD}`` with a valid date.

    Raises:
        InvalidId: the message states the reason.
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
    """Refuse an id that cannot be a folder name. Ids that break the contract otherwise are accepted.

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
    """Why an id breaks the contract; None if it does not."""
    match = _ID.fullmatch(feature_id)
    if match is None:
        return "it is not lower-case words and a date, joined by hyphens"
    if date_of(feature_id) is None:
        return f"{match[1]} is not a date"
    if len(feature_id) > MAX_SLUG + 11:
        return f"it is longer than {MAX_SLUG + 11} characters"
    return None


def date_of(feature_id: str) -> date | None:
    """The date at the end of an id; None if there is none, or an invalid one."""
    try:
        return date.fromisoformat(feature_id[-10:])
    except ValueError:
        return None


def day_of(feature_id: str) -> datetime | None:
    """The start of the date at the end of an id, in UTC; None if there is none."""
    day = date_of(feature_id)
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


def free_id(name: str, day: date, taken: Callable[[str], bool]) -> str:
    """A new id from a name and a date, with the first number that is free.

    Raises:
        InvalidId: the name has no letter or digit for a slug.
    """
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    slug = _NO_SLUG.sub("-", plain).strip("-")[:MAX_SLUG].strip("-")
    if not slug:
        raise InvalidId(
            f"No id can be made from the name {name!r}",
            hint="give an id, or a name with Latin letters or digits",
        )
    made = (f"{slug}{f'-{number}' if number > 1 else ''}-{day.isoformat()}" for number in count(1))
    return next(feature_id for feature_id in made if not taken(feature_id))
