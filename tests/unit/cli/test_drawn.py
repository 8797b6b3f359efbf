"""Markdown on a terminal: drawn, and nothing of it lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.cli.page import markdown_lines as lines
from sessionary.cli.text import cells

TEXT = """\
# Why

It is **slow**, since `find` looks at *every* file:

- first one
- then another

```python
for path in root: look(path)
```

| what | how |
|---|---|
| a | b |
"""


def plain(text: str, width: int = 60) -> list[str]:
    return list(lines(text, width, colours=False))


def test_signs_become_what_they_mean() -> None:
    shown = plain(TEXT)
    said = "\n".join(shown)
    assert "It is slow, since find looks at every file:" in shown
    assert " • first one" in shown
    assert "for path in root: look(path)" in said
    assert not re.search(r"\*\*|```|^#|\|---", said, re.MULTILINE)


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" not in "".join(plain(TEXT))
    assert "\x1b[1mslow\x1b[0m" in "".join(lines(TEXT, 60, colours=True))


@pytest.mark.parametrize(
    "text",
    ["use <T> here", "<div>\nhidden?\n</div>", "![alt](http://x/y.png)", "a &amp; b", "[x]: http://example.org", "<http://a.b>"],
)  # fmt: skip
def test_what_a_browser_would_hide_stays(text: str) -> None:
    shown = "".join(plain(text)).replace(" ", "")
    for word in re.findall(r"\w+|[<>&;]", text):
        assert word in shown


@given(st.text("ab *_`#<>[]()!&;-\n0.|~\\日", max_size=80).filter(lambda text: "```" not in text))
def test_no_letter_is_lost_and_no_line_too_wide(text: str) -> None:
    shown = plain(text, 30)
    assert sorted(re.findall("[ab日]", "".join(shown))) == sorted(re.findall("[ab日]", text))
    assert all(cells(line) <= 30 for line in shown)
