"""The event log of a fork: the parent's lines, each with the new session's id and, beside it, the parent's.

A log may be a gigabyte, so it is streamed through one block of memory, and of each line only the head is
parsed: with the key order of our writer or amplifier's, the id is within the first few hundred bytes and is
replaced in place, and all other bytes are copied. A line with another key order is decoded and rewritten; one
that cannot be decoded is copied unchanged.

Only the outer id is replaced. Session ids within `data` describe past events, and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sessionary.codec import decode_object, encode_line, reencode_line
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.amplifier.event_cut import EventCut

BLOCK = 1 << 18
HEAD = 4096

# Only single characters are possessive: before Python 3.11.5 a possessive group keeps what it had matched
# when it failed, and a line that is cut by such a match loses bytes. No text can be parsed in two ways here,
# so backtracking costs nothing that matters.
_GAP = rb"[ \t]*+"
_TEXT = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"'
_PLAIN = rb'"[^"\\\n]*+"'
_KEY = rb'"session_id"' + _GAP + rb":" + _GAP
_ID = (
    _KEY
    + _TEXT
    + rb"(?:"
    + _GAP
    + rb","
    + _GAP
    + rb'"parent_session_id"'
    + _GAP
    + rb":"
    + _GAP
    + _TEXT
    + rb")?"
)
# The keys before the id in the order of both known writers; then: any keys, nested at most once.
_USUAL = re.compile(
    rb'\{"ts": ?'
    + _PLAIN
    + rb', ?"lvl": ?'
    + _PLAIN
    + rb'(?:, ?"schema": ?\{[^{}\n]*+\})?, ?"event": ?'
    + _PLAIN
    + rb", ?("
    + _ID
    + rb")"
)
_ANY = re.compile(rb'\{(?:[^"{}\n\[\]]++|(?!' + _KEY + rb")" + _TEXT + rb"|\{[^{}\n]*+\})*(" + _ID + rb")")


class ForkedEvents:
    """The lines of a log that a fork copies, with its own id.

    Attributes:
        count: the number of complete lines, once `blocks` has ended.
    """

    def __init__(self, log: LineFile, cut: EventCut | None, session_id: str, parent_id: str) -> None:
        self.count = 0
        self._log = log
        self._cut = cut
        self._ids = {"session_id": session_id, "parent_session_id": parent_id}
        # As members: encoded together they are an object, without its braces.
        self._members = encode_line(self._ids)[1:-1]

    def blocks(self) -> Iterator[bytes | memoryview]:
        """The bytes of the new log, a block at a time."""
        size = self._log.size()
        ranges = [(0, size)] if self._cut is None else [(0, self._cut.offset), *self._cut.stays]
        for start, end in ranges:
            yield from self._range(self._log, start, end)

    def _range(self, log: LineFile, start: int, end: int) -> Iterator[bytes | memoryview]:
        begins = True  # a line begins at `start`; else the rest of one whose head was processed
        while start < end and (block := log.read(start, min(BLOCK, end - start))):
            view = memoryview(block)
            parts: list[bytes | memoryview] = []
            at = done = 0
            if not begins:
                at = _behind(block, 0)
                begins = block[at - 1] == _NEWLINE
                self.count += begins
            while begins and at < len(block):
                behind = _behind(block, at)
                whole = block[behind - 1] == _NEWLINE
                if not whole and at and behind - at < HEAD and start + len(block) < end:
                    break  # its head is incomplete: it begins the next block
                found = _USUAL.match(block, at) or _ANY.match(block, at)
                if found is not None:
                    parts += [view[done : found.start(1)], self._members]
                    done = found.end(1)
                    begins = whole
                elif block[at:behind].strip():
                    raw = block[at:behind] if whole else log.line(start + at)
                    parts += [view[done:at], self._anew(raw)]
                    behind = done = at + len(raw)  # possibly after the block
                    whole = raw.endswith(b"\n")
                self.count += whole
                at = behind
            parts.append(view[done:at])
            yield from _gathered(parts)
            start += at

    def _anew(self, raw: bytes) -> bytes:
        """A line with another key order, rewritten; one that is not an event stays unchanged."""
        value = decode_object(raw)
        return raw if value is None else reencode_line(value | self._ids) + b"\n"


_NEWLINE = 0x0A
_LARGE = 1 << 15


def _gathered(parts: Sequence[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The parts of a block for few writes: small neighbours are joined, large ones are not copied again."""
    small: list[bytes | memoryview] = []
    for part in parts:
        if len(part) < _LARGE:
            small.append(part)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield part
    if small:
        yield b"".join(small)


def _behind(block: bytes, at: int) -> int:
    """The end of the line at `at`, after its newline; the end of the block if it continues."""
    newline = block.find(b"\n", at)
    return len(block) if newline < 0 else newline + 1
