"""The examples of the pages in docs/howto/frameworks: what they import must come with the extra that they name."""

import ast
import re
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "howto" / "frameworks"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def example(name: str) -> str:
    """The example of the page of a framework."""
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert f"python -m pip install '.[{name}]'" in page
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(code)


def imported(code: str) -> set[str]:
    """The modules that an example imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found


def providers(module: str) -> set[str]:
    """The distributions that have a module, a namespace among several left out."""
    path = module.replace(".", "/")
    files = {f"{path}.py", f"{path}/__init__.py", f"{path}.abi3.so"}
    return {
        _normal(one.metadata["Name"])
        for one in distributions()
        if any(str(file) in files for file in one.files or ())
    }


def brought_by(extra: str) -> set[str]:
    """The distributions that an installation of the package with an extra brings, itself included."""
    todo, found = [("sessionary", extra)], set[str]()
    while todo:
        name, wanted = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += [(_normal(one), "") for one in _required(distribution(name), wanted)]
    return found


def _required(one: Distribution, extra: str) -> list[str]:
    """The names that a distribution requires always, and for an extra."""
    names = []
    for line in one.requires or ():
        requirement, _, marker = line.partition(";")
        found = _NAME.match(requirement.strip())
        of = re.search(r"extra == [\"']([^\"']+)", marker)
        if found and (of is None or _normal(of[1]) == extra) and _is_installed(found[0]):
            names.append(found[0])
    return names


def _is_installed(name: str) -> bool:
    return any(_normal(one.metadata["Name"]) == _normal(name) for one in distributions())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
