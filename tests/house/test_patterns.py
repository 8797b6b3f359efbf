"""No group of a pattern is possessive or atomic: Python before 3.11.5 matches some of those wrongly, without an error.

After such a group has failed in the middle, what it had read up to there counts as matched. Code that cuts a line by
the match then loses bytes, on the Python that Debian 12 brings and on no newer one.
"""

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
_POSSESSIVE = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")


def possessive_groups(source: str) -> list[str]:
    """The places of `source` that look like one."""
    return _POSSESSIVE.findall(source)


@pytest.mark.parametrize("pattern", ["(?:a,b)?+", "(a|b)*+", "(a)++", "(ab){2,3}+", "(?>ab)"])
def test_the_search_finds_each_of_them(pattern: str) -> None:
    assert len(possessive_groups(pattern)) == 1


@pytest.mark.parametrize("pattern", ['"[^"]*+"', "(?:a,b)?", "(a)+", r"\(ab\)++", "f(x) * +y"])
def test_the_search_finds_nothing_else(pattern: str) -> None:
    assert possessive_groups(pattern) == []


def test_no_group_is_possessive() -> None:
    found = {
        str(path.relative_to(SOURCE)): groups
        for path in SOURCE.rglob("*.py")
        if (groups := possessive_groups(path.read_text(encoding="utf-8")))
    }
    assert found == {}
