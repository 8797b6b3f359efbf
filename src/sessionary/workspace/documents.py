"""The values of the operations as JSON objects, with the field names of docs/cli-json.md. Times stay times."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sessionary.model import NO_USAGE, Problem, SessionRef, Summary

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.event_heads import EventHead
    from sessionary.layouts.amplifier.event_reader import EventSummary
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.layouts.amplifier.rewinding import Rewound
    from sessionary.redaction import Redaction
    from sessionary.search import Hit
    from sessionary.transcript.typed import Numbered
    from sessionary.workspace.changes import ForkPreview, Repair
    from sessionary.workspace.comparing import Comparison, Side
    from sessionary.workspace.opening import Resume
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
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return {
        **{name: getattr(usage, name) for name in names},
        "cost": dollars(spending.cost),
        "unpriced": spending.unpriced,
        "stated_cost": dollars(usage.cost),
        "cache_write_1h": usage.cache_write_1h,
        "web_searches": usage.web_searches,
    }


def dollars(amount: float | None) -> float | None:
    """An amount without the noise of floating point."""
    return None if amount is None else round(amount, 6)


def whole_words(title: str | None) -> str | None:
    """A title without its last word, if it was cut there: that may be half of a secret, which no rule matches."""
    from sessionary.transcript.redacted import without_half_word

    return without_half_word(title)


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


def of_resume(found: Resume) -> dict[str, Any]:
    """The command that continues a session, with the field names of docs/cli-json.md."""
    return {
        "command": found.command,
        "folder": found.folder,
        "folder_exists": found.is_there,
        "problems": [of_problem(one) for one in found.problems],
    }


def of_event(head: EventHead) -> dict[str, Any]:
    """An event without its data, with the field names of docs/cli-json.md."""
    return {
        "line": head.line,
        "byte": head.byte,
        "length": head.length,
        "ts": head.ts,
        "level": head.lvl,
        "event": head.event,
        "session": head.session_id,
        "duration_ms": head.duration_ms,
        "status": head.status,
        "span": head.span_id,
        "parent_span": head.parent_span_id,
    }


def of_fields(fields: dict[str, Any], redaction: Redaction | None) -> dict[str, Any]:
    """Fields of an event by their paths, redacted as at their place in it: a key on the way may name a secret."""
    if redaction is None:
        return fields
    from sessionary.layouts.amplifier.event_fields import steps_of

    shown = {}
    for path, value in fields.items():
        steps = steps_of(path)
        for step in reversed(steps):
            value = [value] if step.lstrip("-").isdigit() else {step: value}  # noqa: PLW2901 - the same value
        value = redaction.value(value)  # noqa: PLW2901
        for _ in steps:
            value = value[0] if isinstance(value, list) else next(iter(value.values()))  # noqa: PLW2901
        shown[path] = value
    return shown


def of_event_summary(summary: EventSummary) -> dict[str, Any]:
    """Counts of an event log with the field names of docs/cli-json.md."""
    return {
        "total": summary.total,
        "events": summary.events,
        "levels": {level or "": count for level, count in summary.levels.items()},
        "first": summary.first_ts,
        "last": summary.last_ts,
        "bytes": summary.bytes,
        "longest": summary.longest,
        "longest_at": summary.longest_at,
        "skipped": summary.skipped,
    }


def of_comparison(found: Comparison) -> dict[str, Any]:
    """Two conversations with the field names of docs/cli-json.md."""
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "equal_turns": found.equal_turns,
        "tools": _pairs("name", found.a.tools, found.b.tools),
        "files": _pairs("file", found.a.files, found.b.files),
    }


def most_different(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools or files of `of_comparison`: the greatest differences first, of equal ones the most frequent."""
    return sorted(rows, key=lambda row: (-abs(row["a"] - row["b"]), -row["a"] - row["b"]))


def _side(side: Side) -> dict[str, Any]:
    return {
        "id": side.ref.session_id,
        "kind": side.ref.kind,
        "branch": side.branch,
        "title": side.title,
        "turns": side.turns,
        "messages": side.messages,
        "errors": side.errors,
        "models": side.models,
        "tokens": side.spending.usage.tokens,
        "cost": dollars(side.spending.cost),
        "unpriced": side.spending.unpriced,
        "stated_cost": dollars(side.spending.usage.cost),
    }


def _pairs(key: str, a: Counter[str], b: Counter[str]) -> list[dict[str, Any]]:
    return [{key: name, "a": a[name], "b": b[name]} for name in sorted(a.keys() | b.keys())]


def of_repair(found: Repair) -> dict[str, Any]:
    """A repair with the field names of docs/cli-json.md, without its diff."""
    done = found.done
    document = {
        "id": found.ref.session_id,
        "path": found.ref.locator,
        "changed": found.changed,
        "dry_run": found.dry_run,
        "brought_in": [one._asdict() for one in found.copies],
        "remaining": [problem.as_dict() for problem in found.remaining],
    }
    if done is None:
        return document
    return document | {
        "problems": [problem.as_dict() for problem in done.problems],
        "fixes": [fix.as_dict() for fix in done.fixes],
        "mends": [change.as_dict() for change in done.mends],
        "messages_before": done.messages_before,
        "messages_after": done.messages_after,
        "set_aside": done.set_aside,
        "set_aside_in": done.set_aside_in,
        "metadata_from": done.metadata_from,
        "event_sealed": done.event_sealed,
        "kept_in": done.kept_in,
    }


def of_rewound(ref: SessionRef, done: Rewound) -> dict[str, Any]:
    """A rewind with the field names of docs/cli-json.md."""
    from dataclasses import asdict  # here, since a list loads this module and rewinds nothing

    fields = asdict(done)
    return {"id": fields.pop("session_id"), "path": ref.locator, **fields}


def of_fork(parent: SessionRef, made: ForkResult) -> dict[str, Any]:
    """A new session with the field names of docs/cli-json.md."""
    return {
        "id": made.session_id,
        "path": str(made.session_dir),
        "parent": parent.session_id,
        "turn": made.forked_from_turn,
        "messages": made.message_count,
        "events": made.events_count,
        "dry_run": False,
        "problems": [problem.as_dict() for problem in made.problems],
    }


def of_fork_preview(parent: SessionRef, new_id: str | None, seen: ForkPreview) -> dict[str, Any]:
    """The preview of a fork with the field names of docs/cli-json.md."""
    return {
        "id": new_id,
        "path": None,
        "parent": parent.session_id,
        "turn": seen.turn,
        "messages": seen.messages,
        "events": None,
        "dry_run": True,
        "problems": [],
        "turns": seen.turns,
        "incomplete": seen.unanswered,
        "last_user_message": seen.last_user_message,
        "last_assistant_message": seen.last_assistant_message,
    }
