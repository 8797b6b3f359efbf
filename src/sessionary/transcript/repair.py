"""Repair of a conversation: every call gets exactly one answer, directly behind it; nothing else changes.

A real result whose call exists is never removed: it is moved. Removed is what every provider refuses and no position
fits: a result without a call, a second result, a value that is not a message. For a call without an answer the caller
chooses.

Repair is idempotent, and the result has no finding that stops a resume. Property tests check both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sessionary.errors import Invalid
from sessionary.transcript.completing import complete_calls
from sessionary.transcript.diagnosis import calls_are_readable, has_role
from sessionary.transcript.matching import Answer, Call, Matching, match, parts_of
from sessionary.transcript.messages import Message, bears_results, holds_more, is_result, listed
from sessionary.transcript.rebuilding import Edit, Plan, Row, closed, edited, rebuild
from sessionary.transcript.synthetic import INTERRUPTED

Orphans = Literal["complete", "drop"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was made.

    Attributes:
        index: index of the message in the input, from 0; for an added message, of the one that it follows or belongs
            to.
        code: a stable code.
        ids: ids of the tool calls involved.
        what: description of the change.
        why: the reason.
    """

    index: int
    code: str
    ids: tuple[str, ...]
    what: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {
            "index": self.index,
            "code": self.code,
            "ids": list(self.ids),
            "what": self.what,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Mended:
    """The repaired conversation, and the changes in message order."""

    messages: list[Any]
    changes: list[Change] = field(default_factory=list)


def mend(messages: Sequence[Any], *, orphans: Orphans = "complete", close_last: bool = False) -> Mended:
    """Repair a conversation so that providers accept it.

    Args:
        messages: the conversation; it is not modified.
        orphans: treatment of calls without a result: ``complete`` adds an error result, ``drop`` removes the call,
            and the message if only thinking is left in it.
        close_last: also add a closing text at the end if the last message is a tool result. An agent can continue
            from there, but the original's diagnosis reports it as broken.

    Returns:
        The conversation; unchanged messages are the same objects in the same order.

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
    "added a closing text of the agent",
    "the turn ended with a tool result, and some providers refuse a user message directly after that",
)


def _cleaned(messages: Sequence[Any]) -> tuple[list[Row], list[Change]]:
    """Drop values that are not messages; give each message a role and a valid list of calls."""
    rows: list[Row] = []
    changes: list[Change] = []
    for index, value in enumerate(messages):
        if not isinstance(value, Mapping):
            what = f"dropped a value of type {type(value).__name__}"
            changes.append(Change(index, "dropped_value", (), what, "it is not a message"))
            continue
        spoken = value if has_role(value) else _with_role(value, index, changes)
        if spoken is not None:
            rows.append(Row(index, _with_calls(spoken, index, changes)))
    return rows, changes


def _with_role(message: Message, index: int, changes: list[Change]) -> Message | None:
    """Return the message with its role, inferred if missing; None if it cannot be inferred."""
    kinds = [type(part) for part in parts_of(message, index)]
    if is_result(message):
        role = "tool"
    elif Call in kinds:
        role = "assistant"
    elif Answer in kinds:
        role = "user"
    else:
        why = "it has no role, and its content does not show which"
        changes.append(Change(index, "dropped_message", (), "dropped a message without a role", why))
        return None
    why = "it has no role, and only this role has such parts"
    changes.append(Change(index, "named_role", (), f"gave the message the role {role}", why))
    return {**message, "role": role}


def _with_calls(message: Message, index: int, changes: list[Change]) -> Message:
    """Return the message with `tool_calls` as a list of objects, or without it."""
    if calls_are_readable(message):
        return message
    found = message["tool_calls"]
    kept = [call for call in listed(found) if isinstance(call, dict)]
    what = "removed a null list of tool calls" if found is None else "removed entries that are not tool calls"
    changes.append(Change(index, "removed_tool_calls", (), what, "agents expect a list of calls, or none"))
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**message, "tool_calls": kept} if kept else rest


def _reordered(messages: Sequence[Message], *, complete: bool) -> tuple[list[Row], list[Change]]:
    """Give every call a unique id and its one answer directly behind it, or drop unanswered calls."""
    matching = match(messages)
    plan = Plan()
    orphans = matching.orphans()
    new_ids = _new_ids(
        matching.calls if complete else [call for call in matching.calls if call in matching.answer]
    )
    changes = _renumber(plan, matching, new_ids)
    changes += _move(plan, messages, matching.misplaced, new_ids)
    if complete:
        complete_calls(plan, messages, matching, INTERRUPTED, new_ids)
    else:
        for call in orphans:
            plan.edit(call.index).call_ids[call.call_id, call.nth] = None
    code, what = (
        ("completed_call", "added an error result") if complete else ("dropped_call", "dropped the call")
    )
    changes += _changes(orphans, code, what, "it has no result")
    for extra in matching.strays + matching.repeats:
        _take_out(plan, extra)
    changes += _changes(matching.strays, "dropped_result", "dropped a result", "it has no call")
    changes += _changes(matching.repeats, "dropped_result", "dropped a result", "the call already has one")
    rows, emptied = rebuild(messages, matching.ends, plan)
    changes += [
        Change(
            index,
            "dropped_message",
            (),
            "dropped the rest of the message",
            "no text and no call is left in it",
        )
        for index in emptied
        if holds_more(messages[index]) or not bears_results(messages[index])
    ]
    return rows, changes


def _new_ids(calls: Sequence[Call]) -> dict[Call, str]:
    """Return new ids for calls whose id an earlier call uses: the same id with a number appended."""
    taken = {call.call_id for call in calls}
    seen: Counter[str] = Counter()
    found: dict[Call, str] = {}
    for call in calls:
        seen[call.call_id] += 1
        if seen[call.call_id] == 1:
            continue
        while (new := f"{call.call_id}_{seen[call.call_id]}") in taken:
            seen[call.call_id] += 1
        found[call] = new
        taken.add(new)
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
    plan: Plan, messages: Sequence[Message], pairs: Sequence[tuple[Call, Answer]], new_ids: Mapping[Call, str]
) -> list[Change]:
    """Plan the move of misplaced answers; a message is moved as a whole if it holds nothing else."""
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
    why = "providers require it there, before the next message"
    return _changes(answers, "moved_result", "moved a result directly behind its call", why)


def _is_all_of(message: Message, group: list[tuple[Call, Answer]]) -> bool:
    """True if the message consists of exactly these answers, and all belong to the same call message."""
    if is_result(message):
        return True
    size = max(len(listed(message.get("content"))), len(parts_of(message, 0)))
    one_target = len({call.index for call, _answer in group}) == 1
    return one_target and size == len(group) and bears_results(message)


def _take_out(plan: Plan, answer: Answer) -> None:
    if answer.block is None:
        plan.edit(answer.index).gone = True
    else:
        plan.edit(answer.index).results_out.add(answer.block)


def _changes(parts: Sequence[Call] | Sequence[Answer], code: str, what: str, why: str) -> list[Change]:
    """Return one change per message."""
    ids: dict[int, list[str]] = {}
    for part in parts:
        ids.setdefault(part.index, []).append(part.call_id)
    return [Change(index, code, tuple(of), what, why) for index, of in ids.items()]
