"""Checks of a session folder beyond the lines of its transcript.

Nothing here writes, and nothing reads more than file names, stats, small documents, and the end of a log.
Each problem states what was found and what to do; harmless findings are notes.
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
"""The files that the check of names ignores."""

_REQUIRED = {
    "session_id": "the name of the folder is used",
    "created": "lists use the time of the last change",
    "bundle": "amplifier writes none for sub-sessions",
}
LIVE_WRITER = 60.0

_KEPT = re.compile(r".+\.(before|conflict|corrupt|torn)-(?:[0-9T.Z-]+|[0-9a-f]{12})")


def metadata_problems(
    path: str, session_id: str, metadata: Mapping[str, Any], turns: int
) -> Iterator[Problem]:
    """Missing fields of metadata.json, and contradictions to its folder and its transcript."""
    for name, who in _REQUIRED.items():
        if name not in metadata and not (name == "bundle" and "profile" in metadata):
            yield note("missing_field", path, f"metadata.json has no {name}", f"none needed: {who}")
    stated = metadata.get("session_id")
    if stated is not None and stated != session_id:
        remedy = "if the folder was copied or renamed on purpose, write its name into metadata.json"
        yield note("id_differs", path, f"metadata.json has the session id {stated}", remedy)
    count = metadata.get("turn_count")
    if count is not None and count != turns:
        message = f"metadata.json counts {count} turns; there are {turns} user messages"
        yield note(
            "turn_count_differs",
            path,
            message,
            "none needed: amplifier also counts reminders and tool results",
        )


def absent_problems(folder: str, names: Sequence[str]) -> Iterator[Problem]:
    """The two documents of every saved session, and the meaning of a missing one."""
    if TRANSCRIPT not in names and placeholder_name(TRANSCRIPT) not in names:
        path = f"{folder}/{TRANSCRIPT}"
        if TRANSCRIPT + BACKUP in names:
            message = (
                "transcript.jsonl is missing, but its backup exists: the agent starts from that older copy"
            )
            remedy = "copy transcript.jsonl.backup to transcript.jsonl, or save the session once"
            yield Problem.of_file("no_transcript", Severity.stops_resume, path, message, remedy)
        else:
            message = "transcript.jsonl is missing: the session was never saved"
            yield note("no_transcript", path, message, "none needed, unless you know that it existed")
    if not {METADATA, METADATA + BACKUP, placeholder_name(METADATA)}.intersection(names):
        message = "metadata.json is missing: name, parent and date of the session are unknown"
        yield note("no_metadata", f"{folder}/{METADATA}", message, "the agent writes it at its next turn")


def empty_problem(path: str, backup_size: int) -> Problem:
    """A transcript of zero bytes: damage if there was more, else an empty session as written by amplifier."""
    if backup_size > 1:
        message = f"transcript.jsonl is empty, its backup has {backup_size} bytes: the effect of a power cut"
        remedy = "load and save the session once: this store reads the backup, amplifier does not"
        return Problem("zero_bytes", Severity.lost_data, path, None, 0, message, remedy)
    return note("empty_file", path, "transcript.jsonl is empty: a session without messages", "none needed")


def unreadable(path: str, error: OSError) -> Problem:
    """A file or folder that the system refuses to read."""
    message = f"cannot be read: {reason_of(error)}"
    return Problem.of_file(
        "unreadable_file", Severity.stops_resume, path, message, "check its owner and mode"
    )


def problems_beside(
    fs: Fs, folder: str, stats: Mapping[str, os.stat_result], *, messages: int, now: float
) -> Iterator[Problem]:
    """Other files of the folder: conflicts, copies kept by a repair, remains of killed writers.

    Args:
        stats: every file of the folder by its name.
        messages: number of readable records of the transcript.
        now: seconds since 1970; a temporary file younger than a minute may belong to a living writer.
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
        message = "the backup is a hard link to the same file, so it protects nothing"
        yield note(
            "backup_shares_file",
            path,
            message,
            "none needed: the next save that replaces the file creates a real one",
        )


def _kept_problem(kind: str, path: str, size: int) -> Problem:
    if kind == "conflict":
        message = "this version was replaced by another writer, and may have messages that no other file has"
        remedy = "read it with `sessionary show FILE`; delete it if the transcript has everything in it"
        return Problem("conflict_kept", Severity.hides_data, path, None, None, message, remedy, size)
    what = {"corrupt": "an unreadable file, or a piece of one", "before": "an earlier version"}.get(
        kind, "a truncated last line"
    )
    message = f"{size:,} bytes of {what}, kept when they were replaced"
    return note("kept_copy", path, message, "delete it when you no longer need it")


def _orphan(fs: Fs, path: str, size: int, messages: int) -> Problem:
    """The temporary file of a killed writer. One with more messages than the transcript has is worth keeping."""
    remedy = "delete it if the transcript has everything in it"
    whole = count_lines(fs, path) if "transcript" in os.path.basename(path) else 0
    if whole > messages:
        message = f"an unfinished save with {whole} complete messages; the transcript has {messages}"
        remedy = "read it with `sessionary show FILE`; " + remedy
        return Problem("orphan_temp", Severity.hides_data, path, None, None, message, remedy, size)
    message = f"{size:,} bytes left by a killed writer; nothing is missing"
    return Problem("orphan_temp", Severity.cosmetic, path, None, None, message, remedy, size)


def config_problems(fs: Fs, path: str) -> Iterator[Problem]:
    """Whether the snapshot of the configuration is text."""
    try:
        data = read_bytes(fs, path)
    except StorageFailed as error:
        yield Problem.of_file("unreadable_file", Severity.cosmetic, path, error.message, error.hint)
        return
    yield from text_problems(data or b"", path)


def lost_problems(fs: Fs, folder: str) -> Iterator[Problem]:
    """Notes on bytes that earlier repairs could not recover, as long as the replaced files are kept."""
    from sessionary.disk import transaction  # imported here: rarely needed, and slow to load

    try:
        entries = transaction.entries(fs, folder)
    except OSError:
        return  # reported by an undo
    for entry in entries:
        lost, lines = entry.facts.get("lost"), entry.facts.get("lost_lines")
        if entry.operation == "repair" and isinstance(lost, int) and lost > 0:
            where = ", ".join(map(str, lines)) if isinstance(lines, list) else "?"
            message = f"bytes that a repair could not recover: {lost:,} (of line {where} of the old file)"
            yield note("not_recovered", entry.path, message, "none; the old file is kept there")


def event_log_problems(fs: Fs, path: str) -> Iterator[Problem]:
    """The end of the event log, the only part of it that is checked here."""
    try:
        last = tail_heads(fs, path, 1)
    except NotFound:
        return
    except StorageFailed as error:
        yield Problem.of_file("unreadable_file", Severity.cosmetic, path, error.message, error.hint)
        return
    if last and not last[0].whole and not last[0].end.endswith(b"}"):
        message = f"the last event is truncated: {last[0].length:,} bytes without a line end"
        remedy = "none needed: the next append ends that line, and readers skip it"
        yield Problem("torn_event", Severity.note, path, None, last[0].byte, message, remedy, last[0].length)


def open_operation(fs: Fs, folder: str) -> Iterator[Problem]:
    """An unfinished operation over several files: its process died, or is still running.

    Nothing is lost, and an agent can read each file. But until the next writer has finished it, lines of the
    log that are to be removed still exist, and metadata may be of the other state: the files do not form one
    state.
    """
    from sessionary.disk import transaction  # imported here: rarely needed, and slow to load

    path = f"{folder}/{transaction.UNDO}/{transaction.OPEN}"
    try:
        found = transaction.open_intent(fs, folder)
    except OSError as error:
        yield unreadable(path, error)
        return
    if found is None:
        return
    operation, committed = found
    remedy = "none needed: the next writer, or `sessionary repair`, finishes it"
    if committed:
        message = f"the last {operation} was interrupted, and has to be finished"
        yield Problem.of_file("open_intent", Severity.hides_data, path, message, remedy)
    else:
        message = f"a {operation or 'change'} was interrupted before any change, and has to be cleaned up"
        yield note("open_intent", path, message, remedy)


def note(code: str, path: str, message: str, remedy: str | None) -> Problem:
    """A note: informational, not damage."""
    return Problem.of_file(code, Severity.note, path, message, remedy)
