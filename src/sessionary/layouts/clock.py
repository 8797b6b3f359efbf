"""Times of files, times in the future, and times in names: which of them are valid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sessionary.model import Problem, Severity

AHEAD = 300.0
"""Seconds by which the times of a file may be ahead of the clock: that of a server may have set them."""
_STAMP = "%Y%m%dT%H%M%S.%fZ"


def changed_at(now: float, *times: float) -> float:
    """The last change of a file, in seconds since 1970: the first valid one of its times; 0 if none is valid.

    A time far ahead of the clock was set by a user or by a wrong clock. It would count as a change of
    this moment for ever, and no remote change could reach the session again.

    Args:
        now: seconds since 1970.
        times: what the file says, in the order in which they are to be believed.
    """
    return next((time for time in times if time <= now + AHEAD), 0.0)


def is_ahead(time: datetime | None, now: float) -> bool:
    """True for a time in the future: it says nothing about when something was done, and orders no list."""
    return time is not None and time.timestamp() > now + AHEAD


_SLACK = timedelta(seconds=AHEAD)
_OLDEST = datetime.min.replace(tzinfo=UTC)


def believed(time: datetime | None, now: datetime | None = None) -> datetime:
    """A time as lists are sorted by it: none, and one in the future, count as the oldest."""
    return _OLDEST if time is None or time - (now or datetime.now(UTC)) > _SLACK else time


FUTURE_TIME = "future_time"
FUTURE_REMEDY = "none needed once the clock is right; until then another time is used"


def ahead_message(what: str, time: datetime) -> str:
    """The message about a time in the future."""
    return f"{what} has the time {time.isoformat(sep=' ', timespec='seconds')}, which is in the future"


def future_note(what: str, time: datetime | None, path: str, now: datetime | None = None) -> list[Problem]:
    """The note about a time in the future; nothing if it is not."""
    if time is None or not is_ahead(time, (now or datetime.now(UTC)).timestamp()):
        return []
    message = ahead_message(what, time)
    return [Problem.of_file(FUTURE_TIME, Severity.note, path, message, FUTURE_REMEDY)]


def last_change(
    stated: Sequence[tuple[str, datetime | None]], changed: float, now: float, path: str
) -> tuple[datetime | None, list[Problem]]:
    """The last change of a session: the latest of its recorded times, else the time of its files.

    A time in the future is reported, and does not count.

    Args:
        changed: the time of its files in seconds since 1970, see `changed_at`; 0 if that is unknown.
        now: seconds since 1970.
    """
    clock = datetime.fromtimestamp(now, UTC)
    problems = [found for what, time in stated for found in future_note(what, time, path, clock)]
    known = [time for _, time in stated if time is not None and not is_ahead(time, now)]
    by_files = datetime.fromtimestamp(changed, UTC) if changed else None
    return max(known, default=by_files), problems


def moment(at: str) -> datetime | None:
    """The time at the beginning of a name (`atomic.timestamp_name`); None if there is none."""
    try:
        return datetime.strptime(at[: at.index("Z") + 1], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
