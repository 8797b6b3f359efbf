"""Nothing draws from the generator that the module `random` shares with everybody.

A program that has seeded it to repeat a run would find other numbers in it, at times that depend on our threads; and a
test that draws meanwhile is reported by Hypothesis as not repeatable.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
OWN = {"Random", "SystemRandom"}


def shared(source: str) -> Iterator[int]:
    """The lines of `source` that use something of the module but a generator of their own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            yield from (node.lineno for name in node.names if name.name not in OWN)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "random":
            yield from [node.lineno] if node.attr not in OWN else []


def test_the_search_finds_what_is_shared() -> None:
    assert sorted(shared("import random\nrandom.uniform(0, 1)\nx = random.choice")) == [2, 3]
    assert list(shared("from random import Random, choice\nRandom(1).choice([1])")) == [1]
    assert list(shared("import random\nfate = random.Random(7)\nfate.random()\nrandom.SystemRandom()")) == []


def test_nothing_draws_from_the_shared_generator() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := list(shared(path.read_text(encoding="utf-8"))))
    }
    assert found == {}
