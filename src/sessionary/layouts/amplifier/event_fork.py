"""The event log of a fork: the parent's lines, each with the new session's id and, beside it, the parent's.

A log may be a gigabyte, so it goes through one block of memory, and of each line only the head is looked at: where keys
stand in the order of our writer or the original's, the id is within the first few hundred bytes and is exchanged in
place, and all other bytes are passed on as they are. A line that has its keys in another order is decoded and
written anew; one that cannot be decoded is passed on as it is, for it says whose it is as little as before.

Only the outer id is exchanged. What `data` says of sessions is what happened, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sessionary.codec import Undecodable, decode, encode_line
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.amplifier.event_cut import EventCut

BLOCK = 1 << 18
HEAD = 4096

# Possessive are single characters alone: before Python 3.11.5 a group that is possessive keeps what it had matched
# when it failed, and of a line that is cut by such a match bytes are missing. No text can be read in two ways here, so
# that a group which gives back costs nothing that matters.
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
# The keys before the id as both known writers order them; then: any keys, with nothing nested deeper than once.
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
    """The lines of a log that a fork takes along, changed to be its own.

    Attributes:
        count: the whole lines that went by, once `blocks` has ended.
    """

    def __init__(self, log: LineFile, cut: EventCut | None, session_id: str, parent_id: str) -> None:
        self.count = 0
        self._log = log
        self._cut = cut
        self._ids = {"session_id": session_id, "parent_session_id": parent_id}
        # As members: encoded together they are an object, of which the braces are left out.
        self._members = encode_line(self._ids)[1:-1]

    def blocks(self) -> Iterator[bytes | memoryview]:
        """The bytes of the new log, a block at a time.

        Raises:
            StorageFailed: the log cannot be read.
        """
        size = self._log.size()
        ranges = [(0, size)] if self._cut is None else [(0, self._cut.offset), *self._cut.stays]
        for start, end in ranges:
            yield from self._range(self._log, start, end)

    def _range(self, log: LineFile, start: int, end: int) -> Iterator[bytes | memoryview]:
        begins = True  # a line begins at `start`; else the rest of one whose head went by
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
                    break  # too little of its head: it begins the next block
                found = _USUAL.match(block, at) or _ANY.match(block, at)
                if found is not None:
                    parts += [view[done : found.start(1)], self._members]
                    done = found.end(1)
                    begins = whole
                elif block[at:behind].strip():
                    raw = block[at:behind] if whole else log.line(start + at)
                    parts += [view[done:at], self._anew(raw)]
                    behind = done = at + len(raw)  # perhaps behind the block
                    whole = raw.endswith(b"\n")
                self.count += whole
                at = behind
            parts.append(view[done:at])
            yield from _gathered(parts)
            start += at

    def _anew(self, raw: bytes) -> bytes:
        """A line with its keys in an unusual order, written anew; one that is no event stays as it is."""
        try:
            value = decode(raw)
        except Undecodable:
            return raw
        if not isinstance(value, dict):
            return raw
        return encode_line(value | self._ids) + b"\n"


_NEWLINE = 0x0A
_LARGE = 1 << 15


def _gathered(parts: Sequence[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The parts of a block for few writes: small neighbours are joined, large ones are not copied once more."""
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
    """Where the line that is met at `at` ends, with its newline; the end of the block if it goes on."""
    newline = block.find(b"\n", at)
    return len(block) if newline < 0 else newline + 1
