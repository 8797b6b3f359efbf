"""Every code that a read-only layout of another agent reports is in its page, with its severity."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.records import chain
from sessionary.layouts.registry import LAYOUTS
from sessionary.model import Severity
from sessionary.transcript.fold import UNPAIRED

MAKERS = ("Problem", "Problem.of_file", "self.refuse")
REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "sessionary"
SHARED = (
    SOURCE / "layouts" / "agents" / "reading.py",
    SOURCE / "layouts" / "summary.py",
    SOURCE / "transcript" / "fold.py",
)
OF_CLOCK = (FUTURE_TIME, "note")
TABLES: dict[str, dict[str, Severity]] = {
    "fold.py": UNPAIRED,
    "log_check.py": {},  # passes on the codes of `refuse`
    "chain.py": chain.SHOWN,
}
"""The codes of modules that report by a table."""
CHECKS = ("id_check", "log_check", "tree_check")
"""The checks that several agents share."""


def codes(paths: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS:
                code, severity = node.args[:2]
                if isinstance(code, ast.Constant):
                    assert isinstance(severity, ast.Attribute), f"{path.name}:{node.lineno}"
                    yield str(code.value), severity.attr
                else:
                    assert path.name in TABLES, f"{path.name}:{node.lineno}"
    for path in paths:
        yield from ((name, found.name) for name, found in TABLES.get(path.name, {}).items())


def modules(name: str) -> Iterator[Path]:
    """The module of an agent, and those of `layouts/agents` that it imports, without the checks of other agents."""
    package = SOURCE / "layouts" / name
    if package.is_dir():
        yield from package.glob("*.py")
        return
    waiting, found = [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one not in found and not (one.endswith("_check") and one not in (f"{name}_check", *CHECKS)):
            found.add(one)
            path = SOURCE / "layouts" / "agents" / f"{one}.py"
            yield path
            waiting += re.findall(
                r"^ *from sessionary\.layouts\.agents\.(\w+) ", path.read_text("utf-8"), re.MULTILINE
            )


@pytest.mark.parametrize("name", [layout.name for layout in LAYOUTS])
def test_every_code_has_a_row_with_its_severity_and_every_row_a_code(name: str) -> None:
    page = (REPO / "docs" / "formats" / f"{name.replace('_', '-')}.md").read_text("utf-8")
    section = page.partition("\n## Problem codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \|$", section, re.MULTILINE)
    assert sorted(rows) == sorted({OF_CLOCK, *codes((*SHARED, *modules(name)))})
