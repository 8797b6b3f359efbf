"""The overview: plots of usage, the state of projects, and the sessions that their agents will delete soon."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sessionary.escaping import harmless
from sessionary.viewer.charts import of_projects
from sessionary.viewer.library import Library, key_of
from sessionary.viewer.plots import Words, by_day, largest, year
from sessionary.workspace.spending import Spending


def overview(library: Library, today: date | None = None) -> dict[str, Any]:
    """The plots of all sessions, those of projects, and the sessions that will be deleted within a week.

    Args:
        today: the last day of the year that is drawn; by default that of the clock.

    Raises:
        Invalid: the price file of the user is not valid.
    """
    report = library.workspaces[0].spending(library.summaries())
    days = {day: one for day, one in report.days.items() if day is not None}
    projects = _named(report.projects)
    today = today or datetime.now().astimezone().date()
    maps = [
        ("Sessions", year("Sessions", _begun(library), _counted("session"), today)),
        ("Tokens", year("Tokens", _tokens(days), _counted("token"), today)),
    ]
    plots = [
        ("Tokens by day", by_day("Tokens by day", _tokens(days), _count)),
        ("Cost by day", by_day("Cost by day", _costs(days), _dollars)),
        ("Cost by project", largest("Cost by project", _costs(projects), _dollars)),
        ("Cost by model", largest("Cost by model", _costs(report.models), _dollars)),
        ("Tokens by model", largest("Tokens by model", _tokens(report.models), _count)),
        ("Tokens by project", largest("Tokens by project", _tokens(projects), _count)),
    ]
    return {
        "year": [{"title": title, "svg": svg} for title, svg in maps if svg],
        "plots": [{"title": title, "svg": svg} for title, svg in plots if svg],
        "tokens": report.total.usage.tokens,
        "cost": report.total.cost,
        "unpriced": report.total.unpriced,
        "silent": report.silent_sessions,
        "prices": report.prices,
        "leaving": _leaving(library),
        **of_projects(library),
    }


def _begun(library: Library) -> Mapping[str, float]:
    """The number of sessions that began on each day, those of sub-agents left out."""
    times = (one.created or one.updated for one in library.summaries() if one.listed and not one.nested)
    return Counter(time.astimezone().date().isoformat() for time in times if time is not None)


def _named(projects: Mapping[str | None, Spending]) -> dict[str, Spending]:
    """The projects by the name of their folder; two of one name by their whole paths."""
    short = {name: os.path.basename((name or "").rstrip("/")) or "(none)" for name in projects}
    counts = Counter(short.values())
    return {
        short[name] if counts[short[name]] == 1 else name or "(none)": one for name, one in projects.items()
    }


def _leaving(library: Library) -> list[dict[str, Any]]:
    """The sessions that will be deleted within a week, the first to go first."""
    now = datetime.now(UTC)
    found = [
        (one.updated + timedelta(days=state.retention.days), state.retention.source, one)
        for workspace, summaries in library.by_workspace()
        for state in workspace.doctor(now=now, summaries=summaries).agents
        if state.retention is not None
        for one in state.leaving
        if one.updated is not None
    ]
    return [
        {
            "key": key_of(one.ref),
            "title": harmless(one.title or one.ref.session_id),
            "when": when,
            "by": source,
        }
        for when, source, one in sorted(found, key=lambda row: row[0])
    ]


def _tokens(values: Mapping[str, Spending]) -> dict[str, float]:
    return {name: one.usage.tokens for name, one in values.items()}


def _costs(values: Mapping[str, Spending]) -> dict[str, float]:
    return {name: one.cost for name, one in values.items() if one.cost}


def _counted(word: str) -> Words:
    return lambda value: f"{value:,.0f} {word}{'' if value == 1 else 's'}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _dollars(value: float) -> str:
    return "<$0.01" if value < 0.01 else f"${value:,.2f}"
