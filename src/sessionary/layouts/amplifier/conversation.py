"""One pass over a transcript, in bounded memory: its records, its counts, its damage.

The file is read in windows that end at a newline, so a transcript of any size costs the memory of one window, or of
its longest line where that is longer. Nothing is locked. A writer that is in the middle of a long append shows as
a torn last line; the file is then looked at again before anybody is told that something is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import stat_result
from typing import Any, TypeVar

import msgspec
from stringzilla import count, find

from sessionary.codec import Reading, for_strict_reader, read_lines
from sessionary.codec.decode import REFUSED
from sessionary.disk.fs import READ, Fs, not_found, storage_failed
from sessionary.model import Cursor, Entry, Problem, Severity
from sessionary.turns import Pairing, is_real_user, text_of

WINDOW = 2 << 20
LOOKS = 3  # how often a torn tail that still grows is looked at again

Place = tuple[int, int]  # line, byte
P = TypeVar("P")

# Every key and every type by which a tool call or a result is known begins so.
_TOOLS = b'"tool'
_decode_lines: Callable[[bytes], list[dict[str, Any]]] = msgspec.json.Decoder().decode_lines


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

    def take(self, messages: list[dict[str, Any]]) -> None:
        """Count the next messages."""
        self.messages += len(messages)
        for message in messages:
            if message.get("role") == "user" and is_real_user(message):
                self.turns += 1
                if self.title is None:
                    self.title = text_of(message).lstrip() or None


def read_conversation(fs: Fs, path: str, *, strict: bool = False, thorough: bool = False) -> Conversation:
    """Read a transcript once and say what is in it.

    Args:
        fs: the file system.
        path: the file.
        strict: its owner refuses the file for one bad line, so each such line stops a resume.
        thorough: look for records that are there twice, too.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
    """
    fd = fs.open(path, READ)
    try:
        found = fs.fstat(fd)
        if found.st_size < WINDOW:
            data = fs.pread(fd, found.st_size + 1, 0)
            values = clean_records(data)
            if values is not None and not (thorough and values):
                conversation = Conversation(found)
                conversation.take(values)
                if find(data, _TOOLS) >= 0:
                    conversation.problems += _unpaired_in(path, data, values)
                return conversation
        return _read_patiently(fs, fd, path, strict=strict, thorough=thorough)
    finally:
        fs.close(fd)


def _read_patiently(fs: Fs, fd: int, path: str, *, strict: bool, thorough: bool) -> Conversation:
    """A file of any size and state. One whose last line is torn, and which still grows, is looked at again."""
    for _ in range(LOOKS):
        conversation = Conversation(fs.fstat(fd))
        pairing: Pairing[Place] = Pairing()
        torn = False
        for _data, reading in _windows(fs, fd, path, 0):
            conversation.take(reading.values)
            conversation.problems += for_strict_reader(reading.problems) if strict else reading.problems
            if thorough:
                conversation.problems += reading.duplicates()
            for record in reading.records():
                pairing.add(record.value, (record.line, record.byte))
            torn = reading.torn
        if not torn or fs.fstat(fd).st_size == conversation.found.st_size:
            break
    conversation.problems += _unpaired(path, pairing, lambda place: place)
    return conversation


def _unpaired_in(path: str, data: bytes, values: list[dict[str, Any]]) -> list[Problem]:
    """Of a clean file, the calls and results that do not fit. Offsets are worked out only for those."""
    pairing: Pairing[int] = Pairing()
    for row, message in enumerate(values):
        pairing.add(message, row)

    def place(row: int) -> Place:
        byte = 0
        for _ in range(row):
            byte = data.index(b"\n", byte) + 1
        return row + 1, byte

    return _unpaired(path, pairing, place)


def clean_records(data: bytes) -> list[dict[str, Any]] | None:
    """The records of a file about which there is nothing else to say; None if there may be.

    Within one JSON value no newline stands between ``}`` and ``{``, and msgspec refuses it in strings. So if all
    lines meet like that, and there are as many values as lines, each line is one object with at least one key.
    """
    if data == b"\n":
        return []  # an empty conversation as our store writes it
    lines = count(data, b"\n")
    if not (data.startswith(b'{"') and data.endswith(b"}\n") and count(data, b'}\n{"') == lines - 1):
        return None
    try:
        values = _decode_lines(data)
    except REFUSED:
        return None
    return values if len(values) == lines else None


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
        index, low = 0, start
        for data, reading in _windows(fs, fd, path, start):
            for record in reading.records():
                line_end = data.find(b"\n", record.byte - low + len(record.raw))
                behind = low + (line_end + 1 if line_end >= 0 else len(data))
                yield Entry(index, record, Cursor(found.st_dev, found.st_ino, behind))
                index += 1
            low += len(data)
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def _continues(after: Cursor, found: stat_result) -> bool:
    same = (after.device, after.inode) == (found.st_dev, found.st_ino)
    return same and after.offset <= found.st_size


def _windows(fs: Fs, fd: int, path: str, start: int) -> Iterator[tuple[bytes, Reading]]:
    """The file from an offset on, cut at newlines; only the last piece may end without one."""
    line, byte, rest = 1, start, b""
    while True:
        block = fs.pread(fd, WINDOW, byte + len(rest))
        data = rest + block if rest else block
        last = len(block) < WINDOW
        cut = len(data) if last else data.rfind(b"\n", len(rest)) + 1
        if cut:
            whole, rest = (data, b"") if cut == len(data) else (data[:cut], data[cut:])
            yield whole, read_lines(whole, path, line=line, byte=byte)
            byte += cut
            line += whole.count(b"\n")
        else:
            rest = data  # a line longer than a window: go on until it ends
        if last:
            return


_UNPAIRED = {
    "orphaned_call": (
        "tool call {} has no result",
        "the agent was stopped while the tool ran, or it still runs: add a result, or drop the call",
    ),
    "orphaned_result": (
        "a result for tool call {}, which nobody made",
        "drop the result: model providers refuse a conversation that holds it",
    ),
    "repeated_result": (
        "tool call {} is answered a second time",
        "drop one of the results: model providers refuse the second",
    ),
}


def _unpaired(path: str, pairing: Pairing[P], place: Callable[[P], Place]) -> list[Problem]:
    found = [("orphaned_call", *call) for call in pairing.waiting.items()]
    found += [("orphaned_result", *result) for result in pairing.strays]
    found += [("repeated_result", *result) for result in pairing.repeats]
    problems = []
    for code, call_id, where in found:
        words, remedy = _UNPAIRED[code]
        message = words.format(call_id)
        problems.append(Problem(code, Severity.stops_resume, path, *place(where), message, remedy))
    return problems
