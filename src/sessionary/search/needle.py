r"""Needles: words to search for, as text and as raw bytes that every matching JSON line contains.

Decoding every line of a gigabyte takes seconds, and nearly all lines have no match. So the bytes are searched first,
and only lines that may match are decoded. The byte search must not miss a line, although JSON can write one text in
many ways. All of them leave most characters unchanged:

- Some characters have short escapes (``\"``, ``\/``, ``\n``), so the words are cut at those and at blanks, and the
  longest piece is searched for. JSON within JSON, as tools return it, only adds more backslashes.
- Any character can be written by its number (``\u006b``). Then there is a backslash, a ``u`` and one of few numbers,
  those of the characters that fold to a character of the piece. Lines with one of these are decoded too.
- Everything else is unchanged, and stringzilla finds it in any case, with full Unicode folding.

An accented character may be stored as one character or as a letter and an accent, and some characters have doubles.
Texts are compared in the form NFC. A text in which that form changes something holds one of few characters, so lines
with one of these are decoded if the word may be concerned. The same is true of accents, if they are folded.

Only the decoded text decides whether a line matches; each run of blanks in it counts as one blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple, Self
from unicodedata import is_normalized, normalize

import stringzilla

from sessionary.errors import Invalid

# Blanks, what JSON may write as a backslash and a letter, and ASCII characters that have doubles in Unicode.
_CUTS = re.compile(r'[\s"\\/;`\x00-\x1f]+')
_CUTS_WITH_CASE = re.compile(r'[\s"\\/;`K\x00-\x1f]+')
# What a text holds that NFC changes: doubles, accents, and marks that may be out of order; a test checks all the rest.
# Each begins with bytes that most texts lack, so that their absence is found fast.
_RECOMPOSED_LEADS = bytes((0xCC, 0xCD, *range(0xD6, 0xE1)))
_RECOMPOSED = (
    rb"\xce\x87",
    rb"\xd2[\x83-\x87]",
    rb"\xe1[\x80-\xb7\xbc-\xbf]",
    rb"\xe2\x83[\x90-\xb0]",
    rb"\xe2\x84[\xa6\xaa\xab]",
    rb"\xe2\x8c[\xa9\xaa]",
    rb"\xe2\xab\x9c",
    rb"\xe2\xb3[\xaf-\xb1]",
    rb"\xe2\xb5\xbf",
    rb"\xe2\xb7[\xa0-\xbf]",
    rb"\xe3\x80[\xaa-\xaf]",
    rb"\xe3\x82[\x99\x9a]",
    rb"\xea[\x99-\x9b\xa0-\xaf]",
    rb"\xef[\xa4-\xad]",
    rb"\xef\xb8[\xa0-\xaf]",
    rb"\xf0[\x90\x91\x96\x9b\x9d\x9e\xaf]",
)
_ACCENTED_LEADS = bytes((*range(0xC3, 0xC9), *range(0xCE, 0xD2), 0xD3))
_ACCENTED = (rb"\xe1[\xb8-\xbb]",)
_ASCII = bytes(range(0x80))
_ACCENTS = frozenset(map(chr, range(0x300, 0x370))) - {"\u0338"}
"""The accents that folding removes; not the stroke that makes an unequal sign of an equals sign."""
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
        fold: ignore accents.

    Raises:
        Invalid: the text is empty, or not valid text.
    """

    def __init__(self, text: str, *, case: bool = False, fold: bool = False) -> None:
        self.case = case
        self.fold = fold
        self.text: str = one_spaced(composed(text))
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise Invalid(f"{text!r} is not text", operation="search", hint="give it in UTF-8")
        self.folded: str = self._folded(self.text)
        if not self.folded:
            raise Invalid("empty search text", operation="search", hint="give a word or a phrase")
        cuts = _CUTS_WITH_CASE if case else _CUTS
        self.piece: str = max(cuts.split(self.folded), key=lambda piece: len(piece.encode()))
        self._bytes = self.piece.encode()
        self._search = stringzilla.find if case else stringzilla.utf8_uncased_search
        # A piece that the search does not find in itself cannot be searched for (U+03A2 is unassigned).
        self.blind: bool = not self.piece or self._search(self._bytes, self._bytes) != 0
        self._rewritten = _rewritten(fold) if fold or not self.piece.isascii() else None
        """Finds characters that may be the piece in another form; None without another form."""

    @property
    def needle(self) -> Self:
        """Words that every text with these words contains: itself, as of a `Pattern`."""
        return self

    def may_be_in(self, data: bytes | str) -> bool:
        """False if the longest word is in no case and no form in these bytes of UTF-8, or in this text."""
        if self.blind:
            return True
        if isinstance(data, str) and not data.isascii():
            data = data.encode("utf-8", "surrogatepass")  # stringzilla crashes at a lone surrogate
        if self._search(data, self._bytes if isinstance(data, bytes) else self.piece) >= 0:
            return True
        return isinstance(data, bytes) and self.may_be_rewritten_in(data)

    def may_be_rewritten_in(self, data: bytes) -> bool:
        """False if these bytes hold no character that may be the longest word in another form."""
        return self.blind or (self._rewritten is not None and self._rewritten.is_in(data))

    def place_in(self, data: bytes, start: int) -> int:
        """Return the offset of the longest word as it is written, in any case, from `start` on; -1 if missing."""
        return int(self._search(data, self._bytes, start))

    def spans(self, text: str) -> list[Span]:
        """Return the positions of the words in a text of `blocks`; they do not overlap."""
        folded = self._folded(text)
        found = [Span(at, at + len(self.folded)) for at in _places(folded, self.folded)]
        # Folding of case never shortens: each character became one.
        if not found or (len(folded) == len(text) and not self.fold):
            return found
        ends = list(accumulate(len(self._folded(char)) for char in text))
        starts = [0, *ends[:-1]]
        origin = [
            place
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
            for _ in range(start, end)
        ]
        return [Span(origin[start], origin[end - 1] + 1) for start, end in found]

    def _folded(self, text: str) -> str:
        """Return the text without differences that do not count. Folds character by character."""
        if self.fold:
            text = text.translate(_UNACCENTED)
        return text if self.case else text.casefold()


class _Unaccented(dict[int, str]):
    """A table for `str.translate`: each character without accents."""

    def __missing__(self, code: int) -> str:
        parts = normalize("NFD", chr(code))
        kept = "".join(char for char in parts if char not in _ACCENTS)
        self[code] = chr(code) if kept == parts else normalize("NFC", kept)
        return self[code]


_UNACCENTED = _Unaccented()


class _Rewritten:
    """Finds characters that NFC changes and, if accents are folded, those with an accent, in bytes of UTF-8."""

    def __init__(self, fold: bool) -> None:
        self._leads = _RECOMPOSED_LEADS + (_ACCENTED_LEADS if fold else b"")
        self._patterns = [re.compile(one) for one in (*_RECOMPOSED, *(_ACCENTED if fold else ()))]

    def is_in(self, data: bytes) -> bool:
        """True if one of these characters is there."""
        if data.isascii():
            return False
        others = data.translate(None, _ASCII)  # the bytes of one character stay together
        if stringzilla.find_first_of(others, self._leads) >= 0:
            return True
        return any(pattern.search(others) for pattern in self._patterns)


_rewritten = cache(_Rewritten)


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
        self._escapes = _escapes_of(longest) if longest else None
        self.blind: bool = longest is None or longest.blind

    def __call__(self, data: bytes) -> bool:
        """True if one of the lines may hold the needles."""
        return self._needle is None or self._needle.may_be_in(data) or self._may_be_escaped_in(data)

    def lines(self, data: bytes) -> bytes:
        """Return the lines that may hold the needles."""
        needle = self._needle
        if needle is None or needle.may_be_rewritten_in(data) or self._may_be_escaped_in(data):
            return b"\n".join(line for line in data.split(b"\n") if self(line))
        found, end = [], 0
        while (at := needle.place_in(data, end)) >= 0:
            start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1 or len(data)
            found.append(data[start:end])
        return b"".join(found)

    def _may_be_escaped_in(self, data: bytes) -> bool:
        # Most lines have no escape that may stand for a character, and the faster search is enough for them.
        start = stringzilla.find(data, b"\\u")
        return start >= 0 and self._escapes is not None and self._escapes.search(data, start) is not None


class LineFilter:
    """As `ByteFilter`, but the needles must be in one line. Damaged lines count if any needle may be in them.

    Args:
        needles: a line must contain all of them.
    """

    def __init__(self, needles: Iterable[Needle]) -> None:
        some = sorted(set(needles), key=lambda needle: len(needle.piece.encode()), reverse=True)
        self._filters = [ByteFilter([needle]) for needle in some] or [ByteFilter(())]

    def __call__(self, data: bytes) -> bool:
        """True if one of the lines may hold the needles, or one is not a whole record and they may hold one of them."""
        held = [one(data) for one in self._filters]
        if len(held) == 1 or not any(held):
            return held[0]
        if not _are_records(data):
            return True
        if not all(held):
            return False
        for one in self._filters:
            data = one.lines(data)
        return bool(data)


def _are_records(data: bytes) -> bool:
    """True if these lines look like a JSON object each; the last one may be cut."""
    ends = stringzilla.count(data, b"}\n{") + data.endswith(b"}\n")
    return data.startswith(b"{") and ends == stringzilla.count(data, b"\n")


def _escapes_of(needle: Needle) -> re.Pattern[bytes]:
    """Return a pattern of all escapes that may stand for a character of the piece, or for a part of one."""
    piece = needle.piece
    codes = set(map(ord, piece))
    if not needle.case:
        codes.update(code for char in set(piece) for code in _unfolded().get(char, ()))
    units = {code if code < 0x10000 else 0xD800 + (code - 0x10000 >> 10) for code in codes}
    # In text that is JSON itself, the backslash and the letter of an escape may be escaped too.
    units |= {ord("\\"), ord("u"), *map(ord, "0123456789abcdefABCDEF")}
    ways = [b"%04x" % unit for unit in sorted(units)]
    if needle.fold:
        ways.append(rb"(?:00[c-f]|0[1-9a-f].|[1-9a-f]..).")  # any character that may have an accent
    elif not piece.isascii():
        ways.append(rb"(?:0[3-9a-f]|[1-9a-f].)..")  # any character that NFC may change
    return re.compile(rb"\\u(?:" + b"|".join(ways) + rb")", re.IGNORECASE)


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
