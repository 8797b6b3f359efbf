"""The cost of a model call, by a price table that the caller can replace; and the totals of breadcrumbs.

A model without a price has no known cost. Costs are not estimated: an estimate would be invisible in a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.times import parse_time

Prices = Mapping[str, tuple[float, float]]
"""Model name in lower case -> US dollars for 1,000 tokens in, and for 1,000 tokens out."""

PRICES: Final[Prices] = {"sonnet": (0.003, 0.015), "opus": (0.015, 0.075), "haiku": (0.00025, 0.00125)}


def calculate_cost(
    input_tokens: int, output_tokens: int, model: str, prices: Prices = PRICES
) -> float | None:
    """US dollars for a call; None for a model without a price."""
    rate = prices.get(model.lower())
    return None if rate is None else (input_tokens * rate[0] + output_tokens * rate[1]) / 1000


def estimate_tokens(text: str, model: str = "claude") -> int:
    """A rough count of tokens: four characters each, whatever the model."""
    return len(text) // 4


def summarise(crumbs: Sequence[Breadcrumb]) -> dict[str, Any]:
    """Return the totals of breadcrumbs.

    Returns:
        ``total_breadcrumbs``, ``total_tokens`` (``input``, ``output``), ``total_cost`` in US dollars of those
        whose cost is known, ``breadcrumbs_without_cost`` (the number left out of it), and ``duration`` in
        whole seconds from the first to the last.
    """
    times = [moment for crumb in crumbs if (moment := parse_time(crumb.timestamp)) is not None]
    seconds = [moment.replace(microsecond=0) for moment in times]
    return {
        "total_breadcrumbs": len(crumbs),
        "total_tokens": {name: sum(tokens(crumb, name) for crumb in crumbs) for name in ("input", "output")},
        "total_cost": round(sum(crumb.cost for crumb in crumbs if crumb.cost is not None), 6)
        if crumbs
        else 0.0,
        "breadcrumbs_without_cost": sum(crumb.cost is None for crumb in crumbs),
        "duration": (max(seconds) - min(seconds)).total_seconds() if seconds else 0,
    }


def tokens(crumb: Breadcrumb, name: str) -> int:
    """The number of tokens, ``input`` or ``output``; 0 if the breadcrumb does not state it."""
    count: Any = crumb.token_count.get(name, 0)
    return count if type(count) is int else 0
