"""Prepare stored text for a terminal: escape, measure, cut and wrap it.

Widths are counted in terminal cells, not characters: 日 takes two, a combining accent none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from sessionary.escaping import harmless as harmless  # noqa: PLC0414 - most commands import it from here

# Characters of one cell each: Latin, Greek, Cyrillic, and the punctuation, arrows, signs and lines around them.
_NARROW = (
    "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u203b"
    "\u20a0-\u20bf\u2190-\u2193\u2500-\u25fc\u2713\u2717]*"
)
_QUOTED = {ord("'"): "\\'", ord("\\"): "\\\\"}
_WORDS = r"\S+|\s+"


def one_line(text: str) -> str:
    """The text on one line, harmless, each run of blanks as one."""
    return text if text.isprintable() else harmless(" ".join(text.split()))


def shell_line(words: Sequence[str]) -> str:
    """A command line to copy. A word that is not valid UTF-8 is written as escaped bytes, as bash and zsh read it."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    import shlex  # imported here: most results need none

    if not re.search("[\udc80-\udcff]", word):
        return shlex.quote(word)
    raw = word.translate(_QUOTED).encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in raw) + "'"


def short_path(path: str) -> str:
    """A path with the user's home as ``~``."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if f"{path}/".startswith(f"{home}/") else path


def cells(text: str) -> int:
    """The width of a text in terminal cells."""
    if text.isascii() or _is_narrow(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _is_narrow(text: str) -> bool:
    """True if each character is known to take one cell."""
    return re.fullmatch(_NARROW, text) is not None


def fit(text: str, width: int, *, ellipsis: str = "…", keep_end: bool = False) -> str:
    """The text in at most `width` cells; an ellipsis marks a cut."""
    if len(text) <= 4 * width and cells(text) <= width:
        return text
    room = max(width - len(ellipsis), 0)
    if not keep_end:
        return _head(text, room).rstrip() + ellipsis
    while cells(text) > room:
        text = text[1:]
    return ellipsis + text


def pad(text: str, width: int) -> str:
    """The text padded with blanks to `width` cells."""
    return text + " " * (width - cells(text))


def widest(texts: Sequence[str]) -> int:
    """The width of the widest text in cells."""
    return max(widths(texts).values(), default=0)


def widths(texts: Iterable[str]) -> dict[str, int]:
    """The width of each text in cells; many of a column are the same."""
    return {text: cells(text) for text in {*texts}}


def column(texts: Sequence[str], *, right: bool = False) -> list[str]:
    """The texts padded to the width of the widest; `right`: aligned right."""
    return list(padded(texts, right=right))


def padded(texts: Sequence[str], *, right: bool = False) -> Iterator[str]:
    """As `column`, one text after the other: a long table is not held a second time."""
    taken = widths(texts)
    width = max(taken.values(), default=0)
    filled = {
        text: " " * (width - cells) + text if right else text + " " * (width - cells)
        for text, cells in taken.items()
    }
    return map(filled.__getitem__, texts)


def wrap(text: str, width: int) -> Iterator[str]:
    """The lines of the text, each at most `width` cells; broken at blanks if possible.

    Indentation is kept, for code, unless it leaves no room for the text.
    """
    for line in map(str.rstrip, text.split("\n")):
        if cells(line) <= width:
            yield line
        else:
            yield from _broken(line, max(width, 2))


def _broken(line: str, width: int) -> Iterator[str]:
    words = line.lstrip()
    if cells(line[: len(line) - len(words)]) > width - 2:  # a character may take two
        line = words
    current, used = "", 0
    for match in re.finditer(_WORDS, line):  # not findall: a line may have millions of words
        word = match.group()
        if used + cells(word) > width and current.strip():
            yield current.rstrip()
            current, used = "", 0
            if word.isspace():
                continue
        *whole, rest = _pieces(word, width - used, width)
        for piece in whole:
            yield current + piece
            current, used = "", 0
        current += rest
        used += cells(rest)
    if current.strip():
        yield current.rstrip()


def _pieces(word: str, room: int, width: int) -> Iterator[str]:
    """A word cut into pieces of at most `width` cells, the first of at most `room`; one piece if it fits."""
    start = 0  # an index instead of slices: a word may be megabytes of base64
    while len(word) - start > 4 * room or cells(word[start:]) > room:
        piece = _head(word[start : start + 4 * room], room) or word[start]
        yield piece
        start, room = start + len(piece), width
    yield word[start:]


def _head(text: str, width: int) -> str:
    """The longest prefix of the text that fits into `width` cells, no character split."""
    text = text[: 4 * width]  # more fits only with many combining marks
    if _is_narrow(text):
        return text[:width]
    from rich.cells import split_graphemes

    spans, _ = split_graphemes(text)
    used = end = 0
    for _start, stop, size in spans:
        if used + size > width:
            break
        used, end = used + size, stop
    return text[:end]
