"""Read a session's two documents, with their backups, without writing.

The main file is used whenever it has any readable content. The backup is used in two cases only: the main
file is missing, empty by accident or completely unreadable; or a damaged part is between two lines that the
backup has too, with lines in between. The original store used the backup at the first bad byte, and lost
every message newer than it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sessionary.codec import Reading, Undecodable, decode, decode_object, read_lines
from sessionary.codec.conflicts import REMEDY, first_marker, sides
from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, METADATA, TRANSCRIPT
from sessionary.model import Problem, Severity

SURROUNDINGS = 200
CONFLICT = "conflict_marker"


@dataclass(slots=True)
class StoredTranscript:
    """The result of reading transcript.jsonl.

    Attributes:
        values: the messages, oldest first.
        raws: the bytes of their lines, parallel to `values`.
        problems: everything that was skipped, odd or recovered.
        source: ``main``, ``backup``, or None if neither has content.
        intact: the main file can be appended to: every line of it is readable to a strict reader, except a
        truncated last one.
        torn: the only damage is after the last newline.
        size: bytes of the main file; -1 if missing.
    """

    values: list[dict[str, Any]] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    source: str | None = None
    intact: bool = True
    size: int = -1
    torn: bool = False

    @property
    def damaged(self) -> bool:
        """The main file has more damage than a truncated tail: it must not become the backup."""
        return not self.torn and any(problem.severity > Severity.note for problem in self.problems)


@dataclass(slots=True)
class StoredMetadata:
    """The result of reading metadata.json. `data` are the bytes of the main file, None if missing."""

    value: dict[str, Any]
    problems: list[Problem]
    data: bytes | None
    readable: bool


def read_transcript(fs: Fs, folder: str, *, to_write: bool = False) -> StoredTranscript:
    """The conversation of a session, from the main file and, if needed, its backup.

    With `to_write` a file that the system refuses to read is an error: a write would otherwise be based on an
    older copy, and replace content that may be readable a moment later.

    Raises:
        StorageFailed: neither copy could be read, or `to_write` and the main file could not.
    """
    path = os.path.join(folder, TRANSCRIPT)
    problems: list[Problem] = []
    main = read_bytes(fs, path) if to_write else _bytes_or_problem(fs, path, problems)
    size = -1 if main is None else len(main)
    if main and not main.isspace():  # strip would copy it all
        reading = read_lines(main, path)
        if reading.values or _is_empty_and_torn(main):
            return _from_main(fs, path, reading, size)
        problems += reading.problems
    elif main:
        return StoredTranscript(source="main", size=size)  # deliberately blank: an empty conversation
    return _from_backup(fs, path, problems, size, to_write)


def _is_empty_and_torn(main: bytes) -> bool:
    """An empty conversation (one newline) followed by an interrupted append: the backup is not needed."""
    return main.startswith(b"\n") and main.find(b"\n", 1) < 0


def _from_main(fs: Fs, path: str, reading: Reading, size: int) -> StoredTranscript:
    stored = StoredTranscript(reading.values, reading.raws, reading.problems, "main", True, size)
    if reading.strict:
        return stored
    damaged = [problem for problem in reading.problems if problem.severity > Severity.note]
    # After the last newline are the remains of an interrupted append: half a line, or NULs for bytes never
    # written.
    only_torn = bool(damaged) and all((problem.byte or 0) >= reading.end for problem in damaged)
    stored.torn = only_torn
    # A byte order mark is harmless here, but it stops strict readers: such a file is replaced, not appended
    # to.
    stored.intact = only_torn and not any(problem.code == "bom" for problem in reading.problems)
    gaps = [problem for problem in damaged if problem.severity > Severity.cosmetic]
    if gaps and not only_torn:
        backup = _bytes_or_problem(fs, path + BACKUP, stored.problems)
        if backup:
            _fill(stored, reading, gaps, read_lines(backup, path + BACKUP))
    return stored


def one_line(raw: bytes) -> bytes:
    """The line of a record that every reader accepts: a carriage return between its tokens becomes a blank."""
    return raw.replace(b"\r", b" ") if b"\r" in raw else raw


def _from_backup(fs: Fs, path: str, problems: list[Problem], size: int, to_write: bool) -> StoredTranscript:
    backup = read_bytes(fs, path + BACKUP) if to_write else _bytes_or_problem(fs, path + BACKUP, problems)
    if backup and backup.strip():
        reading = read_lines(backup, path + BACKUP)
        if reading.values:
            why = {-1: "is missing", 0: "is empty"}.get(size, "has no readable message")
            words = f"{TRANSCRIPT} {why}; {len(reading.values)} messages were read from its backup"
            remedy = "the next save restores them"
            problems.append(Problem.of_file("recovered_backup", Severity.lost_data, path, words, remedy))
            return StoredTranscript(reading.values, reading.raws, problems, "backup", False, size)
    if size == 0:
        words = f"{TRANSCRIPT} is empty: a session without messages"
        problems.append(Problem("empty_file", Severity.note, path, None, 0, words, None))
    return StoredTranscript(
        problems=problems, source="main" if size >= 0 else None, intact=size <= 0, size=size
    )


def _fill(stored: StoredTranscript, reading: Reading, damaged: list[Problem], backup: Reading) -> None:
    """Restore what the backup has between the two neighbours of a damaged part."""
    starts = [record.byte for record in reading.records()]
    after_each: dict[int, Problem] = {}
    for problem in damaged:
        before = sum(1 for start in starts if start < (problem.byte or 0))
        after_each.setdefault(before, problem)
    values: list[dict[str, Any]] = []
    raws: list[bytes] = []
    for place in range(len(reading.raws) + 1):
        if place in after_each:
            first, last = between(backup.raws, reading.raws, place)
            values += backup.values[first:last]
            raws += backup.raws[first:last]
            if last > first:
                stored.problems.append(_filled(after_each[place], last - first))
        if place < len(reading.raws):
            values.append(reading.values[place])
            raws.append(reading.raws[place])
    stored.values, stored.raws = values, raws


def between(backup: list[bytes], main: list[bytes], place: int) -> tuple[int, int]:
    """The slice of the backup between lines `place - 1` and `place` of the main file; empty if ambiguous.

    Equal lines may occur in many places ("ok", "yes"), so the place in the backup is the one whose
    surroundings agree the longest with those of the gap; if two agree equally, nothing is restored.
    """
    if place >= len(main):
        return 0, 0  # nothing after the damage: the backup may be older than the lost data
    first = _best(
        [
            at
            for at in range(len(backup) + 1)
            if (at == 0 if place == 0 else at > 0 and backup[at - 1] == main[place - 1])
        ],
        lambda at: _agreement(reversed(backup[:at]), reversed(main[:place])),
    )
    if first is None:
        return 0, 0
    last = _best(
        [at for at in range(first, len(backup)) if backup[at] == main[place]],
        lambda at: _agreement(iter(backup[at:]), iter(main[place:])),
    )
    return (0, 0) if last is None else (first, last)


def _best(places: list[int], agreement: Callable[[int], float]) -> int | None:
    """The place with the greatest agreement, if it is unique."""
    ranked = sorted(((agreement(at), at) for at in places), reverse=True)
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]


def _agreement(backup: Iterator[bytes], main: Iterator[bytes]) -> float:
    """The number of equal lines from the gap outwards; one more if both end there."""
    for count in range(SURROUNDINGS):
        ours, theirs = next(backup, None), next(main, None)
        if ours is None and theirs is None:
            return count + 1
        if ours != theirs:
            return count
    return SURROUNDINGS


def _filled(problem: Problem, count: int) -> Problem:
    words = f"messages read from the backup in place of the damaged part: {count}"
    remedy = "the next save restores them"
    place = problem.path, problem.line, problem.byte
    return Problem("filled_from_backup", Severity.note, *place, words, remedy)


def read_metadata(fs: Fs, folder: str, *, recovery_time: str, to_write: bool = False) -> StoredMetadata:
    """The metadata of a session: the main file, else its backup, else only the id."""
    path = os.path.join(folder, METADATA)
    problems: list[Problem] = []
    main = read_bytes(fs, path) if to_write else _bytes_or_problem(fs, path, problems)
    value = object_in(main, path, problems)
    if value is not None:
        return StoredMetadata(value, problems, main, not problems)
    backup = read_bytes(fs, path + BACKUP) if to_write else _bytes_or_problem(fs, path + BACKUP, problems)
    if main is None and backup is None and not problems:
        return StoredMetadata({}, problems, None, True)
    value = object_in(backup, path + BACKUP, problems)
    if value is None:
        value = {"session_id": os.path.basename(folder), "recovered": True, "recovery_time": recovery_time}
        message = f"{METADATA} and its backup are unreadable; only the id is known"
    else:
        message = f"{METADATA} is {'missing' if main is None else 'unreadable'}; its backup was read"
    problems.append(
        Problem.of_file("recovered_metadata", Severity.lost_data, path, message, "the next save rebuilds it")
    )
    return StoredMetadata(value, problems, main, main is None)


def object_in(data: bytes | None, path: str, problems: list[Problem]) -> dict[str, Any] | None:
    """The JSON object in these bytes; None if there is none, with the reason in `problems`."""
    if data is None:
        return None
    try:
        value = decode(data)
    except Undecodable as error:
        marker = first_marker(data) if error.code == CONFLICT else None
        if marker is not None:
            line, byte, words = marker
            problems.append(Problem(CONFLICT, Severity.hides_data, path, line, byte, words, REMEDY))
            return _of_both_sides(data)
        at, words = error.at, f"not a JSON document: {error}"
    else:
        if isinstance(value, dict):
            return value
        at, words = 0, f"a JSON {type(value).__name__} instead of an object"
    problems.append(Problem("bad_metadata", Severity.hides_data, path, None, at, words, None))
    return None


def _of_both_sides(data: bytes) -> dict[str, Any] | None:
    """The fields of a document with a merge conflict: those of both sides, of the first where they differ."""
    fields: dict[str, Any] | None = None
    for side in reversed(sides(data) or ()):
        if (value := decode_object(side)) is not None:
            fields = {**(fields or {}), **value}
    return fields


def _bytes_or_problem(fs: Fs, path: str, problems: list[Problem]) -> bytes | None:
    """The bytes of a file; one that the system refuses to read counts as damaged, so that its backup is used."""
    try:
        return read_bytes(fs, path)
    except StorageFailed as error:
        problems.append(
            Problem.of_file("unreadable_file", Severity.stops_resume, path, error.message, error.hint)
        )
        return None
