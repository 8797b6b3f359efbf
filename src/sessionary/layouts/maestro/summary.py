"""From a session's folder to its summary, in one pass over its breadcrumbs.

Every file is opened once; sizes and times come from descriptors that are open anyway. What was looked at is kept by
name, so that a list can tell later, by stats alone, that nothing has changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from sessionary.disk.fs import READ, Fs, read_all
from sessionary.errors import Corrupt, SchemaError
from sessionary.layouts import conflict_copies
from sessionary.layouts.clock import FUTURE_REMEDY, ahead_message, changed_at, is_ahead
from sessionary.layouts.maestro.breadcrumbs import (
    Crumb,
    CrumbFile,
    Distinct,
    crumb_of,
    unreadable,
    unreadable_crumb,
)
from sessionary.layouts.maestro.messages import messages_of
from sessionary.layouts.maestro.names import BREADCRUMBS, LARGEST, LOG, SESSION, depth_of, is_crumb_name
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, sort_key
from sessionary.layouts.maestro.session_file import parse_session, problem_of
from sessionary.layouts.maestro.times import parse_time, session_zone
from sessionary.model import Problem, SessionRef, Severity, Summary, health

AGENT = "maestro"
TITLE = 200


class Read(NamedTuple):
    """One breadcrumb file that was read.

    Attributes:
        file: its name and place.
        crumb: what reading it gave.
        found: its stat.
        data: its bytes.
    """

    file: CrumbFile
    crumb: Crumb
    found: os.stat_result
    data: bytes


def look(fs: Fs, ref: SessionRef, boxes: list[str], now: float) -> Summary:
    """The summary of the session in a folder, with the breadcrumbs in all `boxes`.

    Raises:
        OSError: the folder is gone, or cannot be looked into.
    """
    place = fs.stat(ref.locator)
    files: dict[str, os.stat_result] = {}
    problems: list[Problem] = []
    session, legacy = _document(fs, ref, files, problems)
    names = fs.listdir(ref.locator)
    for name in names:
        if name[0] != "." and name not in files:
            _keep_stat(fs, ref.locator, name, files)
    problems += conflict_copies.problems(fs, ref.locator, names, (SESSION, LOG), ref.session_id)
    reads = list(read_all_crumbs(fs, ref.locator, boxes, files, problems, now))
    for each in reads:
        problems += each.crumb.problems
    crumbs = sorted((c for each in reads if (c := each.crumb.breadcrumb) is not None), key=sort_key)
    size = sum(found.st_size for found in files.values() if stat.S_ISREG(found.st_mode))
    zone = session_zone(session.created) if session else UTC
    updated = _updated(f"{ref.locator}/{SESSION}", session, crumbs, zone, place, now, problems)
    return _summary(ref, session, crumbs, problems, updated, size, listed=not legacy)


def unreadable_summary(ref: SessionRef, error: OSError) -> Summary:
    """What a list shows of a folder that cannot be looked into: that it is there, and why nothing more is said."""
    problems = [unreadable(ref.locator, error)]
    return Summary(ref, AGENT, None, None, 0, 0, None, None, None, 0, health(problems), problems)


def read_all_crumbs(
    fs: Fs,
    folder: str,
    boxes: list[str],
    files: dict[str, os.stat_result],
    problems: list[Problem],
    now: float,
) -> Iterator[Read]:
    """Read every breadcrumb file below these folders; what was looked at goes to `files`, by its relative path.

    Of exact duplicates one is given.
    """
    distinct = Distinct()
    for box in boxes:
        lead = f"{os.path.relpath(box, folder)}/" if box != folder else ""
        for depth, names in _depths(fs, folder, f"{lead}{BREADCRUMBS}", files, problems):
            for name in names:
                path = f"{folder}/{lead}{BREADCRUMBS}/{depth}/{name}"
                file = CrumbFile(name, depth_of(depth) or 0, os.path.normpath(path) if lead else path)
                read = _read(fs, file, now)
                if isinstance(read, OSError):
                    problems.append(unreadable_crumb(file.path, read))
                elif read is not None:
                    files[f"{lead}{BREADCRUMBS}/{depth}/{name}"] = read.found
                    if read.crumb.breadcrumb is None or distinct.is_new(read.crumb.breadcrumb):
                        yield read


def _depths(
    fs: Fs, folder: str, base: str, files: dict[str, os.stat_result], problems: list[Problem]
) -> Iterator[tuple[str, list[str]]]:
    """The depth folders of a mailbox, with the names in them that may be breadcrumbs, in order."""
    if not _keep_stat(fs, folder, base, files):
        return
    for depth in sorted(_names(fs, f"{folder}/{base}", problems)):
        if depth_of(depth) is not None and _keep_stat(fs, folder, f"{base}/{depth}", files):
            yield depth, sorted(filter(is_crumb_name, _names(fs, f"{folder}/{base}/{depth}", problems)))


def _names(fs: Fs, folder: str, problems: list[Problem]) -> list[str]:
    try:
        return fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(unreadable(folder, error))
        return []


def _keep_stat(fs: Fs, folder: str, name: str, files: dict[str, os.stat_result]) -> bool:
    try:
        files[name] = fs.stat(f"{folder}/{name}")
    except OSError:
        return False
    return True


def _read(fs: Fs, file: CrumbFile, now: float) -> Read | OSError | None:
    try:
        fd = fs.open(file.path, READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
    try:
        found = fs.fstat(fd)
        data = read_all(fs, fd, LARGEST)
    except OSError as error:
        return error
    finally:
        fs.close(fd)
    return Read(file, crumb_of(file, data, age=now - found.st_mtime), found, data)


def _document(
    fs: Fs, ref: SessionRef, files: dict[str, os.stat_result], problems: list[Problem]
) -> tuple[WorkSession | None, bool]:
    path = f"{ref.locator}/{SESSION}"
    try:
        fd = fs.open(path, READ)
        try:
            files[SESSION] = fs.fstat(fd)
            data = read_all(fs, fd, LARGEST)
        finally:
            fs.close(fd)
        session = parse_session(data, path)
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
