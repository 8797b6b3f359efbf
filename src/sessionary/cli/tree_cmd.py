"""`sessionary tree`: sessions with their sub-agents and forks below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from sessionary.cli import completing, formatting, homes, options, output, targets
from sessionary.cli.lazy import command
from sessionary.cli.targets import all_summaries, names_of, report_failure, report_none
from sessionary.cli.text import cells, fit, one_line, pad
from sessionary.model import SessionRef, Summary
from sessionary.workspace import documents
from sessionary.workspace.family import Kin, descent

if TYPE_CHECKING:
    from sessionary.workspace.prices import Prices

_ROOMY = 60
"""Minimum width, in cells, at which messages are counted."""


@command(
    "tree",
    "sessionary tree",
    "sessionary tree 3f0c81d2           the family of this session",
    "sessionary tree --json | jq '.[] | select(.relation == \"fork\") | .id'",
)
@click.argument("session", metavar="[ID | DIR]", required=False, shell_complete=completing.sessions())
@options.home
@options.project
@options.as_json("the sessions", "one session")
def tree_command(session: str | None, project: str | None) -> int:
    """Show sub-agents and forks below their parents.

    With ID, only the family of that session, which is marked with ▶. A session whose parent is missing is
    shown at the left with a note, and so is one that is its own ancestor, which can result from edited files.
    """
    workspace = homes.workspace()
    summaries, failure = all_summaries(workspace)
    wanted = None if session is None else targets.session(workspace, session)
    tops = workspace.tree(workspace.list(project=project, summaries=summaries, failure=failure))
    if wanted is not None:
        tops = [top for top in tops if top.has(wanted)]
    if output.is_json():
        output.items(_objects(tops, workspace.prices()))
    else:
        short = workspace.short_ids([summary.ref for summary in summaries])
        with output.paged():
            projects = names_of(workspace, [top.summary for top in tops])
            output.lines(_drawn(tops, short, projects, wanted.locator if wanted else None))
            if not tops:
                report_none(workspace)
    return report_failure(failure, "shown")


def _objects(tops: Iterable[Kin], prices: Prices) -> Iterator[dict[str, Any]]:
    """The sessions with the field names of docs/cli-json.md, each after its parent."""
    for top in tops:
        for one, levels in descent(top):
            yield {
                **documents.of_summary(one.summary, prices),
                "relation": one.relation,
                "depth": len(levels),
                "orphan": one.orphan,
                "loop": one.loop,
            }


def _drawn(
    tops: list[Kin], short: dict[SessionRef, str], name: Callable[[Summary], str], marked: str | None
) -> Iterator[str]:
    """The tree; a blank line between families of more than one."""
    now = datetime.now(UTC)
    room = output.room() or output.WIDEST
    whens = {id(one): formatting.ago(one.summary.updated, now) for top in tops for one, _ in descent(top)}
    wide = max(map(len, whens.values()), default=0)
    counted = room >= _ROOMY
    if tops:
        facts = f"{'  MSGS' if counted else ''}  {'WHEN':>{wide}}  HEALTH "
        yield output.paint(("ID".ljust(10) + "TITLE").ljust(room - len(facts)) + facts.rstrip(), "bold")
    projects: dict[str, list[Kin]] = {}  # those with the newest family first
    for top in tops:
        projects.setdefault(name(top.summary), []).append(top)
    for number, (project, families) in enumerate(projects.items()):
        if number:
            yield ""
        if len(projects) > 1:
            yield output.paint(fit(one_line(project), room, keep_end=True), "bold")
        for one, levels in chain.from_iterable(map(descent, families)):
            facts = f"{f'{one.summary.messages:>6,}' if counted else ''}  {whens[id(one)]:>{wide}}  "
            yield _line(one, levels, short[one.ref], room, facts, one.ref.locator == marked)


def _line(one: Kin, levels: list[bool], short: str, room: int, facts: str, marked: bool) -> str:
    summary = one.summary
    verdict = formatting.verdict(summary.health)
    left = max(room - cells(facts) - 7, 12)
    branch = _branch(levels)
    name = fit(f"{branch}{'▶ ' if marked else ''}{one_line(short)}  {_title(one)}", left)
    return f"{pad(name, left)}{facts}{output.paint(verdict, formatting.colour(summary.health))}"


def _branch(levels: list[bool]) -> str:
    """The lines that connect a session to its ancestors."""
    if not levels:
        return ""
    return "".join("│ " if more else "  " for more in levels[:-1]) + ("├ " if levels[-1] else "└ ")


def _title(one: Kin) -> str:
    """A description: relation to its parent, what is odd about that, and its title."""
    summary = one.summary
    words = []
    if one.relation == "sub":
        name = summary.ref.session_id.rpartition("_")[2]  # of Amplifier, that of the sub-agent
        if name != summary.ref.session_id:
            words.append(f"{one_line(name)}:")
    elif one.relation == "fork":
        words.append("fork:")
    if one.orphan:
        words.append(f"(parent {one_line(summary.parent or '')[:8]}… is gone)")
    if one.loop:
        words.append("(comes from itself)")
    words.append(one_line(summary.title) if summary.title else "-")
    return " ".join(words)
