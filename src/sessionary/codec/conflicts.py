"""Merge conflict markers that version control left in a file: found, named, and the sides told apart.

A conflict is ``<<<<<<<``, the lines of one side, ``=======``, those of the other, ``>>>>>>>``; in the style `diff3` the
lines that both sides changed stand behind ``|||||||`` in between. Each marker is a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

REMEDY: Final = "settle the merge: keep the right lines between <<<<<<< and >>>>>>>, and remove the markers"

_LINE: Final = re.compile(rb"(?:<{7}|={7}|>{7}|\|{7})(?: [^\n]*)?\r?")
# A line of seven equals signs alone may be anything: the underline of a heading, for one.
_EDGE: Final = re.compile(rb"^(?:<{7}|>{7}|\|{7})(?: [^\n]*)?$", re.MULTILINE)
_LONGEST: Final = 60


class Marker(NamedTuple):
    """A marker: its line (from 1), the offset of its first byte, and a phrase that names it."""

    line: int
    byte: int
    words: str


class Conflict(NamedTuple):
    """A conflict: the rows (from 0) of its markers; `base` is that of ``|||||||``, None without one."""

    first: int
    base: int | None
    middle: int
    last: int


def is_marker(line: bytes) -> bool:
    """True if a line, without its newline, is a marker."""
    return _LINE.fullmatch(line) is not None


def name_of(line: bytes) -> str:
    """A phrase that names a marker."""
    text = line.rstrip(b"\r").decode("utf-8", "replace")
    return f"a merge conflict marker ({text if len(text) <= _LONGEST else text[:_LONGEST] + '…'})"


def first_marker(data: bytes) -> Marker | None:
    """The first marker in a text that a reader has refused; None if it has none."""
    found = _EDGE.search(data)
    if found is None:
        return None
    at = found.start()
    return Marker(data.count(b"\n", 0, at) + 1, at, name_of(found[0]))


def conflicts(lines: Sequence[bytes]) -> Iterator[Conflict]:
    """The whole conflicts among these lines, in order. A marker that belongs to none is left out."""
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
    """The text as each side has it, the first one first; None if there is no whole conflict in it."""
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
