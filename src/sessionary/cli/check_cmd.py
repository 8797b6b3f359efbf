"""`sessionary check`: find damage and name the remedy."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

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
from sessionary.model import SessionRef, Severity, health
from sessionary.workspace import Workspace, documents, in_turn, is_home
from sessionary.workspace.checking import Checked, check_all, check_one

DAMAGED = Corrupt.exit_code


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
    how = {"chain": chain, "remember": remember}
    checked: list[Checked] = []
    each = in_turn(_each_at(workspace, word, **how) for word in targets)
    each = each if targets else check_all(workspace, **how)
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


def _each_at(workspace: Workspace, word: str, **how: bool) -> Iterator[Checked]:
    if is_home(os.path.expanduser(word)):
        yield from check_all(Workspace(Path(word)), **how)
    else:
        yield check_one(workspace, resolve(workspace, word), **how)


def _objects(checked: Checked) -> list[dict[str, Any]]:
    """The problems with the field names of docs/cli-json.md."""
    session = checked.name if checked.kind == "session" else None
    return [{"session": session, **documents.of_problem(problem)} for problem in checked.problems]


def _report(checked: list[Checked]) -> dict[str, Any]:
    problems = [problem for one in checked for problem in one.problems]
    return {
        "checked": sum(one.kind != "place" for one in checked),
        "health": health(problems),
        "problems": [document for one in checked for document in _objects(one)],
    }


def _lines(workspace: Workspace, checked: Checked, *, notes: bool) -> Iterator[str]:
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


def _totals(checked: list[Checked], *, notes: bool) -> Iterator[str]:
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


def _exit_code(checked: list[Checked], failure: StorageFailed | None) -> int:
    partly = report_failure(failure, "checked")
    if any(problem.severity > Severity.note for one in checked for problem in one.problems):
        return DAMAGED
    return partly
