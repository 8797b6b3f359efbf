r"""Needles: words to search for, as text and as raw bytes that every matching JSON line contains.

Decoding every line of a gigabyte takes seconds, and nearly all lines have no match. So the bytes are searched first,
and only lines that may match are decoded. The byte search must not miss a line, although JSON can write one text in
many ways. All of them leave most characters unchanged:

- Some characters have short escapes (``\"``, ``\/``, ``\n``), so the words are cut at those and at blanks, and the
  longest piece is searched for. JSON within JSON, as tools return it, only adds more backslashes.
- Any character can be written by its number (``\u006b``). Then there is a backslash, a ``u`` and one of few numbers,
  those of the characters that fold to a character of the piece. Lines with one of these are decoded too.
- Everything else is unchanged, and stringzilla finds it in any case, with full Unicode folding.

Only the decoded text decides whether a line matches; each run of blanks in it counts as one blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import stringzilla

from sessionary.errors import Invalid

# Blanks, and what JSON may write as a backslash and a letter.
_CUTS = re.compile(r'[\s"\\/\x00-\x1f]+')
# The ranges of characters that fold to others; a test checks all the rest.
_CASED = (
    range(0x41, 0x600),
    range(0x10A0, 0x2E00),
    range(0xA640, 0xAC00),
    range(0xFB00, 0xFB18),
    range(0xFF21, 0xFF3B),
    range(0x10400, 0x11900),
    range(0x16E40, 0x16F00),
    range(0x1E900, 0x1E960),
)


class Span(NamedTuple):
    """A range in a text: from `start` up to `end`."""

    start: int
    end: int


class Needle:
    """A word or phrase to search for.

    Args:
        text: the words.
        case: distinguish upper and lower case.

    Raises:
        Invalid: the text is empty, or not valid text.
    """

    def __init__(self, text: str, *, case: bool = False) -> None:
        self.case = case
        self.text = one_spaced(text)
        if not self.text:
            raise Invalid("empty search text", operation="search", hint="give a word or a phrase")
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise Invalid(f"{text!r} is not text", operation="search", hint="give it in UTF-8")
        self.folded = self.text if case else self.text.casefold()

    def spans(self, text: str) -> list[Span]:
        """Return the positions of the words in a text normalised by `one_spaced`; they do not overlap."""
        folded = text if self.case else text.casefold()
        found = [Span(at, at + len(self.folded)) for at in _places(folded, self.folded)]
        if not found or len(folded) == len(text):  # folding never shortens: each character became one
            return found
        ends = list(accumulate(len(char.casefold()) for char in text))
        starts = [0, *ends[:-1]]
        origin = [
            place
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
            for _ in range(start, end)
        ]
        return [Span(origin[start], origin[end - 1] + 1) for start, end in found]


def one_spaced(text: str) -> str:
    """Return the text with each run of blanks as one blank, without blanks at its ends."""
    return " ".join(text.split())


class ByteFilter:
    """Finds lines that may contain all needles, by a search over raw bytes.

    Args:
        needles: a line must contain all of them, so the most selective one is searched for.
    """

    def __init__(self, needles: Iterable[Needle]) -> None:
        pieces = [(piece, needle.case) for needle in needles for piece in _CUTS.split(needle.folded)]
        piece, case = max(pieces, key=lambda found: len(found[0].encode()), default=("", False))
        self._bytes = piece.encode()
        self._search = stringzilla.find if case else stringzilla.utf8_uncased_search
        # A piece that the search does not find in itself cannot be searched for (U+03A2 is unassigned).
        self.blind = not piece or self._search(self._bytes, self._bytes) != 0
        self._escapes = _escapes_of(piece, case)

    def lines(self, data: bytes, end: int) -> Iterator[Span]:
        """Yield the lines of ``data[:end]`` that may contain the needles, without their newlines."""
        at = 0
        plain = escaped = -1
        while at < end:
            if self.blind:
                plain = escaped = at
            if plain < at:
                plain = self._plain(data, at, end)
            if escaped < at:
                escaped = self._escaped(data, at, end)
            first = min(plain, escaped)
            if first >= end:
                return
            begin = max(data.rfind(b"\n", at, first) + 1, at)
            stop = data.find(b"\n", first, end)
            stop = end if stop < 0 else stop
            yield Span(begin, stop)
            at = stop + 1

    def finds(self, data: bytes, end: int) -> bool:
        """True if there is any such line."""
        return self.blind or self._plain(data, 0, end) < end or self._escaped(data, 0, end) < end

    def _plain(self, data: bytes, at: int, end: int) -> int:
        found: int = self._search(data, self._bytes, at, end)
        return end if found < 0 else found

    def _escaped(self, data: bytes, at: int, end: int) -> int:
        """Return the position of a JSON escape that may stand for a character of the piece; `end` if there is none.

        Most lines have no such escape, and the faster search is enough for them.
        """
        start = stringzilla.find(data, b"\\u", at, end)
        found = self._escapes.search(data, start, end) if start >= 0 else None
        return found.start() if found else end


def _escapes_of(piece: str, case: bool) -> re.Pattern[bytes]:
    """Return a pattern of all escapes that may stand for a character of the piece, or for a part of one."""
    codes = set(map(ord, piece))
    if not case:
        codes.update(code for char in set(piece) for code in _unfolded().get(char, ()))
    units = {code if code < 0x10000 else 0xD800 + (code - 0x10000 >> 10) for code in codes}
    # In text that is JSON itself, the backslash and the letter of an escape may be escaped too.
    units |= {ord("\\"), ord("u"), *map(ord, "0123456789abcdefABCDEF")}
    return re.compile(rb"\\u(?:" + b"|".join(b"%04x" % unit for unit in sorted(units)) + rb")", re.IGNORECASE)


@cache
def _unfolded() -> dict[str, list[int]]:
    """Return for each character the others that fold to it, or to several including it."""
    found: dict[str, list[int]] = {}
    for some in _CASED:
        for code in some:
            char = chr(code)
            folded = char.casefold()
            if folded != char:
                for part in folded:
                    found.setdefault(part, []).append(code)
    return found


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))
