"""The map of the house: every room, in the order in which they may be imported, and each module of the larger ones."""

import re
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "sessionary"
PAGE = (REPO / "docs" / "architecture.md").read_text("utf-8")
ROOMS = PAGE.partition("```text\n")[2].partition("```")[0]


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def layers() -> list[str]:
    """The rooms that stand, from top to bottom, as the contract on imports has them; `__main__` only starts `cli`."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    names = [name.strip("()") for name in contracts[0]["layers"]]
    names.remove("__main__")
    return [name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()]


def test_the_map_has_the_rooms_in_the_order_of_the_contract() -> None:
    named = re.findall(r"^([a-z][a-z_]*)(?:/|\.py) ", ROOMS, re.MULTILINE)
    assert named == layers()


def test_the_page_for_agents_has_them_too() -> None:
    table = (REPO / "AGENTS.md").read_text("utf-8").partition("| layer |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == layers()


def modules(room: Path) -> set[str]:
    return {path.name for path in room.glob("*.py")} - {"__init__.py"}


def listed(text: str) -> list[str]:
    """The modules that the rows of a table name."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return sorted(name for row in rows for name in re.findall(r"`([a-z_]+\.py)`", row.split(" | ")[0]))


@pytest.mark.parametrize(
    "heading", re.findall(r"^## (Inside [a-z ]+)$", PAGE, re.MULTILINE), ids=lambda heading: heading[7:]
)
def test_each_module_of_a_room_has_its_reason(heading: str) -> None:
    words = heading.removeprefix("Inside ").removeprefix("the ")
    room = SOURCE / ("layouts/" + words.removesuffix(" layout") if words.endswith(" layout") else words)
    parts = re.split(r"^Its `([a-z_]+)/`.*$", section(heading), flags=re.MULTILINE)
    for folder, text in [
        (room, parts[0]),
        *((room / n, t) for n, t in zip(parts[1::2], parts[2::2], strict=True)),
    ]:
        assert modules(folder), folder
        assert listed(text) == sorted(modules(folder))


def test_no_layout_is_without_its_list() -> None:
    there = {path.parent.name for path in (SOURCE / "layouts").glob("*/__init__.py")}
    assert set(re.findall(r"^## Inside the ([a-z]+) layout$", PAGE, re.MULTILINE)) == there


@pytest.mark.parametrize("room", ["disk", "layouts"])
def test_the_map_shows_each_module_of_a_room_that_it_opens(room: str) -> None:
    inside = re.search(rf"^{room}/.*\n((?: +.*\n)+)", ROOMS, re.MULTILINE)
    assert inside is not None
    assert set(re.findall(r"^  ([a-z_]+\.py) ", inside[1], re.MULTILINE)) == modules(SOURCE / room)


def test_each_module_that_the_page_names_is_there() -> None:
    there = {path.name for path in SOURCE.rglob("*.py")}
    assert set(re.findall(r"`(?:[a-z_]+/)*([a-z_]+\.py)`", PAGE)) - there == set()
