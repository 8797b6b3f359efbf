"""Ranges of numbers, such as those of messages."""

from __future__ import annotations

from collections.abc import Iterable

Spans = list[tuple[int, int]]
"""The first and the last number of each range."""


def spans_of(numbers: Iterable[int]) -> Spans:
    """Ascending numbers as ranges."""
    spans: Spans = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans
