"""Print what models used and what that cost: tables with bars, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionary.cli import formatting, output, table
from sessionary.cli.table import Column
from sessionary.cli.targets import project_name
from sessionary.cli.text import one_line
from sessionary.workspace import documents
from sessionary.workspace.spending import Spending, SpendingReport

NO_PROJECT = "(no project)"
NO_TIME = "(no time)"

SHOWN = 30
"""Rows of a table: the newest days, and the largest of everything else."""

_BAR = 24
"""Maximum width of a bar, in cells."""

_NAME = 28
"""Maximum width of a name, in cells."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def spending_object(report: SpendingReport) -> dict[str, Any]:
    """The document `usage` of docs/cli-json.md."""
    return {
        "total": documents.of_spending(report.total),
        **{
            f"{what}s": [{what: name, **documents.of_spending(rows[name])} for name in sorted(rows)]
            for what, rows in _tables(report).items()
        },
        "sessions": report.sessions,
        "unpriced_sessions": report.unpriced_sessions,
        "silent_sessions": report.silent_sessions,
        "prices": report.prices,
    }


def _tables(report: SpendingReport) -> dict[str, dict[str, Spending]]:
    """The rows by model, day, project and agent, with words for those that have none."""
    return {
        "model": report.models,
        "day": {name or NO_TIME: one for name, one in report.days.items()},
        "project": {name or NO_PROJECT: one for name, one in report.projects.items()},
        "agent": report.agents,
    }


def spending_tables(report: SpendingReport) -> Iterator[str]:
    """The tables, each after a blank line; nothing if no session states any usage."""
    if not report.sessions:
        return
    for what, rows in _tables(report).items():
        yield ""
        if what == "day":
            names = sorted(rows)[-SHOWN:]
        else:
            names = sorted(rows, key=lambda name: (-_weight(report, rows[name]), name))[:SHOWN]
        shown = {name: rows[name] for name in names}
        if what == "project":
            shown = {name if name == NO_PROJECT else project_name(name): one for name, one in shown.items()}
        yield from _table(report, what, shown)
        if more := len(rows) - len(names):
            which = "earlier " if what == "day" else ""
            yield f"and {formatting.count(more, f'{which}{what}')}; --json prints all"
    yield ""
    total = report.total
    yield output.paint(f"{formatting.count(total.usage.tokens, 'token')}, {_cost(total)}", "bold")
    yield f"at the list prices of {report.prices}"
    if total.usage.cost is not None:
        yield f"agents state {_money(total.usage.cost)}"


def _table(report: SpendingReport, what: str, rows: Mapping[str, Spending]) -> Iterator[str]:
    some = list(rows.values())
    columns = [
        Column(what.upper(), [one_line(name) for name in rows]),
        Column("INPUT", [formatting.quantity(one.usage.input) for one in some], right=True),
        Column("CACHE", [formatting.quantity(_cached(one)) for one in some], right=True),
        Column("OUTPUT", [formatting.quantity(one.usage.output) for one in some], right=True),
        Column("COST", [_cost(one) for one in some], right=True),
    ]
    if any(one.usage.cost is not None for one in some):
        stated = ["" if one.usage.cost is None else _money(one.usage.cost) for one in some]
        columns.append(Column("STATED", stated, right=True))
    most = max(_weight(report, one) for one in some)
    bars = [_bar(_weight(report, one) / most if most else 0) for one in some]
    columns.append(Column("", bars, colours=["cyan"] * len(bars)))
    longest = max(len(what), *(len(one_line(name)) for name in rows))
    room = output.room()
    least = min(longest, _NAME)
    yield from table.lines(
        columns,
        room,
        stretch=what.upper(),
        keep_end=what == "project",
        drop=("", "CACHE", "STATED"),
        least=least,
    )


def _cached(one: Spending) -> int:
    return one.usage.cache_read + one.usage.cache_write


def _weight(report: SpendingReport, one: Spending) -> float:
    """What a bar shows: cost, or tokens where no price is known."""
    return one.usage.tokens if report.total.cost is None else one.cost or 0


def _bar(share: float) -> str:
    """A bar for a share of the longest one; the smallest one is visible."""
    eighths = max(round(share * 8 * _BAR), 1 if share else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _cost(one: Spending) -> str:
    """The cost; with a + if there are more tokens than it covers, and ``?`` if it covers none."""
    if one.cost is None:
        return "?" if one.unpriced else _money(0)
    return _money(one.cost) + ("+" if one.unpriced else "")


def _money(amount: float) -> str:
    """An amount of US dollars, with two digits or three significant ones."""
    if 0 < amount < 0.995:
        return f"${amount:.4f}" if amount >= 0.00005 else "<$0.0001"
    return f"${amount:,.2f}"


def tell_unpriced(report: SpendingReport) -> None:
    """Print which share of the tokens and sessions the cost leaves out."""
    total = report.total
    if total.unpriced:
        share = 100 * total.unpriced / total.usage.tokens
        names = sorted(one_line(name) for name, one in report.models.items() if one.unpriced)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        output.aside(
            f"No price is known for {total.unpriced:,} tokens ({share:.3g}%) in "
            f"{formatting.count(report.unpriced_sessions, 'session')}: {shown}"
        )
    if report.silent_sessions:
        output.aside(f"{formatting.count(report.silent_sessions, 'session')} without token counts")
