"""The conversation up to a turn, with the calls that the cut leaves open completed, removed or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sessionary.errors import Invalid
from sessionary.turns.completing import complete_calls
from sessionary.turns.matching import Matching, match
from sessionary.turns.rebuilding import Plan, closed, rebuild
from sessionary.turns.synthetic import FORKED
from sessionary.turns.turn_boundaries import slice_end

OrphanRule = Literal["complete", "remove", "error"]
_RULES = ("complete", "remove", "error")


def slice_to_turn(
    messages: Sequence[Any],
    turn: int,
    handle_orphaned_tools: OrphanRule = "complete",
    *,
    every_user: bool = False,
) -> list[Any]:
    """Everything up to the end of a turn. Other damage than open calls is left as it is: see `mend`.

    Args:
        messages: the conversation; it is not changed.
        turn: the last turn to keep, from 1. Messages before the first turn are kept.
        handle_orphaned_tools: what to do with a call that has no result up to there. ``complete``: a made-up error
            result goes behind the results of its siblings, in the shape that this conversation uses, and where a
            person speaks next, a closing text before that. ``remove``: the call goes, and so does a message
            in which nothing but thinking is left then. ``error``: refuse.
        every_user: count turns as the original does.

    Returns:
        A new list. Messages without an open call are the same objects.

    Raises:
        Invalid: no such turn, no such rule, or an open call where the rule is ``error``. A ValueError.
    """
    if handle_orphaned_tools not in _RULES:
        raise Invalid(
            f"Unknown handle_orphaned_tools value: {handle_orphaned_tools!r}",
            hint="use 'complete', 'remove' or 'error'",
        )
    kept = list(messages[: slice_end(messages, turn, every_user=every_user)])
    matching = match(kept)
    orphans = matching.orphans()
    if not orphans:
        return kept
    if handle_orphaned_tools == "error":
        ids = [call.call_id for call in orphans]
        hint = "take an earlier turn, or pass handle_orphaned_tools='complete' or 'remove'"
        raise Invalid(f"Orphaned tool calls at fork boundary: {ids}", hint=hint, details={"ids": ids})
    return _settled(kept, matching, complete=handle_orphaned_tools == "complete")


def _settled(messages: list[Any], matching: Matching, *, complete: bool) -> list[Any]:
    plan = Plan()
    if complete:
        complete_calls(plan, messages, matching, FORKED)
    else:
        for call in matching.orphans():
            plan.edit(call.index).call_ids[call.call_id, call.nth] = None
    rows, _emptied = rebuild(messages, matching.calls, plan)
    rows, _closed = closed(rows, FORKED, made_only=True)
    return [row.message for row in rows]
