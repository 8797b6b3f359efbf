"""`work stats`: tokens, cost and time of work sessions, also by model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sessionary.cli import options, output, table
from sessionary.cli.formatting import count
from sessionary.cli.lazy import command
from sessionary.cli.table import Column
from sessionary.cli.text import fit, one_line, widest
from sessionary.cli.work import places, render
from sessionary.layouts.maestro.costs import ModelUsage, by_model, statistics
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.store import WorkStore
from sessionary.workspace import work

_MODEL = 18
_SHORTEST, _LONGEST = 4, 24


@command(
    "stats",
    "sessionary work stats                      all work sessions together",
    "sessionary work stats db5b5fab --tree      this one and all below it",
    "sessionary work stats --json | jq .estimated_cost",
)
@click.argument("session", metavar="[ID]", required=False, shell_complete=places.complete)
@places.on_store
@options.flag("--tree", help="With ID, count the sessions below it too.")
@options.flag("--include-children", "tree", help="The same as --tree.")
@options.json_result
def stats_command(session: str | None, store: WorkStore, tree: bool) -> int:
    """Show totals over work sessions, also by model.

    These are breadcrumbs, tokens, cost, files, tools and time. The cost is the sum of the costs in
    breadcrumbs; missing costs are not estimated.
    """
    if tree and session is None:
        raise click.UsageError("--tree needs ID; without ID all sessions are counted")
    if session is None:
        scan = store.scan()
        sessions, problems = scan.sessions, scan.problems
    else:
        sessions, problems = work.family_of(store, store.find(session), below=tree)
    found, more = work.crumbs_of(store, sessions)
    crumbs = [crumb for crumb, _ in found]
    if output.is_json():
        output.value(_object(sessions, None if session is None else sessions[0].session_id, crumbs))
    elif session is None and not sessions:
        output.aside(places.no_sessions(store))
    else:
        with output.paged():
            output.lines(_page(sessions, crumbs, session is not None))
    return places.print_problems([*problems, *more])


def _object(sessions: list[WorkSession], session_id: str | None, crumbs: list[Breadcrumb]) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "sessions": len(sessions),
        **statistics(crumbs),
        "models": [usage._asdict() for usage in by_model(crumbs)],
    }


def _page(sessions: list[WorkSession], crumbs: list[Breadcrumb], is_one: bool) -> Iterator[str]:
    name = one_line(sessions[0].session_id) if is_one else count(len(sessions), "work session")
    below = f" and {count(len(sessions) - 1, 'session')} below it" if is_one and len(sessions) > 1 else ""
    yield render.head(f"Statistics for {name}{below}:")
    sums = statistics(crumbs)
    used = {"Tokens (Input/Output)": f"{sums['total_tokens_input']:,} / {sums['total_tokens_output']:,}"}
    lines = render.figures(sums, used)
    if sums["duration_seconds"] >= 60:
        lines["Duration (seconds)"] += f" ({render.span(sums['duration_seconds'])})"
    yield from (render.cut(f"  {label}: {text}") for label, text in lines.items())
    if crumbs:
        yield ""
        yield from _bars(by_model(crumbs))


def _bars(usages: list[ModelUsage]) -> Iterator[str]:
    """A table with two bars for each model: its tokens, and its known cost."""
    costs = [render.dollars(usage.cost) for usage in usages]
    partly = {usage.model for usage in usages if usage.cost is not None and usage.breadcrumbs_without_cost}
    costs = [
        cost + ("+?" if usage.model in partly else "") for cost, usage in zip(costs, usages, strict=True)
    ]
    names = [f"  {fit(one_line(usage.model), _MODEL)}" for usage in usages]
    columns = [
        Column("  MODEL", names),
        Column("CRUMBS", [f"{usage.breadcrumbs:,}" for usage in usages], right=True),
        Column("TOKENS", [f"{usage.tokens:,}" for usage in usages], right=True),
        Column("COST", costs, right=True),
    ]
    taken = sum(widest([one.head, *one.texts]) for one in columns) + 10
    length = min((output.width() - taken) // 2, _LONGEST)
    if length < _SHORTEST:  # too narrow for bars
        length = 0
    columns.insert(3, Column("", _drawn([usage.tokens for usage in usages], length)))
    columns.append(Column(" ", _drawn([usage.cost or 0.0 for usage in usages], length)))
    yield from table.lines(columns, output.room())
    if partly:
        yield "  +? breadcrumbs of this model whose cost is unknown are not in its sum"


def _drawn(values: list[int] | list[float], length: int) -> list[str]:
    """A bar for each value, the greatest `length` cells long; every value above zero is visible."""
    most = max(values, default=0)
    return ["█" * max(round(value / most * length), min(length, 1)) if value > 0 else "" for value in values]
