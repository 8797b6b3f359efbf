"""Merge conflict markers that version control left in a file: detection, and separation of the sides.

A conflict is ``<<<<<<<``, the lines of one side, ``=======``, the lines of the other, ``>>>>>>>``. In the `diff3`
style the common ancestor's lines follow ``|||||||`` between the sides. Each marker is a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

REMEDY: Final = "resolve the merge: keep the right lines between <<<<<<< and >>>>>>>, and remove the markers"

_LINE: Final = re.compile(rb"(?:<{7}|={7}|>{7}|\|{7})(?: [^\n]*)?\r?")
# Not "=======" alone: that may also underline a heading.
_EDGE: Final = re.compile(rb"^(?:<{7}|>{7}|\|{7})(?: [^\n]*)?$", re.MULTILINE)
_LONGEST: Final = 60


class Marker(NamedTuple):
    """A marker: line number (from 1), offset of its first byte, and a description."""

    line: int
    byte: int
    words: str


class Conflict(NamedTuple):
    """A conflict: row numbers (from 0) of its markers; `base` is the row of ``|||||||``, or None."""

    first: int
    base: int | None
    middle: int
    last: int


def is_marker(line: bytes) -> bool:
    """True if a line, without its newline, is a marker."""
    return _LINE.fullmatch(line) is not None


def name_of(line: bytes) -> str:
    """Return a description of a marker, for messages."""
    text = line.rstrip(b"\r").decode("utf-8", "replace")
    return f"a merge conflict marker ({text if len(text) <= _LONGEST else text[:_LONGEST] + '…'})"


def first_marker(data: bytes) -> Marker | None:
    """Return the first marker in a text that could not be parsed; None if there is none."""
    found = _EDGE.search(data)
    if found is None:
        return None
    at = found.start()
    return Marker(data.count(b"\n", 0, at) + 1, at, name_of(found[0]))


def conflicts(lines: Sequence[bytes]) -> Iterator[Conflict]:
    """Yield the complete conflicts among these lines, in order. Unmatched markers are skipped."""
    first = base = middle = None
    for row, line in enumerate(lines):
        if not is_marker(line):
            continue
        sign = line[:1]
        if sign == b"<":
            first, base, middle = row, None, None
        elif sign == b"|" and first is not None and base is None and middle is None:
            base = row
        elif sign == b"=" and first is not None and middle is None:
            middle = row
        elif sign == b">" and first is not None and middle is not None:
            yield Conflict(first, base, middle, row)
            first = base = middle = None


def sides(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the text of both sides, first side first; None if there is no complete conflict."""
    lines = data.split(b"\n")
    ours, theirs, at = list[bytes](), list[bytes](), 0
    for one in conflicts(lines):
        common = lines[at : one.first]
        ours += [*common, *lines[one.first + 1 : one.middle if one.base is None else one.base]]
        theirs += [*common, *lines[one.middle + 1 : one.last]]
        at = one.last + 1
    if not at:
        return None
    return b"\n".join([*ours, *lines[at:]]), b"\n".join([*theirs, *lines[at:]])
