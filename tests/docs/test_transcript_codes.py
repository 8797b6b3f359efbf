"""Every finding and change of a conversation is in docs/transcript.md, with the severity that the code gives it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sessionary.transcript import slicing, turn_boundaries
from sessionary.transcript.diagnosis import FINDINGS

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "transcript.md").read_text("utf-8")
SOURCE = REPO / "src" / "sessionary" / "transcript"


def calls_of(name: str) -> Iterator[ast.Call]:
    for path in sorted(SOURCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_finding_has_a_row() -> None:
    assert "orphaned_call" in FINDINGS
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", section("Findings of `diagnose`"), re.MULTILINE)
    assert dict(rows) == {code: severity.name for code, (severity, _text) in FINDINGS.items()}


def test_every_change_has_a_row() -> None:
    source = (SOURCE / "repair.py").read_text("utf-8")
    codes = set(re.findall(r'"((?:completed|dropped|moved|renamed|closed|removed|named)_\w+)"', source))
    made = {call.args[1].value for call in calls_of("Change") if isinstance(call.args[1], ast.Constant)}
    assert made <= codes
    rows = re.findall(r"^\| `(\w+)` \|", section("Changes of `mend`"), re.MULTILINE)
    assert sorted(rows) == sorted(codes)


def test_every_function_of_the_table_is_there() -> None:
    names = re.findall(r"^\| `(\w+)\(", section("Turns"), re.MULTILINE)
    assert len(names) == 7
    found = {**vars(turn_boundaries), **vars(slicing)}
    assert [name for name in names if not callable(found.get(name))] == []
