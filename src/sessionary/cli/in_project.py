"""What the commands share that work on the sessions kept inside of a project: brainstorms and features."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from sessionary.cli import output, phrases
from sessionary.cli.problems import item, told
from sessionary.cli.text import fit, harmless, one_line, wrap
from sessionary.errors import Corrupt
from sessionary.model import Problem, Severity

DAMAGED = Corrupt.exit_code

root = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="The folder of the project (default: the present one).",
)
as_json = click.option("--json", "json_", is_flag=True, help="Print the result as one JSON document.")
dry_run = click.option("--dry-run", is_flag=True, help="Tell what would be done, and write nothing.")
notes = click.option(
    "--notes", is_flag=True, help="Print the notes too: worth knowing, and nothing is wrong."
)


def may_ask(json_: bool) -> bool:
    """True if somebody sits at a terminal who can be asked. The question goes to standard error."""
    return not json_ and sys.stdin.isatty() and sys.stderr.isatty()


def command_line(group: str, place: Path, *words: str) -> str:
    """A command line that can be copied, for the same project."""
    where = [] if place == Path() else ["--root", str(place)]
    name, *rest = words
    return shlex.join(["sessionary", group, name, *rest, *where])


def label(name: str, text: str, width: int = 11) -> Iterator[str]:
    """A named value, broken into lines under each other."""
    lines = [line for line in wrap(harmless(text), output.width() - width) if line] or [""]
    yield output.paint(f"{name:<{width}}", "dim") + lines[0]
    yield from (" " * width + line for line in lines[1:])


def heading(text: str) -> Iterator[str]:
    """A blank line and a heading."""
    yield ""
    yield output.paint(fit(one_line(text), output.width()), "bold")


def warn(problems: Iterable[Problem], *, worse_than: Severity | None = None) -> None:
    """Tell the person, beside the result, what is odd about what was read or done."""
    for problem in problems:
        if worse_than is None or problem.severity > worse_than:
            sign = "✗ " if problem.severity >= Severity.stops_resume else "! "
            for line in item(sign, _said(problem)):
                output.aside(line)


def _said(problem: Problem) -> str:
    return problem.message + (f"; {problem.repair}" if problem.repair else "")


def findings(problems: list[Problem], base: str, *, with_notes: bool) -> Iterator[str]:
    """What was found, the worst first, and one line over all."""
    shown = [problem for problem in problems if with_notes or problem.severity > Severity.note]
    for problem in sorted(shown, key=lambda one: -one.severity):
        yield from told(problem, base)
    quiet = len(problems) - len(shown)
    hint = f" ({phrases.count(quiet, 'note')}: --notes prints them)" if quiet else ""
    worse = sum(problem.severity > Severity.note for problem in problems)
    if worse:
        yield f"✗ {phrases.count(worse, 'problem')}{hint}"
    else:
        yield f"{output.paint('✓', 'green')} nothing is wrong{hint}"


def exit_code(problems: Iterable[Problem]) -> int:
    """That of a check: 13 if anything is worse than a note."""
    return DAMAGED if any(problem.severity > Severity.note for problem in problems) else 0


def report(problems: list[Problem], base: str, *, json_: bool, with_notes: bool) -> int:
    """Print what a check has found; its exit code."""
    if json_:
        found = [problem.as_dict() for problem in problems]
        output.value({"ok": exit_code(problems) == 0, "problems": found})
    else:
        output.lines(findings(problems, base, with_notes=with_notes))
    return exit_code(problems)


def short_path(path: str) -> str:
    """The path from where the person is, if it leads down from there; else as it is."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near


def lines_of(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    """All lines of several parts."""
    for part in parts:
        yield from part
