"""Tokens and cost of models, by model, day, project and agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from sessionary.model import NO_USAGE, QUARTER, Summary, Usage
from sessionary.workspace.prices import Prices, Rates


@dataclass(slots=True)
class Spending:
    """Tokens and their cost.

    Attributes:
        usage: the tokens; its `cost` is what agents state for some or all of them.
        cost: the cost of those whose model has a known price, in US dollars; None if none has.
        unpriced: the tokens of models without a known price.
    """

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    unpriced: int = 0

    def add(self, usage: Usage, rates: Rates | None) -> None:
        """Add usage at some prices; None if they are unknown."""
        self.usage = self.usage.plus(usage)
        if rates is None:
            self.unpriced += usage.tokens
        elif usage.tokens or usage.web_searches:
            self.cost = (self.cost or 0) + rates.cost(usage)


@dataclass(slots=True)
class SpendingReport:
    """Tokens and cost of sessions.

    Attributes:
        total: all of it.
        models: by model.
        days: by day, as ``2026-03-14``; None where messages bear no time.
        projects: by project, as `Workspace.project_of` names it; None for none.
        agents: by agent.
        sessions: the number of sessions that used something.
        unpriced_sessions: the number of those with tokens of models without a known price.
        silent_sessions: the number of sessions whose messages state no usage.
        prices: the day of the prices, as ``2026-11-29``.
    """

    total: Spending = field(default_factory=Spending)
    models: dict[str, Spending] = field(default_factory=dict)
    days: dict[str | None, Spending] = field(default_factory=dict)
    projects: dict[str | None, Spending] = field(default_factory=dict)
    agents: dict[str, Spending] = field(default_factory=dict)
    sessions: int = 0
    unpriced_sessions: int = 0
    silent_sessions: int = 0
    prices: str = ""


def largest(rows: Mapping[Any, Spending]) -> list[tuple[Any, Spending]]:
    """The rows of a table, the highest cost first; of equals the one with more tokens, then by name.

    Costs are equal to a millionth of a dollar: sums of the same amounts in another order differ in their last bits.
    """

    def rank(row: tuple[Any, Spending]) -> tuple[float, int, str]:
        name, one = row
        return -round(one.cost or 0, 6), -one.usage.tokens, name or ""

    return sorted(rows.items(), key=rank)


def spent(summary: Summary, prices: Prices) -> Spending:
    """Tokens and cost of one session."""
    found = Spending()
    for one in summary.usage:
        if one.usage != NO_USAGE:
            found.add(one.usage, prices.rates(one.model, one.quarter, one.context))
    return found


def spending(
    summaries: Iterable[Summary],
    prices: Prices,
    project_of: Callable[[Summary], str | None],
    *,
    since: datetime | None,
    until: datetime | None,
    zone: tzinfo | None,
    model: str | None,
) -> SpendingReport:
    """See `Workspace.spending`."""
    report = SpendingReport(prices=prices.date)
    first = 0 if since is None else _quarter(since)
    end = None if until is None else _quarter(until)
    bounded = since is not None or until is not None
    wanted = None if model is None else model.casefold()
    days: dict[int, str | None] = {}
    known: dict[tuple[str, int, int], Rates | None] = {}
    # Sums of plain numbers first: there are far more rows than combinations of what they are asked for.
    cells: dict[tuple[str | None, str, str, str | None, int], tuple[Rates | None, Usage]] = {}
    for summary in summaries:
        project, agent = project_of(summary), summary.agent
        used, unpriced = False, False
        for one in summary.usage:
            quarter, name, usage = one.quarter, one.model, one.usage
            if bounded and (quarter < first or not quarter or (end is not None and quarter >= end)):
                continue
            if usage == NO_USAGE or (wanted is not None and wanted not in name.casefold()):
                continue
            key = name, quarter, one.context
            if key not in known:
                known[key] = prices.rates(*key)
            rates = known[key]
            if quarter not in days:
                days[quarter] = _day(quarter, zone)
            cell = project, agent, name, days[quarter], id(rates)
            before = cells.get(cell)
            cells[cell] = rates, usage if before is None else before[1].plus(usage)
            used, unpriced = True, unpriced or rates is None
        report.sessions += used
        report.unpriced_sessions += unpriced
        report.silent_sessions += not used and all(one.usage == NO_USAGE for one in summary.usage)
    for (project, agent, name, day, _), (rates, usage) in cells.items():
        report.total.add(usage, rates)
        report.models.setdefault(name, Spending()).add(usage, rates)
        report.days.setdefault(day, Spending()).add(usage, rates)
        report.projects.setdefault(project, Spending()).add(usage, rates)
        report.agents.setdefault(agent, Spending()).add(usage, rates)
    return report


def _quarter(time: datetime) -> int:
    return int(time.timestamp()) // QUARTER


def _day(quarter: int, zone: tzinfo | None) -> str | None:
    """The day of a quarter in a zone, by default the local one; None for messages without a time in the calendar."""
    if not quarter:
        return None
    try:
        return datetime.fromtimestamp(quarter * QUARTER, UTC).astimezone(zone).date().isoformat()
    except (ValueError, OverflowError, OSError):  # some records bear a time of the year 1 or 9999
        return None
