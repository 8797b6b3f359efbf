"""Change notes have legal names and readable texts, or the next release cannot gather them."""

import re
from pathlib import Path

import pytest

CHANGES = Path(__file__).resolve().parents[2] / "changes"
TYPES = ("added", "changed", "fixed", "removed", "format")
NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(TYPES)})\.md")


def notes() -> list[Path]:
    return sorted(path for path in CHANGES.iterdir() if path.name != "README.md")


def test_every_name_is_words_and_a_type() -> None:
    assert [path.name for path in notes() if not NAME.fullmatch(path.name)] == []


def test_every_text_is_sentences() -> None:
    for path in notes():
        text = path.read_text("utf-8").strip()
        assert text[:1].isupper() or text[:1] == "`", (
            f"{path.name}: begins with a capital letter or a name in backquotes"
        )
        assert text.endswith("."), f"{path.name}: ends with a full stop"
        assert "\n#" not in f"\n{text}", f"{path.name}: has no heading"


def test_every_link_of_a_note_resolves() -> None:
    for path in notes():
        for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
            assert (CHANGES / target).exists(), f"{path.name}: {target}"


def test_every_type_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", (CHANGES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert tuple(explained) == TYPES


@pytest.mark.parametrize("name", ["2.added.md", "two-words.format.md"])
def test_a_legal_name(name: str) -> None:
    assert NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["added.md", "Two.added.md", "two_words.added.md", "x.improved.md", "x.added.rst"]
)
def test_an_illegal_name(name: str) -> None:
    assert not NAME.fullmatch(name)
