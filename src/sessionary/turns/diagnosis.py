"""What keeps a conversation from being resumed, found by reading the messages alone.

Providers refuse a conversation for a call without a result, a result without its call, two results of one call, two
calls of one id, or a result that does not come right behind its call; and they go on refusing it at every
attempt, because the agent sends it again as it is. Some of that is seen by no other tool: calls in content blocks,
results without calls, an id that two calls share.

What `mend` puts right without asking, and what stops a resume, are told apart by severity. A note is worth knowing:
providers differ, and most take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessionary.model import Severity
from sessionary.turns.matching import Answer, Call, Matching, match, out_of_place, repeated_calls
from sessionary.turns.messages import (
    CALLS,
    SPEAKERS,
    Message,
    bears_results,
    is_real_user,
    is_result,
    listed,
    results,
)
from sessionary.turns.turn_boundaries import open_ends

STOPS = Severity.stops_resume
NOTE = Severity.note


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        code: what it is, one of those in docs/turns.md.
        severity: ``stops_resume``, or ``note``.
        index: the message, counted from 0.
        ids: the tool calls concerned.
        message: one sentence for a person.
    """

    code: str
    severity: Severity
    index: int
    ids: tuple[str, ...]
    message: str

    @property
    def stops(self) -> bool:
        """True if a provider, or the agent itself, will refuse the conversation for it."""
        return self.severity >= Severity.stops_resume

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON, with the severity as its word."""
        return {
            "code": self.code,
            "severity": self.severity.name,
            "index": self.index,
            "ids": list(self.ids),
            "message": self.message,
        }


def diagnose(messages: Sequence[Any]) -> list[Finding]:
    """Everything that is wrong with a conversation, in the order of the messages.

    Args:
        messages: any JSON values; what is no message is a finding. A reader of an agent that stores one API message in
            several records joins them first, or their calls seem to be interrupted.
    """
    matching = match(messages)
    found = [*_shapes(messages), *_pairs(matching), *_places(messages, matching), *_speakers(messages)]
    return sorted(found, key=lambda finding: finding.index)


def _shapes(messages: Sequence[Any]) -> Iterator[Finding]:
    """What is wrong with single messages."""
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            kind = type(message).__name__
            yield Finding(
                "not_a_message", STOPS, index, (), f"this is no message, but a value of type {kind}"
            )
            continue
        if not has_role(message):
            yield Finding("no_role", STOPS, index, (), "nobody is named as the speaker")
        if "tool_calls" in message and message["tool_calls"] is None:
            yield Finding(
                "null_tool_calls", STOPS, index, (), "`tool_calls` is null, where a list is expected"
            )
        elif not calls_are_readable(message):
            yield Finding("bad_tool_calls", STOPS, index, (), "`tool_calls` is no list of calls")
        if _lacks_id(message):
            text = "a tool call or a result has no id: nobody can tell which belong together"
            yield Finding("no_call_id", NOTE, index, (), text)
        if _has_empty_thinking(message):
            text = "a thinking block is empty and yet signed: some versions of the API refuse it"
            yield Finding("empty_thinking", NOTE, index, (), text)


def has_role(message: Message) -> bool:
    """True if the message says who speaks."""
    role = message.get("role")
    return isinstance(role, str) and role != ""


def calls_are_readable(message: Message) -> bool:
    """True if `tool_calls` is not there, or a list of objects."""
    calls = message.get("tool_calls", [])
    return isinstance(calls, list) and all(isinstance(call, dict) for call in calls)


def _lacks_id(message: Message) -> bool:
    if is_result(message):
        return not isinstance(message["tool_call_id"], str)
    blocks = [block for block in listed(message.get("content")) if isinstance(block, dict)]
    calls = [block for block in blocks if block.get("type") in CALLS]
    calls += [call for call in listed(message.get("tool_calls")) if isinstance(call, dict)]
    return any(not isinstance(call.get("id"), str) for call in calls) or any(
        result.call_id is None for result in results(message)
    )


def _has_empty_thinking(message: Message) -> bool:
    return any(
        isinstance(block, dict)
        and block.get("type") == "thinking"
        and block.get("thinking") == ""
        and bool(block.get("signature"))
        for block in listed(message.get("content"))
    )


def _pairs(matching: Matching) -> Iterator[Finding]:
    """Calls and results that are too few or too many."""
    for index, ids in by_message(matching.orphans()):
        yield Finding("orphaned_call", STOPS, index, ids, f"{_calls(ids)} no result")
    for index, ids in by_message(matching.strays):
        yield Finding("orphaned_result", STOPS, index, ids, f"a result of {_ids(ids)}, which nobody called")
    for index, ids in by_message(matching.repeats):
        yield Finding("repeated_result", STOPS, index, ids, f"a further result of {_ids(ids)}")
    for index, ids in by_message(repeated_calls(matching.calls)):
        yield Finding(
            "repeated_call", STOPS, index, ids, f"the id {_ids(ids)} belongs to an earlier call already"
        )


def by_message(parts: Sequence[Call] | Sequence[Answer]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Calls or answers as the ids in each message."""
    found: dict[int, list[str]] = {}
    for part in parts:
        found.setdefault(part.index, []).append(part.call_id)
    return ((index, tuple(ids)) for index, ids in found.items())


def _places(messages: Sequence[Any], matching: Matching) -> Iterator[Finding]:
    """Results that are not right behind their call."""
    stopped: list[Answer] = []
    late: list[Answer] = []
    for call, answer in out_of_place(messages, matching):
        (stopped if _is_cut_off(messages, call, answer) else late).append(answer)
    for index, ids in by_message(stopped):
        text = f"a result of {_ids(ids)} stands where a person or the agent has spoken since the call"
        yield Finding("misplaced_result", STOPS, index, ids, text)
    for index, ids in by_message(late):
        text = f"a result of {_ids(ids)} does not come right behind the call, as strict providers demand"
        yield Finding("late_result", NOTE, index, ids, text)


def _is_cut_off(messages: Sequence[Any], call: Call, answer: Answer) -> bool:
    """True if somebody spoke in between, or the answer comes where none can be."""
    if answer.index <= call.index or messages[answer.index].get("role") in SPEAKERS:
        return True
    return any(map(_speaks, messages[call.index + 1 : answer.index]))


def _speaks(message: Any) -> bool:
    return isinstance(message, Mapping) and (message.get("role") == "assistant" or is_real_user(message))


def _speakers(messages: Sequence[Any]) -> Iterator[Finding]:
    """Turns that have no end, or no answer."""
    for last, following in open_ends(messages):
        severity = NOTE if following is None else STOPS
        text = "the tools have answered, and the agent has not"
        text += "" if following is None else ": some providers refuse a person's word behind a tool's"
        yield Finding("incomplete_turn", severity, last, (), text)
    spoke = False
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        if is_real_user(message):
            if spoke and not bears_results(message):
                yield Finding("consecutive_users", NOTE, index, (), "a person speaks again without an answer")
            spoke = True
        elif message.get("role") == "assistant" or bears_results(message):
            spoke = False


def _ids(ids: tuple[str, ...]) -> str:
    return ", ".join(ids)


def _calls(ids: tuple[str, ...]) -> str:
    return f"tool call {_ids(ids)} has" if len(ids) == 1 else f"tool calls {_ids(ids)} have"


_MODES = {
    "orphaned_call": "missing_tool_results",
    "misplaced_result": "ordering_violation",
    "incomplete_turn": "incomplete_assistant_turn",
}
"""The original's words for what it sees; what it does not see goes by our code."""


def diagnosis_of(messages: Sequence[Any]) -> dict[str, Any]:
    """The findings in the fields of the original's diagnosis.

    It knows three ways to be broken, and takes the end of the conversation for one: tools have answered and the
    agent has not. What it does not see is named by our codes.

    Returns:
        ``status`` (``healthy`` or ``broken``), ``failure_modes``, ``orphaned_tool_ids``, ``misplaced_tool_ids``,
        ``incomplete_turns`` (each ``after_line`` from 1, ``after_index`` from 0, ``missing``), ``recommended_action``
        (``none`` or ``repair``).
    """
    found = [each for each in diagnose(messages) if each.stops or each.code in _MODES]
    modes = [mode for code, mode in _MODES.items() if any(each.code == code for each in found)]
    others = dict.fromkeys(each.code for each in found if each.code not in _MODES)
    ends = [each.index for each in found if each.code == "incomplete_turn"]
    return {
        "status": "broken" if found else "healthy",
        "failure_modes": [*modes, *others],
        "orphaned_tool_ids": _ids_of(found, "orphaned_call"),
        "misplaced_tool_ids": _ids_of(found, "misplaced_result"),
        "incomplete_turns": [
            {"after_line": index + 1, "after_index": index, "missing": "assistant_response"} for index in ends
        ],
        "recommended_action": "repair" if found else "none",
    }


def _ids_of(found: list[Finding], code: str) -> list[str]:
    return list(dict.fromkeys(call_id for each in found if each.code == code for call_id in each.ids))
