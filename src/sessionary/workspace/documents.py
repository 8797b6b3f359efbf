"""The values of the operations as JSON objects, with the field names of docs/cli-json.md. Times stay times."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sessionary.model import Problem, Summary

if TYPE_CHECKING:
    from sessionary.search import Hit
    from sessionary.transcript.typed import Numbered


def of_summary(summary: Summary) -> dict[str, Any]:
    """A summary with the field names of docs/cli-json.md."""
    ref = summary.ref
    used = summary.total_usage()
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
        "tokens": None if used is None else used.tokens,
        "cost": None if used is None else used.cost,
    }


def of_message(numbered: Numbered) -> dict[str, Any]:
    """A message with the field names of docs/cli-json.md."""
    message = numbered.message
    return {
        "index": numbered.index,
        "line": message.place.line,
        "turn": numbered.turn,
        **({"outside": True} if numbered.outside else {}),
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
