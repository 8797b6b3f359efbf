"""`sessionary check`: find damage and name the remedy."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import completing, formatting, homes, options, output
from sessionary.cli.changing import to_run
from sessionary.cli.lazy import command
from sessionary.cli.problems import problem_lines
from sessionary.cli.progress import Progress
from sessionary.cli.targets import report_failure, report_none, resolve
from sessionary.cli.text import cells, fit, one_line, wrap
from sessionary.errors import Corrupt, NotFound, StorageFailed
from sessionary.layouts.base import Capability
from sessionary.model import Problem, SessionRef, Severity, health
from sessionary.workspace import Target, Workspace, documents, in_turn, is_home

DAMAGED = Corrupt.exit_code


class _Checked(NamedTuple):
    """A checked session, file or place, and its problems."""

    kind: str
    name: str
    path: str
    problems: list[Problem]
    ref: SessionRef | None = None


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
@options.flag("--notes", help="Also show informational notes.")
@options.flag("--chain", help="Also verify hash chains of records of agent frameworks.")
@options.flag("--remember", help="With --chain: store the last hash of each complete chain for later checks.")
@options.as_json("the findings", "one problem")
def check_command(targets: tuple[str, ...], notes: bool, chain: bool, remember: bool) -> int:
    """Find damage in sessions, or in any JSON Lines file. Nothing is changed.

    Without a target, every session below --home is checked. Exit code 13: something worse than a note was found.
    """
    if remember and not chain:
        raise click.UsageError("--remember needs --chain")
    workspace = homes.workspace()
    check = partial(_check, chain=chain, remember=remember)
    checked: list[_Checked] = []
    each = (
        in_turn(_each_at(workspace, word, check) for word in targets)
        if targets
        else _each_of(workspace, check)
    )
    failure = None
    with nullcontext() if output.is_json() else output.paged(), Progress("checking", None) as progress:
        try:
            for one in progress.over(each):
                checked.append(one)
                if output.wants("jsonl"):
                    output.values(_objects(one))
                elif not output.wants("json") and (
                    lines := list(_lines(workspace, one, notes=notes or bool(targets)))
                ):
                    progress.pause()
                    output.lines(lines)
        except StorageFailed as error:
            failure = error
        if output.wants("json"):
            output.value(_report(checked))
        elif not output.wants("jsonl"):
            progress.pause()
            if any(one.kind != "place" for one in checked) or _exit_code(checked, None):
                output.lines(_totals(checked, notes=notes or bool(targets)))
            elif failure is None:
                report_none(workspace)
    return _exit_code(checked, failure)


def _each_at(workspace: Workspace, word: str, check: partial[_Checked]) -> Iterator[_Checked]:
    if is_home(os.path.expanduser(word)):
        yield from _each_of(Workspace(Path(word)), check)
    else:
        yield check(workspace, resolve(workspace, word))


def _each_of(workspace: Workspace, check: partial[_Checked]) -> Iterator[_Checked]:
    for ref in workspace.refs():
        with suppress(NotFound):  # its agent removed it meanwhile
            yield check(workspace, ref)
    places: dict[str, list[Problem]] = {}
    for problem in (
        *workspace.check_place(),
        *(workspace.check_remembered() if check.keywords["chain"] else ()),
    ):
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


def _check(workspace: Workspace, target: Target, *, chain: bool, remember: bool) -> _Checked:
    problems = list(workspace.check(target))
    if chain:
        problems += workspace.check_chain(target, remember=remember)
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
    if title := _title_of(workspace, checked.ref):
        yield "  " + fit(one_line(title), output.width() - 2)
    for problem in sorted(shown, key=lambda found: -found.severity):
        yield from problem_lines(problem, checked.path, "  ")
    is_bad = any(problem.severity > Severity.hides_data for problem in shown)
    if is_bad and checked.ref and workspace.grants(checked.ref, Capability.REPAIR):
        yield "  " + to_run("next", formatting.command("repair", checked.name, "--dry-run"))
    yield ""


def _title_of(workspace: Workspace, ref: SessionRef | None) -> str | None:
    try:
        return workspace.summary(ref).title if ref else None
    except NotFound:
        return None  # its agent removed it meanwhile


def _totals(checked: list[_Checked], *, notes: bool) -> Iterator[str]:
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
    partly = report_failure(failure, "checked")
    if any(problem.severity > Severity.note for one in checked for problem in one.problems):
        return DAMAGED
    return partly
