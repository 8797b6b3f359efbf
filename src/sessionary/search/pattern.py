r"""Regular expressions to search for, with the text that each of their matches contains.

A pattern is matched against the texts of messages as they are stored, line breaks included; ``^`` and ``$`` match at
lines. Most patterns contain words, and the byte search of `needle` looks for the longest of them. Only words
outside of brackets that are neither repeated nor optional count, and none beside an alternative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessionary.errors import Invalid
from sessionary.search.needle import Needle, Span, composed

_TOKEN = re.compile(r"\\(.)|(\[\^?\]?(?:\\.|[^\]\\])*\])|([*?+]|\{\d*,?\d*\})|([.^$()|])|(.)", re.DOTALL)

_CLASSES = frozenset("AbBdDsSwWZnrtfva")
"""Letters that stand with a backslash for a kind of character, a place or a blank."""


class Pattern:
    """A regular expression of Python's `re` to search for.

    Args:
        text: the expression.
        case: distinguish upper and lower case.

    Raises:
        Invalid: the expression is not valid.
    """

    def __init__(self, text: str, *, case: bool = False) -> None:
        text = composed(text)
        flags = re.MULTILINE | (re.NOFLAG if case else re.IGNORECASE)
        try:
            self._pattern = re.compile(text, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise Invalid(
                f"not a regular expression: {text!r}: {error}",
                operation="search",
                hint=r"put a backslash before literal signs: \( \[ \. \*",
            ) from None
        words = max(_literals(text, case), key=len, default="")
        self.needle: Needle | None = Needle(words, case=case) if words.strip() else None
        """The words that each match contains; None if none are known."""

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the positions of the matches in a text that is `composed`, without those that are empty."""
        return (Span(*found.span()) for found in self._pattern.finditer(text) if found.end() > found.start())


def _literals(text: str, case: bool) -> Iterator[str]:
    """Yield texts that each match contains."""
    if "(?" in text:
        return  # flags, conditions and assertions
    run, depth = "", 0
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        escaped, _, repeat, sign, plain = token.groups()
        if escaped and escaped.isalnum() and escaped not in _CLASSES:
            return  # a character by its number or name, or an earlier group
        if repeat and not repeat.startswith("+"):
            run = run[:-1]
        char = plain or (escaped if escaped and not escaped.isalnum() else "")
        if char and not depth and _is_matched_as_words(char, case):
            run += char
            continue
        found.append(run)
        run = ""
        depth += {"(": 1, ")": -1}.get(sign or "", 0)
        if sign == "|" and not depth:
            return
    yield from filter(str.strip, (*found, run))


def _is_matched_as_words(char: str, case: bool) -> bool:
    """True if `re` matches nothing for a character that `Needle` does not; ``i`` also matches one without a dot."""
    return case or (char.isascii() and char not in "iI") or char.upper() == char.lower()
