"""The table of `sessionary list`: one line for each session, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from sessionary.cli import formatting, output
from sessionary.cli.text import cells, column, fit, one_line, one_lines
from sessionary.model import Summary
from sessionary.workspace import SHORT

Value = TypeVar("Value")

_GOES_FIRST = ("TURNS", "SIZE", "MSGS", "PROJECT", "KIND", "WHEN", "HEALTH")
"""The columns that are left out when the terminal is narrow, in this order."""

_TITLE = 10
"""Minimum width of a title, in cells, as long as another column can be left out."""


class Table(NamedTuple):
    """The content of a table.

    summaries: the sessions that match.
        times: when each last changed, in seconds since 1970.
        times: when each last changed, in seconds since 1970.
        short: the short id of each.
        depths: the index in `summaries` and the depth of each row, in the order of the table.
        projects: the name under which each project is shown.
    """

    summaries: list[Summary]
    times: list[float]
    short: list[str]
    depths: Mapping[int, int]
    projects: Mapping[str | None, str]


class _Column(NamedTuple):
    """A column: its head, and the text of each line, all padded to one width."""

    name: str
    head: str
    texts: Sequence[str]


def lines(table: Table, now: datetime) -> list[str]:
    """The lines of the table, the head first; cells are cut only if there is a width.

    Columns are computed in the order of `summaries` and permuted last: with ten thousand rows, random memory
    access is slow. First use of memory is slow too, so a column with few different values stores each text
    once.
    """
    room = output.room()
    places = [place for place in range(len(table.summaries)) if place in table.depths]
    some = [table.summaries[place] for place in places]
    columns = _columns(table, places, some, room, now)
    if room is not None:
        columns = _that_fit(columns, room)
    head = "  ".join([one.head for one in columns]) + "  TITLE"
    titles = _titles(some, [table.depths[place] for place in places])
    if room is not None:
        left = max(room - cells(head) + len("TITLE"), 4)
        titles = [fit(title, left) for title in titles]
    drawn = list(map("  ".join, zip(*[one.texts for one in columns], titles, strict=True)))
    if room is not None and cells(head) - len("TITLE") + 4 > room:  # an id as wide as the screen
        head, drawn = fit(head, room), [fit(text, room) for text in drawn]
    drawn = _painted(drawn, some)
    line_of = dict(zip(places, drawn, strict=True))
    return [output.paint(head, "bold"), *[line_of[place] for place in table.depths]]


def _columns(
    table: Table, places: list[int], some: list[Summary], room: int | None, now: datetime
) -> list[_Column]:
    """All columns except the last."""
    projects = {slug: one_line(name) for slug, name in table.projects.items()}
    if room is not None:
        longest = 14 if room < 100 else 28
        projects = {slug: fit(name, longest, keep_end=True) for slug, name in projects.items()}
    changed = [summary.updated for summary in some]
    kinds = {one.ref.kind for one in some}
    columns = [
        _column("ID", one_lines([table.short[place] for place in places])),
        _column("WHEN", formatting.agos(changed, [table.times[place] for place in places], now)),
        _of_few("PROJECT", [one.ref.project or "" for one in some], lambda slug: projects[slug or None]),
        _of_few("MSGS", [one.messages for one in some], str, right=True),
        _of_few("TURNS", [one.turns for one in some], str, right=True),
        _column("SIZE", [formatting.size(one.size) for one in some], right=True),
        _of_few("HEALTH", [one.health for one in some], formatting.verdict),
    ]
    if len(kinds) > 1:
        columns.insert(1, _of_few("KIND", [one.ref.kind for one in some], str))
    return columns


def _column(name: str, texts: Sequence[str], *, right: bool = False) -> _Column:
    filled = column([name, *texts], right=right)
    return _Column(name, filled[0], filled[1:])


def _of_few(
    name: str, values: list[Value], text_of: Callable[[Value], str], *, right: bool = False
) -> _Column:
    """A column with few different values: each text is made once."""
    different = list(set(values))
    filled = column([name, *map(text_of, different)], right=right)
    known = dict(zip(different, filled[1:], strict=True))
    return _Column(name, filled[0], [known[value] for value in values])


def _that_fit(columns: list[_Column], room: int) -> list[_Column]:
    """The columns that fit beside the title."""
    for name in _GOES_FIRST:
        if sum(cells(one.head) + 2 for one in columns) + _TITLE <= room:
            break
        columns = [one for one in columns if one.name != name]
    return columns


def _painted(drawn: list[str], some: list[Summary]) -> list[str]:
    """The lines, with health in colour if colours are on."""
    if not output.has_colours():
        return drawn
    painted = []
    for text, one in zip(drawn, some, strict=True):
        verdict = formatting.verdict(one.health)
        painted.append(text.replace(verdict, output.paint(verdict, formatting.colour(one.health)), 1))
    return painted


def _titles(some: list[Summary], depths: list[int]) -> list[str]:
    """The titles: sub-sessions indented, forks with their origin."""
    titles = one_lines(
        [
            f"{summary.title or '-'} (from {summary.parent[:SHORT]})"
            if summary.parent and not depth and summary.parent != summary.ref.session_id
            else summary.title or "-"
            for summary, depth in zip(some, depths, strict=True)
        ]
    )
    if not any(depths):
        return titles
    return [
        "  " * (depth - 1) + "└ " + title if depth else title
        for depth, title in zip(depths, titles, strict=True)
    ]
