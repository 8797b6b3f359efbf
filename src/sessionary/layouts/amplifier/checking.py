"""What is not as it should be in a session folder, beyond the lines of its transcript.

Nothing here writes, and nothing here reads more than a file name, a stat, a small document, or the end of a log.
Each finding says in plain words what is there and what can be done; what an ordinary user need not act on is a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionary.codec.problems import text_problems
from sessionary.disk.fs import Fs, placeholder_name, read_bytes, reason_of
from sessionary.disk.line_reader import count_lines, tail_heads
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, CONFIG, EVENTS, LOCK, METADATA, TEMP, TRANSCRIPT
from sessionary.model import Problem, Severity

ORDINARY = frozenset({LOCK, TRANSCRIPT, METADATA, EVENTS, CONFIG})
"""The files about which a look at the names has nothing to say."""

_REQUIRED = {
    "session_id": "the name of the folder counts",
    "created": "lists go by the time of the last change",
    "bundle": "the original writes none for sub-sessions",
}
LIVE_WRITER = 60.0

_KEPT = re.compile(r".+\.(before|conflict|corrupt|torn)-(?:[0-9T.Z-]+|[0-9a-f]{12})")


def agrees(metadata: Mapping[str, Any], session_id: str, turns: int) -> bool:
    """True if `metadata_problems` would find nothing: the usual case, told in the shortest way."""
    return (
        metadata.get("session_id") == session_id
        and metadata.get("turn_count", turns) == turns
        and "created" in metadata
        and "bundle" in metadata
    )


def metadata_problems(
    path: str, session_id: str, metadata: Mapping[str, Any], turns: int
) -> Iterator[Problem]:
    """What metadata.json lacks, or says differently from its folder and its transcript."""
    for name, who in _REQUIRED.items():
        if name not in metadata and not (name == "bundle" and "profile" in metadata):
            yield note("missing_field", path, f"metadata.json has no {name}", f"none needed: {who}")
    stated = metadata.get("session_id")
    if stated is not None and stated != session_id:
        remedy = "if the folder was copied or renamed on purpose, write its name into metadata.json"
        yield note("id_differs", path, f"metadata.json says that this is session {stated}", remedy)
    count = metadata.get("turn_count")
    if count is not None and count != turns:
        message = f"metadata.json counts {count} turns; a person spoke {turns} times"
        yield note(
            "turn_count_differs",
            path,
            message,
            "none needed: the original counts reminders and tool results as well",
        )


def absent_problems(folder: str, names: Sequence[str]) -> Iterator[Problem]:
    """The two documents that every saved session has, and what it means that one is not there."""
    if TRANSCRIPT not in names and placeholder_name(TRANSCRIPT) not in names:
        path = f"{folder}/{TRANSCRIPT}"
        if TRANSCRIPT + BACKUP in names:
            message = (
                "transcript.jsonl is missing, and its backup is there: the agent starts from that older copy"
            )
            remedy = "copy transcript.jsonl.backup to transcript.jsonl, or save the session once"
            yield Problem("no_transcript", Severity.stops_resume, path, None, None, message, remedy)
        else:
            message = (
                "there is no transcript.jsonl: the session ended before its first save, or has not begun"
            )
            yield note("no_transcript", path, message, "none needed, unless you know that there was one")
    if not {METADATA, METADATA + BACKUP, placeholder_name(METADATA)}.intersection(names):
        message = "there is no metadata.json: name, parent and date of the session are unknown"
        yield note("no_metadata", f"{folder}/{METADATA}", message, "the agent writes it at its next turn")


def empty_problem(path: str, backup_size: int) -> Problem:
    """A transcript of zero bytes: damage if there was more, else an empty session as the original writes it."""
    if backup_size > 1:
        message = f"transcript.jsonl has no bytes, its backup has {backup_size}: a power cut does this"
        remedy = "load and save the session once: the store reads the backup, the original agent would not"
        return Problem("zero_bytes", Severity.lost_data, path, None, 0, message, remedy)
    return note("empty_file", path, "transcript.jsonl has no bytes: an empty session", "none needed")


def unreadable(path: str, error: OSError) -> Problem:
    """A file or folder that the system refuses to read."""
    message = f"cannot be read: {reason_of(error)}"
    return Problem(
        "unreadable_file", Severity.stops_resume, path, None, None, message, "check its owner and mode"
    )


def problems_beside(
    fs: Fs, folder: str, stats: Mapping[str, os.stat_result], *, messages: int, now: float
) -> Iterator[Problem]:
    """What lies beside the files of the session: conflicts, copies kept by a repair, leftovers of killed writers.

    Args:
        fs: the file system.
        folder: the session's folder.
        stats: every file of the folder by its name.
        messages: the readable records of the transcript.
        now: seconds since 1970; a temp file younger than a minute may belong to a writer that lives.
    """
    for name in sorted(stats):
        path = f"{folder}/{name}"
        if name.endswith(BACKUP):
            yield from _backup_problems(path, stats[name], stats.get(name.removesuffix(BACKUP)))
        elif kept := _KEPT.fullmatch(name):
            yield _kept_problem(kept[1], path, stats[name].st_size)
        elif TEMP.fullmatch(name) and now - stats[name].st_mtime > LIVE_WRITER:
            yield _orphan(fs, path, stats[name].st_size, messages)


def _backup_problems(path: str, backup: os.stat_result, main: os.stat_result | None) -> Iterator[Problem]:
    if main is not None and (backup.st_dev, backup.st_ino) == (main.st_dev, main.st_ino):
        message = "the backup is the same file under a second name, so it guards nothing"
        yield note(
            "backup_shares_file",
            path,
            message,
            "none needed: the next save that replaces the file makes a true one",
        )


def _kept_problem(kind: str, path: str, size: int) -> Problem:
    if kind == "conflict":
        message = (
            "two writers disagreed: this version was displaced, and may hold messages that no other file has"
        )
        remedy = (
            "read it with `sessionary show FILE`; delete it when nothing in it is missing from the transcript"
        )
        return Problem("conflict_kept", Severity.hides_data, path, None, None, message, remedy, size)
    what = {"corrupt": "an unreadable file, or a piece of one", "before": "an earlier version"}.get(
        kind, "a torn last line"
    )
    message = f"{size:,} bytes of {what}, set aside before they were replaced"
    return note("kept_copy", path, message, "delete it when you no longer need it")


def _orphan(fs: Fs, path: str, size: int, messages: int) -> Problem:
    """A temp file whose writer was killed. One with more messages than the transcript is more than litter."""
    remedy = "delete it when nothing in it is missing from the transcript"
    whole = count_lines(fs, path) if "transcript" in os.path.basename(path) else 0
    if whole > messages:
        message = f"an unfinished save: {whole} whole messages, where the transcript has {messages}"
        remedy = "read it with `sessionary show FILE`; " + remedy
        return Problem("orphan_temp", Severity.hides_data, path, None, None, message, remedy, size)
    message = f"{size:,} bytes left behind by a writer that was killed; nothing of it is missing elsewhere"
    return Problem("orphan_temp", Severity.cosmetic, path, None, None, message, remedy, size)


def config_problems(fs: Fs, path: str) -> Iterator[Problem]:
    """Whether the snapshot of the configuration is text."""
    try:
        data = read_bytes(fs, path)
    except StorageFailed as error:
        yield Problem("unreadable_file", Severity.cosmetic, path, None, None, error.message, error.hint)
        return
    yield from text_problems(data or b"", path)


def lost_problems(fs: Fs, folder: str) -> Iterator[Problem]:
    """What earlier repairs could not bring back, as long as what they replaced is kept."""
    from sessionary.disk import transaction  # here, since few sessions have one, and it loads much

    try:
        entries = transaction.entries(fs, folder)
    except OSError:
        return  # whoever wants to undo something is told
    for entry in entries:
        lost, lines = entry.facts.get("lost"), entry.facts.get("lost_lines")
        if entry.operation == "repair" and isinstance(lost, int) and lost > 0:
            where = ", ".join(map(str, lines)) if isinstance(lines, list) else "?"
            message = f"a repair could not bring back {lost:,} byte(s) (of line {where} of the old file)"
            yield note("not_recovered", entry.path, message, "none is known; the old file is kept there")


def event_log_problems(fs: Fs, path: str) -> Iterator[Problem]:
    """The end of the event log, the only part of it that is ever looked at here."""
    try:
        last = tail_heads(fs, path, 1)
    except NotFound:
        return
    except StorageFailed as error:
        yield Problem("unreadable_file", Severity.cosmetic, path, None, None, error.message, error.hint)
        return
    if last and not last[0].whole and not last[0].end.endswith(b"}"):
        message = f"the last event is torn: {last[0].length:,} bytes without an end"
        remedy = "none needed: the next append ends that line, and readers skip it"
        yield Problem("torn_event", Severity.note, path, None, last[0].byte, message, remedy, last[0].length)


def open_operation(fs: Fs, folder: str) -> Iterator[Problem]:
    """An operation over several files that was begun and not finished: its process died, or is at work just now.

    Nothing is lost, and an agent reads each file without trouble. But until the next writer has finished it, lines of
    the log that are to be gone are there, and metadata may be of the other state: what is shown is not one session.
    """
    from sessionary.disk import transaction  # here, since hardly any session has one, and it loads much

    path = f"{folder}/{transaction.UNDO}/{transaction.OPEN}"
    try:
        found = transaction.open_intent(fs, folder)
    except OSError as error:
        yield unreadable(path, error)
        return
    if found is None:
        return
    operation, committed = found
    remedy = "none needed: the next writer of the session does it, `sessionary repair` too"
    if committed:
        message = f"the last {operation} was cut off half way, and is to be finished"
        yield Problem("open_intent", Severity.hides_data, path, None, None, message, remedy)
    else:
        message = (
            f"a {operation or 'change'} was cut off before it changed anything, and is to be cleared away"
        )
        yield note("open_intent", path, message, remedy)


def note(code: str, path: str, message: str, remedy: str | None) -> Problem:
    """Worth knowing, and nothing is wrong."""
    return Problem(code, Severity.note, path, None, None, message, remedy)
