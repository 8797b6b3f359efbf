"""Slicing: the conversation up to a turn, with calls left open by the cut completed, removed or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sessionary.errors import Invalid
from sessionary.transcript.completing import complete_calls
from sessionary.transcript.matching import Matching, match, unanswered
from sessionary.transcript.rebuilding import Plan, closed, rebuild
from sessionary.transcript.synthetic import FORKED
from sessionary.transcript.turn_boundaries import slice_end

OrphanRule = Literal["complete", "remove", "error"]
_RULES = ("complete", "remove", "error")


def slice_to_turn(
    messages: Sequence[Any],
    turn: int,
    handle_orphaned_tools: OrphanRule = "complete",
    *,
    every_user: bool = False,
) -> list[Any]:
    """Return the messages up to the end of a turn. Other damage is kept: see `mend`.

    Args:
        messages: the conversation; it is not modified.
        turn: the last turn to keep, from 1. Messages before the first turn are kept.
        handle_orphaned_tools: treatment of calls without a result in the slice. ``complete``: a synthetic error
            result is added behind the results of its siblings, in the shape that this conversation uses, and a
            closing text if a user message follows. ``remove``: the call is removed, and the message too if only
            thinking is left. ``error``: refuse.
        every_user: count turns as the original does.

    Returns:
        A new list. Messages without an open call are the same objects.

    Raises:
        Invalid: unknown turn or rule, or an open call where the rule is ``error``. A ValueError.
    """
    kept = messages[: slice_end(messages, turn, every_user=every_user)]
    return without_orphans(list(kept), handle_orphaned_tools)


def without_orphans(kept: list[Any], handle_orphaned_tools: str) -> list[Any]:
    """Treat the calls without a result as `slice_to_turn`; without any, return the same list. Raises Invalid."""
    if handle_orphaned_tools not in _RULES:
        raise Invalid(
            f"Unknown handle_orphaned_tools value: {handle_orphaned_tools!r}",
            hint="use 'complete', 'remove' or 'error'",
        )
    if not unanswered(kept):
        return kept
    matching = match(kept)
    orphans = matching.orphans()
    if not orphans:
        return kept
    if handle_orphaned_tools == "error":
        ids = [call.call_id for call in orphans]
        hint = "choose an earlier turn, or pass handle_orphaned_tools='complete' or 'remove'"
        raise Invalid(f"Orphaned tool calls at fork boundary: {ids}", hint=hint, details={"ids": ids})
    return _settled(kept, matching, complete=handle_orphaned_tools == "complete")


def _settled(messages: list[Any], matching: Matching, *, complete: bool) -> list[Any]:
    plan = Plan()
    if complete:
        complete_calls(plan, messages, matching, FORKED)
    else:
        for call in matching.orphans():
            plan.edit(call.index).call_ids[call.call_id, call.nth] = None
    rows, _emptied = rebuild(messages, matching.ends, plan)
    rows, _closed = closed(rows, FORKED, made_only=True)
    return [row.message for row in rows]
