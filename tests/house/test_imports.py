"""No two modules import each other, and no package imports the package `sessionary` itself.

Imports inside of functions and for type checkers count too: of two modules that need each other, neither can be read,
tested or moved alone. import-linter sees only packages.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path.read_text("utf-8") for path in sorted((SOURCE / "sessionary").rglob("*.py"))}


def imported(source: str) -> Iterator[str]:
    """The dotted names that a module imports, wherever in it; of ``from a import b`` both a.b and a."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def cycle_of(modules: dict[str, str]) -> list[str]:
    """Modules that import one another, the first one again at the end; empty if there are none."""
    graph = {name: {each for each in imported(source) if each != name} for name, source in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    assert len(MODULES) > 100
    assert cycle_of(MODULES) == []


@pytest.mark.parametrize(
    "back",
    ["import a", "from a import x", "def f():\n    from a import x", "if TYPE_CHECKING:\n    import a"],
)
def test_a_cycle_is_found_wherever_its_imports_are(back: str) -> None:
    assert set(cycle_of({"a": "import b", "b": "from c import d", "c": back})) == {"a", "b", "c"}
    assert cycle_of({"a": "import b", "b": "import c", "c": ""}) == []


def test_nothing_imports_the_package_itself() -> None:
    assert [name for name, source in MODULES.items() if "sessionary" in imported(source)] == []
