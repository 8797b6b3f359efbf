"""Markdown as a terminal shows it: what an agent writes between stars, hashes and fences, without these.

Nothing is left out but the name of the language of a block of code. What a browser would hide or fetch (tags, images,
entities, definitions of links) stays as it was written, and so do the signs for struck-out text, which not every
terminal can strike out. The text must be harmless already.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

LONGEST = 100_000
"""Characters up to which a text is drawn; a longer one is a file, not a message, and would take seconds."""

_PLAIN = ("html_block", "reference")
_PLAIN_INLINE = ("html_inline", "image", "entity", "autolink")


def lines(text: str, width: int, *, colours: bool) -> Iterator[str]:
    """The lines of a text that is Markdown, each of at most `width` cells."""
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
