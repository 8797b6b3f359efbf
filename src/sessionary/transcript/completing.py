"""Synthetic results for calls without one, in the shape that the conversation uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionary.transcript.matching import Answer, Call, Matching
from sessionary.transcript.rebuilding import Plan, Row
from sessionary.transcript.synthetic import Words, expects_blocks, result_block, result_message


def complete_calls(
    plan: Plan,
    messages: Sequence[Any],
    matching: Matching,
    words: Words,
    new_ids: Mapping[Call, str] | None = None,
) -> None:
    """Plan a result behind each call that has none.

    The shape is that of a sibling's result, else of the nearest earlier result, else of the first in the
    conversation, else the one that the call itself suggests.

    Args:
        plan: the plan to extend.
        matching: its calls and answers.
        words: texts of the results.
        new_ids: new ids of renamed calls.
    """
    siblings = _siblings(matching)
    nearest = next(iter(matching.answer.values()), None)
    for index, calls in siblings.items():
        answered = [matching.answer[call] for call in calls if call in matching.answer]
        nearest = answered[0] if answered else nearest
        in_blocks = _in_blocks(nearest) if nearest is not None else expects_blocks(messages[index])
        for call in calls:
            if call not in matching.answer:
                _add(plan, _named(call, new_ids), words, in_blocks=in_blocks)


def _siblings(matching: Matching) -> dict[int, list[Call]]:
    found: dict[int, list[Call]] = {}
    for call in matching.calls:
        found.setdefault(call.index, []).append(call)
    return found


def _in_blocks(answer: Answer) -> bool:
    return answer.block is not None


def _named(call: Call, new_ids: Mapping[Call, str] | None) -> Call:
    new = (new_ids or {}).get(call, call.call_id)
    return Call(call.index, new, call.nth, call.name)


def _add(plan: Plan, call: Call, words: Words, *, in_blocks: bool) -> None:
    if in_blocks:
        plan.behind(call.index).blocks.append((result_block(call, words), True))
    else:
        plan.behind(call.index).rows.append(Row(call.index, result_message(call, words), True))
