"""The commands that read features: status, list, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import formatting, options, output, project_options, table
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.project_options import label
from sessionary.cli.table import Column
from sessionary.cli.text import cells, fit, one_line
from sessionary.layouts.orchestrator.entries import kind_of
from sessionary.layouts.orchestrator.rules import FEATURE_STATUSES
from sessionary.layouts.orchestrator.status import FeatureRow, FeatureStatus, HistoryStats, stats_of
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.layouts.orchestrator.times import parse


@command("list", "sessionary feature list", "sessionary feature list --status active --json")
@params.store
@click.option("--status", type=click.Choice(FEATURE_STATUSES), help="Only this status.")
@options.flag("--archived", help="Include archived features.")
@options.as_json("the features", "one feature")
def list_command(store: FeatureStore, status: str | None, archived: bool) -> int:
    """List the features of the project, newest first."""
    rows = store.list_features(status=status, archived=archived)
    if not output.is_json():
        project_options.warn(store.last_report.problems)
    none = None if rows else "No features. Create one: `sessionary feature create NAME`"
    return output.listed(map(_object, rows), _table(rows), none)


def _object(row: FeatureRow) -> dict[str, Any]:
    state = row.state and row.state.as_dict()
    problems = [problem.as_dict() for problem in row.problems]
    fields = {"feature_id": row.feature_id, "status": row.status, "archived": row.archived}
    return {**fields, "current_state": state, "problems": problems}


def _table(rows: Sequence[FeatureRow]) -> Iterator[str]:
    now = datetime.now(UTC)
    states = [row.state for row in rows]
    names = [f"{'✗' if row.state is None else ' '} {one_line(row.feature_id)}" for row in rows]
    columns = [
        Column("  ID", names),
        Column("WHEN", [formatting.ago(state and state.last_updated, now) for state in states]),
        Column("STATUS", ["archived" if row.archived else row.status for row in rows]),
        Column("TASK", [fit(one_line((state and state.active_task) or "-"), 16) for state in states]),
        Column("MODEL", [fit(one_line((state and state.model_in_use) or "?"), 8) for state in states]),
    ]
    yield from table.lines(
        columns,
        output.width(),
        stretch="  ID",
        drop=("MODEL", "TASK", "STATUS"),
        least=max(map(cells, names), default=0),
    )
    for row in rows:
        if row.state is None and row.problems:
            yield from item("✗ ", f"{row.feature_id}: {row.problems[0].message}")


@command(
    "status",
    "sessionary feature status sign-in-2025-01-09",
    "sessionary feature status sign-in-2025-01-09 --json | jq .progress",
)
@params.feature
@params.store
@options.json_result
def status_command(store: FeatureStore, feature_id: str) -> int:
    """Show the progress and the history of a feature.

    These are progress, health, counts per command, model and agent, failures, and durations.
    """
    found = store.status(feature_id)
    if not output.is_json():
        project_options.warn(found.problems)
    return output.shown(found.as_dict(), _status(found))


def _status(found: FeatureStatus) -> Iterator[str]:
    now = datetime.now(UTC)
    name = fit(one_line(found.feature_id), output.width() - len(found.status) - 2)
    yield f"{output.paint(name, 'bold')}  {found.status}"
    if found.name and found.name != found.feature_id:
        yield from label("name", found.name)
    if found.description:
        yield from label("about", found.description)
    yield from label("health", found.health)
    if found.state is not None:
        yield from label("task", found.state.active_task or "none")
        yield from label("model", str(found.state.model_in_use))
        when = found.state.last_updated
        yield from label("changed", "?" if when is None else formatting.stamp(when, now))
    yield from label("progress", _progress(found))
    if found.artifacts:
        yield from label("artifacts", _counts({k or "(none)": v for k, v in found.artifacts.items()}))
    yield from _stats(found.stats)
    if found.last:
        yield from project_options.heading("Last")
        yield from (_line(entry, now) for entry in found.last)


def _progress(found: FeatureStatus) -> str:
    if found.progress is None:
        return "no tasks yet"
    counts = {name.replace("_", " "): number for name, number in found.tasks.items() if number}
    return f"{found.progress} %  ({_counts(counts)})"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def _stats(stats: HistoryStats) -> Iterator[str]:
    yield from label("history", formatting.count(stats.entries, "entry", "entries"))
    for name in ("commands", "models", "agents"):
        if getattr(stats, name):
            yield from label(name, _counts(getattr(stats, name)))
    yield from label("failures", f"{stats.failures:,}")
    if stats.average_ms is not None:
        yield from label("durations", f"{stats.total_ms:,} ms in all, {stats.average_ms:,} ms each")


@command(
    "history",
    "sessionary feature history sign-in-2025-01-09 --since 2d",
    "sessionary feature history sign-in-2025-01-09 --failed --model opus",
    "sessionary feature history sign-in-2025-01-09 --stats",
)
@params.feature
@params.store
@click.option("--command", help="Only this command.")
@click.option("--model", help="Only this model.")
@click.option("--agent", help="Only this agent.")
@options.since
@options.flag("--failed", help="Only failed commands.")
@options.flag("--stats", help="Print totals instead of entries.")
@options.as_json("the entries", "one entry")
def history_command(store: FeatureStore, feature_id: str, stats: bool, **filters: Any) -> int:
    """Show the history of a feature, oldest first.

    Only the entries that match all filters.
    """
    if stats and output.wants("jsonl"):
        raise click.UsageError("--stats is not a list; use --json")
    found = store.history(feature_id, **filters)
    if not output.is_json():
        project_options.warn(store.last_report.problems)
    if stats:
        added = stats_of(found)
        return output.shown(added, _stats(added))
    now = datetime.now(UTC)
    lines = (_line(entry, now) for entry in found)
    return output.listed(found, lines, None)


def _line(entry: Mapping[str, Any], now: datetime) -> str:
    """One entry on one line: time, result, command, agent."""
    when = parse(entry.get("timestamp"))
    time = "?" if when is None else formatting.stamp(when, now)
    sign = "✗" if entry.get("status") in ("failure", "failed") else " "
    what = str(entry.get("command") or entry.get("event") or kind_of(entry))
    words = [what, str(entry.get("arguments") or ""), f"({entry['agent']})" if entry.get("agent") else ""]
    error = f": {entry['error']}" if entry.get("error") else ""
    model = fit(one_line(str(entry.get("model") or "")), 8)
    line = f"  {time:<12} {sign} {model:<6}  {one_line(' '.join(filter(None, words)) + error)}"
    return fit(line, output.width())
