"""Diagnosis: what keeps a conversation from being resumed, from the messages alone.

Providers refuse a conversation for a call without a result, a result without its call, two results of one call, two
calls with one id, or a result that is not directly behind its call. They refuse every attempt, because the agent
sends the same messages again. Other tools miss some of these: calls in content blocks, results without calls, ids
used twice.

The severity separates what stops a resume, which `mend` repairs, from notes: providers differ, and most accept those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessionary.model import Severity
from sessionary.transcript.matching import Answer, Call, Matching, match, out_of_place, repeated_calls
from sessionary.transcript.messages import (
    CALLS,
    SPEAKERS,
    Message,
    bears_results,
    is_real_user,
    is_result,
    listed,
    results,
)
from sessionary.transcript.turn_boundaries import open_ends

STOPS = Severity.stops_resume
NOTE = Severity.note


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of the conversation.

    Attributes:
        code: its code, see docs/transcript.md.
        severity: ``stops_resume``, or ``note``.
        index: index of the message, from 0.
        ids: ids of the tool calls involved.
        message: one sentence for the user.
    """

    code: str
    severity: Severity
    index: int
    ids: tuple[str, ...]
    message: str

    @property
    def stops(self) -> bool:
        """True if a provider, or the agent itself, refuses the conversation because of it."""
        return self.severity >= Severity.stops_resume

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON, with the severity by name."""
        return {
            "code": self.code,
            "severity": self.severity.name,
            "index": self.index,
            "ids": list(self.ids),
            "message": self.message,
        }


def diagnose(messages: Sequence[Any]) -> list[Finding]:
    """Return all findings of a conversation, in message order.

    Args:
        messages: any JSON values; a value that is not a message is a finding. An agent that stores one API message in
            several records must join them first, otherwise their calls appear interrupted.
    """
    matching = match(messages)
    found = [*_shapes(messages), *_pairs(matching), *_places(messages, matching), *_speakers(messages)]
    return sorted(found, key=lambda finding: finding.index)


def _shapes(messages: Sequence[Any]) -> Iterator[Finding]:
    """Yield findings about single messages."""
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            kind = type(message).__name__
            yield Finding("not_a_message", STOPS, index, (), f"not a message but a value of type {kind}")
            continue
        if not has_role(message):
            yield Finding("no_role", STOPS, index, (), "the message has no role")
        if "tool_calls" in message and message["tool_calls"] is None:
            yield Finding("null_tool_calls", STOPS, index, (), "`tool_calls` is null instead of a list")
        elif not calls_are_readable(message):
            yield Finding("bad_tool_calls", STOPS, index, (), "`tool_calls` is not a list of calls")
        if _lacks_id(message):
            text = "a tool call or a result has no id, so they cannot be paired"
            yield Finding("no_call_id", NOTE, index, (), text)
        if _has_empty_thinking(message):
            text = "an empty thinking block has a signature; some versions of the API refuse it"
            yield Finding("empty_thinking", NOTE, index, (), text)


def has_role(message: Message) -> bool:
    """True if the message has a role."""
    role = message.get("role")
    return isinstance(role, str) and role != ""


def calls_are_readable(message: Message) -> bool:
    """True if `tool_calls` is absent, or a list of objects."""
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
    """Yield findings about missing and surplus calls and results."""
    for index, ids in by_message(matching.orphans()):
        yield Finding("orphaned_call", STOPS, index, ids, f"{_calls(ids)} no result")
    for index, ids in by_message(matching.strays):
        yield Finding("orphaned_result", STOPS, index, ids, f"a result of {_ids(ids)}, which has no call")
    for index, ids in by_message(matching.repeats):
        yield Finding("repeated_result", STOPS, index, ids, f"another result of {_ids(ids)}")
    for index, ids in by_message(repeated_calls(matching.calls)):
        yield Finding("repeated_call", STOPS, index, ids, f"the id {_ids(ids)} is used by an earlier call")


def by_message(parts: Sequence[Call] | Sequence[Answer]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the ids of calls or answers by message."""
    found: dict[int, list[str]] = {}
    for part in parts:
        found.setdefault(part.index, []).append(part.call_id)
    return ((index, tuple(ids)) for index, ids in found.items())


def _places(messages: Sequence[Any], matching: Matching) -> Iterator[Finding]:
    """Yield findings about results that are not directly behind their call."""
    stopped: list[Answer] = []
    late: list[Answer] = []
    for call, answer in out_of_place(messages, matching):
        (stopped if _is_cut_off(messages, call, answer) else late).append(answer)
    for index, ids in by_message(stopped):
        text = f"a result of {_ids(ids)} comes after the user or the agent has spoken again"
        yield Finding("misplaced_result", STOPS, index, ids, text)
    for index, ids in by_message(late):
        text = f"a result of {_ids(ids)} is not directly behind the call, as strict providers require"
        yield Finding("late_result", NOTE, index, ids, text)


def _is_cut_off(messages: Sequence[Any], call: Call, answer: Answer) -> bool:
    """True if a user or the agent spoke in between, or the answer is at an impossible place."""
    if answer.index <= call.index or messages[answer.index].get("role") in SPEAKERS:
        return True
    return any(map(_speaks, messages[call.index + 1 : answer.index]))


def _speaks(message: Any) -> bool:
    return isinstance(message, Mapping) and (message.get("role") == "assistant" or is_real_user(message))


def _speakers(messages: Sequence[Any]) -> Iterator[Finding]:
    """Yield findings about turns without an end or an answer."""
    for last, following in open_ends(messages):
        severity = NOTE if following is None else STOPS
        text = "the tools have answered, the agent has not"
        text += (
            "" if following is None else "; some providers refuse a user message directly after a tool result"
        )
        yield Finding("incomplete_turn", severity, last, (), text)
    spoke = False
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        if is_real_user(message):
            if spoke and not bears_results(message):
                yield Finding(
                    "consecutive_users", NOTE, index, (), "two user messages in a row, without an answer"
                )
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
"""Names that the original uses; other findings keep our codes."""


def diagnosis_of(messages: Sequence[Any]) -> dict[str, Any]:
    """Return the findings in the fields of the original's diagnosis.

    The original knows three faults; one of them is a conversation that ends with tool results. Faults that it does
    not know are named by our codes.

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
