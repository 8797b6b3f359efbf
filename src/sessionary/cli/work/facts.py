"""What breadcrumbs add up to: counts, tokens, cost, time, by model too. Pure.

A breadcrumb without a cost adds none and is counted as such: a sum with a guess in it would look like a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sessionary.cli.work.render import count_of
from sessionary.layouts.maestro.query import summarise, tokens
from sessionary.layouts.maestro.records import Breadcrumb


@dataclass(slots=True)
class Usage:
    """What one model took.

    Attributes:
        model: its name, as the breadcrumbs have it.
        breadcrumbs: how many name it.
        input, output: tokens.
        cost: US dollars of those whose cost is known; None if none is.
        without_cost: how many have none.
    """

    model: str
    breadcrumbs: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None
    without_cost: int = 0

    @property
    def tokens(self) -> int:
        """Both directions."""
        return self.input + self.output

    def add(self, crumb: Breadcrumb) -> None:
        """Count one breadcrumb."""
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
    """The figures of the original under its names, and how many breadcrumbs have no known cost."""
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
    """What each model took, the one with the most tokens first."""
    found: dict[str, Usage] = {}
    for crumb in crumbs:
        model = str(crumb.model_used or "-")
        found.setdefault(model, Usage(model)).add(crumb)
    return sorted(found.values(), key=lambda usage: (-usage.tokens, usage.model))


def cost_in_words(facts: dict[str, Any], dollars: str) -> str:
    """The sum, and what it leaves out."""
    missing, total = facts["breadcrumbs_without_cost"], facts["total_breadcrumbs"]
    if not missing:
        return dollars
    if missing == total:
        return "unknown"
    return f"{dollars} (without {missing:,} of {total:,}, whose cost is unknown)"
