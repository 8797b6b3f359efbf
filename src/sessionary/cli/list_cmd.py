"""`sessionary list`: the sessions, newest first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import formatting, homes, list_table, options, output
from sessionary.cli.choice import (
    all_summaries,
    among_found,
    project_names,
    projects,
    tell_none,
    tell_partly,
)
from sessionary.cli.text import one_line
from sessionary.model import Severity, Summary
from sessionary.workspace import KINDS, Workspace

_WELL = frozenset({"ok", Severity.note.name})
_HEALTHS = {
    "ok": _WELL,
    "damaged": frozenset(severity.name for severity in Severity) - _WELL,
    **{severity.name: frozenset({severity.name}) for severity in Severity if severity > Severity.note},
}
"""The values of `--health`, and the healths that each selects."""

_SORTS: dict[str, Callable[[Summary], Any]] = {
    "created": lambda one: -one.created.timestamp() if one.created else math.inf,
    "size": lambda one: -one.size,
    "messages": lambda one: -one.messages,
    "turns": lambda one: -one.turns,
    "title": lambda one: (one.title or "~").casefold(),
    "project": lambda one: one.ref.project or "~",
}
"""The values of `--sort` besides ``changed``: largest and newest first, text from A to Z."""


class _Wanted(NamedTuple):
    """Which sessions to list.

    Attributes:
        project, since, until: the options of these names.
        kinds, healths: any of these; empty for all.
        sort: their order.
        limit: how many at most; 0 for all.
    """

    project: str | None
    since: datetime | None
    until: datetime | None
    kinds: tuple[str, ...]
    healths: tuple[str, ...]
    sort: str
    limit: int


@click.command(
    "list",
    epilog="""\b
Examples:
  sessionary list
  sessionary list --since "2 weeks ago" --project app -n 10
  sessionary list --health damaged --sort size
  sessionary list --all --home /mnt/old-laptop/.amplifier
  sessionary list --health lost_data --json | jq -r '.[].id'
""",
)
@options.home
@options.project
@options.since
@options.until
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only this kind. May be repeated."
)
@click.option(
    "--health",
    "healths",
    type=click.Choice(list(_HEALTHS)),
    multiple=True,
    help="Only this health; `damaged` is any except ok. May be repeated.",
)
@click.option(
    "--sort",
    type=click.Choice(["changed", *_SORTS]),
    default="changed",
    show_default=True,
    help="Sort order: newest or largest first, text from A to Z.",
)
@click.option("--limit", "-n", type=click.IntRange(0), default=0, metavar="N", help="List at most N; 0: all.")
@click.option(
    "--all", "-a", "all_", is_flag=True, help="Also list the sessions of sub-agents, below their parents."
)
@click.option(
    "--top-level", is_flag=True, help="Omit the sessions of sub-agents from --json and --jsonl too."
)
@options.as_json("the sessions", "one session")
def list_command(
    home: Path | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    all_: bool,
    top_level: bool,
    json_: bool,
    jsonl: bool,
    **chosen_by: Any,
) -> int:
    """List sessions, newest first.

    Sessions of sub-agents are only counted, unless --all lists them; --json includes them, each with its
    parent. WHEN is the time of the newest message; order, --since and --until use it. If no message has a
    time, the times of the files are used. A time in the future is ignored and reported as a note by
    `sessionary check`. KIND is shown if there are several kinds.

    HEALTH is the worst problem found: ok; stray (bytes that are not a record); hides (data that other readers
    do not show); stops (the agent cannot resume the session); lost (data is gone). Run `sessionary check` for
    details.
    """
    options.one_format(json_, jsonl)
    wanted = _Wanted(project, since, until, **chosen_by)
    workspace = homes.workspace(home)
    found, failure = all_summaries(workspace)
    with among_found(failure):
        chosen = _places(workspace, found, wanted)
        result = _listed(workspace, found, chosen, wanted, all_=all_, is_table=not (json_ or jsonl))
    summaries = result.summaries
    shown = result.first if top_level else result.newest
    objects = (as_object(summaries[place]) for place in shown[: wanted.limit or None])
    if jsonl:
        output.values(objects)
    elif json_:
        output.value(list(objects))
    elif summaries:
        with output.paged():
            output.lines(result.lines)
        _say_more(home, result, len(found) - len(summaries))
    elif found:
        output.aside(f"No sessions match these filters ({len(found):,} in total).")
    else:
        tell_none(workspace)
    return tell_partly(failure, "listed")


class _Listed(NamedTuple):
    """The sessions to print.

    Attributes:
        summaries: the sessions that match.
        newest: their indexes, newest first.
        first: those of them that are not sessions of sub-agents.
        lines: of the table, if one is printed.
        hidden: number of sessions of sub-agents that are not in it.
        cut: number of sessions left out because of `--limit`.
    """

    summaries: list[Summary]
    newest: list[int]
    first: list[int]
    lines: list[str]
    hidden: int
    cut: int


def _listed(
    workspace: Workspace,
    found: list[Summary],
    chosen: Sequence[int],
    wanted: _Wanted,
    *,
    all_: bool,
    is_table: bool,
) -> _Listed:
    """The order of the sessions that match, and the lines of their table."""
    summaries = found if len(chosen) == len(found) else [found[place] for place in chosen]
    times = _times(summaries)
    newest = _newest(summaries, times)
    if wanted.sort in _SORTS:
        newest.sort(key=lambda place: _SORTS[wanted.sort](summaries[place]))
    refs = [summary.ref for summary in summaries]
    handles = workspace.handles(refs)
    ids = [ref.session_id for ref in refs]
    first = newest if handles == ids else [place for place in newest if handles[place] == ids[place]]
    if not (is_table and summaries):
        return _Listed(summaries, newest, first, [], 0, 0)
    depths = dict(_below_parents(summaries, newest, first)) if all_ else dict.fromkeys(first, 0)
    hidden, cut = len(summaries) - len(depths), 0
    if wanted.limit and len(depths) > wanted.limit:
        cut = len(depths) - wanted.limit
        depths = dict(islice(depths.items(), wanted.limit))
    if summaries is found:
        short = workspace.short_ids(refs, handles)
    else:
        every = workspace.short_ids([summary.ref for summary in found])
        short = [every[place] for place in chosen]
    names = project_names(workspace, {ref.project for ref in refs})
    table = list_table.Table(summaries, times, short, depths, names)
    return _Listed(summaries, newest, first, list_table.lines(table, datetime.now(UTC)), hidden, cut)


def _places(workspace: Workspace, found: list[Summary], wanted: _Wanted) -> Sequence[int]:
    """The indexes of the summaries that match.

    Raises:
        NotFound: no project has this name.
    """
    if not any(wanted[:5]):
        return range(len(found))
    slugs = None
    if wanted.project is not None:
        slugs = projects(workspace, [summary.ref for summary in found], wanted.project)
    healths = {health for word in wanted.healths for health in _HEALTHS[word]}
    return [
        place
        for place, summary in enumerate(found)
        if (slugs is None or summary.ref.project in slugs)
        and _is_within(summary.updated, wanted.since, wanted.until)
        and (not wanted.kinds or summary.ref.kind in wanted.kinds)
        and (not healths or summary.health in healths)
    ]


def _is_within(when: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """A session without a known time of change passes both filters."""
    return when is None or ((since is None or when >= since) and (until is None or when < until))


def as_object(summary: Summary) -> dict[str, Any]:
    """A summary with the field names of docs/cli-json.md."""
    ref = summary.ref
    return {
        "id": ref.session_id,
        "kind": ref.kind,
        "agent": summary.agent,
        "project": ref.project,
        "title": summary.title,
        "parent": summary.parent,
        "messages": summary.messages,
        "turns": summary.turns,
        "turn_count": summary.turn_count,
        "created": summary.created,
        "updated": summary.updated,
        "size": summary.size,
        "health": summary.health,
        "path": ref.folder,
    }


def _times(summaries: list[Summary]) -> list[float]:
    """When each session last changed, in seconds since 1970; minus infinity if unknown.

    Numbers compare much faster than dates.
    """
    return [summary.updated.timestamp() if summary.updated else -math.inf for summary in summaries]


def _newest(summaries: list[Summary], times: list[float]) -> list[int]:
    """The indexes of the summaries, newest first; of equal times the greater id, of equal ids the greater folder.

    Ids and folders are compared only where two times are equal: comparing pairs costs several times as much.
    """
    places = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    in_order = [times[place] for place in places]
    if any(map(eq, in_order, in_order[1:])):

        def rank(place: int) -> tuple[float, str, str]:
            ref = summaries[place].ref
            return times[place], ref.session_id, ref.folder

        places.sort(key=rank, reverse=True)
    return places


def _below_parents(
    summaries: list[Summary], newest: list[int], first: list[int]
) -> Iterator[tuple[int, int]]:
    """The index and depth of every session: sub-sessions behind their parents, those without a parent last."""
    children: dict[str | None, list[int]] = {}
    top = set(first)
    for place in newest:
        if place not in top:
            children.setdefault(summaries[place].parent, []).append(place)
    todo = [(place, 0) for place in reversed(first)]
    seen: set[int] = set()
    orphans = iter(newest)
    while True:
        while todo:
            place, depth = todo.pop()
            if place not in seen:
                seen.add(place)
                yield place, depth
                below = children.get(summaries[place].ref.session_id, [])
                todo += [(child, depth + 1) for child in reversed(below)]
        left = next((place for place in orphans if place not in seen), None)
        if left is None:
            return
        todo.append((left, 0))


def _say_more(home: Path | None, result: _Listed, left_out: int) -> None:
    """Print how many sessions are not shown and how many are damaged."""
    if result.cut:
        output.aside(f"{formatting.count(result.cut, 'more session')}: raise --limit to show them")
    if left_out:
        do = "session does" if left_out == 1 else "sessions do"
        output.aside(f"{left_out:,} {do} not match these filters")
    if result.hidden:
        output.aside(
            f"{formatting.count(result.hidden, 'session')} of sub-agents not shown; --all shows them"
        )
    counts = Counter([summary.health for summary in result.summaries])
    damaged = counts.total() - sum(counts[health] for health in _WELL)
    if damaged:
        look = one_line(formatting.command(home, "check"))
        are = "session is" if damaged == 1 else "sessions are"
        output.aside(f"{damaged:,} {are} damaged; run `{look}` for details")
