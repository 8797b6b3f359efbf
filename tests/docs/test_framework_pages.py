"""The pages of the frameworks, one after the other as one user reads them: each command means one session."""

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "howto" / "frameworks"


def test_the_sessions_of_the_examples_have_different_ids() -> None:
    named = {
        page.stem: re.findall(r"^\$ sessionary show (\S+)$", page.read_text("utf-8"), re.M)
        for page in PAGES.glob("*.md")
    }
    assert len(named) == 5
    assert all(len(names) == 1 for names in named.values())
    words = [name for (name,) in named.values()]
    assert not [
        (one, other) for one in words for other in words if one is not other and other.startswith(one)
    ]
    for page, name in zip(named, words, strict=True):
        assert f'"{name}' in (PAGES / f"{page}.md").read_text("utf-8"), "the example makes it"
    quickstart = (PAGES.parents[1] / "quickstart.md").read_text("utf-8")
    assert not [name for name in words if f'"{name}' in quickstart]
