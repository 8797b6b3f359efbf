"""Print a problem: severity, code, place, message and remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sessionary.cli import formatting, output
from sessionary.cli.text import harmless, one_line, wrap
from sessionary.model import Problem


def problem_lines(problem: Problem, base: str, indent: str = "") -> Iterator[str]:
    """The lines of a problem.

    Args:
        base: the folder or the file that was checked; paths are shown relative to it.
        indent: blanks before each line.
    """
    word = problem.severity.name.replace("_", " ")
    first, *rest = wrap(f"{word}  {problem.code}  {_place(problem, base)}", output.width() - len(indent) - 2)
    yield indent + output.paint(word, formatting.colour(problem.severity.name)) + first.removeprefix(word)
    yield from (f"{indent}  {line}" for line in rest)
    yield from item(f"{indent}  ", problem.message)
    if problem.repair:
        yield from item(f"{indent}  → ", problem.repair)


def item(lead: str, text: str) -> Iterator[str]:
    """A text behind a label, wrapped and indented below it."""
    first, *rest = list(wrap(harmless(text), output.width() - len(lead))) or [""]
    yield lead + first
    yield from (" " * len(lead) + line for line in rest)


def _place(problem: Problem, base: str) -> str:
    path = problem.path
    if path == base:
        path = os.path.basename(base)
    elif os.path.isabs(path):
        path = os.path.relpath(path, base)
    place = one_line(path)
    if problem.line is not None:
        place += f", line {problem.line:,}"
    if problem.byte is not None:
        place += f", byte {problem.byte:,}"
    return place
