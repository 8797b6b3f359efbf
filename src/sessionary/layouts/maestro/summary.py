"""From a session's folder to its summary, in one pass over its breadcrumbs."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo

from sessionary.disk.fs import READ, Fs, read_all, require_regular
from sessionary.errors import Corrupt, SchemaError
from sessionary.layouts import conflict_copies
from sessionary.layouts.clock import FUTURE_REMEDY, ahead_message, changed_at, is_ahead
from sessionary.layouts.maestro.breadcrumbs import in_order, read_boxes, unreadable
from sessionary.layouts.maestro.messages import messages_of
from sessionary.layouts.maestro.names import LARGEST, LOG, SESSION
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.session_file import parse_session, problem_of
from sessionary.layouts.maestro.times import parse_time, session_zone
from sessionary.model import Problem, SessionRef, Severity, Summary, health

AGENT = "maestro"
TITLE = 200


def look(fs: Fs, ref: SessionRef, boxes: list[str], now: float) -> Summary:
    """The summary of the session in a folder, with the breadcrumbs in all `boxes`.

    Raises:
        OSError: the folder is missing or unreadable.
    """
    place = fs.stat(ref.locator)
    problems: list[Problem] = []
    session, legacy = _document(fs, ref, problems)
    names = fs.listdir(ref.locator)
    problems += conflict_copies.problems(fs, ref.locator, names, (SESSION, LOG), ref.session_id)
    reads = [read for _, read in read_boxes(fs, boxes, problems, now=now)]
    problems += [problem for read in reads for problem in read.problems]
    crumbs = [read.breadcrumb for read in in_order(reads) if read.breadcrumb is not None]
    size = sum(len(read.data) for read in reads)
    size += sum(_size(fs, f"{ref.locator}/{name}") for name in names if name[0] != ".")
    zone = session_zone(session.created) if session else UTC
    updated = _updated(f"{ref.locator}/{SESSION}", session, crumbs, zone, place, now, problems)
    return _summary(ref, session, crumbs, problems, updated, size, listed=not legacy)


def _size(fs: Fs, path: str) -> int:
    """The bytes of a file; 0 for anything else."""
    try:
        return require_regular(fs.stat(path)).st_size
    except OSError:
        return 0


def unreadable_summary(ref: SessionRef, error: OSError) -> Summary:
    """What a list shows of a folder that cannot be looked into: that it is there, and why nothing more is said."""
    problems = [unreadable(ref.locator, error)]
    return Summary(ref, AGENT, None, None, 0, 0, None, None, None, 0, health(problems), problems)


def _document(fs: Fs, ref: SessionRef, problems: list[Problem]) -> tuple[WorkSession | None, bool]:
    path = f"{ref.locator}/{SESSION}"
    try:
        fd = fs.open(path, READ)
        try:
            session = parse_session(read_all(fs, fd, LARGEST), path)
        finally:
            fs.close(fd)
    except FileNotFoundError:
        raise  # without its document the folder is no session any more
    except OSError as error:
        problems.append(unreadable(path, error))
        return None, False
    except (Corrupt, SchemaError) as error:
        problems.append(problem_of(path, error))
        return None, bool(error.details.get("legacy"))
    if session.session_id != ref.session_id:
        words = f"the folder has another name than its session, {session.session_id}; the document is used"
        problems.append(Problem("id_differs", Severity.note, path, None, None, words))
    return session, False


def _summary(
    ref: SessionRef,
    session: WorkSession | None,
    crumbs: list[Breadcrumb],
    problems: list[Problem],
    updated: datetime | None,
    size: int,
    *,
    listed: bool,
) -> Summary:
    zone = session_zone(session.created) if session else UTC
    spoken = [message for crumb in crumbs for message in messages_of(crumb, zone)]
    return Summary(
        ref,
        AGENT,
        _title(session, crumbs),
        session.parent if session else None,
        len(spoken),
        sum(bool(crumb.prompt) for crumb in crumbs),
        None,
        parse_time(session.created) if session else None,
        updated,
        size,
        health(problems),
        problems,
        listed,
    )


def _updated(
    path: str,
    session: WorkSession | None,
    crumbs: list[Breadcrumb],
    zone: tzinfo,
    place: os.stat_result,
    now: float,
    problems: list[Problem],
) -> datetime | None:
    """The later of the newest message and the last change of the document; the time of the folder where none is told.

    A time after the clock is reported and does not count.
    """
    told = [("the newest breadcrumb", parse_time(crumb.timestamp, zone)) for crumb in crumbs[-1:]]
    told.append(("modified", parse_time(session.modified) if session else None))
    known = []
    for what, time in told:
        if time is not None and is_ahead(time, now):
            message = ahead_message(what, time)
            problems.append(Problem("future_time", Severity.note, path, None, None, message, FUTURE_REMEDY))
        elif time is not None:
            known.append(time)
    changed = changed_at(now, place.st_mtime, place.st_ctime)
    return max(known) if known else _moment(changed) if changed else None


def _title(session: WorkSession | None, crumbs: list[Breadcrumb]) -> str | None:
    """What it is for, else what it is about, else what was asked first; the beginning, on one line."""
    texts = [session.purpose, *map(session.related_entity.get, ("name", "id", "track_id"))] if session else []
    texts += [crumb.prompt for crumb in crumbs[:1]]
    for text in texts:
        if isinstance(text, str) and text.strip():
            return " ".join(text[: 4 * TITLE].split())[:TITLE]
    return None


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
