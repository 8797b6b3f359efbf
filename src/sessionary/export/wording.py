"""Texts that the readable formats share: authors, descriptions of calls, facts above a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sessionary.codec import sanitize
from sessionary.escaping import harmless
from sessionary.export.losses import CODES, Loss, Report
from sessionary.export.steps import Head
from sessionary.model import COMPACTION, PERSON, TOOL, Message, ToolCall
from sessionary.transcript.telling import telling_arguments

_SPEAKERS = {
    "assistant": "Agent",
    "tool": "Tool",
    "system": "System",
    "developer": "Developer",
    "user": "Harness",
}
_LONGEST = 100


def one_line(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, harmless; an ellipsis marks a cut."""
    line = harmless(" ".join(text[: 4 * longest].split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def speaker(message: Message) -> str:
    """The author of a message."""
    if message.origin in (PERSON, TOOL):
        return "User" if message.origin == PERSON else "Tool"
    if message.origin == COMPACTION:
        return "Summary of earlier messages"
    return _SPEAKERS.get(message.role or "", one_line(message.role or "Record"))


def call_words(call: ToolCall) -> str:
    """The main arguments of a call, on one line."""
    return one_line("  ".join(telling_arguments(call.arguments)))


def pretty_json(value: Any) -> str:
    """A value as indented JSON, harmless."""
    return harmless(json.dumps(sanitize(value), ensure_ascii=False, indent=2))


def title_of(head: Head) -> str:
    """The title of a session, or its id."""
    return one_line(head.title or head.id)


def facts(head: Head) -> Iterator[tuple[str, str]]:
    """The facts about a session, as names and harmless values."""
    times = [f"{one:%Y-%m-%d %H:%M}" for one in (head.created, head.updated) if one is not None]
    tokens = "" if head.usage is None else f"{head.usage.tokens:,}"
    stated = None if head.usage is None else head.usage.cost
    cost = "" if not head.usage else cost_words(head.cost, head.unpriced)
    for name, value in (
        ("Session", head.id),
        ("Kind", head.kind),
        ("Sub-agent of", head.parent),
        ("Folder", head.cwd),
        ("Branch", head.branch),
        ("Models", ", ".join(head.models)),
        ("Time", " to ".join(dict.fromkeys(times)) + " UTC" if times else ""),
        ("Tokens", tokens),
        ("Cost at list prices", cost),
        ("Cost as the agent states it", "" if stated is None else money(stated)),
        ("File", head.path),
    ):
        if value:
            yield name, one_line(value, 1000)


def cost_words(cost: float | None, unpriced: int) -> str:
    """A cost; with a + if there are more tokens than it covers, and ``?`` if it covers none."""
    if cost is None:
        return "?"
    return money(cost) + ("+" if unpriced else "")


def money(amount: float) -> str:
    """An amount of US dollars, with more digits if it is less than a cent."""
    if 0 < amount < 0.01:
        return f"${amount:.4f}" if amount >= 0.00005 else "<$0.0001"
    return f"${amount:,.2f}"


def loss_words(loss: Loss) -> str:
    """A loss in words, with its first place."""
    words = CODES[loss.code].format(count=f"{loss.count:,}", what=one_line(loss.what))
    return f"{words} (first at {one_line(loss.places[0], 1000)})" if loss.places else words


def closing(report: Report) -> Iterator[str]:
    """The end of an export: losses, and what was masked."""
    for loss in report.losses:
        yield f"Not included: {loss_words(loss)}"
    for rule, count in sorted(report.masked.items()):
        yield f"Masked: {count:,} × {one_line(rule)}"
