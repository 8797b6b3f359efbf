"""Totals over breadcrumbs: counts, tokens, cost and time, also by model. Pure.

A breadcrumb without a cost adds none and is counted as such: costs are not estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sessionary.cli.work.render import count_of
from sessionary.layouts.maestro.costs import summarise, tokens
from sessionary.layouts.maestro.records import Breadcrumb


@dataclass(slots=True)
class Usage:
    """The totals of one model.

    Attributes:
        model: its name in the breadcrumbs.
        breadcrumbs: number of breadcrumbs.
        input, output: tokens.
        cost: US dollars, where known; None if unknown for all.
        without_cost: number of breadcrumbs without a cost.
    """

    model: str
    breadcrumbs: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None
    without_cost: int = 0

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input + self.output

    def add(self, crumb: Breadcrumb) -> None:
        """Add one breadcrumb."""
        self.breadcrumbs += 1
        self.input += tokens(crumb, "input")
        self.output += tokens(crumb, "output")
        if crumb.cost is None:
            self.without_cost += 1
        else:
            self.cost = round((self.cost or 0.0) + crumb.cost, 6)

    def as_dict(self) -> dict[str, Any]:
        """With the field names of docs/cli-json.md."""
        return {
            "model": self.model,
            "breadcrumbs": self.breadcrumbs,
            "tokens_input": self.input,
            "tokens_output": self.output,
            "cost": self.cost,
            "breadcrumbs_without_cost": self.without_cost,
        }


def statistics(crumbs: Sequence[Breadcrumb]) -> dict[str, Any]:
    """The figures of the original under its names, and the number of breadcrumbs without a cost."""
    sums = summarise(crumbs)
    fine = sum(not crumb.error for crumb in crumbs)
    return {
        "total_breadcrumbs": len(crumbs),
        "total_tokens_input": sums["total_tokens"]["input"],
        "total_tokens_output": sums["total_tokens"]["output"],
        "estimated_cost": sums["total_cost"],
        "files_modified": sum(count_of(crumb.files_modified) for crumb in crumbs),
        "tools_called": sum(count_of(crumb.tools_called) for crumb in crumbs),
        "duration_seconds": sums["duration"],
        "success_rate": 100.0 * fine / len(crumbs) if crumbs else 0.0,
        "breadcrumbs_without_cost": sums["breadcrumbs_without_cost"],
    }


def by_model(crumbs: Iterable[Breadcrumb]) -> list[Usage]:
    """The totals of each model, the one with most tokens first."""
    found: dict[str, Usage] = {}
    for crumb in crumbs:
        model = str(crumb.model_used or "-")
        found.setdefault(model, Usage(model)).add(crumb)
    return sorted(found.values(), key=lambda usage: (-usage.tokens, usage.model))


def cost_in_words(facts: dict[str, Any], dollars: str) -> str:
    """The cost, with what it leaves out."""
    missing, total = facts["breadcrumbs_without_cost"], facts["total_breadcrumbs"]
    if not missing:
        return dollars
    if missing == total:
        return "unknown"
    return f"{dollars} (without {missing:,} of {total:,}, whose cost is unknown)"
