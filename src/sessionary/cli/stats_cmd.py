"""`sessionary stats`: how many sessions there are, what their models used, and what that cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

import click

from sessionary.cli import formatting, homes, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.param_types import Zone
from sessionary.cli.progress import Progress
from sessionary.cli.spending_tables import NO_PROJECT, report_unpriced, spending_object, spending_tables
from sessionary.cli.table import Column
from sessionary.cli.targets import all_summaries, names_of, project_names, report_failure
from sessionary.cli.text import one_line
from sessionary.layouts.amplifier.event_reader import Usage
from sessionary.model import Severity, Summary
from sessionary.workspace import Stats, Workspace
from sessionary.workspace.costs import Costs
from sessionary.workspace.family import relation_of
from sessionary.workspace.spending import SpendingReport

_NEVER = datetime.min.replace(tzinfo=UTC)


@command(
    "stats",
    "sessionary stats",
    'sessionary stats --since "this month" --agent claude_code --tz Europe/Berlin',
    "sessionary stats --json | jq '.usage.days[] | [.day, .cost]'",
    'sessionary stats --events --since "this month"',
    "sessionary stats --project app --json | jq .health",
)
@options.home
@options.project
@options.kinds
@options.model
@options.since
@options.until
@click.option(
    "--tz",
    "zone",
    type=Zone(),
    metavar="ZONE",
    is_eager=True,
    help="The time zone of days and of --since and --until, such as Europe/Berlin (default: the local one).",
)
@options.flag(
    "--events", help="Read the event logs of Amplifier too: tokens and cost by model, project and day."
)
@options.json_result
def stats_command(
    project: str | None,
    kinds: tuple[str, ...],
    model: str | None,
    since: datetime | None,
    until: datetime | None,
    zone: tzinfo | None,
    events: bool,
) -> int:
    """Count sessions, messages, turns, tokens and cost.

    The cost is computed from the list prices of the providers. Tokens of models without a known price are counted,
    but are not part of the cost; a + marks such a sum. The cost that agents record is printed beside it.

    --since and --until filter sessions by their last change, and model responses by their own time, to a
    quarter of an hour. A response that a fork copied from its parent counts once. With --events, responses in
    the event logs of Amplifier are summed, with the cost that they record.
    """
    workspace = homes.workspace()
    found, failure = all_summaries(workspace)
    summaries = workspace.list(kind=kinds, project=project, model=model, summaries=found, failure=failure)
    spent = workspace.spending(summaries, since=since, until=until, zone=zone, model=model)
    costs = _costs(workspace, summaries, since, until) if events else None
    if since or until:  # after the spending, which counts what sessions used within these times
        summaries = workspace.list(since=since, until=until, summaries=summaries)
    left_out = len(found) - len(summaries)
    stats, relations = workspace.stats(summaries), Counter(map(relation_of, summaries))
    if output.is_json():
        projects = _by_project(workspace, summaries, lambda one: one.ref.project or one.cwd or NO_PROJECT)
        project_of = workspace.project_of(summaries)
        paths = {one.ref.project or one.cwd or NO_PROJECT: project_of(one) for one in summaries}
        output.value(_report(stats, relations, projects, paths, spent, costs))
        return report_failure(failure, "counted")
    name = names_of(workspace, summaries)
    projects = _by_project(workspace, summaries, lambda one: NO_PROJECT if name(one) == "-" else name(one))
    with output.paged():
        output.lines(_totals(stats, relations, projects))
        output.lines(spending_tables(spent))
        if costs is not None:
            _print_costs(workspace, costs)
        report_unpriced(spent)
        if left_out:
            do = "session does" if left_out == 1 else "sessions do"
            output.aside(f"{left_out:,} {do} not match these filters")
    return report_failure(failure, "counted")


def _by_project(
    workspace: Workspace, summaries: list[Summary], project_of: Callable[[Summary], str]
) -> dict[str, Stats]:
    by_project: dict[str, list[Summary]] = {}
    for one in summaries:
        by_project.setdefault(project_of(one), []).append(one)
    return {name: workspace.stats(some) for name, some in by_project.items()}


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


def _report(
    stats: Stats,
    relations: Counter[str],
    projects: dict[str, Stats],
    paths: dict[str, str | None],
    spent: SpendingReport,
    costs: Costs | None,
) -> dict[str, Any]:
    """The document of docs/cli-json.md; `paths` has what `usage` calls each of the projects."""
    document: dict[str, Any] = {
        **_counts(stats),
        "relations": {name: relations[name] for name in ("root", "fork", "sub")},
        "first": stats.first,
        "last": stats.last,
        "health": dict(stats.health),
        "projects": [
            {"project": name, "path": paths[name], **_counts(projects[name])} for name in sorted(projects)
        ],
        "usage": spending_object(spent),
    }
    if costs is not None:
        from sessionary.cli.events_cmd import usage_object  # here, since it loads much

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
    return {"sessions": stats.sessions, "messages": stats.messages, "turns": stats.turns, "size": stats.size}


def _totals(stats: Stats, relations: Counter[str], projects: dict[str, Stats]) -> Iterator[str]:
    kinds = [
        f"{relations[name]:,} {words}"
        for name, words in (("root", "begun by users"), ("fork", "forked"), ("sub", "of sub-agents"))
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
    yield from _project_table(projects)


def _health(stats: Stats) -> str:
    """The number of sessions of each verdict, the best first."""
    counts = stats.health.copy()
    counts["ok"] += counts.pop(Severity.note.name, 0)
    order = ["ok", *(severity.name for severity in Severity)]
    return ", ".join(
        f"{counts[name]:,} {output.paint(formatting.verdict(name), formatting.colour(name))}"
        for name in order
        if counts[name]
    )


def _project_table(projects: dict[str, Stats]) -> Iterator[str]:
    """The table of projects, the last changed first."""
    now = datetime.now(UTC)
    rows = sorted(projects.items(), key=lambda row: (row[1].last or _NEVER, row[0]), reverse=True)
    some = [stats for _, stats in rows]
    columns = [
        Column("PROJECT", [one_line(name) for name, _ in rows]),
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
    from sessionary.cli.events_cmd import report_unknown_usage, usage_table  # here, since it loads much

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
    report_unknown_usage(costs.total)
    if costs.copied:
        output.aside(
            f"{formatting.count(costs.copied, 'response')} copied by forks, counted with their parents"
        )
    if costs.problems:
        output.aside(f"{formatting.count(costs.problems, 'damaged place')} in event logs skipped")
