"""A module has one reason, a function fits on a screen. These are the outer limits, not the aim."""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
MODULE_LINES = 600
FUNCTION_LINES = 70
GRAB_BAGS = {"utils", "helpers", "common", "misc"}


def _sources() -> list[Path]:
    found = sorted(SOURCE.rglob("*.py"))
    assert len(found) > 3
    return found


def test_no_module_is_longer_than_anyone_wants_to_read() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines()) for path in _sources()
    }
    assert {name: count for name, count in lengths.items() if count > MODULE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno)
        - node.lineno
        + 1
        for path in _sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: count for name, count in found.items() if count > FUNCTION_LINES} == {}


def test_no_module_is_a_grab_bag() -> None:
    assert [str(path) for path in _sources() if path.stem in GRAB_BAGS or path.parent.name in GRAB_BAGS] == []
