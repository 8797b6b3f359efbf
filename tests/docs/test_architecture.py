"""The map of packages: in the order of the import contract, and each path that the page names exists."""

import re
import tomllib
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "sessionary"
PAGE = (REPO / "docs" / "architecture.md").read_text("utf-8")
MAP = PAGE.partition("```text\n")[2].partition("```")[0]


def layers() -> list[str]:
    """The existing packages and modules from top to bottom, in the order of the import contract."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    names = [name.strip("()") for name in contracts[0]["layers"]]
    names.remove("__main__")  # it only starts `cli`
    return [name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()]


def test_the_map_has_the_packages_in_the_order_of_the_contract() -> None:
    named = re.findall(r"^([a-z][a-z_]*)(?:/|\.py) ", MAP, re.MULTILINE)
    assert named == layers()


def test_the_page_for_agents_has_them_too() -> None:
    table = (REPO / "AGENTS.md").read_text("utf-8").partition("| layer |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == layers()


def test_the_map_has_every_layout() -> None:
    there = {path.parent.name for path in (SOURCE / "layouts").glob("*/__init__.py")}
    inside = MAP.partition("\nlayouts/")[2]
    assert set(re.findall(r"^  ([a-z_]+)/ ", inside, re.MULTILINE)) == there


def test_each_module_that_a_page_names_exists() -> None:
    there = {path.name for path in SOURCE.rglob("*.py")} | {"layout.py"}
    for page in ("docs/architecture.md", "AGENTS.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"`(?:[a-z_<>]+/)+([a-z_]+\.py)`", (REPO / page).read_text("utf-8")))
        others = {path.name for folder in ("tests", "scripts") for path in (REPO / folder).rglob("*.py")}
        assert named - there - others == set(), page
