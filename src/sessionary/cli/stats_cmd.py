"""`sessionary stats`: how much there is, and with --events what it has cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from sessionary import model
from sessionary.cli import formatting, homes, options, output
from sessionary.cli.choice import all_summaries, among_found, chosen, names_of, project_names, tell_partly
from sessionary.cli.events_cmd import tell_silent, usage_object, usage_table
from sessionary.cli.family import families
from sessionary.cli.progress import Progress
from sessionary.cli.text import column, fit, one_line
from sessionary.codec.times import parse_time
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.event_reader import RESPONSE, EventReader, Usage
from sessionary.layouts.amplifier.files import EVENTS
from sessionary.model import Severity, Summary
from sessionary.workspace import Workspace

_NEVER = datetime.min.replace(tzinfo=UTC)
NO_PROJECT = "(no project)"
_FIELDS = ("ts", "parent_session_id", "data.model", "data.usage")


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
    if project is not None:
        with among_found(failure):
            kept = {ref.locator for ref in chosen(workspace, [one.ref for one in summaries], project=project)}
        summaries = [summary for summary in summaries if summary.ref.locator in kept]
    known = {summary.ref.session_id for summary in summaries}
    costs = _costs(summaries, known, since, until) if events else None
    summaries = [one for one in summaries if _is_within(one.updated, since, until)]
    if json_:
        output.value(_report(workspace, summaries, costs))
    else:
        with output.paged():
            output.lines(_told(workspace, summaries))
            if costs is not None:
                _print_costs(workspace, costs)
    return tell_partly(failure, "counted")


def _is_within(time: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    if since is None and until is None:
        return True
    return time is not None and (since is None or time >= since) and (until is None or time < until)


@dataclass(slots=True)
class _Costs:
    """What responses have cost, by what one may ask for.

    Attributes:
        models, projects, days: the usage by model, folder name of the project, and local day.
        total: all of it.
        logs: event logs that were read.
        copied: responses that a fork has taken over from its parent, which are counted there.
        problems: damaged places in the logs.
    """

    models: dict[str, Usage] = field(default_factory=dict)
    projects: dict[str, Usage] = field(default_factory=dict)
    days: dict[str, Usage] = field(default_factory=dict)
    total: Usage = field(default_factory=Usage)
    logs: int = 0
    copied: int = 0
    problems: int = 0


def _costs(
    summaries: list[Summary], known: set[str], since: datetime | None, until: datetime | None
) -> _Costs:
    """Read the event logs. One that cannot be read is told, and the others are read all the same."""
    costs = _Costs()
    sizes = {one.ref.locator: _size(f"{one.ref.locator}/{EVENTS}") for one in summaries}
    with Progress("reading events", sum(sizes.values())) as progress:
        for summary in summaries:
            reader = EventReader(summary.ref.locator)
            try:
                found = reader.fields(_FIELDS, event=RESPONSE, since=since, until=until)
                _add_log(costs, found, summary, known)
            except NotFound:
                continue
            except StorageFailed as error:
                output.aside(f"sessionary: {one_line(error.message)}")
                costs.problems += 1
            costs.logs += 1
            costs.problems += len(reader.problems)
            progress.advance(sizes[summary.ref.locator])
    return costs


def _add_log(costs: _Costs, responses: Iterable[dict[str, Any]], summary: Summary, known: set[str]) -> None:
    for found in responses:
        parent = found.get("parent_session_id")
        if isinstance(parent, str) and parent in known and parent != summary.ref.session_id:
            costs.copied += 1
            continue
        model, time, usage = found.get("data.model"), parse_time(found.get("ts")), found.get("data.usage")
        costs.total.add(usage)
        for table, key in (
            (costs.models, model if isinstance(model, str) else "(not named)"),
            (costs.projects, summary.ref.project or NO_PROJECT),
            (costs.days, f"{time.astimezone():%Y-%m-%d}" if time else "(no time)"),
        ):
            table.setdefault(key, Usage()).add(usage)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _relations(workspace: Workspace, summaries: list[Summary]) -> Counter[str]:
    counts: Counter[str] = Counter()
    todo = families(summaries, workspace.is_nested)
    while todo:
        one = todo.pop()
        counts[one.relation] += 1
        todo += one.children
    return counts


def _by_project(summaries: Iterable[Summary]) -> dict[str, list[Summary]]:
    found: dict[str, list[Summary]] = {}
    for summary in summaries:
        found.setdefault(summary.ref.project or NO_PROJECT, []).append(summary)
    return found


def _report(workspace: Workspace, summaries: list[Summary], costs: _Costs | None) -> dict[str, Any]:
    """The document of docs/cli-json.md."""
    relations = _relations(workspace, summaries)
    times = [summary.updated for summary in summaries if summary.updated]
    document: dict[str, Any] = {
        **_counts(summaries),
        "relations": {name: relations[name] for name in ("root", "fork", "sub")},
        "first": min(times, default=None),
        "last": max(times, default=None),
        "health": dict(Counter(summary.health for summary in summaries)),
        "projects": [
            {"project": name, **_counts(some)} for name, some in sorted(_by_project(summaries).items())
        ],
    }
    document["usage"] = [
        {"model": name, **asdict(used)} for name, used in sorted(_usage_by_model(summaries).items())
    ]
    if costs is not None:
        document["costs"] = {
            "total": usage_object(costs.total),
            "models": _usages(costs.models, "model"),
            "projects": _usages(costs.projects, "project"),
            "days": _usages(costs.days, "day"),
            "logs": costs.logs,
            "copied": costs.copied,
            "problems": costs.problems,
        }
    return document


def _usages(usages: dict[str, Usage], what: str) -> list[dict[str, Any]]:
    return [{what: name, **usage_object(usage)} for name, usage in sorted(usages.items())]


def _counts(summaries: list[Summary]) -> dict[str, int]:
    return {
        "sessions": len(summaries),
        "messages": sum(summary.messages for summary in summaries),
        "turns": sum(summary.turns for summary in summaries),
        "size": sum(summary.size for summary in summaries),
    }


def _told(workspace: Workspace, summaries: list[Summary]) -> Iterator[str]:
    projects = _by_project(summaries)
    counts, relations = _counts(summaries), _relations(workspace, summaries)
    kinds = [
        f"{relations[name]:,} {words}"
        for name, words in (("root", "begun by people"), ("fork", "forked"), ("sub", "of sub-agents"))
        if relations[name]
    ]
    where = formatting.count(len(projects), "project")
    yield output.paint(f"{formatting.count(counts['sessions'], 'session')} in {where}", "bold")
    if not summaries:
        return
    yield ", ".join(kinds)
    yield (
        f"{formatting.count(counts['messages'], 'message')}, {formatting.count(counts['turns'], 'turn')}, "
        f"{formatting.size(counts['size'])}"
    )
    yield _health(summaries)
    yield ""
    yield from _project_table(workspace, projects)
    used = _usage_by_model(summaries)
    if used:
        yield ""
        yield from _model_table(used)


def _usage_by_model(summaries: Iterable[Summary]) -> dict[str, model.Usage]:
    """What sessions whose messages state their usage add up to."""
    total: dict[str, model.Usage] = {}
    for summary in summaries:
        for name, used in summary.usage_by_model().items():
            total[name] = total.get(name, model.Usage()).plus(used)
    return total


def _model_table(used: dict[str, model.Usage]) -> Iterator[str]:
    rows = sorted(used.items(), key=lambda one: (-one[1].input - one[1].output, one[0]))
    first = column(["MODEL", *(one_line(name) for name, _ in rows)])
    counts = [
        column([what, *(f"{getattr(one, field):,}" for _, one in rows)], right=True)
        for what, field in (
            ("INPUT", "input"), ("OUTPUT", "output"), ("CACHE READ", "cache_read"), ("CACHE WRITTEN", "cache_write"),
        )
    ]  # fmt: skip
    for at, line in enumerate("  ".join(row) for row in zip(first, *counts, strict=True)):
        yield output.paint(line, "bold") if not at else line


def _health(summaries: list[Summary]) -> str:
    """How many sessions are how healthy, the well ones first."""
    counts = Counter(
        "ok" if summary.health == Severity.note.name else summary.health for summary in summaries
    )
    order = ["ok", *(severity.name for severity in Severity)]
    return ", ".join(
        f"{counts[name]:,} {output.paint(formatting.verdict(name), formatting.colour(name))}"
        for name in order
        if counts[name]
    )


def _project_table(workspace: Workspace, projects: dict[str, list[Summary]]) -> Iterator[str]:
    """Yield the table of projects, the last changed first."""
    now = datetime.now(UTC)
    names = names_of(workspace, [one for some in projects.values() for one in some])
    table: list[tuple[str, ...]] = [("PROJECT", "SESSIONS", "MESSAGES", "TURNS", "SIZE", "WHEN")]
    rows = [(_last(some), name, some) for name, some in projects.items()]
    for last, name, some in sorted(rows, key=lambda row: row[:2], reverse=True):
        counts = _counts(some)
        numbers = [f"{counts[key]:,}" for key in ("sessions", "messages", "turns")]
        when = formatting.ago(None if last is _NEVER else last, now)
        table.append((one_line(names.get(name, name)), *numbers, formatting.size(counts["size"]), when))
    first, *others = zip(*table, strict=True)
    columns = [column(texts, right=True) for texts in others]
    room = output.room()
    while room is not None and len(columns) > 2 and room - sum(len(texts[0]) + 2 for texts in columns) < 12:
        del columns[-3]  # the turns, then the messages, then the sessions: size and time say the most
    left = None if room is None else max(room - sum(len(texts[0]) + 2 for texts in columns), 8)
    shown = [name if left is None else fit(name, left, keep_end=True) for name in first]
    for at, row in enumerate(zip(column(shown), *columns, strict=True)):
        line = "  ".join(row)
        yield output.paint(line, "bold") if not at else line


def _last(summaries: list[Summary]) -> datetime:
    """When one of them changed last."""
    return max((summary.updated for summary in summaries if summary.updated), default=_NEVER)


def _names(workspace: Workspace, slugs: Iterable[str]) -> dict[str, str]:
    """What the projects are called."""
    names = project_names(workspace, (slug for slug in slugs if slug != NO_PROJECT))
    return {slug: names.get(slug, slug) for slug in slugs}


def _print_costs(workspace: Workspace, costs: _Costs) -> None:
    output.line()
    if not costs.total.responses:
        output.aside(f"No model responses in {formatting.count(costs.logs, 'event log')}")
        return
    output.lines(usage_table(costs.models, "MODEL"))
    names = _names(workspace, costs.projects)
    projects = {names[slug]: usage for slug, usage in costs.projects.items()}
    for usages, what in ((projects, "PROJECT"), (costs.days, "DAY")):
        output.line()
        output.lines(usage_table(usages, what, by_name=what == "DAY"))
    tell_silent(costs.total)
    if costs.copied:
        output.aside(
            f"{formatting.count(costs.copied, 'response')} copied by forks, counted with their parents"
        )
    if costs.problems:
        output.aside(f"{formatting.count(costs.problems, 'damaged place')} in event logs skipped")
