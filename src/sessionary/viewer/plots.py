"""Plots as SVG: bars by day, a year, largest values, lanes of time, a curve. Colours are classes of the style."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from html import escape
from math import ceil
from typing import NamedTuple

from sessionary.escaping import harmless
from sessionary.export.wording import one_line

_WIDTH = 720
_HEIGHT = 110
_LINE = 22
_NAME = 230
_LANE_NAME, _LANE_FACTS = 160, 280
"""Room for the words before and behind a lane."""

_MOST = 12
"""Rows of a plot of the largest values."""

_CELL = 13
_WEEKS = 53
_WEEKDAYS = 30
"""Room for the names of the weekdays."""

_LEVELS = 4
"""Shades of a day with a value."""

DAYS = 90
"""Days of a plot by day, up to the last one with a value."""

Words = Callable[[float], str]


class Bar(NamedTuple):
    """A piece of a lane.

    Attributes:
        start, end: where it begins and ends, from 0 to 1.
    """

    start: float
    end: float
    kind: str
    words: str


class Lane(NamedTuple):
    """A row of a plot over time."""

    name: str
    bars: Sequence[Bar]
    facts: str = ""
    depth: int = 0


class Point(NamedTuple):
    """A point of a curve.

    Attributes:
        x, y: from 0 to 1; `y` upward.
    """

    x: float
    y: float
    words: str
    kind: str


def by_day(title: str, values: Mapping[str, float], words: Words) -> str:
    """A bar for each of the last days; empty without a value.

    Args:
        values: the value of each day, as ``2026-03-14``; days without one are missing.
        words: a value as it is written.
    """
    if not values:
        return ""
    last = date.fromisoformat(max(values))
    days = [(last - timedelta(days=DAYS - 1 - at)).isoformat() for at in range(DAYS)]
    most = max((values.get(day, 0) for day in days), default=0) or 1
    step = _WIDTH / DAYS
    bars = [
        f'<rect class="bar" x="{at * step:.1f}" y="{_HEIGHT - height:.1f}" width="{step - 1:.1f}"'
        f' height="{height:.1f}">'
        f"<title>{day}: {escape(words(values[day]))}</title></rect>"
        for at, day in enumerate(days)
        if values.get(day) and (height := max(values[day] / most * _HEIGHT, 1))
    ]
    axis = f'<line class="axis" x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
    ends = _text(0, _HEIGHT + 16, days[0]) + _text(_WIDTH, _HEIGHT + 16, days[-1], end=True)
    top = _text(0, 12, f"{words(most)} at most")
    return _svg(title, _HEIGHT + 22, [*bars, axis, ends, top])


def year(title: str, values: Mapping[str, float], words: Words, last: date) -> str:
    """A square for each day of the year that ends with a day, week by week; empty if no day of it has a value.

    Args:
        values: the value of each day, as ``2026-03-14``; days without one are missing.
        words: a value as it is written.
        last: the last day.
    """
    first = last - timedelta(days=last.weekday() + 7 * (_WEEKS - 1))
    days = [first + timedelta(days=at) for at in range((last - first).days + 1)]
    shown = {day: values.get(day.isoformat(), 0) for day in days}
    busiest = max(shown, key=lambda day: shown[day])
    most = shown[busiest]
    if most <= 0:
        return ""
    parts = list(_weekdays_and_months(first))
    for at, (day, value) in enumerate(shown.items()):
        level = ceil(value / most * _LEVELS)
        x, y = _WEEKDAYS + at // 7 * _CELL, 16 + at % 7 * _CELL
        parts.append(
            f'<rect class="heat{level}" data-day="{day}" x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}">'
            f"<title>{day}: {escape(words(value))}</title></rect>"
        )
    label = f"{title}: {words(sum(shown.values()))} in a year, most on {busiest}: {words(most)}"
    return _svg(label, 16 + 7 * _CELL, parts)


def _weekdays_and_months(first: date) -> Iterator[str]:
    for at, name in ((0, "Mon"), (2, "Wed"), (4, "Fri")):
        yield _text(0, 26 + at * _CELL, name)
    for week in range(_WEEKS):
        day = first + timedelta(days=7 * week)
        if day.day <= 7 and week < _WEEKS - 2:
            yield _text(_WEEKDAYS + week * _CELL, 11, f"{day:%b}")


def largest(title: str, values: Mapping[str, float], words: Words) -> str:
    """A bar for each of the largest values, with its name; empty without a value. Each can be pressed."""
    rows: Sequence[tuple[str, float]] = sorted(values.items(), key=lambda row: -row[1])[:_MOST]
    most = max((value for _, value in rows), default=0)
    if not most:
        return ""
    room = _WIDTH - _NAME - 90
    drawn = [
        f'<g class="pick" data-name="{escape(harmless(name))}" role="button" tabindex="0"'
        f' aria-label="{escape(one_line(name))}: {escape(words(value))}">'
        f'<rect class="room" x="0" y="{at * _LINE}" width="{_WIDTH}" height="{_LINE}"/>'
        + _text(0, at * _LINE + 15, one_line(name, 34))
        + f'<rect class="bar" x="{_NAME}" y="{at * _LINE + 4}" width="{max(value / most * room, 1):.1f}" height="14"/>'
        + _text(_WIDTH, at * _LINE + 15, words(value), end=True)
        + "</g>"
        for at, (name, value) in enumerate(rows)
    ]
    return _svg(title, len(rows) * _LINE + 4, drawn, role="group")


def lanes(title: str, rows: Sequence[Lane], ends: tuple[str, str]) -> str:
    """Rows of bars over one axis of time; empty without rows.

    Args:
        rows: the lanes, from above.
    """
    if not rows:
        return ""
    room = _WIDTH - _LANE_NAME - _LANE_FACTS
    drawn = []
    for at, row in enumerate(rows):
        y = at * _LINE
        drawn.append(_text(row.depth * 12, y + 15, one_line(row.name, max(24 - 2 * row.depth, 8))))
        drawn.append(_line(_LANE_NAME, y + 11, _LANE_NAME + room, y + 11))
        drawn += [
            f'<rect class="bar {bar.kind}" x="{_LANE_NAME + bar.start * room:.1f}" y="{y + 4}" height="14"'
            f' width="{max((bar.end - bar.start) * room, 1.5):.1f}"><title>{escape(bar.words)}</title></rect>'
            for bar in row.bars
        ]
        drawn.append(_text(_WIDTH, y + 15, one_line(row.facts, 44), end=True))
    bottom = len(rows) * _LINE
    drawn += [
        _text(_LANE_NAME, bottom + 15, ends[0]),
        _text(_LANE_NAME + room, bottom + 15, ends[1], end=True),
    ]
    return _svg(title, bottom + 22, drawn)


def curve(title: str, lines: Sequence[Sequence[Point]], marks: Mapping[float, str]) -> str:
    """Points joined by lines; empty without points.

    Args:
        lines: the points of each line, from the left; a line has the class of its first point.
        marks: heights, from 0 to 1, that have a line across, with their words.
    """
    lines = [line for line in lines if line]
    if not lines:
        return ""
    left, top, room, height = 40, 10, _WIDTH - 60, _HEIGHT + 40

    def at(point: Point) -> tuple[float, float]:
        return left + point.x * room, top + (1 - point.y) * height

    drawn = []
    for y, words in marks.items():
        level = top + (1 - y) * height
        drawn += [_text(0, level + 4, words), _line(left - 4, level, _WIDTH, level)]
    for line in lines:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, line))
        drawn.append(f'<polyline class="curve {line[0].kind}" points="{places}"/>')
        for point in line:
            x, y = at(point)
            words = escape(point.words)
            drawn.append(
                f'<circle class="dot {point.kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{words}</title></circle>'
            )
    return _svg(title, top + height + 10, drawn)


def _svg(title: str, height: int, parts: Sequence[str], *, role: str = "img") -> str:
    label = escape(title)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="{role}" aria-label="{label}">{"".join(parts)}</svg>'


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="axis" x1="{x}" y1="{y:.1f}" x2="{to_x}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y:g}"{anchor}>{escape(text)}</text>'
