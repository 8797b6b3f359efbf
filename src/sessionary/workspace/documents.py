"""The values of the operations as JSON objects, with the field names of docs/cli-json.md. Times stay times."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sessionary.model import NO_USAGE, Problem, Summary

if TYPE_CHECKING:
    from sessionary.search import Hit
    from sessionary.transcript.typed import Numbered
    from sessionary.workspace.prices import Prices
    from sessionary.workspace.spending import Spending


def of_summary(summary: Summary, prices: Prices) -> dict[str, Any]:
    """A summary with the field names of docs/cli-json.md; its cost is that of `Workspace.prices`."""
    from sessionary.workspace.spending import spent  # here, since a list without --json needs no costs

    ref = summary.ref
    used = spent(summary, prices)
    states_usage = used.usage != NO_USAGE
    return {
        "id": ref.session_id,
        "kind": ref.kind,
        "agent": summary.agent,
        "project": ref.project,
        "title": summary.title,
        "parent": summary.parent,
        "messages": summary.messages,
        "turns": summary.turns,
        "turn_count": summary.turn_count,
        "created": summary.created,
        "updated": summary.updated,
        "size": summary.size,
        "health": summary.health,
        "path": ref.locator,
        "cwd": summary.cwd,
        "branch": summary.branch,
        "models": summary.models,
        "tokens": used.usage.tokens if states_usage else None,
        "cost": dollars(used.cost),
        "unpriced": used.unpriced if states_usage else None,
        "stated_cost": dollars(used.usage.cost),
        "archived": summary.archived,
        "tags": summary.tags,
        "starred": summary.starred,
    }


def of_spending(spending: Spending) -> dict[str, Any]:
    """Tokens and their cost with the field names of docs/cli-json.md."""
    usage = spending.usage
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "cost": dollars(spending.cost),
        "unpriced": spending.unpriced,
        "stated_cost": dollars(usage.cost),
        "cache_write_1h": usage.cache_write_1h,
        "web_searches": usage.web_searches,
    }


def dollars(amount: float | None) -> float | None:
    """An amount without the noise of floating point."""
    return None if amount is None else round(amount, 6)


def of_message(numbered: Numbered) -> dict[str, Any]:
    """A message with the field names of docs/cli-json.md."""
    message = numbered.message
    return {
        "index": numbered.index,
        "line": message.place.line,
        "turn": numbered.turn,
        **({"outside": True} if numbered.outside else {}),
        **({"inherited": True} if numbered.inherited else {}),
        "role": message.role,
        "text": message.text,
        "timestamp": message.time,
        "tools": [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in message.calls
        ],
        "results": [
            {"id": result.call_id, "text": result.text, "is_error": result.is_error}
            for result in message.results
        ],
    }


def of_hit(hit: Hit) -> dict[str, Any]:
    """A hit with the field names of docs/cli-json.md."""
    return {
        "locator": f"{hit.ref.session_id}:{hit.index}",
        "id": hit.ref.session_id,
        "project": hit.ref.project,
        "index": hit.index,
        "role": hit.role,
        "person": hit.person,
        **({"outside": True} if hit.outside else {}),
        "timestamp": hit.time,
        "about": hit.about,
        "part": hit.part,
        "tool": hit.tool,
        "text": hit.text,
        "marks": hit.marks,
        "cut": hit.cut,
        "path": hit.ref.locator,
    }


def of_problem(found: Problem) -> dict[str, Any]:
    """A problem with the field names of docs/cli-json.md; its path is absolute."""
    return found.as_dict() | {"path": os.path.abspath(found.path)}
