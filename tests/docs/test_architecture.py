"""The map of the house names every room, in the order in which they may be imported, and each module of a layout."""

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
    """The rooms that stand, from top to bottom, as the contract on imports has them."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    names = [name.strip("()") for name in contracts[0]["layers"]]
    return [name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()]


def test_the_map_has_the_rooms_in_the_order_of_the_contract() -> None:
    named = re.findall(r"^([a-z]+)(?:/|\.py) ", ROOMS, re.MULTILINE)
    assert named == layers()


def test_the_page_for_agents_has_them_too() -> None:
    table = (REPO / "AGENTS.md").read_text("utf-8").partition("| layer |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == layers()


@pytest.mark.parametrize("name", ["amplifier", "brainstorm", "maestro", "orchestrator"])
def test_each_module_of_a_layout_has_its_reason(name: str) -> None:
    table = section(f"Inside the {name} layout")
    there = {path.name for path in (SOURCE / "layouts" / name).glob("*.py")} - {"__init__.py"}
    assert there
    assert set(re.findall(r"`([a-z_]+\.py)`", re.sub(r"^(?!\|).*$", "", table, flags=re.MULTILINE))) == there


def test_each_module_that_the_page_names_is_there() -> None:
    there = {path.name for path in SOURCE.rglob("*.py")}
    assert set(re.findall(r"`(?:[a-z_]+/)*([a-z_]+\.py)`", PAGE)) - there == set()
