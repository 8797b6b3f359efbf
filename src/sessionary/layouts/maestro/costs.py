"""The cost of a model call, by a price table that the caller can replace; and the totals of breadcrumbs.

A model without a price has no known cost. Costs are not estimated: an estimate would be invisible in a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

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


def count(items: object) -> int:
    """The number of tools or files that a breadcrumb states."""
    return len(items) if isinstance(items, list) else 0


class ModelUsage(NamedTuple):
    """The totals of one model.

    Attributes:
        breadcrumbs: number of breadcrumbs.
        tokens_input, tokens_output: tokens.
        cost: US dollars, where known; None if unknown for all.
        breadcrumbs_without_cost: number of breadcrumbs without a cost; it is not estimated.
    """

    model: str
    breadcrumbs: int
    tokens_input: int
    tokens_output: int
    cost: float | None
    breadcrumbs_without_cost: int

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.tokens_input + self.tokens_output


def by_model(crumbs: Iterable[Breadcrumb]) -> list[ModelUsage]:
    """The totals of each model, the one with most tokens first."""
    groups: dict[str, list[Breadcrumb]] = {}
    for crumb in crumbs:
        groups.setdefault(str(crumb.model_used or "-"), []).append(crumb)
    found = []
    for model, some in groups.items():
        sums = summarise(some)
        used, unknown = sums["total_tokens"], sums["breadcrumbs_without_cost"]
        cost = None if unknown == len(some) else sums["total_cost"]
        found.append(ModelUsage(model, len(some), used["input"], used["output"], cost, unknown))
    return sorted(found, key=lambda usage: (-usage.tokens, usage.model))


def statistics(crumbs: Sequence[Breadcrumb]) -> dict[str, Any]:
    """The figures of the original under its names, and the number of breadcrumbs without a cost."""
    sums = summarise(crumbs)
    fine = sum(not crumb.error for crumb in crumbs)
    return {
        "total_breadcrumbs": len(crumbs),
        "total_tokens_input": sums["total_tokens"]["input"],
        "total_tokens_output": sums["total_tokens"]["output"],
        "estimated_cost": sums["total_cost"],
        "files_modified": sum(count(crumb.files_modified) for crumb in crumbs),
        "tools_called": sum(count(crumb.tools_called) for crumb in crumbs),
        "duration_seconds": sums["duration"],
        "success_rate": 100.0 * fine / len(crumbs) if crumbs else 0.0,
        "breadcrumbs_without_cost": sums["breadcrumbs_without_cost"],
    }
