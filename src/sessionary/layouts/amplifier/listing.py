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
from sessionary.disk.fs import READ, Fs
from sessionary.layouts.amplifier import checking
from sessionary.layouts.amplifier.conversation import Conversation, read_conversation
from sessionary.layouts.amplifier.messages import parse_time
from sessionary.layouts.amplifier.recovery import BACKUP, METADATA, TRANSCRIPT, read_metadata
from sessionary.model import Problem, SessionRef, Summary, health

AGENT = "amplifier"
TITLE = 200

_MAIN = frozenset({TRANSCRIPT, METADATA})


def is_session(fs: Fs, folder: str, names: Iterable[str]) -> bool:
    """True if the folder holds a file that is not hidden: empty folders, and those of locks alone, are strangers."""
    if TRANSCRIPT in names or METADATA in names:
        return True
    return any(not name.startswith(".") and stat.S_ISREG(_mode(fs, f"{folder}/{name}")) for name in names)


def summarize(
    fs: Fs, ref: SessionRef, folder: str, names: list[str], now: float, *, thorough: bool = False
) -> Summary:
    """What a list shows of the session in `folder`, whose entries are `names`.

    Raises:
        OSError: the folder is gone, or cannot be looked into.
    """
    stats: dict[str, os.stat_result] = {}
    problems: list[Problem] = []
    updated = fs.stat(folder).st_mtime
    talk = _conversation(fs, folder, names, stats, problems, thorough)
    metadata = _metadata(fs, folder, names, stats, problems)
    size = 0
    for found in stats.values():
        size += found.st_size
        if found.st_mtime > updated:
            updated = found.st_mtime
    messages, turns, title = (talk.messages, talk.turns, talk.title) if talk else (0, 0, None)
    if metadata is None:
        metadata = {}
    elif not checking.agrees(metadata, ref.session_id, turns):
        problems += checking.metadata_problems(f"{folder}/{METADATA}", ref.session_id, metadata, turns)
    if len(stats) < len(names) or not messages:
        size += _beside(fs, folder, names, stats)
        problems += _unusual(fs, folder, names, stats, messages, now)
    count = metadata.get("turn_count")
    return Summary(
        ref,
        AGENT,
        _title(metadata.get("name")) or _title(title),
        _text(metadata.get("parent_id")),
        messages,
        turns,
        count if type(count) is int else None,
        _time(metadata.get("created")),
        _moment(updated),
        size,
        health(problems),
        problems,
    )


def unreadable_summary(ref: SessionRef, folder: str, error: OSError) -> Summary:
    """What a list shows of a folder that cannot be looked into: that it is there, and why nothing more is said."""
    problems = [checking.unreadable(folder, error)]
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
    """The bytes of the other files, whose stats are added; folders count with all that is in them."""
    total = 0
    for name in names:
        if name not in stats:
            path = f"{folder}/{name}"
            try:
                found = fs.lstat(path)
            except OSError:
                continue  # a temp file that was renamed meanwhile
            if stat.S_ISDIR(found.st_mode):
                total += _beside(fs, path, fs.listdir(path), {})
            else:
                stats[name] = found
                total += found.st_size
    return total


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
