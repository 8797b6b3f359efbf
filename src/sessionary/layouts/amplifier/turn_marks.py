"""Find where the turns of a transcript begin, without building its messages.

An operation that truncates a transcript of tens of megabytes needs a few offsets. Only a line that contains
`"user"` can begin a turn, so only those are decoded; the others are checked to look like one whole object by
the bytes at line ends. Otherwise, or if a letter is written as an escape (no known writer does that, but then
`"user"` may be hidden), the file is parsed completely instead. Both ways give the same turns; a property test
checks that. Damage within a line with the usual beginning and end is not found here: such a line counts as a
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from stringzilla import count, find

from sessionary.codec import object_lines, read_lines
from sessionary.codec.decode import REFUSED, fast_decode
from sessionary.disk.fs import READ, Fs, read_all, read_at, storage_failed
from sessionary.transcript import boundaries, is_real_user
from sessionary.transcript.messages import SPEAKERS

# Small enough for the processor cache.
WINDOW = 1 << 17

_USER = b'"user"'
_ESCAPE = b"\\u00"
_LETTER_ESCAPES = (b"\\u006", b"\\u007")
_TOOL = b'"tool_'


class Marks(NamedTuple):
    """The turns of a transcript.

    Attributes:
        starts: for each turn, the offset of its first line and the number of messages before it.
        messages: number of messages.
        size: the size of the file.
        plain: every line looks like one whole object.
    """

    starts: list[tuple[int, int]]
    messages: int
    size: int
    plain: bool


def read_marks(fs: Fs, path: str) -> Marks:
    """Find the turns of a transcript.

    Raises:
        FileNotFoundError: the file does not exist.
        StorageFailed: it cannot be read.
    """
    try:
        fd = fs.open(path, READ)
        try:
            return _plain_marks(fs, fd) or marks_of(read_all(fs, fd), path)
        finally:
            fs.close(fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_failed(error, "read", path) from error


def marks_of(data: bytes, path: str = "") -> Marks:
    """The turns of any transcript, by `codec.read_lines`."""
    reading = read_lines(data, path)
    wanted = boundaries(reading.values)
    places = [record.byte for record in reading.records()] if wanted else []
    starts = [(data.rfind(b"\n", 0, places[index]) + 1, index) for index in wanted]
    return Marks(starts, len(reading.values), len(data), False)


def _plain_marks(fs: Fs, fd: int) -> Marks | None:
    """The turns of a file in which every line looks like one whole object; None for any other."""
    starts: list[tuple[int, int]] = []
    messages = size = 0
    for data in _windows(fs, fd):
        lines = object_lines(data)
        if not lines:
            return None
        if find(data, _ESCAPE) >= 0 and any(find(data, escape) >= 0 for escape in _LETTER_ESCAPES):
            return None
        at = line = 0
        while (found := find(data, _USER, at)) >= 0:
            begin = data.rfind(b"\n", at, found) + 1 or at
            line += count(data, b"\n", at, begin) if begin > at else 0
            at = data.index(b"\n", found) + 1
            try:
                message = fast_decode(memoryview(data)[begin : at - 1])
            except REFUSED:
                return None
            if message.get("role") == "user" and is_real_user(message):
                starts.append((size + begin, messages + line))
            line += 1
        messages += lines
        size += len(data)
    return Marks(starts, messages, size, True)


def _windows(fs: Fs, fd: int, end: int | None = None) -> Iterator[bytes]:
    """The file (up to `end`) in windows that end with a line; only the last one may lack its newline."""
    at, size = 0, WINDOW
    end = fs.fstat(fd).st_size if end is None else end
    while at < end and (block := read_at(fs, fd, min(size, end - at), at)):
        cut = block.rfind(b"\n") + 1
        if cut == 0 and at + len(block) < end:
            size *= 2  # a line longer than the window
            continue
        if cut == 0 or at + len(block) == end:
            cut = len(block)
        yield block if cut == len(block) else block[:cut]
        at, size = at + cut, WINDOW


class _Call(msgspec.Struct, gc=False):
    id: str


class _Block(msgspec.Struct, gc=False):
    type: str
    id: str | None = None
    tool_use_id: str | None = None


class _Line(msgspec.Struct, gc=False):
    role: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


_decode_lines = msgspec.json.Decoder(_Line).decode_lines
_decode_blocks = msgspec.json.Decoder(list[_Block]).decode


def all_answered(fs: Fs, path: str, end: int) -> bool:
    """True if every tool call up to `end` has an id of its own, and a later result; False if uncertain.

    Raises:
        OSError: the file cannot be read.
    """
    calls: set[str] = set()
    waiting: set[str] = set()
    fd = fs.open(path, READ)
    try:
        for data in _windows(fs, fd, end):
            for line in _decode_lines(data):
                made, answered = _ids(line)
                waiting.difference_update(answered)
                if not calls.isdisjoint(made):
                    return False
                calls.update(made)
                waiting.update(made)
    except (*REFUSED, TypeError):
        return False
    finally:
        fs.close(fd)
    return not waiting


def _ids(line: Any) -> tuple[set[str], set[str]]:
    """The ids of the calls in a message, and of the calls that it answers; by the rules of `transcript.matching`."""
    if line.tool_call_id and line.role not in SPEAKERS:
        return set(), {line.tool_call_id}
    made = {call.id for call in line.tool_calls} if line.tool_calls else set()
    answered: set[Any] = set()
    content = memoryview(line.content)
    if bytes(content[:1]) == b"[" and find(content, _TOOL) >= 0:
        for block in _decode_blocks(content):
            if block.type in ("tool_call", "tool_use"):
                made.add(block.id)
            elif block.type == "tool_result":
                answered.add(block.tool_use_id)
    return made, answered
