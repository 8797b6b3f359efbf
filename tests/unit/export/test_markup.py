"""Markdown that `inert` returns does nothing in a renderer that allows everything, whatever it was made of."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sessionary.export.markup import inert, markdown_parser

PARSER = markdown_parser()
OPEN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PLAIN = MarkdownIt("commonmark", {"html": True})
for one in (OPEN, PLAIN):
    one.validateLink = lambda url: True  # type: ignore[method-assign]

TOKENS = [
    "`", "``", "```", "~~~", "\n", "\n\n", " ", "    ", "- ", "> ", "1. ", "# ", "|", "|---|", "\\", "<img src=x>",
    "<x",
    "</details>", "<!--", "-->", "<![CDATA[", "<?", "[a](", "[b]: ", "javascript:x", ")", "![", "]", "(", "<", "&lt;",
    "&#106;avascript:x", "*", "_", "text", "---", "<a href=`", "`>", "'", '"', "https://e.x/",
]  # fmt: skip
EVIL = re.compile(r"</?(?:img|x|details)\b|<[!?]")
SCHEME = re.compile(r"(?i)href=\"(?!https?:|mailto:)[a-z][\w+.-]*:")


@given(st.lists(st.sampled_from(TOKENS), max_size=24).map("".join))
@example("`-->\n</details>`")  # HTML at the start of a line ends a paragraph, and so a code span
@example("\\\\``<!--`")  # an escaped backslash escapes nothing
@example("[a](```)</details>```")  # the destination of a link is not code
@example("[a](x '`')</details>`")
@example("| ` | <x> | ` |\n|---|---|---|")
def test_nothing_acts(text: str) -> None:
    quoted = "\n".join(f"> {line}" for line in inert(text, PARSER).split("\n"))
    for renderer in (OPEN, PLAIN):
        page = renderer.render(f"{quoted}\n\n## END\n")
        assert not EVIL.search(page), page
        assert not SCHEME.search(page), page
        assert "<h2>END</h2>" in page


@pytest.mark.parametrize(
    "text",
    [
        "`List<int>`",
        "``a ` <b>``",
        "```html\n<b>\n```",
        "    <b>",
        "~~~\n<b>\n~~~",
        "[x](https://a.b) [y](a/b.md#c)",
        "a > b",
    ],
)
def test_code_and_plain_links_stay(text: str) -> None:
    assert inert(text, PARSER) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b <b>", "a &lt; b &lt;b>"),
        ("[x](javascript:y)", "[x]\\(javascript:y)"),
        ("[x]: data:y", "[x]\\: data:y"),
        ("![x](https://a.b/p.png)", "!\\[x](https://a.b/p.png)"),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_what_acts_is_escaped(text: str, expected: str) -> None:
    assert inert(text, PARSER) == expected
