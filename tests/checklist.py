"""Whether every point of a specification is held by a test that names the section in which it stands.

A specification is written down as a map: section, point in short words, names of tests. That each of these tests
exists, and says in its docstring which section it holds us to, can be read from the files without running any.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Points = Mapping[str, Mapping[str, tuple[str, ...]]]

TESTS = Path(__file__).parent


def docstrings(files: Iterable[str]) -> dict[str, str]:
    """The docstring of every test of some files or folders below `tests`, by the name of the test."""
    found: dict[str, str] = {}
    for place in files:
        path = TESTS / place
        for file in sorted(path.glob("test_*.py")) if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                named = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
                if named or (isinstance(node, ast.ClassDef) and node.name.endswith("Machine")):
                    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
                    assert node.name not in found, f"{node.name} is there twice"
                    found[node.name] = ast.get_docstring(node) or ""
    return found


def complaints(points: Points, files: Iterable[str]) -> Iterator[str]:
    """Every point without a test, every test that is not there, every one that does not name its section."""
    known = docstrings(files)
    for section, rules in points.items():
        if not rules:
            yield f"{section}: has no points"
        for rule, tests in rules.items():
            if not tests:
                yield f"{section}: nothing tests {rule!r}"
            for name in tests:
                if name not in known:
                    yield f"{section}: there is no test {name}"
                elif f'"{section}"' not in known[name]:
                    yield f"{section}: {name} does not name it"


def unlisted(points: Points, files: Iterable[str]) -> Iterator[str]:
    """Every test that names a section of the list, and is not listed under it."""
    for name, text in docstrings(files).items():
        for section, rules in points.items():
            if f'"{section}"' in text and not any(name in tests for tests in rules.values()):
                yield f"{section}: {name} stands under none of its points"
