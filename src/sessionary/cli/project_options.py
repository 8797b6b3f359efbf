"""What the commands share that work on the sessions kept inside of a project: brainstorms and features."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sessionary.cli import formatting, output
from sessionary.cli.gitignore_hint import tell_afterwards
from sessionary.cli.problems import item, told
from sessionary.cli.text import fit, harmless, one_line, shell_line, wrap
from sessionary.errors import Corrupt, NotFound
from sessionary.model import Problem, Severity
from sessionary.workspace import check_folder, check_store

DAMAGED = Corrupt.exit_code

KINDS = frozenset({"brainstorm", "feature"})
"""The groups of commands that take these options, named as the kinds of their sessions."""
_BEGINS = frozenset({"start", "create", "ack"})


def _check_root(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    """Refuse a folder that was named and holds no store of the kind that the group of the command is for.

    Commands that begin a store need only the folder of the project.
    """
    if ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE and ctx.parent is not None:
        place = Path(os.path.expanduser(value))
        if ctx.command.name in _BEGINS:
            check_folder(place, named_by="--root")
        else:
            check_store(place, ctx.parent.info_name, named_by="--root")
    if ctx.parent is not None and ctx.parent.info_name in KINDS:
        tell_afterwards(ctx, ctx.parent.info_name, Path(os.path.expanduser(value)))
    return value


def resolving(find: Callable[[Path, str], str]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an argument that names a session: its id, the beginning of that, or `latest`.

    What names none goes on as it is: the command itself reports that, in its own words.

    Args:
        find: the id that a word means among the sessions of a project, or NotFound.
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
    is_eager=True,  # what other parameters name is looked for in it
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
    return shell_line(["sessionary", group, name, *rest, *where])


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
    hint = f" ({formatting.count(quiet, 'note')}: --notes prints them)" if quiet else ""
    worse = sum(problem.severity > Severity.note for problem in problems)
    if worse:
        yield f"✗ {formatting.count(worse, 'problem')}{hint}"
    else:
        yield f"{output.paint('✓', 'green')} nothing is wrong{hint}"


def exit_code(problems: Iterable[Problem]) -> int:
    """That of a check: 13 if anything is worse than a note."""
    return DAMAGED if any(problem.severity > Severity.note for problem in problems) else 0


def report(
    problems: list[Problem], base: str, *, checked: int, json_: bool, jsonl: bool, with_notes: bool
) -> int:
    """Print what a check of so many sessions has found; its exit code."""
    if json_ or jsonl:
        found = [problem.as_dict() for problem in problems]
        document = {"ok": exit_code(problems) == 0, "checked": checked, "problems": found}
        output.holding(document, "problems", jsonl=jsonl)
    elif not checked and not problems:
        output.aside(f"there is nothing to check in {one_line(base)}")
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
