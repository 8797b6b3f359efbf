"""`sessionary stats`: how much there is, and with --events what it has cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from sessionary import model
from sessionary.cli import formatting, homes, options, output, table
from sessionary.cli.events_cmd import tell_silent, usage_object, usage_table
from sessionary.cli.progress import Progress
from sessionary.cli.table import Column
from sessionary.cli.targets import all_summaries, names_of, of_project, project_names, tell_partly
from sessionary.cli.text import one_line
from sessionary.layouts.amplifier.event_reader import Usage
from sessionary.model import Severity, Summary
from sessionary.workspace import Stats, Workspace
from sessionary.workspace.costs import Costs
from sessionary.workspace.family import descent

_NEVER = datetime.min.replace(tzinfo=UTC)
NO_PROJECT = "(no project)"


@click.command(
    "stats",
    epilog="""\b
Examples:
  sessionary stats
  sessionary stats --events --since "this month"
  sessionary stats --project app --json | jq .health
""",
)
@options.home
@options.project
@options.since
@options.until
@click.option(
    "--events", is_flag=True, help="Read the event logs too: tokens and cost by model, project and day."
)
@click.option("--json", "json_", is_flag=True, help="Print everything as one JSON document.")
def stats_command(
    home: Path | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    events: bool,
    json_: bool,
) -> int:
    """Count sessions, messages, turns and bytes, with their health; with --events, tokens and cost.

    --since and --until filter sessions by their last change, and model responses by their own time. Days are
    local. A response that a fork copied from its parent counts once. Missing figures are not estimated.
    """
    workspace = homes.workspace(home)
    summaries, failure = all_summaries(workspace)
    summaries = of_project(workspace, summaries, project, failure)
    costs = _costs(workspace, summaries, since, until) if events else None
    summaries = [one for one in summaries if _is_within(one.updated, since, until)]
    stats, relations = workspace.stats(summaries), _relations(workspace, summaries)
    by_project: dict[str | None, list[Summary]] = {}
    for one in summaries:
        by_project.setdefault(one.ref.project, []).append(one)
    projects = {name: workspace.stats(some) for name, some in by_project.items()}
    if json_:
        output.value(_report(stats, relations, projects, costs))
    else:
        with output.paged():
            output.lines(_told(stats, relations, projects, names_of(workspace, summaries)))
            if costs is not None:
                _print_costs(workspace, costs)
    return tell_partly(failure, "counted")


def _is_within(time: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    if since is None and until is None:
        return True
    return time is not None and (since is None or time >= since) and (until is None or time < until)


def _costs(
    workspace: Workspace, summaries: list[Summary], since: datetime | None, until: datetime | None
) -> Costs:
    """Read the event logs; print those that cannot be read."""
    with Progress("reading events", len(summaries)) as progress:
        refs = [one.ref for one in summaries]
        costs = workspace.costs(refs, since=since, until=until, passed=progress.advance)
    for error in costs.failures:
        output.aside(f"sessionary: {one_line(error.message)}")
    return costs


def _relations(workspace: Workspace, summaries: list[Summary]) -> Counter[str]:
    return Counter(one.relation for top in workspace.tree(summaries) for one, _ in descent(top))


def _report(
    stats: Stats, relations: Counter[str], projects: dict[str | None, Stats], costs: Costs | None
) -> dict[str, Any]:
    """The document of docs/cli-json.md."""
    document: dict[str, Any] = {
        **_counts(stats),
        "relations": {name: relations[name] for name in ("root", "fork", "sub")},
        "first": stats.first,
        "last": stats.last,
        "health": dict(stats.health),
        "projects": [
            {"project": name, **_counts(some)}
            for name, some in sorted((name or NO_PROJECT, some) for name, some in projects.items())
        ],
        "usage": [{"model": name, **structs.asdict(used)} for name, used in sorted(stats.usage.items())],
    }
    if costs is not None:
        document["costs"] = {
            "total": usage_object(costs.total),
            **{
                f"{what}s": [{what: name, **usage_object(usage)} for name, usage in sorted(rows.items())]
                for what, rows in _tables(costs).items()
            },
            "logs": costs.logs,
            "copied": costs.copied,
            "problems": costs.problems,
        }
    return document


def _tables(costs: Costs) -> dict[str, dict[str, Usage]]:
    """The costs by model, project and day, with words for those that have none."""
    return {
        "model": {name or "(not named)": usage for name, usage in costs.models.items()},
        "project": {name or NO_PROJECT: usage for name, usage in costs.projects.items()},
        "day": {name or "(no time)": usage for name, usage in costs.days.items()},
    }


def _counts(stats: Stats) -> dict[str, int]:
    return {
        "sessions": stats.sessions,
        "messages": stats.messages,
        "turns": stats.turns,
        "size": stats.size,
    }


def _told(
    stats: Stats,
    relations: Counter[str],
    projects: dict[str | None, Stats],
    names: Mapping[str | None, str],
) -> Iterator[str]:
    kinds = [
        f"{relations[name]:,} {words}"
        for name, words in (("root", "begun by people"), ("fork", "forked"), ("sub", "of sub-agents"))
        if relations[name]
    ]
    where = formatting.count(len(projects), "project")
    yield output.paint(f"{formatting.count(stats.sessions, 'session')} in {where}", "bold")
    if not stats.sessions:
        return
    yield ", ".join(kinds)
    yield (
        f"{formatting.count(stats.messages, 'message')}, {formatting.count(stats.turns, 'turn')}, "
        f"{formatting.size(stats.size)}"
    )
    yield _health(stats)
    yield ""
    yield from _project_table(projects, names)
    if stats.usage:
        yield ""
        yield from _model_table(stats.usage)


def _model_table(used: dict[str, model.Usage]) -> Iterator[str]:
    rows = sorted(used.items(), key=lambda one: (-one[1].input - one[1].output, one[0]))
    counts = {
        "INPUT": "input",
        "OUTPUT": "output",
        "CACHE READ": "cache_read",
        "CACHE WRITTEN": "cache_write",
    }
    columns = [
        Column("MODEL", [one_line(name) for name, _ in rows]),
        *(
            Column(head, [f"{getattr(one, field):,}" for _, one in rows], right=True)
            for head, field in counts.items()
        ),
    ]
    return table.lines(columns, output.room(), stretch="MODEL", drop=("CACHE WRITTEN", "CACHE READ"))


def _health(stats: Stats) -> str:
    """How many sessions are how healthy, the well ones first."""
    counts = stats.health.copy()
    counts["ok"] += counts.pop(Severity.note.name, 0)
    order = ["ok", *(severity.name for severity in Severity)]
    return ", ".join(
        f"{counts[name]:,} {output.paint(formatting.verdict(name), formatting.colour(name))}"
        for name in order
        if counts[name]
    )


def _project_table(projects: dict[str | None, Stats], names: Mapping[str | None, str]) -> Iterator[str]:
    """The table of projects, the last changed first."""
    now = datetime.now(UTC)
    rows = sorted(
        projects.items(), key=lambda row: (row[1].last or _NEVER, row[0] or NO_PROJECT), reverse=True
    )
    some = [stats for _, stats in rows]
    columns = [
        Column("PROJECT", [NO_PROJECT if slug is None else one_line(names[slug]) for slug, _ in rows]),
        Column("SESSIONS", [f"{one.sessions:,}" for one in some], right=True),
        Column("MESSAGES", [f"{one.messages:,}" for one in some], right=True),
        Column("TURNS", [f"{one.turns:,}" for one in some], right=True),
        Column("SIZE", [formatting.size(one.size) for one in some], right=True),
        Column("WHEN", [formatting.ago(one.last, now) for one in some], right=True),
    ]
    # Size and time say the most.
    drop = ("TURNS", "MESSAGES", "SESSIONS")
    return table.lines(columns, output.room(), stretch="PROJECT", keep_end=True, drop=drop, least=12)


def _print_costs(workspace: Workspace, costs: Costs) -> None:
    output.line()
    if not costs.total.responses:
        output.aside(f"No model responses in {formatting.count(costs.logs, 'event log')}")
        return
    names = {NO_PROJECT: NO_PROJECT, **project_names(workspace, costs.projects)}
    for what, rows in _tables(costs).items():
        if what != "model":
            output.line()
        shown = {names[name]: one for name, one in rows.items()} if what == "project" else rows
        output.lines(usage_table(shown, what.upper(), by_name=what == "day"))
    tell_silent(costs.total)
    if costs.copied:
        output.aside(
            f"{formatting.count(costs.copied, 'response')} copied by forks, counted with their parents"
        )
    if costs.problems:
        output.aside(f"{formatting.count(costs.problems, 'damaged place')} in event logs skipped")
