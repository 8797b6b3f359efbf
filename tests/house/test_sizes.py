"""A module has one reason, a function fits on a screen. These are the outer limits, not the aim."""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
MODULE_LINES = 550
FUNCTION_LINES = 70
GRAB_BAGS = {"utils", "helpers", "common", "misc"}


def _sources() -> list[Path]:
    found = sorted(SOURCE.rglob("*.py"))
    assert len(found) > 3
    return found


def _code_lines(source: str) -> int:
    """The lines of a module without docstrings, since a public class documents each method at length."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        node.body[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    ]
    return len(source.splitlines()) - sum((each.end_lineno or 0) - each.lineno + 1 for each in docstrings)


def test_no_module_has_more_code_than_anyone_wants_to_read() -> None:
    lengths = {str(path.relative_to(SOURCE)): _code_lines(path.read_text("utf-8")) for path in _sources()}
    assert {name: count for name, count in lengths.items() if count > MODULE_LINES} == {}


def test_docstrings_do_not_count() -> None:
    assert _code_lines('"""One."""\n\nclass A:\n    """Two\n\n    lines."""\n\n    x = """text"""\n') == 4


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
