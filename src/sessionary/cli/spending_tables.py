"""Print what models used and what that cost: tables with bars, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionary.cli import formatting, output, table
from sessionary.cli.table import Column
from sessionary.cli.targets import project_name
from sessionary.cli.text import cells, one_line
from sessionary.export.wording import cost_words, money
from sessionary.workspace import documents
from sessionary.workspace.spending import Spending, SpendingReport, largest

NO_PROJECT = "(no project)"
NO_TIME = "(no time)"

SHOWN = 30
"""Rows of a table: the newest days, and the largest of everything else."""

_BAR = 24
"""Maximum width of a bar, in cells."""

_SHORTEST = 4
"""Width, in cells, below which bars are left out."""

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
        names = sorted(rows)[-SHOWN:] if what == "day" else [name for name, _ in largest(rows)[:SHOWN]]
        shown = names
        if what == "project":
            shown = [name if name == NO_PROJECT else project_name(name) for name in names]
        yield from _table(report, what, list(map(one_line, shown)), [rows[name] for name in names])
        if more := len(rows) - len(names):
            which = "earlier " if what == "day" else ""
            yield f"and {formatting.count(more, f'{which}{what}')}; --json prints all"
    yield ""
    total = report.total
    cost = "cost unknown" if total.cost is None else cost_text(total)
    yield output.paint(f"{formatting.count(total.usage.tokens, 'token')}, {cost}", "bold")
    yield f"at the list prices of {report.prices}"
    if total.usage.cost is not None:
        yield f"agents state {money(total.usage.cost)}"


def _table(report: SpendingReport, what: str, names: list[str], some: list[Spending]) -> Iterator[str]:
    columns = [
        Column(what.upper(), names),
        Column("INPUT", [formatting.quantity(one.usage.input) for one in some], right=True),
        Column(
            "CACHE",
            [formatting.quantity(one.usage.cache_read + one.usage.cache_write) for one in some],
            right=True,
        ),
        Column("OUTPUT", [formatting.quantity(one.usage.output) for one in some], right=True),
        Column("COST", [cost_text(one) for one in some], right=True),
    ]
    if any(one.usage.cost is not None for one in some):
        stated = ["" if one.usage.cost is None else money(one.usage.cost) for one in some]
        columns.append(Column("STATED", stated, right=True))
    longest = min(max(map(cells, (what, *names))), _NAME)
    room = output.room()
    taken = longest + sum(2 + max(map(cells, (one.head, *one.texts))) for one in columns[1:])
    width = _BAR if room is None else min(room - taken - 2, _BAR)
    most = max(_weight(report, one) for one in some)
    if width >= _SHORTEST and most:
        bars = [_bar(_weight(report, one) / most, width) for one in some]
        columns.append(Column("", bars, colours=["cyan"] * len(bars)))
    keep_end, drop = what == "project", ("CACHE", "STATED")
    yield from table.lines(columns, room, stretch=what.upper(), keep_end=keep_end, drop=drop, least=longest)


def _weight(report: SpendingReport, one: Spending) -> float:
    """The length of a bar: cost, or tokens where no price is known."""
    return one.usage.tokens if report.total.cost is None else one.cost or 0


def _bar(share: float, width: int) -> str:
    """A bar for a share of the longest one, which has this width; the smallest one is visible."""
    eighths = max(round(share * 8 * width), 1 if share else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def cost_text(one: Spending) -> str:
    """The cost; see `cost_words`."""
    return cost_words(one.cost, one.unpriced)


def report_unpriced(report: SpendingReport) -> None:
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
