"""Facts of a session folder beside its messages: metadata.json, names, sizes and times."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sessionary.codec import decode_object
from sessionary.codec.times import parse_time
from sessionary.disk.fs import READ, Fs, read_bytes, stat_or_none
from sessionary.errors import SessionaryError
from sessionary.layouts import conflict_copies
from sessionary.layouts.amplifier import checking
from sessionary.layouts.amplifier.files import BACKUP, COPIED, METADATA, NO_ACTIVITY, TRANSCRIPT
from sessionary.layouts.amplifier.reading import conversation_problems
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.clock import (
    AHEAD,
    FUTURE_REMEDY,
    FUTURE_TIME,
    ahead_message,
    changed_at,
    future_note,
    is_ahead,
)
from sessionary.model import Header, Problem, SessionRef, Severity
from sessionary.transcript.fold import Fold, short_title
from sessionary.transcript.messages import word

_MAIN = frozenset({TRANSCRIPT, METADATA})


def is_session(fs: Fs, folder: str, names: Iterable[str]) -> bool:
    """True if the folder holds a file that is not hidden, or the placeholder of a file of a session.

    Empty folders, and those of locks alone, are not sessions.
    """
    if TRANSCRIPT in names or METADATA in names:
        return True
    names = list(names)
    if any(not name.startswith(".") and stat.S_ISREG(_mode(fs, f"{folder}/{name}")) for name in names):
        return True
    return bool(conflict_copies.placeholders_in(names, COPIED))


def header(fs: Fs, ref: SessionRef, fold: Fold, now: float) -> Header:
    """Facts of a session outside of its messages, from its documents and the names and times of its files.

    Raises:
        OSError: the folder is gone, or cannot be looked into.
    """
    folder = ref.locator
    names = fs.listdir(folder)
    stats: dict[str, os.stat_result] = {}
    problems = conversation_problems(fold)
    place = fs.stat(folder)
    document = _metadata(fs, folder, names, stats, problems)
    metadata = document or {}
    if document is not None:
        problems += checking.metadata_problems(f"{folder}/{METADATA}", ref.session_id, document, fold.turns)
    talk = stat_or_none(fs, f"{folder}/{TRANSCRIPT}") if TRANSCRIPT in names else None
    if talk is not None and stat.S_ISREG(talk.st_mode):
        stats[TRANSCRIPT] = talk
    below = _beside(fs, folder, names, stats)
    problems += _unusual(fs, folder, names, stats, fold.messages, now)
    updated = fold.updated
    if updated is None or is_ahead(updated, now):
        clock = datetime.fromtimestamp(now, UTC)
        problems += future_note("the newest message", updated, f"{folder}/{TRANSCRIPT}", clock)
        updated = _by_files(folder, place, stats, now, problems)
    count = metadata.get("turn_count")
    return Header(
        title=short_title(word(metadata.get("name"))),
        parent=word(metadata.get("parent_id")),
        created=parse_time(metadata.get("created")),
        updated=updated,
        size=below + sum([found.st_size for found in stats.values()]),
        turn_count=count if type(count) is int else None,
        problems=problems,
        cwd=word(metadata.get("working_dir")),
    )


def stated_name(fs: Fs, folder: str) -> str | None:
    """The name in the metadata of a session; None without one."""
    try:
        value = decode_object(read_bytes(fs, f"{folder}/{METADATA}") or b"")
    except SessionaryError:
        return None
    return None if value is None else short_title(word(value.get("name")))


def _by_files(
    folder: str, place: os.stat_result, stats: dict[str, os.stat_result], now: float, problems: list[Problem]
) -> datetime | None:
    """The last change of a session by the times of its files. A time in the future is reported and does not count."""
    found = [place, *[stats[name] for name in stats if name not in NO_ACTIVITY]]
    newest = max([each.st_mtime for each in found])
    if newest > now + AHEAD:
        moment = _moment(newest)
        message = ahead_message("a file", moment) if moment else "a file has an impossible year"
        problems.append(Problem.of_file(FUTURE_TIME, Severity.note, folder, message, FUTURE_REMEDY))
        newest = max([changed_at(now, each.st_mtime, each.st_ctime) for each in found])
    return _moment(newest) if newest else None


def _metadata(
    fs: Fs, folder: str, names: list[str], stats: dict[str, os.stat_result], problems: list[Problem]
) -> dict[str, Any] | None:
    """The document; where it is bad or missing, its backup; None where there is neither."""
    if METADATA in names:
        try:
            fd = fs.open(f"{folder}/{METADATA}", READ)
            try:
                stats[METADATA] = found = fs.fstat(fd)
                value = decode_object(fs.pread(fd, found.st_size + 1, 0))
            finally:
                fs.close(fd)
            if value is not None:
                return value
        except OSError:
            pass  # the slow reader says what is wrong, and asks the backup
    elif METADATA + BACKUP not in names:
        return None
    stored = read_metadata(fs, folder, recovery_time="")
    problems += stored.problems
    return None if stored.value.get("recovered") else stored.value


def _beside(fs: Fs, folder: str, names: list[str], stats: dict[str, os.stat_result]) -> int:
    """Add the stats of the other files; the bytes of all files in folders."""
    total = 0
    for name in names:
        if name not in stats:
            path = f"{folder}/{name}"
            try:
                found = fs.lstat(path)
            except OSError:
                continue  # a temp file that was renamed meanwhile
            if stat.S_ISDIR(found.st_mode):
                total += _bytes_below(fs, path)
            else:
                stats[name] = found
    return total


def _bytes_below(fs: Fs, folder: str) -> int:
    stats: dict[str, os.stat_result] = {}
    below = _beside(fs, folder, fs.listdir(folder), stats)
    return below + sum(found.st_size for found in stats.values())


def _unusual(
    fs: Fs, folder: str, names: list[str], stats: dict[str, os.stat_result], messages: int, now: float
) -> Iterable[Problem]:
    """Findings that only a folder with more, or less, than the two healthy documents can give rise to."""
    if not _MAIN.issubset(names):
        yield from checking.absent_problems(folder, names)
    main = stats.get(TRANSCRIPT)
    if main is not None and main.st_size == 0:
        backup = stats.get(TRANSCRIPT + BACKUP)
        yield checking.empty_problem(f"{folder}/{TRANSCRIPT}", backup.st_size if backup else 0)
    if not checking.ORDINARY.issuperset(names):
        yield from checking.problems_beside(fs, folder, stats, messages=messages, now=now)
        yield from conflict_copies.problems(fs, folder, names, COPIED, os.path.basename(folder))
        from sessionary.disk import transaction  # here, since few sessions are unusual, and it loads much

        if transaction.UNDO in names:
            yield from checking.open_operation(fs, folder)


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None  # some file systems keep times of the year 10,000


def _mode(fs: Fs, path: str) -> int:
    try:
        return fs.stat(path).st_mode
    except OSError:
        return 0
