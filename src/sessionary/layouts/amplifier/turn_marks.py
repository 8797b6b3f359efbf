"""Find where the turns of a transcript begin, without building its messages.

An operation that truncates a transcript of tens of megabytes needs a few offsets. Only a line that contains
`"user"` can begin a turn, so only those are decoded; the others are checked to look like one whole object by
the bytes at line ends. Otherwise, or if a letter is written as an escape (no known writer does that, but then
`"user"` may be hidden), the file is parsed completely instead. Both ways give the same turns; a property test
checks that. Damage within a line with the usual beginning and end is not found here: such a line counts as a
message.
"""

from __future__ import annotations

from typing import NamedTuple

from stringzilla import count, find

from sessionary.codec import object_lines, read_lines
from sessionary.codec.decode import REFUSED, fast_decode
from sessionary.disk.fs import Fs, descriptor, read_all, storage_failed
from sessionary.layouts.jsonl import windows
from sessionary.transcript.messages import is_real_user
from sessionary.transcript.turn_boundaries import boundaries

# Small enough for the processor cache.
WINDOW = 1 << 17

_USER = b'"user"'
_ESCAPE = b"\\u00"
_LETTER_ESCAPES = (b"\\u006", b"\\u007")


class Marks(NamedTuple):
    """The turns of a transcript.

    Attributes:
        starts: for each turn, the offset of its first line and the number of messages before it.
        messages: number of messages.
    """

    starts: list[tuple[int, int]]
    messages: int
    size: int


def read_marks(fs: Fs, path: str) -> Marks:
    """Find the turns of a transcript. Raises FileNotFoundError if the file does not exist."""
    try:
        with descriptor(fs, path) as fd:
            return _plain_marks(fs, fd) or marks_of(read_all(fs, fd), path)
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
    return Marks(starts, len(reading.values), len(data))


def _plain_marks(fs: Fs, fd: int) -> Marks | None:
    """The turns of a file in which every line looks like one whole object; None for any other."""
    starts: list[tuple[int, int]] = []
    messages = end = 0
    for _, byte, data in windows(fs, fd, 0, fs.fstat(fd).st_size, WINDOW):
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
                starts.append((byte + begin, messages + line))
            line += 1
        messages += lines
        end = byte + len(data)
    return Marks(starts, messages, end)
