r"""Stored Markdown made inert: for pages that render it, and for Markdown files whose renderer is unknown.

In a Markdown file no HTML begins outside of code, no image is loaded, and no link has a scheme other than http, https
and mailto. Code stays as it is. What is code is decided as CommonMark does; what another renderer may not take as code
does not count as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessionary.escaping import harmless

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST = 100_000
"""Longest text that is parsed as Markdown, in characters; longer ones are files rather than messages."""

_PLAIN = ("html_block", "html_inline", "reference", "image", "entity", "autolink")
_CODE = ("fence", "code_block")
_ACTIVE = re.compile(r"[<\[]")
_TICKS = re.compile(r"\\.|`+|\][(:]", re.DOTALL)
# A cell of a table ends at a bar, and HTML at the start of a line interrupts a paragraph: both end a code span.
_DOUBTFUL = re.compile(r"[|\n]")
_RUNS = re.compile("`+")
_LINK = re.compile(r"\](\(|:)(?=\s*([^\s)]{0,500}))")
_SAFE = re.compile(r"(?i)(?:https?://|mailto:|[#./]|[\w-]*(?:[/.)]|$))[^&\\]*")


def markdown_parser() -> MarkdownIt:
    """A parser of Markdown without HTML, images and references."""
    from markdown_it import MarkdownIt  # imported here: slow, and most commands need none

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable([*_PLAIN])


def inert(text: str, parser: MarkdownIt) -> str:
    """Markdown in which nothing acts, and which looks the same otherwise; control characters are escaped."""
    text = harmless(text)
    if not _ACTIVE.search(text):
        return text
    if len(text) > LONGEST:
        return _inert_inline(text)
    lines = text.split("\n")
    pieces, end = list[str](), 0
    for first, last, is_code in _blocks(text, parser):
        pieces.append(_inert_inline("\n".join(lines[end:first]))) if first > end else None
        block = "\n".join(lines[first:last])
        pieces.append(block if is_code else _inert_block(block))
        end = last
    if end < len(lines):
        pieces.append(_inert_inline("\n".join(lines[end:])))
    return "\n".join(pieces)


def _blocks(text: str, parser: MarkdownIt) -> Iterator[tuple[int, int, bool]]:
    """The lines of each block of code or text: first, behind the last, and whether it is code."""
    end = 0
    for token in parser.parse(text):
        if token.map is None or not (token.type in _CODE or token.type == "inline"):
            continue
        first, last = max(token.map[0], end), token.map[1]
        if first < last:
            yield first, last, token.type in _CODE
            end = last


def _inert_block(text: str) -> str:
    """A block of text, with its code spans left as they are."""
    pieces, end, at = list[str](), 0, 0
    while opened := _TICKS.search(text, at):
        at = opened.end()
        ticks = opened[0]
        if ticks[0] == "]":
            break  # what follows may be the destination or the title of a link, in which a backtick begins no code
        if ticks[0] == "\\":
            continue
        closed = next((one for one in _RUNS.finditer(text, at) if one[0] == ticks), None)
        if closed is None:
            continue
        if not _DOUBTFUL.search(text, at, closed.start()):
            pieces += [_inert_inline(text[end : opened.start()]), text[opened.start() : closed.end()]]
            end = closed.end()
        at = closed.end()
    return "".join([*pieces, _inert_inline(text[end:])])


def _inert_inline(text: str) -> str:
    text = text.replace("<", "&lt;").replace("![", "!\\[")
    return _LINK.sub(lambda found: f"]{'' if _SAFE.fullmatch(found[2]) else chr(92)}{found[1]}", text)
