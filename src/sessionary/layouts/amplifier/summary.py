"""From a session folder to its summary, in as few system calls as the answer allows.

A list of ten thousand sessions is read more often than anything else, and nearly all of them are small and healthy.
So one look at the folder's names decides what is read, sizes and times come from descriptors that are open anyway,
and whatever is unusual takes a way of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.codec.times import parse_time
from sessionary.disk.fs import READ, Fs
from sessionary.layouts import conflict_copies
from sessionary.layouts.amplifier import checking
from sessionary.layouts.amplifier.conversation import Conversation, read_conversation
from sessionary.layouts.amplifier.files import BACKUP, COPIED, METADATA, NO_ACTIVITY, TRANSCRIPT
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.clock import AHEAD, FUTURE_REMEDY, ahead_message, changed_at, is_ahead
from sessionary.model import Problem, SessionRef, Severity, Summary, health

AGENT = "amplifier"
TITLE = 200

_MAIN = frozenset({TRANSCRIPT, METADATA})


def is_session(fs: Fs, folder: str, names: Iterable[str]) -> bool:
    """True if the folder holds a file that is not hidden, or the placeholder of a file of a session.

    Empty folders, and those of locks alone, are no sessions.
    """
    if TRANSCRIPT in names or METADATA in names:
        return True
    names = list(names)
    if any(not name.startswith(".") and stat.S_ISREG(_mode(fs, f"{folder}/{name}")) for name in names):
        return True
    return bool(conflict_copies.placeholders_in(names, COPIED))


def look(fs: Fs, ref: SessionRef, names: list[str], now: float, *, thorough: bool = False) -> Summary:
    """The summary of the session whose folder holds `names`.

    Raises:
        OSError: the folder is gone, or cannot be looked into.
    """
    folder = ref.locator
    stats: dict[str, os.stat_result] = {}
    problems: list[Problem] = []
    place = fs.stat(folder)
    talk = _conversation(fs, folder, names, stats, problems, thorough)
    metadata = _metadata(fs, folder, names, stats, problems)
    messages, turns, title = (talk.messages, talk.turns, talk.title) if talk else (0, 0, None)
    if metadata is None:
        metadata = {}
    elif not checking.agrees(metadata, ref.session_id, turns):
        problems += checking.metadata_problems(f"{folder}/{METADATA}", ref.session_id, metadata, turns)
    below = 0
    if len(stats) < len(names) or not messages:
        below = _beside(fs, folder, names, stats)
        problems += _unusual(fs, folder, names, stats, messages, now)
    count = metadata.get("turn_count")
    updated = talk.newest if talk else None
    if updated is None or is_ahead(updated, now):
        updated = _by_files(folder, place, stats, updated, now, problems)
    return Summary(
        ref,
        AGENT,
        _title(metadata.get("name")) or _title(title),
        _text(metadata.get("parent_id")),
        messages,
        turns,
        count if type(count) is int else None,
        _time(metadata.get("created")),
        updated,
        below + sum([found.st_size for found in stats.values()]),
        health(problems) if problems else "ok",
        problems,
    )


def _by_files(
    folder: str,
    place: os.stat_result,
    stats: dict[str, os.stat_result],
    said: datetime | None,
    now: float,
    problems: list[Problem],
) -> datetime | None:
    """When a session changed last by the times of its files, as its messages do not tell; None if these do not either.

    A time after the clock is reported and does not count.
    """
    if said is not None:
        message = ahead_message("the newest message", said)
        problems.append(
            Problem(
                "future_time", Severity.note, f"{folder}/{TRANSCRIPT}", None, None, message, FUTURE_REMEDY
            )
        )
    found = [place, *[stats[name] for name in stats if name not in NO_ACTIVITY]]
    newest = max([each.st_mtime for each in found])
    if newest > now + AHEAD:
        told = _moment(newest)
        message = ahead_message("a file", told) if told else "a file has an impossible year"
        problems.append(Problem("future_time", Severity.note, folder, None, None, message, FUTURE_REMEDY))
        newest = max([changed_at(now, each.st_mtime, each.st_ctime) for each in found])
    return _moment(newest) if newest else None


def unreadable_summary(ref: SessionRef, error: OSError) -> Summary:
    """What a list shows of a folder that cannot be looked into: that it is there, and why nothing more is said."""
    problems = [checking.unreadable(ref.locator, error)]
    return Summary(ref, AGENT, None, None, 0, 0, None, None, None, 0, health(problems), problems)


def _conversation(
    fs: Fs,
    folder: str,
    names: list[str],
    stats: dict[str, os.stat_result],
    problems: list[Problem],
    thorough: bool,
) -> Conversation | None:
    if TRANSCRIPT not in names:
        return None
    path = f"{folder}/{TRANSCRIPT}"
    try:
        talk = read_conversation(fs, path, strict=True, thorough=thorough)
    except OSError as error:
        problems.append(checking.unreadable(path, error))
        return None
    stats[TRANSCRIPT] = talk.found
    problems += talk.problems
    return talk


def _metadata(
    fs: Fs, folder: str, names: list[str], stats: dict[str, os.stat_result], problems: list[Problem]
) -> dict[str, Any] | None:
    """The document; where it is bad or missing, its backup; None where there is neither."""
    if METADATA in names:
        try:
            fd = fs.open(f"{folder}/{METADATA}", READ)
            try:
                stats[METADATA] = found = fs.fstat(fd)
                value = decode(fs.pread(fd, found.st_size + 1, 0))
            finally:
                fs.close(fd)
            if type(value) is dict:
                return value
        except (OSError, Undecodable):
            pass  # the slow reader says what is wrong, and asks the backup
    elif METADATA + BACKUP not in names:
        return None
    stored = read_metadata(fs, folder, recovery_time="")
    problems += stored.problems
    return None if stored.value.get("recovered") else stored.value


def _beside(fs: Fs, folder: str, names: list[str], stats: dict[str, os.stat_result]) -> int:
    """Add the stats of the other files; the bytes of all that lies in folders."""
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


def _title(text: Any) -> str | None:
    """A text as a title: each run of blanks as one, and an ellipsis for what is more than anybody reads."""
    if not isinstance(text, str):
        return None
    words = text[:TITLE]
    if not words.isprintable() or "  " in words:
        words = " ".join(words.split())
    return words.strip() + ("…" if len(text) > TITLE else "") or None


def _time(value: Any) -> datetime | None:
    """As `parse_time`, with a short way for the spelling that nearly all sessions have."""
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return parse_time(value)
    return time if time.tzinfo is UTC else parse_time(value)


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None  # some file systems keep times of the year 10,000


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _mode(fs: Fs, path: str) -> int:
    try:
        return fs.stat(path).st_mode
    except OSError:
        return 0
