"""The table of `sessionary list`: one line for each session, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sessionary.cli import formatting, output
from sessionary.cli.text import cells, column, fit, one_line
from sessionary.model import Summary
from sessionary.workspace import SHORT

_GOES_FIRST = ("TURNS", "SIZE", "MSGS", "PROJECT", "KIND", "WHEN", "HEALTH")
"""The columns that are left out when the terminal is narrow, in this order."""

_TITLE = 10
"""Minimum width of a title, in cells, as long as another column can be left out."""


class Row(NamedTuple):
    """A session, its short id, and its depth below its parent."""

    summary: Summary
    short: str
    depth: int


class _Column(NamedTuple):
    """A column: its head, and the text of each line, all filled up to one width."""

    name: str
    head: str
    texts: Sequence[str]


def lines(rows: list[Row], projects: Mapping[str | None, str], now: datetime) -> list[str]:
    """The lines of the table, the head first; only where there is a width is anything cut."""
    room = output.room()
    columns = _columns(rows, projects, room, now)
    if room is not None:
        columns = _that_fit(columns, room)
    head = "  ".join([one.head for one in columns]) + "  TITLE"
    titles = [_title(row) for row in rows]
    if room is not None:
        left = max(room - cells(head) + len("TITLE"), 4)
        titles = [fit(title, left) for title in titles]
    drawn = ["  ".join(texts) for texts in zip(*[one.texts for one in columns], titles, strict=True)]
    if room is not None and cells(head) - len("TITLE") + 4 > room:  # an id as wide as the screen
        head, drawn = fit(head, room), [fit(text, room) for text in drawn]
    return [output.paint(head, "bold"), *_painted(drawn, rows)]


def _columns(
    rows: list[Row], projects: Mapping[str | None, str], room: int | None, now: datetime
) -> list[_Column]:
    """All columns but the last."""
    names = {slug: one_line(name) for slug, name in projects.items()}
    if room is not None:
        longest = 14 if room < 100 else 28
        names = {slug: fit(name, longest, keep_end=True) for slug, name in names.items()}
    some = [row.summary for row in rows]
    columns = [
        _column("ID", [one_line(row.short) for row in rows]),
        _column("WHEN", [formatting.ago(one.updated, now) for one in some]),
        _column("PROJECT", [names[one.ref.project] for one in some]),
        _column("MSGS", [str(one.messages) for one in some], right=True),
        _column("TURNS", [str(one.turns) for one in some], right=True),
        _column("SIZE", [formatting.size(one.size) for one in some], right=True),
        _column("HEALTH", [formatting.verdict(one.health) for one in some]),
    ]
    if len({one.ref.kind for one in some}) > 1:
        columns.insert(1, _column("KIND", [one.ref.kind for one in some]))
    return columns


def _column(name: str, texts: Sequence[str], *, right: bool = False) -> _Column:
    filled = column([name, *texts], right=right)
    return _Column(name, filled[0], filled[1:])


def _that_fit(columns: list[_Column], room: int) -> list[_Column]:
    """The columns that leave room for a title."""
    for name in _GOES_FIRST:
        if sum(cells(one.head) + 2 for one in columns) + _TITLE <= room:
            break
        columns = [one for one in columns if one.name != name]
    return columns


def _painted(drawn: list[str], rows: list[Row]) -> list[str]:
    """The lines with their verdicts in colour, where colours are wanted."""
    if not output.has_colours():
        return drawn
    painted = []
    for text, row in zip(drawn, rows, strict=True):
        verdict = formatting.verdict(row.summary.health)
        painted.append(text.replace(verdict, output.paint(verdict, formatting.colour(row.summary.health)), 1))
    return painted


def _title(row: Row) -> str:
    """The title; that of a sub-session is set in, that of a fork names its origin."""
    title, parent = row.summary.title or "-", row.summary.parent
    if row.depth:
        return "  " * (row.depth - 1) + "└ " + one_line(title)
    if parent and parent != row.summary.ref.session_id:
        title = f"{title} (from {parent[:SHORT]})"
    return one_line(title)
