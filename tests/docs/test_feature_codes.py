"""Every code that a problem of a feature may have is in its page, with the severity that the code gives it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.conflict_copies import CONFLICT_COPY, NOT_DOWNLOADED
from sessionary.layouts.orchestrator.history import _ODD
from sessionary.layouts.orchestrator.rules import FEATURE_MOVES, TASK_MOVES
from sessionary.model import Severity

REPO = Path(__file__).resolve().parents[2]
ROOM = REPO / "src" / "sessionary" / "layouts" / "orchestrator"
PAGE = (REPO / "docs" / "formats" / "orchestrator.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", re.MULTILINE)


def codes() -> Iterator[tuple[str, str | None]]:
    """Each code with its severity, where the call says it."""
    yield from ((code, None) for code in _ODD)
    yield from ((code, "hides_data") for code in (CONFLICT_COPY, NOT_DOWNLOADED))
    yield FUTURE_TIME, "note"
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                severity = next(
                    (
                        word.attr
                        for word in node.args
                        if isinstance(word, ast.Attribute) and word.attr in Severity.__members__
                    ),
                    None,
                )
                place = {"Problem": 0, "of_file": 0, "note": 0, "_note": 0, "_refused": 1}.get(name)
                if place is not None and len(node.args) > place:
                    code = node.args[place]
                    if isinstance(code, ast.Constant):
                        yield str(code.value), "note" if "note" in name else severity
            elif isinstance(node, ast.Dict) and all(
                isinstance(key, ast.Constant) and str(key.value) in {"NotFound", "Unsupported", "SchemaError"}
                for key in node.keys
            ):
                yield from (
                    (str(value.value), None) for value in node.values if isinstance(value, ast.Constant)
                )


def test_every_code_has_a_row_and_every_row_a_code() -> None:
    table = PAGE.partition("## Problem codes")[2].partition("\n## ")[0]
    rows = {code: severity for code, severity, _ in ROW.findall(table)}
    found = dict(codes()) | {"bad_state": None}
    assert sorted(rows) == sorted(found)
    assert {code: rows[code] for code, severity in found.items() if severity} == {
        code: severity for code, severity in found.items() if severity
    }
    assert list(rows) == sorted(rows)


def test_the_tables_of_transitions_are_those_of_the_code() -> None:
    """Section "Updating State", 4: transitions."""
    section = PAGE.partition("## Transitions")[2].partition("\n## ")[0]
    written = [
        (old, re.findall(r"`(\w+)`", new))
        for old, new in re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    ]
    wanted = [
        (old, list(new) or [reopened])
        for moves, reopened in ((TASK_MOVES, "in_progress"), (FEATURE_MOVES, "active"))
        for old, new in moves.items()
    ]
    assert sorted(map(str, written)) == sorted(map(str, wanted))
