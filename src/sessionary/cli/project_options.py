"""Options and output that the commands for brainstorms and features share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sessionary.cli import formatting, output
from sessionary.cli.gitignore_hint import print_afterwards
from sessionary.cli.problems import item, problem_lines
from sessionary.cli.text import fit, harmless, one_line, shell_line, wrap
from sessionary.errors import Corrupt, NotFound, SessionaryError
from sessionary.model import Problem, Severity
from sessionary.workspace import check_folder, check_store

DAMAGED = Corrupt.exit_code
T = TypeVar("T")

KINDS = frozenset({"brainstorm", "feature"})
"""The groups of commands that use these options, named as the kinds of their sessions."""
_BEGINS = frozenset({"start", "create", "ack"})


def _check_root(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    """Refuse a folder that was named but holds no store of the kind of the command group.

    Commands that begin a store need only the project folder.
    """
    if ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE and ctx.parent is not None:
        place = Path(os.path.expanduser(value))
        if ctx.command.name in _BEGINS:
            check_folder(place, named_by="--root")
        else:
            check_store(place, ctx.parent.info_name, named_by="--root")
    if ctx.parent is not None and ctx.parent.info_name in KINDS:
        print_afterwards(ctx, ctx.parent.info_name, Path(os.path.expanduser(value)))
    return value


def resolving(find: Callable[[Path, str], str]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an argument that names a session: its id, the beginning of that, or `latest`.

    A word that names no session is passed on unchanged: the command reports it.

    Args:
        find: returns the id for a word among the sessions of a project, or raises NotFound.
    """

    def callback(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        root: Path = ctx.params["root"]
        if value is not None:
            try:
                return find(root, value)
            except NotFound:
                return value
        return None

    return callback


root = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_check_root,
    is_eager=True,  # other parameters are resolved in it
    default=Path(),
    metavar="DIR",
    help="Project folder (default: the current one).",
)
notes = click.option("--notes", is_flag=True, help="Also show informational notes.")


def before(read: Callable[[], T]) -> T | None:
    """The value before a write, for its undo line; None if it cannot be read: the write then reports why."""
    with suppress(SessionaryError):
        return read()
    return None


def may_ask(json_: bool) -> bool:
    """True if a user at a terminal can be asked. The question goes to standard error."""
    return not json_ and sys.stdin.isatty() and sys.stderr.isatty()


def command_line(group: str, place: Path, *words: str) -> str:
    """A command line to copy, for the same project."""
    where = [] if place == Path() else ["--root", str(place)]
    name, *rest = words
    return shell_line(["sessionary", group, name, *rest, *where])


def label(name: str, text: str, width: int = 11) -> Iterator[str]:
    """A named value, wrapped and indented below its name."""
    lines = [line for line in wrap(harmless(text), output.width() - width) if line] or [""]
    yield output.paint(f"{name:<{width}}", "dim") + lines[0]
    yield from (" " * width + line for line in lines[1:])


def heading(text: str) -> Iterator[str]:
    """A blank line and a heading."""
    yield ""
    yield output.paint(fit(one_line(text), output.width()), "bold")


def warn(problems: Iterable[Problem], *, worse_than: Severity | None = None) -> None:
    """Print the problems that were found while reading or writing, on standard error."""
    for problem in problems:
        if worse_than is None or problem.severity > worse_than:
            sign = "✗ " if problem.severity >= Severity.stops_resume else "! "
            for line in item(sign, _said(problem)):
                output.aside(line)


def _said(problem: Problem) -> str:
    return problem.message + (f"; {problem.repair}" if problem.repair else "")


def findings(problems: list[Problem], base: str, *, with_notes: bool) -> Iterator[str]:
    """The problems, worst first, and a summary line."""
    shown = [problem for problem in problems if with_notes or problem.severity > Severity.note]
    for problem in sorted(shown, key=lambda one: -one.severity):
        yield from problem_lines(problem, base)
    quiet = len(problems) - len(shown)
    hint = f" ({formatting.count(quiet, 'note')}: --notes prints them)" if quiet else ""
    worse = sum(problem.severity > Severity.note for problem in problems)
    if worse:
        yield f"✗ {formatting.count(worse, 'problem')}{hint}"
    else:
        yield f"{output.paint('✓', 'green')} no problems found{hint}"


def exit_code(problems: Iterable[Problem]) -> int:
    """The exit code of a check: 13 if anything is worse than a note."""
    return DAMAGED if any(problem.severity > Severity.note for problem in problems) else 0


def report(
    problems: list[Problem], base: str, *, checked: int, json_: bool, jsonl: bool, with_notes: bool
) -> int:
    """Print the findings of a check of so many sessions; return its exit code."""
    if json_ or jsonl:
        found = [problem.as_dict() for problem in problems]
        document = {"ok": exit_code(problems) == 0, "checked": checked, "problems": found}
        output.holding(document, "problems", jsonl=jsonl)
    elif not checked and not problems:
        output.aside(f"Nothing to check in {one_line(base)}.")
    else:
        output.lines(findings(problems, base, with_notes=with_notes))
    return exit_code(problems)


def short_path(path: str) -> str:
    """The path relative to the current folder if it is below that; else unchanged."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near


def lines_of(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of all parts."""
    for part in parts:
        yield from part
