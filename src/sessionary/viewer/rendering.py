"""Markdown and code as HTML that cannot act: no script, nothing that is loaded, links to the web and to mail only.

The parser escapes HTML, `nh3` then keeps only the elements below, and the policy of the page stops what passes both.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING

import nh3

from sessionary.escaping import harmless
from sessionary.export.markup import LONGEST, markdown_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_TAGS = frozenset(
    "a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul".split()
)
_ATTRIBUTES = {"a": {"href"}, "span": {"class"}, "code": {"class"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_LONGEST_CODE = 20_000
"""Longest code that is coloured, in characters."""


def html_of(text: str) -> str:
    """Stored Markdown as HTML."""
    text = harmless(text)
    if len(text) > LONGEST:
        return f"<pre>{escape(text)}</pre>"
    return nh3.clean(
        _parser().render(text),
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noreferrer noopener nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


@cache
def _parser() -> MarkdownIt:
    parser = markdown_parser()
    parser.options["highlight"] = _coloured
    return parser


def _coloured(code: str, language: str, _: str) -> str:
    """Code with a class for each kind of word; an empty string leaves it as it is."""
    if not language or len(code) > _LONGEST_CODE:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
