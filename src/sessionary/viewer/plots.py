"""Plots as SVG: bars by day, and bars of the largest values with their names. Colours are classes of the style."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from html import escape

from sessionary.export.wording import one_line

_WIDTH = 720
_HEIGHT = 110
_LINE = 22
_NAME = 230
_MOST = 12
"""Rows of a plot of the largest values."""

DAYS = 90
"""Days of a plot by day, up to the last one with a value."""

Words = Callable[[float], str]


def by_day(title: str, values: Mapping[str, float], words: Words) -> str:
    """A bar for each of the last days; empty without a value.

    Args:
        title: the name of the plot.
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


def largest(title: str, values: Mapping[str, float], words: Words) -> str:
    """A bar for each of the largest values, with its name; empty without a value."""
    rows: Sequence[tuple[str, float]] = sorted(values.items(), key=lambda row: -row[1])[:_MOST]
    most = max((value for _, value in rows), default=0)
    if not most:
        return ""
    room = _WIDTH - _NAME - 90
    drawn = [
        _text(0, at * _LINE + 15, one_line(name, 34))
        + f'<rect class="bar" x="{_NAME}" y="{at * _LINE + 4}" width="{max(value / most * room, 1):.1f}" height="14"/>'
        + _text(_WIDTH, at * _LINE + 15, words(value), end=True)
        for at, (name, value) in enumerate(rows)
    ]
    return _svg(title, len(rows) * _LINE + 4, drawn)


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    label = escape(title)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y}"{anchor}>{escape(text)}</text>'
