"""Read a transcript in one pass and bounded memory: its records, counts and damage.

The file is read in windows that end at a newline, so a transcript of any size needs the memory of one window,
or of its longest line if that is longer, and some bytes for each message. Nothing is locked. A writer in the
middle of a long append shows as a truncated last line; the file is then read again before a loss is reported.

Duplicate records are searched only if the times of the messages allow for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from operator import lt
from os import stat_result
from typing import Any

from stringzilla import count

from sessionary.codec import Reading, for_strict_reader, read_lines
from sessionary.codec.lines import Known
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk.fs import READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.layouts.jsonl import window, windows
from sessionary.model import PERSON, Entry, FileCursor, Place, Problem, Severity
from sessionary.transcript.diagnosis import Diagnosis, Finding, shape_findings
from sessionary.transcript.typed import typed_message

WINDOW = 1 << 18
WIDE_WINDOW = 2 << 20  # for windows with damage
TIMED = 64
"""Number of last messages that are searched for the newest time: some programs write none."""
TAIL = 1 << 14
LOOKS = 3  # how often a truncated tail that still grows is read again


@dataclass(slots=True)
class Conversation:
    """The result of one pass over a transcript.

    Attributes:
        found: the stat of the file that was read.
        messages: its readable records.
        turns: number of user messages.
        title: the first user text, not yet shortened; None if there is none.
        newest: the time of the last message that has one; None if none of the last ones has.
        problems: damage, and then the findings of `transcript.diagnose` in the rest.
    """

    found: stat_result
    messages: int = 0
    turns: int = 0
    title: str | None = None
    newest: datetime | None = None
    problems: list[Problem] = field(default_factory=list)


def read_conversation(fs: Fs, path: str, *, strict: bool = False, thorough: bool = False) -> Conversation:
    """Read a transcript once.

    Args:
        fs: the file system.
        path: the file.
        strict: the owner refuses the file for one bad line, so each such line stops a resume; and the file
        holds only messages, so one without a role does, too.
        thorough: also search for duplicate records.

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: it cannot be read.
    """
    fd = fs.open(path, READ)
    try:
        conversation, torn = _read(fs, fd, path, strict, thorough)
        for _ in range(1, LOOKS):
            if not torn or fs.fstat(fd).st_size == conversation.found.st_size:
                break
            conversation, torn = _read(fs, fd, path, strict, thorough)
        return conversation
    finally:
        fs.close(fd)


def not_json_lines(fs: Fs, path: str) -> Problem | None:
    """The problem of a file without any record that is not JSON Lines; None if it may be a damaged one.

    Most lines of a damaged file begin as a record does. Zeros in place of all bytes reveal nothing about the content.

    Raises:
        OSError: the file cannot be read.
    """
    fd = fs.open(path, READ)
    try:
        size = fs.fstat(fd).st_size
        lines = [line for line in read_at(fs, fd, WINDOW, 0).split(b"\n") if line.strip(b" \t\r\0")]
    finally:
        fs.close(fd)
    like_records = sum(line.lstrip(b" \t\xef\xbb\xbf").startswith(b"{") for line in lines)
    if not lines or 2 * like_records >= len(lines):
        return None
    what = "the file is not JSON Lines: no line of it is a JSON object"
    remedy = "name a session, or a file with one JSON object per line"
    return Problem("not_text", Severity.hides_data, path, None, 0, what, remedy, size)


def _read(fs: Fs, fd: int, path: str, strict: bool, thorough: bool) -> tuple[Conversation, bool]:
    """The current conversation, and whether its last line is truncated."""
    found = require_regular(fs.fstat(fd))
    if found.st_size == 1 and fs.pread(fd, 2, 0) == b"\n":
        return Conversation(found), False  # an empty conversation, as written by our store
    talk, diagnosis, times = Conversation(found), Diagnosis(), _Times()
    findings: list[Finding] = []
    torn = False
    for reading in _readings(fs, fd, path, found.st_size):
        talk.problems += for_strict_reader(reading.problems) if strict else reading.problems
        torn = reading.torn
        for record in reading.records():
            message = typed_message(record.value, Place(path, record.line, record.byte))
            findings += shape_findings(record.value, diagnosis.messages, message.place)
            diagnosis.take(message)
            if message.origin == PERSON:
                talk.turns += 1
                talk.title = talk.title or message.text.lstrip() or None
        talk.newest = newest_time(reading.values) or talk.newest
        if thorough:
            times.take(reading.values)
    talk.messages = diagnosis.messages
    if thorough and not times.differ:
        talk.problems += _repeats(fs, fd, path, found.st_size)
    findings = sorted([*findings, *diagnosis.findings()], key=lambda finding: finding.index)
    talk.problems += [_problem(each, strict) for each in findings if strict or each.code not in _OF_MESSAGES]
    return talk, torn


def newest_time(values: Sequence[dict[str, Any]]) -> datetime | None:
    """The time of the last of these messages that has one, searched among the last `TIMED`."""
    for place in range(len(values) - 1, max(len(values) - TIMED, 0) - 1, -1):
        time = parse_time(timestamp_of(values[place]))
        if time is not None:
            return time
    return None


def last_time(fs: Fs, path: str) -> datetime | None:
    """As `Conversation.newest`, from the end of the file alone; None also if it cannot be read."""
    try:
        fd = fs.open(path, READ)
        try:
            size = require_regular(fs.fstat(fd)).st_size
            data = read_at(fs, fd, min(size, TAIL), max(0, size - TAIL))
        finally:
            fs.close(fd)
    except OSError:
        return None
    return newest_time(read_lines(data if size <= TAIL else data[data.find(b"\n") + 1 :]).values)


class _Times:
    """Whether records can be duplicates: not if the time of each is later than the last one, and none has an id.

    Attributes:
        differ: they cannot be.
    """

    def __init__(self) -> None:
        self.differ = True
        self._last: list[Any] = []  # the latest time so far

    def take(self, values: list[dict[str, Any]]) -> None:
        """Add the next records of the file."""
        if self.differ:
            times = self._last + [value["timestamp"] for value in values if "timestamp" in value]
            self.differ = _ascend(times) and not any("id" in value or "uuid" in value for value in values)
            self._last = times[-1:]


def _ascend(times: list[Any]) -> bool:
    try:
        return all(map(lt, times, islice(times, 1, None)))
    except TypeError:
        return False  # they are of several types


def _repeats(fs: Fs, fd: int, path: str, size: int) -> list[Problem]:
    """A note for each duplicate record of the file."""
    known = Known()
    return [problem for reading in _readings(fs, fd, path, size) for problem in reading.duplicates(known)]


def _readings(fs: Fs, fd: int, path: str, size: int) -> Iterator[Reading]:
    """The windows of the file. One with damage is read again with what follows, where a record may go on."""
    line, byte, last = 1, 0, False
    while not last:
        data, last = window(fs, fd, byte, size, WINDOW)
        reading = read_lines(data, path, line=line, byte=byte)
        if reading.problems and not last:
            data, last = window(fs, fd, byte, size, max(WINDOW, WIDE_WINDOW))
            reading = read_lines(data, path, line=line, byte=byte)
        yield reading
        line, byte = line + count(data, b"\n"), byte + len(data)


def read_entries(fs: Fs, path: str, after: FileCursor | None) -> Iterator[Entry]:
    """The readable records of a transcript in order; see `Layout.entries`.

    Raises:
        NotFound: the transcript does not exist.
        StorageFailed: it cannot be read.
    """
    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"No transcript at {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        found = require_regular(fs.fstat(fd))
        start = after.offset if after is not None and _continues(after, found) else 0
        index = 0
        for line, low, data in windows(fs, fd, start, found.st_size, WIDE_WINDOW):
            for record in read_lines(data, path, line=line, byte=low).records():
                line_end = data.find(b"\n", record.byte - low + len(record.raw))
                behind = low + (line_end + 1 if line_end >= 0 else len(data))
                yield Entry(index, record, FileCursor(found.st_dev, found.st_ino, behind))
                index += 1
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def _continues(after: FileCursor, found: stat_result) -> bool:
    same = (after.device, after.inode) == (found.st_dev, found.st_ino)
    return same and after.offset <= found.st_size


_OF_MESSAGES = frozenset({"no_role"})
"""Findings that apply only if every record must be a message."""

_REMEDIES = {
    "orphaned_call": "add a result, or drop the call; if its tool still runs, wait",
    "orphaned_result": "drop the result",
    "repeated_result": "drop one of the results",
    "repeated_call": "give one of the calls, and its result, an id of its own",
    "misplaced_result": "move the result directly after its call",
    "late_result": "move the result directly after its call, if your provider refuses it",
    "incomplete_turn": "add an agent message that the turn was interrupted",
    "null_tool_calls": "remove the field",
    "bad_tool_calls": "remove the field",
    "no_role": "set the role, or remove the message",
    "consecutive_users": "none needed: most providers accept it",
    "no_call_id": "none needed, unless your provider refuses it",
    "empty_thinking": "remove the block, if your provider refuses it",
}
_LAST_TURN = "none needed: the agent continues from there, or is running"


def _problem(finding: Finding, strict: bool) -> Problem:
    """A finding as a problem of the file."""
    remedy = _REMEDIES[finding.code]
    if finding.code == "incomplete_turn" and not finding.stops:
        remedy = _LAST_TURN
    elif strict and finding.stops:
        remedy = f"run `sessionary repair` to {remedy}"
    place = finding.place
    return Problem(
        finding.code, finding.severity, place.path or "", place.line, place.byte, finding.message, remedy
    )
