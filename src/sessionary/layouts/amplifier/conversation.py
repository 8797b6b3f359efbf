"""Read a transcript in one pass and bounded memory: its records, counts and damage.

The file is read in windows that end at a newline, so a transcript of any size needs the memory of one window,
or of its longest line if that is longer, and some bytes for each message. Nothing is locked. A writer in the
middle of a long append shows as a truncated last line; the file is then read again before a loss is reported.

Nearly every window is clean. A clean window is decoded in one call, and is so small that its messages are
dropped before they leave the processor cache. Any other window is read again, line by line, with more data
after it: a record that spans several lines is recognised only if they are read together. The place of a
message is computed only if it has a problem, by reading its window once more, and duplicate records are
searched only if the times of the messages allow for them.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from operator import itemgetter, lt
from os import stat_result
from typing import TYPE_CHECKING, Any, NamedTuple

from stringzilla import count

from sessionary.codec import for_strict_reader, read_lines
from sessionary.codec.lines import Known, clean_records
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk.fs import READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.layouts.jsonl import window, windows
from sessionary.model import Cursor, Entry, Problem, Severity
from sessionary.transcript.outline import Outline

if TYPE_CHECKING:
    from sessionary.transcript import Finding

WINDOW = 1 << 18
WIDE_WINDOW = 2 << 20  # for windows that are not clean
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


class _Span(NamedTuple):
    """A window that was read: the number of its first message, its place, and its length."""

    first: int
    line: int
    byte: int
    length: int


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
    outline, times = Outline(), _Times()
    problems: list[Problem] = []
    spans: list[_Span] = []
    newest: datetime | None = None
    line, byte, last, torn = 1, 0, False, False
    while not last:
        data, last = window(fs, fd, byte, found.st_size, WINDOW)
        # One newline is an empty conversation, as written by our store.
        values = [] if data == b"\n" and found.st_size == 1 else clean_records(data)
        if values is None:
            data, last = window(fs, fd, byte, found.st_size, max(WINDOW, WIDE_WINDOW))
            reading = read_lines(data, path, line=line, byte=byte)
            values, torn = reading.values, reading.torn
            problems += for_strict_reader(reading.problems) if strict else reading.problems
        else:
            torn = False
        spans.append(_Span(len(outline), line, byte, len(data)))
        outline.take(values)
        newest = newest_time(values) or newest
        if thorough:
            times.take(values)
        line, byte = line + count(data, b"\n"), byte + len(data)
    if thorough and not times.differ:
        problems += _repeats(fs, fd, path, found.st_size)
    findings = [each for each in outline.findings() if strict or each.code not in _OF_MESSAGES]
    places = _places(fs, fd, spans, {each.index for each in findings}) if findings else {}
    problems += [_problem(each, path, places.get(each.index, (None, None)), strict) for each in findings]
    return Conversation(found, len(outline), outline.turns, outline.title, newest, problems), torn


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
    return [
        problem
        for line, byte, data in windows(fs, fd, 0, size, max(WINDOW, WIDE_WINDOW))
        for problem in read_lines(data, path, line=line, byte=byte).duplicates(known)
    ]


def read_entries(fs: Fs, path: str, after: Cursor | None) -> Iterator[Entry]:
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
        for line, low, data in windows(fs, fd, start, found.st_size, max(WINDOW, WIDE_WINDOW)):
            for record in read_lines(data, path, line=line, byte=low).records():
                line_end = data.find(b"\n", record.byte - low + len(record.raw))
                behind = low + (line_end + 1 if line_end >= 0 else len(data))
                yield Entry(index, record, Cursor(found.st_dev, found.st_ino, behind))
                index += 1
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def _continues(after: Cursor, found: stat_result) -> bool:
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


def _problem(finding: Finding, path: str, place: tuple[int | None, int | None], strict: bool) -> Problem:
    """A finding as a problem of the file. It has no place if the file was truncated meanwhile."""
    remedy = _REMEDIES[finding.code]
    if finding.code == "incomplete_turn" and not finding.stops:
        remedy = _LAST_TURN
    elif strict and finding.stops:
        remedy = f"run `sessionary repair` to {remedy}"
    return Problem(finding.code, finding.severity, path, *place, finding.message, remedy)


def _places(fs: Fs, fd: int, spans: Sequence[_Span], indices: set[int]) -> dict[int, tuple[int, int]]:
    """Line and byte of these messages. Each window that holds one is read again."""
    places: dict[int, tuple[int, int]] = {}
    for at, wanted in groupby(sorted(indices), lambda index: bisect(spans, index, key=itemgetter(0)) - 1):
        span = spans[at]
        reading = read_lines(read_at(fs, fd, span.length, span.byte), line=span.line, byte=span.byte)
        records = list(reading.records())
        for index in wanted:
            if index - span.first < len(records):
                record = records[index - span.first]
                places[index] = record.line, record.byte
    return places
