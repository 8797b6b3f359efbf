r"""Needles: words to search for, as text and as raw bytes that every matching JSON line contains.

Decoding every line of a gigabyte takes seconds, and nearly all lines have no match. So the bytes are searched first,
and only lines that may match are decoded. The byte search must not miss a line, although JSON can write one text in
many ways. All of them leave most characters unchanged:

- Some characters have short escapes (``\"``, ``\/``, ``\n``), so the words are cut at those and at blanks, and the
  longest piece is searched for. JSON within JSON, as tools return it, only adds more backslashes.
- Any character can be written by its number (``\u006b``). Then there is a backslash, a ``u`` and one of few numbers,
  those of the characters that fold to a character of the piece. Lines with one of these are decoded too.
- Everything else is unchanged, and stringzilla finds it in any case, with full Unicode folding.

An accented character may be stored as one character or as a letter and an accent. Both forms of a word are searched
for, and the form in which it was given; not words of which only some characters are in the other form.

Only the decoded text decides whether a line matches; each run of blanks in it counts as one blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple
from unicodedata import is_normalized, normalize

import stringzilla

from sessionary.errors import Invalid

# Blanks, and what JSON may write as a backslash and a letter.
_CUTS = re.compile(r'[\s"\\/\x00-\x1f]+')
BLOCK = 1 << 16
"""Characters of a text that are compared at a time."""
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
        self.text: str = one_spaced(composed(text))
        if not self.text:
            raise Invalid("empty search text", operation="search", hint="give a word or a phrase")
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise Invalid(f"{text!r} is not text", operation="search", hint="give it in UTF-8")
        self.folded: str = self.text if case else self.text.casefold()
        self.piece: str = _longest_piece(self.folded)
        as_given = _longest_piece(text if case else text.casefold())
        self.forms: tuple[str, ...] = tuple(
            dict.fromkeys((self.piece, normalize("NFD", self.piece), as_given))
        )
        self._bytes = [form.encode() for form in self.forms]
        self._search = stringzilla.find if case else stringzilla.utf8_uncased_search
        # A piece that the search does not find in itself cannot be searched for (U+03A2 is unassigned).
        self.blind: bool = not self.piece or any(self._search(form, form) != 0 for form in self._bytes)

    def may_be_in(self, data: bytes | str) -> bool:
        """False if the longest word is in no case in these bytes of UTF-8, or in this text."""
        if self.blind:
            return True
        if isinstance(data, str) and not data.isascii():
            data = data.encode("utf-8", "surrogatepass")  # stringzilla crashes at half a surrogate pair
        return any(self._search(data, form) >= 0 for form in self._bytes)

    def spans(self, text: str) -> list[Span]:
        """Return the positions of the words in a text of `blocks`; they do not overlap."""
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


def _longest_piece(text: str) -> str:
    return max(_CUTS.split(text), key=lambda piece: len(piece.encode()))


def composed(text: str) -> str:
    """Return the text with accents in one form: ``é`` may be stored as one character or as two."""
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def one_spaced(text: str) -> str:
    """Return the text with each run of blanks as one blank, without blanks at its ends."""
    return " ".join(text.split())


class Block(NamedTuple):
    """A piece of a text; `is_first` if it begins with the text, `is_last` if it ends with it."""

    text: str
    is_first: bool
    is_last: bool


def blocks(text: str, overlap: int) -> Iterator[Block]:
    """Yield `one_spaced(composed(text))` in pieces: a long text is not held a second time, unless accents are apart.

    Args:
        text: the text.
        overlap: the number of characters at the end of a piece that the next one begins with.
    """
    text, block, is_first, has_gap = composed(text), "", True, False
    for at in range(0, len(text), BLOCK):
        raw = text[at : at + BLOCK]
        words = one_spaced(raw)
        if not words:
            has_gap = True
            continue
        if block:
            yield Block(block, is_first, False)
            is_first = is_first and len(block) <= overlap
        gap = " " if block and (has_gap or raw[0].isspace()) else ""
        block = block[-overlap:] + gap + words
        has_gap = raw[-1].isspace()
    yield Block(block, is_first, True)


class ByteFilter:
    """A predicate over raw lines: False if none of them can hold all needles.

    Args:
        needles: a line must contain all of them, so the most selective one is searched for.
    """

    def __init__(self, needles: Iterable[Needle]) -> None:
        longest = max(needles, key=lambda needle: len(needle.piece.encode()), default=None)
        self._needle = longest
        self._escapes = _escapes_of("".join(longest.forms), longest.case) if longest else None
        self.blind: bool = longest is None or longest.blind

    def __call__(self, data: bytes) -> bool:
        """True if one of the lines may hold the needles."""
        if self._needle is None or self._escapes is None or self._needle.may_be_in(data):
            return True
        # Most lines have no escape that may stand for a character, and the faster search is enough for them.
        start = stringzilla.find(data, b"\\u")
        return start >= 0 and self._escapes.search(data, start) is not None


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
