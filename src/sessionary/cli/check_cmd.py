"""`sessionary check`: find damage and name the remedy."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import completing, formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.problems import problem_lines
from sessionary.cli.progress import Progress
from sessionary.cli.targets import resolve, tell_none, tell_partly
from sessionary.cli.text import cells, fit, one_line, wrap
from sessionary.errors import Corrupt, NotFound, StorageFailed
from sessionary.model import Problem, SessionRef, Severity, health
from sessionary.workspace import Target, Workspace, documents, in_turn, is_home

DAMAGED = Corrupt.exit_code


class _Checked(NamedTuple):
    """What was checked (``session``, ``file`` or ``place``), its name, and the problems found."""

    kind: str
    name: str
    path: str
    problems: list[Problem]
    ref: SessionRef | None = None


class _Chains(NamedTuple):
    """Whether hash chains are verified, and whether their ends are kept."""

    verify: bool
    remember: bool


@command(
    "check",
    "sessionary check                         every session",
    "sessionary check 3f0c81d2                one session, by the beginning of its id",
    "sessionary check ~/backup/session.jsonl  any JSON Lines file",
    "sessionary check --chain --remember      hash chains too; later checks compare with their ends",
    "sessionary check --json | jq '.problems[] | select(.severity == \"lost_data\")'",
)
@click.argument(
    "targets", nargs=-1, metavar="[ID | FILE | DIR]...", shell_complete=completing.sessions(files=True)
)
@options.home
@click.option("--notes", is_flag=True, help="Also show informational notes.")
@click.option("--chain", is_flag=True, help="Also verify hash chains of records of agent frameworks.")
@click.option(
    "--remember", is_flag=True, help="With --chain: keep the ends of whole chains, to compare later."
)
@options.as_json("the findings", "one problem")
def check_command(
    targets: tuple[str, ...],
    home: Path | None,
    notes: bool,
    chain: bool,
    remember: bool,
    json_: bool,
    jsonl: bool,
) -> int:
    """Find damage in sessions, or in any JSON Lines file. Nothing is changed.

    Without a target, every session below --home is checked. Exit code 13: something worse than a note was found.
    """
    how = _chains(chain, remember)
    workspace = homes.workspace(home)
    checked: list[_Checked] = []
    failure = None
    with ExitStack() as stack:
        if not (json_ or jsonl):
            stack.enter_context(output.paged())
        progress = stack.enter_context(Progress("checking", None))
        try:
            for one in progress.over(_each(workspace, targets, how)):
                checked.append(one)
                if jsonl:
                    output.values(_objects(one))
                elif not json_ and (found := list(_lines(workspace, one, notes=notes or bool(targets)))):
                    progress.pause()
                    output.lines(found)
        except StorageFailed as error:
            failure = error
        if json_:
            output.value(_report(checked))
        elif not jsonl:
            progress.pause()
            if any(one.kind != "place" for one in checked) or _exit_code(checked, None):
                output.lines(_sum(checked, notes=notes or bool(targets)))
            elif failure is None:
                tell_none(workspace)
    return _exit_code(checked, failure)


def _chains(verify: bool, remember: bool) -> _Chains:
    if remember and not verify:
        raise click.UsageError("--remember needs --chain")
    return _Chains(verify, remember)


def _each(workspace: Workspace, targets: tuple[str, ...], how: _Chains) -> Iterator[_Checked]:
    """Check the targets one after the other."""
    return (
        in_turn(_each_at(workspace, word, how) for word in targets) if targets else _each_of(workspace, how)
    )


def _each_at(workspace: Workspace, word: str, how: _Chains) -> Iterator[_Checked]:
    if is_home(os.path.expanduser(word)):
        yield from _each_of(Workspace(Path(word)), how)
    else:
        yield _check(workspace, resolve(workspace, word), how)


def _each_of(workspace: Workspace, how: _Chains) -> Iterator[_Checked]:
    for ref in workspace.refs():
        with suppress(NotFound):  # its agent removed it meanwhile
            yield _check(workspace, ref, how)
    places: dict[str, list[Problem]] = {}
    for problem in (*workspace.check_place(), *(workspace.check_remembered() if how.verify else ())):
        places.setdefault(_place_of(problem, workspace.home), []).append(problem)
    for place, problems in places.items():
        yield _Checked("place", place, place, problems)


def _place_of(problem: Problem, home: Path) -> str:
    """The home or the project that contains a file that belongs to no session."""
    path = Path(problem.path).absolute()
    for place in (home, Path()):
        if path.is_relative_to(place.absolute()):
            return str(place if place == home else place.absolute())
    return str(path.parent)


def _check(workspace: Workspace, target: Target, how: _Chains) -> _Checked:
    problems = list(workspace.check(target))
    if how.verify:
        problems += workspace.check_chain(target, remember=how.remember)
    if isinstance(target, Path):
        return _Checked("file", str(target), str(target), problems)
    return _Checked("session", target.session_id, target.locator, problems, target)


def _objects(checked: _Checked) -> list[dict[str, Any]]:
    """The problems with the field names of docs/cli-json.md."""
    session = checked.name if checked.kind == "session" else None
    return [{"session": session, **documents.of_problem(problem)} for problem in checked.problems]


def _report(checked: list[_Checked]) -> dict[str, Any]:
    problems = [problem for one in checked for problem in one.problems]
    return {
        "checked": sum(one.kind != "place" for one in checked),
        "health": health(problems),
        "problems": [document for one in checked for document in _objects(one)],
    }


def _lines(workspace: Workspace, checked: _Checked, *, notes: bool) -> Iterator[str]:
    """The lines about one session; none if it has no problems.

    The title is looked up here, since that reads the session once more.
    """
    shown = [problem for problem in checked.problems if notes or problem.severity > Severity.note]
    if not shown:
        return
    worst = health(checked.problems)
    yield output.paint(f"{formatting.sign(worst)} {one_line(checked.name)}", "bold")
    title = workspace.summary(checked.ref).title if checked.ref else None
    if title:
        yield "  " + fit(one_line(title), output.width() - 2)
    for problem in sorted(shown, key=lambda found: -found.severity):
        yield from problem_lines(problem, checked.path, "  ")
    yield ""


def _sum(checked: list[_Checked], *, notes: bool) -> Iterator[str]:
    """The summary line. The hint at hidden notes is never broken: without room it gets a line of its own."""
    counts = Counter(health(one.problems) for one in checked if one.kind != "place")
    number = counts.total()
    what = "session" if all(one.kind != "file" for one in checked) else "file"
    parts = [formatting.count(number, what) + " checked"]
    well = counts["ok"] + counts["note"]
    beside = sum(
        problem.severity > Severity.note for one in checked if one.kind == "place" for problem in one.problems
    )
    parts.append("nothing is damaged" if well == number and not beside else f"{well:,} healthy")
    if beside:
        parts.append(f"{formatting.count(beside, 'problem')} outside of them")
    parts += [
        f"{counts[severity.name]:,} {severity.name.replace('_', ' ')}"
        for severity in sorted(Severity, reverse=True)
        if severity > Severity.note and counts[severity.name]
    ]
    quiet = sum(problem.severity == Severity.note for one in checked for problem in one.problems)
    hint = ""
    if quiet and not notes:
        parts.append(formatting.count(quiet, "note"))
        hint = "(--notes prints them)"
    sign = formatting.sign(health([problem for one in checked for problem in one.problems]))
    *lines, last = wrap(f"{sign} {', '.join(parts)}", output.width())
    together = f"{last} {hint}".rstrip()
    yield from lines
    yield from [together] if cells(together) <= output.width() else [last, f"  {hint}"]


def _exit_code(checked: list[_Checked], failure: StorageFailed | None) -> int:
    partly = tell_partly(failure, "checked")
    if any(problem.severity > Severity.note for one in checked for problem in one.problems):
        return DAMAGED
    return partly
