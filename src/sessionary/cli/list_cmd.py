"""`sessionary list`: the sessions, newest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import formatting, homes, options, output, table
from sessionary.cli.choice import all_summaries, names_of, slugs_of, tell_none, tell_partly
from sessionary.cli.table import Column
from sessionary.cli.text import fit, one_line
from sessionary.model import Severity, Summary
from sessionary.workspace import KINDS, SHORT, Workspace

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


_GOES_FIRST = ("TURNS", "SIZE", "MSGS", "PROJECT", "KIND", "WHEN", "HEALTH")
"""The columns that are left out when the terminal is narrow, in this order."""

_TITLE = 10
"""Minimum width of a title, in cells, as long as another column can be left out."""


class _Wanted(NamedTuple):
    """Which sessions to list.

    Attributes:
        since, until: the options of these names.
        kinds, healths: any of these; empty for all.
        sort: their order.
        limit: how many at most; 0 for all.
    """

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
    wanted = _Wanted(since, until, **chosen_by)
    workspace = homes.workspace(home)
    found, failure = all_summaries(workspace)
    slugs = None
    if project is not None:
        slugs = slugs_of(workspace, [one.ref for one in found], project, failure)
    chosen = _chosen(_marked(workspace, found), wanted, slugs)
    shown = [row for row in chosen if row.is_top or not top_level]
    objects = (as_object(row.summary) for row in shown[: wanted.limit or None])
    if jsonl:
        output.values(objects)
    elif json_:
        output.value(list(objects))
    elif chosen:
        _print(workspace, found, chosen, all_=all_, limit=wanted.limit)
        _say_more(home, chosen, len(found) - len(chosen), all_=all_, limit=wanted.limit)
    elif found:
        output.aside(f"No sessions match these filters ({len(found):,} in total).")
    else:
        tell_none(workspace)
    return tell_partly(failure, "listed")


class _Row(NamedTuple):
    """A session that was found.

    Attributes:
        summary: what is known of it.
        place: its place among all that were found.
        is_top: it is no session of a sub-agent.
    """

    summary: Summary
    place: int
    is_top: bool


def _marked(workspace: Workspace, found: list[Summary]) -> list[_Row]:
    keys = workspace.short_keys([summary.ref for summary in found])
    return [
        _Row(summary, place, keys[place] == summary.ref.session_id) for place, summary in enumerate(found)
    ]


def _chosen(found: list[_Row], wanted: _Wanted, slugs: set[str] | None) -> list[_Row]:
    """The sessions of these projects that match, in the requested order."""
    healths = {health for word in wanted.healths for health in _HEALTHS[word]}
    chosen = [
        row
        for row in found
        if (slugs is None or row.summary.ref.project in slugs)
        and _is_within(row.summary.updated, wanted.since, wanted.until)
        and (not wanted.kinds or row.summary.ref.kind in wanted.kinds)
        and (not healths or row.summary.health in healths)
    ]
    chosen.sort(key=_rank, reverse=True)
    if wanted.sort in _SORTS:
        chosen.sort(key=lambda row: _SORTS[wanted.sort](row.summary))
    return chosen


def _rank(row: _Row) -> tuple[float, str, str]:
    """The time of the last change, minus infinity if it is unknown; then the id, then the folder."""
    ref, updated = row.summary.ref, row.summary.updated
    return updated.timestamp() if updated else -math.inf, ref.session_id, ref.locator


def _print(workspace: Workspace, found: list[Summary], chosen: list[_Row], *, all_: bool, limit: int) -> None:
    """Print the table."""
    short = workspace.short_ids([summary.ref for summary in found])
    names = names_of(workspace, [row.summary for row in chosen])
    shown = list(_below_parents(chosen)) if all_ else [(row, 0) for row in chosen if row.is_top]
    some = shown[: limit or None]
    with output.paged():
        output.lines(
            table.lines(
                list(_columns([(row.summary, short[row.place], depth) for row, depth in some], names)),
                output.room(),
                stretch="TITLE",
                drop=_GOES_FIRST,
                least=_TITLE,
            )
        )


def _columns(rows: list[tuple[Summary, str, int]], projects: Mapping[str | None, str]) -> Iterator[Column]:
    """The columns of the table: add one here.

    Args:
        rows: the sessions, with their short ids and their depths below their parents.
        projects: the names of the projects.
    """
    now, room = datetime.now(UTC), output.room()
    names = {slug: one_line(name) for slug, name in projects.items()}
    if room is not None:
        longest = 14 if room < 100 else 28
        names = {slug: fit(name, longest, keep_end=True) for slug, name in names.items()}
    some = [summary for summary, _, _ in rows]
    kinds = [one.ref.kind for one in some]
    yield Column("ID", [one_line(short) for _, short, _ in rows])
    if len(set(kinds)) > 1:
        yield Column("KIND", kinds)
    yield Column("WHEN", [formatting.ago(one.updated, now) for one in some])
    yield Column("PROJECT", [names[one.ref.project] for one in some])
    yield Column("MSGS", [str(one.messages) for one in some], right=True)
    yield Column("TURNS", [str(one.turns) for one in some], right=True)
    yield Column("SIZE", [formatting.size(one.size) for one in some], right=True)
    colours = [formatting.colour(one.health) for one in some]
    yield Column("HEALTH", [formatting.verdict(one.health) for one in some], colours=colours)
    yield Column("TITLE", [_title(summary, depth) for summary, _, depth in rows])


def _title(summary: Summary, depth: int) -> str:
    """The title; that of a sub-session is indented, that of a fork names its origin."""
    title, parent = summary.title or "-", summary.parent
    if depth:
        return "  " * (depth - 1) + "└ " + one_line(title)
    if parent and parent != summary.ref.session_id:
        title = f"{title} (from {parent[:SHORT]})"
    return one_line(title)


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
        "path": ref.locator,
    }


def _below_parents(rows: list[_Row]) -> Iterator[tuple[_Row, int]]:
    """Every session with its depth: sub-sessions behind their parents; those without one come last."""
    children: dict[str | None, list[_Row]] = {}
    for row in rows:
        if not row.is_top:
            children.setdefault(row.summary.parent, []).append(row)
    seen: set[int] = set()
    for start in chain((row for row in rows if row.is_top), rows):
        todo = [(start, 0)]
        while todo:
            row, depth = todo.pop()
            if row.place not in seen:
                seen.add(row.place)
                yield row, depth
                below = children.get(row.summary.ref.session_id, [])
                todo += [(child, depth + 1) for child in reversed(below)]


def _say_more(home: Path | None, chosen: list[_Row], left_out: int, *, all_: bool, limit: int) -> None:
    """Print how many sessions are not shown and how many are damaged."""
    shown = len(chosen) if all_ else sum(row.is_top for row in chosen)
    if limit and shown > limit:
        output.aside(f"{formatting.count(shown - limit, 'more session')}: raise --limit to show them")
    if left_out:
        do = "session does" if left_out == 1 else "sessions do"
        output.aside(f"{left_out:,} {do} not match these filters")
    if hidden := len(chosen) - shown:
        output.aside(f"{formatting.count(hidden, 'session')} of sub-agents not shown; --all shows them")
    damaged = sum(row.summary.health not in _WELL for row in chosen)
    if damaged:
        look = one_line(formatting.command(home, "check"))
        are = "session is" if damaged == 1 else "sessions are"
        output.aside(f"{damaged:,} {are} damaged; run `{look}` for details")
