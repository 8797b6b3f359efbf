"""One pass over a transcript, in bounded memory: its records, its counts, its damage.

The file is read in windows that end at a newline, so a transcript of any size costs the memory of one window, or of
its longest line where that is longer. Nothing is locked. A writer that is in the middle of a long append shows as
a torn last line; the file is then looked at again before anybody is told that something is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import stat_result
from typing import NamedTuple

from sessionary.codec import Reading, read_lines
from sessionary.disk.fs import READ, Fs, not_found, storage_failed
from sessionary.model import Cursor, Entry, Problem, Severity
from sessionary.turns import Pairing, is_real_user, text_of

WINDOW = 8 << 20
LOOKS = 3  # how often a torn tail that still grows is looked at again

Place = tuple[int, int]  # line, byte


@dataclass(slots=True)
class Conversation:
    """What one pass over a transcript tells.

    Attributes:
        found: the stat of the file that was read.
        messages: its readable records.
        turns: how often a person spoke.
        title: the first words of a person, not yet shortened; None if nobody spoke.
        problems: what could not be read, and tool calls that do not fit their results.
    """

    found: stat_result
    messages: int = 0
    turns: int = 0
    title: str | None = None
    problems: list[Problem] = field(default_factory=list)


class _Window(NamedTuple):
    """Some whole lines of a file, and what lies before them."""

    data: bytes
    reading: Reading
    line: int
    byte: int


def read_conversation(fs: Fs, path: str) -> Conversation:
    """Read a transcript once and say what is in it.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
    """
    for _ in range(LOOKS):
        fd = fs.open(path, READ)
        try:
            found = fs.fstat(fd)
            conversation, torn = _read(fs, fd, path, found)
            if not torn or fs.fstat(fd).st_size == found.st_size:
                break
        finally:
            fs.close(fd)
    return conversation


def _read(fs: Fs, fd: int, path: str, found: stat_result) -> tuple[Conversation, bool]:
    conversation = Conversation(found)
    pairing: Pairing[Place] | None = None
    torn = False
    for window in _windows(fs, fd, path, 0):
        reading = window.reading
        conversation.messages += len(reading.values)
        if reading.problems:
            conversation.problems += [_shifted(problem, window) for problem in reading.problems]
        torn = reading.torn
        for message in reading.values:
            if is_real_user(message):
                conversation.turns += 1
                if conversation.title is None:
                    conversation.title = text_of(message) or None
        if pairing is None and any(map(_uses_tools, reading.values)):
            pairing = Pairing()
        if pairing is not None:
            for record in reading.records():
                pairing.add(record.value, (window.line + record.line, window.byte + record.byte))
    if pairing is not None:
        conversation.problems += _unpaired(path, pairing)
    return conversation, torn


def _uses_tools(message: dict[str, object]) -> bool:
    """A quick look: most messages carry no tool traffic, and many conversations none at all."""
    return "tool_calls" in message or "tool_call_id" in message or type(message.get("content")) is list


def read_entries(fs: Fs, path: str, after: Cursor | None) -> Iterator[Entry]:
    """The readable records of a transcript in order; see `Layout.entries`.

    Raises:
        NotFound: there is no transcript.
        StorageFailed: it cannot be read.
    """
    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"There is no transcript at {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        found = fs.fstat(fd)
        start = after.offset if after is not None and _continues(after, found) else 0
        index = 0
        for window in _windows(fs, fd, path, start):
            for record in window.reading.records():
                line_end = window.data.find(b"\n", record.byte + len(record.raw))
                behind = window.byte + (line_end + 1 if line_end >= 0 else len(window.data))
                placed = record._replace(line=window.line + record.line, byte=window.byte + record.byte)
                yield Entry(index, placed, Cursor(found.st_dev, found.st_ino, behind))
                index += 1
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def _continues(after: Cursor, found: stat_result) -> bool:
    same = (after.device, after.inode) == (found.st_dev, found.st_ino)
    return same and after.offset <= found.st_size


def _windows(fs: Fs, fd: int, path: str, start: int) -> Iterator[_Window]:
    """The file from an offset on, cut at newlines; only the last window may end without one."""
    line, byte, rest = 0, start, b""
    while True:
        block = fs.pread(fd, WINDOW, byte + len(rest))
        data = rest + block if rest else block
        last = len(block) < WINDOW
        cut = len(data) if last else data.rfind(b"\n", len(rest)) + 1
        if cut:
            whole, rest = (data, b"") if cut == len(data) else (data[:cut], data[cut:])
            yield _Window(whole, read_lines(whole, path), line, byte)
            byte += cut
            if not last:
                line += whole.count(b"\n")
        else:
            rest = data  # a line longer than a window: go on until it ends
        if last:
            return


def _shifted(problem: Problem, window: _Window) -> Problem:
    """The same problem with its place in the file instead of the window."""
    if not window.byte:
        return problem
    line = None if problem.line is None else problem.line + window.line
    byte = None if problem.byte is None else problem.byte + window.byte
    return problem._replace(line=line, byte=byte)


def _unpaired(path: str, pairing: Pairing[Place]) -> list[Problem]:
    found = [
        _pairing_problem("orphaned_call", path, place, f"tool call {call_id} has no result")
        for call_id, place in pairing.waiting.items()
    ]
    found += [
        _pairing_problem("orphaned_result", path, place, f"this answers tool call {call_id}, which nobody made")
        for call_id, place in pairing.strays
    ]
    found += [
        _pairing_problem("repeated_result", path, place, f"tool call {call_id} is answered a second time")
        for call_id, place in pairing.repeats
    ]
    return found


_REMEDY = {
    "orphaned_call": "the agent was stopped while the tool ran, or still runs: add a result, or drop the call",
    "orphaned_result": "drop the result: model providers refuse a conversation that holds it",
    "repeated_result": "drop one of the results: model providers refuse a second one",
}


def _pairing_problem(code: str, path: str, place: Place, message: str) -> Problem:
    return Problem(code, Severity.stops_resume, path, *place, message, _REMEDY[code])
