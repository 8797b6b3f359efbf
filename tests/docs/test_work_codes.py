"""Every code that a problem of a work session may have is in its page, with the severity that the code gives it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.conflict_copies import CONFLICT_COPY, NOT_DOWNLOADED
from sessionary.layouts.maestro.records import CRUMB_KEYS, SESSION_KEYS
from sessionary.layouts.maestro.statuses import NEXT
from sessionary.model import Severity

MAKERS = ("Problem", "Problem.of_file")
REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "formats" / "maestro.md").read_text("utf-8")
SOURCE = REPO / "src" / "sessionary" / "layouts" / "maestro"


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def problems() -> Iterator[tuple[str, str]]:
    """Code and severity of every call that makes a problem; both must stand there in so many words."""
    yield from ((code, "hides_data") for code in (CONFLICT_COPY, NOT_DOWNLOADED))
    yield FUTURE_TIME, "note"
    for path in sorted(SOURCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS:
                code, severity = node.args[:2]
                assert isinstance(code, ast.Constant), f"{path.name}:{node.lineno}"
                assert isinstance(severity, ast.Attribute), f"{path.name}:{node.lineno}"
                yield str(code.value), severity.attr


def test_every_code_has_a_row_with_its_severity_and_every_row_a_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \|$", section("Problems"), re.MULTILINE)
    assert {("no_file", "hides_data"), ("orphan", "note")} <= set(rows)
    assert sorted(rows) == sorted(set(problems()))
    assert {severity for _, severity in rows} <= {severity.name for severity in Severity}


def test_every_key_of_both_files_is_reported_in_its_order() -> None:
    for heading, keys in (("session.json", SESSION_KEYS), ("A breadcrumb", CRUMB_KEYS)):
        rows = re.findall(r"^\| `(\w+)` \|", section(heading), re.MULTILINE)
        assert tuple(rows) == keys


def test_the_ways_between_statuses_are_those_of_the_code() -> None:
    reported = dict(re.findall(r"(\w+) → ([\w, ]+)[;.]", section("Writing")))
    assert {status: frozenset(ways.split(", ")) for status, ways in reported.items()} == {
        status: ways for status, ways in NEXT.items() if ways
    }
