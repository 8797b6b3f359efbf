"""A conversation put right: every call answered right behind it and once, and nothing else changed.

A real result is never thrown away if its call can be found: it moves there. What goes is what no provider takes and
nobody can place: a result without a call, a second one, a value that is no message. Where there is a choice
(a call that nobody answered) the caller makes it.

Mending twice changes nothing more, and what `diagnose` says of the outcome stops no resume. Those are properties
that the tests draw conversations for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sessionary.errors import Invalid
from sessionary.turns.completing import complete_calls
from sessionary.turns.diagnosis import by_message, calls_are_readable, has_role
from sessionary.turns.matching import Answer, Call, Matching, match, out_of_place, parts_of, repeated_calls
from sessionary.turns.messages import Message, bears_results, holds_more, is_result, listed
from sessionary.turns.rebuilding import Edit, Plan, Row, closed, edited, rebuild
from sessionary.turns.synthetic import INTERRUPTED

Orphans = Literal["complete", "drop"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was done.

    Attributes:
        index: the message of the conversation as it was handed in, counted from 0; of a message that was added, the
            one that it stands behind or belongs to.
        code: what was done, a stable word.
        ids: the tool calls concerned.
        what: what was done, in words.
        why: why it had to be.
    """

    index: int
    code: str
    ids: tuple[str, ...]
    what: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {
            "index": self.index,
            "code": self.code,
            "ids": list(self.ids),
            "what": self.what,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Mended:
    """The conversation as it should be, and what was done to it, in the order of the messages."""

    messages: list[Any]
    changes: list[Change] = field(default_factory=list)


def mend(messages: Sequence[Any], *, orphans: Orphans = "complete", close_last: bool = False) -> Mended:
    """Make a conversation that a provider accepts.

    Args:
        messages: the conversation; it is not changed.
        orphans: what becomes of a call that nobody answered: ``complete`` adds an error result, ``drop`` takes the call
            away, and the message with it if nothing but thinking is left in it.
        close_last: add a closing text at the end, too, if the last word there is a tool's. An agent can go on from
            there, but the original's diagnosis takes it for broken.

    Returns:
        The conversation; messages that did not have to change are the same objects in the same order.

    Raises:
        Invalid: `orphans` is neither.
    """
    if orphans not in ("complete", "drop"):
        raise Invalid(f"Unknown orphans value: {orphans!r}", hint="use 'complete' or 'drop'")
    clean, changes = _cleaned(messages)
    rows, done = _reordered([row.message for row in clean], complete=orphans == "complete")
    rows, ends = closed(rows, INTERRUPTED, at_end=close_last)
    done += [Change(end, "closed_turn", (), *_CLOSED) for end in ends]
    changes += [replace(change, index=clean[change.index].index) for change in done]
    changes.sort(key=lambda change: change.index)
    return Mended([row.message for row in rows], changes)


_CLOSED = (
    "added a closing text in the agent's place",
    "the turn ended with a tool's answer, and some providers refuse a person's word behind that",
)


def _cleaned(messages: Sequence[Any]) -> tuple[list[Row], list[Change]]:
    """The messages among the values, each with a speaker and a readable list of calls."""
    rows: list[Row] = []
    changes: list[Change] = []
    for index, value in enumerate(messages):
        if not isinstance(value, Mapping):
            what = f"dropped a value of type {type(value).__name__}"
            changes.append(Change(index, "dropped_value", (), what, "it is no message"))
            continue
        spoken = value if has_role(value) else _with_role(value, index, changes)
        if spoken is not None:
            rows.append(Row(index, _with_calls(spoken, index, changes)))
    return rows, changes


def _with_role(message: Message, index: int, changes: list[Change]) -> Message | None:
    """The message with the role that only its kind can have; None if its speaker cannot be told."""
    kinds = [type(part) for part in parts_of(message, index)]
    if is_result(message):
        role = "tool"
    elif Call in kinds:
        role = "assistant"
    elif Answer in kinds:
        role = "user"
    else:
        why = "it names no speaker, and does not show who it can be"
        changes.append(Change(index, "dropped_message", (), "dropped a message without a role", why))
        return None
    why = "it names no speaker, and only that role has such parts"
    changes.append(Change(index, "named_role", (), f"gave the message the role {role}", why))
    return {**message, "role": role}


def _with_calls(message: Message, index: int, changes: list[Change]) -> Message:
    """The message with `tool_calls` a list of objects, or without it."""
    if calls_are_readable(message):
        return message
    found = message["tool_calls"]
    kept = [call for call in listed(found) if isinstance(call, dict)]
    what = "removed null in the place of tool calls" if found is None else "removed what is no tool call"
    changes.append(
        Change(index, "removed_tool_calls", (), what, "agents expect a list of calls there, or nothing")
    )
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**message, "tool_calls": kept} if kept else rest


def _reordered(messages: Sequence[Message], *, complete: bool) -> tuple[list[Row], list[Change]]:
    """Every call with its own id and its one answer right behind it, or without the calls that have none."""
    matching = match(messages)
    plan = Plan()
    orphans = matching.orphans()
    kept = matching.calls if complete else [call for call in matching.calls if call in matching.answer]
    new_ids = _new_ids(kept)
    changes = _renumber(plan, matching, new_ids)
    changes += _move(plan, messages, out_of_place(messages, matching), new_ids)
    if complete:
        complete_calls(plan, messages, matching, INTERRUPTED, new_ids)
    else:
        for call in orphans:
            plan.edit(call.index).call_ids[call.call_id, call.nth] = None
    code, what = (
        ("completed_call", "added an error result") if complete else ("dropped_call", "dropped the call")
    )
    changes += _told(orphans, code, what, "nobody answered it")
    for extra in matching.strays + matching.repeats:
        _take_out(plan, extra)
    changes += _told(matching.strays, "dropped_result", "dropped a result", "nobody made that call")
    changes += _told(matching.repeats, "dropped_result", "dropped a result", "the call has one already")
    rows, emptied = rebuild(messages, matching.calls, plan)
    changes += [
        Change(
            index,
            "dropped_message",
            (),
            "dropped the rest of the message",
            "nothing is left that anyone said",
        )
        for index in emptied
        if holds_more(messages[index]) or not bears_results(messages[index])
    ]
    return rows, changes


def _new_ids(calls: Sequence[Call]) -> dict[Call, str]:
    """An id of its own for every call whose id an earlier one has: the same with a number behind it."""
    taken = {call.call_id for call in calls}
    last: dict[str, int] = {}
    found: dict[Call, str] = {}
    for call in repeated_calls(calls):
        number = last.get(call.call_id, 1) + 1
        while f"{call.call_id}_{number}" in taken:
            number += 1
        last[call.call_id] = number
        found[call] = f"{call.call_id}_{number}"
        taken.add(found[call])
    return found


def _renumber(plan: Plan, matching: Matching, new_ids: Mapping[Call, str]) -> list[Change]:
    changes = []
    for call, new in new_ids.items():
        plan.edit(call.index).call_ids[call.call_id, call.nth] = new
        answer = matching.answer.get(call)
        if answer is not None:
            plan.edit(answer.index).result_ids[answer.block] = new
        what = f"renamed the call to {new}, and its result with it"
        changes.append(
            Change(call.index, "renamed_call", (call.call_id,), what, "an earlier call has the same id")
        )
    return changes


def _move(
    plan: Plan,
    messages: Sequence[Message],
    pairs: Sequence[tuple[Call, Answer]],
    new_ids: Mapping[Call, str],
) -> list[Change]:
    """Plan the way back for answers that stand elsewhere: whole messages where nothing else is in them."""
    groups: dict[int, list[tuple[Call, Answer]]] = {}
    for call, answer in pairs:
        groups.setdefault(answer.index, []).append((call, answer))
    for index, group in groups.items():
        message = messages[index]
        if _is_all_of(message, group):
            ids = plan.edit(index).result_ids
            moved = edited(message, Edit(result_ids=ids)) if ids else message
            plan.edit(index).gone = True
            plan.behind(group[0][0].index).rows.append(Row(index, moved))
            continue
        for call, answer in group:
            _take_out(plan, answer)
            block = message["content"][answer.block]
            new = new_ids.get(call)
            renamed = block if new is None else {**block, "tool_use_id": new}
            plan.behind(call.index).blocks.append((renamed, False))
    answers = [answer for _call, answer in pairs]
    why = "providers want it there, before anybody else speaks"
    return _told(answers, "moved_result", "moved a result right behind its call", why)


def _is_all_of(message: Message, group: list[tuple[Call, Answer]]) -> bool:
    """True if the message is made of these answers alone, and all of them go to the same place."""
    if is_result(message):
        return True
    size = max(len(listed(message.get("content"))), len(list(parts_of(message, 0))))
    one_target = len({call.index for call, _answer in group}) == 1
    return one_target and size == len(group) and bears_results(message)


def _take_out(plan: Plan, answer: Answer) -> None:
    if answer.block is None:
        plan.edit(answer.index).gone = True
    else:
        plan.edit(answer.index).results_out.add(answer.block)


def _told(parts: Sequence[Call] | Sequence[Answer], code: str, what: str, why: str) -> list[Change]:
    """One change for each message."""
    return [Change(index, code, ids, what, why) for index, ids in by_message(parts)]
