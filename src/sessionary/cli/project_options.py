"""Options and output that the commands for brainstorms and features share."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sessionary.cli import changing, formatting, options, output
from sessionary.cli.gitignore_hint import print_afterwards
from sessionary.cli.problems import item, problem_lines
from sessionary.cli.text import fit, one_line, shell_line
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


_root = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_check_root,
    is_eager=True,  # other parameters are resolved in it
    default=Path(),
    metavar="DIR",
    help="Project folder (default: the current one).",
)


def on_store(opened: Callable[[Path], Any]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The option --root, for a command that is given the store of that project."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def called(root: Path, **rest: Any) -> int:
            return command(opened(root), **rest)

        return _root(called)

    return decorate


notes = options.flag("--notes", help="Also show informational notes.")


def before(read: Callable[[], T]) -> T | None:
    """The value before a write, for its undo line; None if it cannot be read: the write then reports why."""
    with suppress(SessionaryError):
        return read()
    return None


def may_ask() -> bool:
    """True if a user at a terminal can be asked. The question goes to standard error."""
    return not output.is_json() and sys.stdin.isatty() and sys.stderr.isatty()


def command_line(*words: str) -> str:
    """A command of the same group to copy, for the same project."""
    ctx = click.get_current_context()
    group, place = ctx.parent.info_name if ctx.parent else None, ctx.params["root"]
    where = [] if place == Path() else ["--root", str(place)]
    return shell_line(["sessionary", str(group), *words, *where])


def outcome(document: dict[str, Any], text: str, *, undo: Sequence[str] = ()) -> int:
    """Print what was done, and the command that undoes it; return the exit code.

    Args:
        document: the same as JSON.
        undo: the words of the command that undoes it; none if there is none.
    """
    line = command_line(*undo) if undo else None
    return changing.finish(document, changing.done(text), undo=line)


def label(name: str, text: str) -> Iterator[str]:
    """A named value, wrapped and indented below its name."""
    lead = f"{name:<11}"
    first, *rest = item(lead, "\n".join(filter(None, text.split("\n"))))
    yield output.paint(lead, "dim") + first.removeprefix(lead)
    yield from rest


def heading(text: str) -> Iterator[str]:
    """A blank line and a heading."""
    yield ""
    yield output.paint(fit(one_line(text), output.width()), "bold")


def warn(problems: Iterable[Problem]) -> None:
    """Print the problems that were found while reading or writing, on standard error."""
    for problem in problems:
        sign = "✗ " if problem.severity >= Severity.stops_resume else "! "
        words = problem.message + (f"; {problem.repair}" if problem.repair else "")
        for line in item(sign, words):
            output.aside(line)


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


def report(problems: list[Problem], base: str, *, checked: int, with_notes: bool) -> int:
    """Print the findings of a check of so many sessions; return its exit code."""
    if output.is_json():
        found = [problem.as_dict() for problem in problems]
        document = {"ok": exit_code(problems) == 0, "checked": checked, "problems": found}
        output.holding(document, "problems")
    elif not checked and not problems:
        output.aside(f"Nothing to check in {one_line(base)}.")
    else:
        output.lines(findings(problems, base, with_notes=with_notes))
    return exit_code(problems)


def near_path(path: str) -> str:
    """The path relative to the current folder if it is below that; else unchanged."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near
