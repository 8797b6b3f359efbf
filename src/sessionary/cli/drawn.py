"""Markdown for a terminal: rendered without its stars, hashes and fences.

Only the language of a code block is left out. What a browser would hide or fetch (tags, images, entities,
link definitions) stays as it was written, and so do the marks of struck-out text, which not every terminal
can show. The text must be harmless already.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

LONGEST = 100_000
"""Longest text that is rendered, in characters; longer texts are files rather than messages, and would take seconds."""

_PLAIN = ("html_block", "reference")
_PLAIN_INLINE = ("html_inline", "image", "entity", "autolink")


def lines(text: str, width: int, *, colours: bool) -> Iterator[str]:
    """Return the lines of a Markdown text, each of at most `width` cells."""
    from markdown_it import MarkdownIt
    from rich.console import Console
    from rich.markdown import Markdown

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable([*_PLAIN, *_PLAIN_INLINE])
    page = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    page.parsed = parser.parse(text)
    page.markup = text
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )
    console.print(page)
    for line in screen.getvalue().strip("\n").split("\n"):
        yield line.rstrip()
