"""Diagnosis: what keeps a conversation from being resumed, from the messages alone.

Providers refuse a conversation for a call without a result, a result without its call, two results of one call, two
calls with one id, or a result that is not directly behind its call. They refuse every attempt, because the agent
sends the same messages again. Other tools miss some of these: calls in content blocks, results without calls, ids
used twice.

The severity separates what stops a resume, which `mend` repairs, from notes: providers differ, and most accept those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sessionary.model import PERSON, Message, Other, Part, Place, Severity, Text, ToolCall, ToolResult
from sessionary.transcript.matching import NOTHING, NOWHERE, Answer, Call, Matcher, Taken
from sessionary.transcript.messages import SPEAKERS
from sessionary.transcript.turn_boundaries import open_end
from sessionary.transcript.typed import typed_message, typed_parts

STOPS = Severity.stops_resume
NOTE = Severity.note


class Finding(Struct, frozen=True):
    """A fault of the conversation.

    Attributes:
        code: its code, see docs/transcript.md.
        severity: ``stops_resume``, or ``note``.
        index: index of the message, from 0.
        ids: ids of the tool calls involved.
        message: one sentence for the user.
        place: where the message is stored, if it was read from a file.
    """

    code: str
    severity: Severity
    index: int
    ids: tuple[str, ...]
    message: str
    place: Place = NOWHERE

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


class _Mark(Struct, frozen=True, array_like=True, gc=False):
    """A fault at a message; the marks of one code and message become one finding."""

    index: int
    code: str
    call_id: str | None
    place: Place


class Diagnosis(Struct, array_like=True):
    """The diagnosis of a conversation, message by message.

    All fields are plain values, so that the state can be stored and continued. It holds no texts: an id of each open
    call, a hash of each other one, and the faults.

    Attributes:
        messages: number of messages so far.
        matcher: pairs the calls and results.
        marks: the faults that later messages cannot change.
        spoke: the last message that the user or the agent wrote.
        asked: the user has written, and nothing has followed.
        tools: the last result, and its place, if the agent has not continued.
    """

    messages: int = 0
    matcher: Matcher = msgspec.field(default_factory=Matcher)
    marks: list[_Mark] = []
    spoke: int = -1
    asked: bool = False
    tools: tuple[int, Place] | None = None

    def take(self, message: Message) -> None:
        """Process the next message."""
        index, place, role = self.messages, message.place, message.role
        person, parts = message.origin == PERSON, message.parts
        plain = len(parts) == 1 and type(parts[0]) is Text and role is not None
        found, answered, more, nameless = _PLAIN if plain else _calls_and_results(message, index)
        answered = (answered or role == "tool") and role not in SPEAKERS
        if nameless:
            self.marks.append(_Mark(index, "no_call_id", None, place))
        taken = self.matcher.take(index, found, results=answered, more=more)
        if taken is not NOTHING:
            self._judge(taken, role, index)
        if person and not answered:
            if self.asked:
                self.marks.append(_Mark(index, "consecutive_users", None, place))
            if self.tools is not None:
                self.marks.append(_Mark(self.tools[0], "incomplete_turn", None, self.tools[1]))
        if role == "assistant" or person:
            self.spoke = index
        self.asked = person or (self.asked and not answered and role != "assistant")
        if answered or self.tools is not None:
            self.tools = open_end(self.tools, (index, place), role, results=answered, person=person)
        self.messages += 1

    def _judge(self, taken: Taken, role: str | None, index: int) -> None:
        """Mark what is wrong with the calls and results of a message."""
        for pair in taken.pairs:
            if not pair.in_place:
                cut = role in SPEAKERS or self.spoke > pair.call.index or pair.call.index == index
                self.marks.append(_mark("misplaced_result" if cut else "late_result", pair.answer))
        for answer in taken.repeats:
            self.marks.append(_mark("repeated_result", answer))
        for call in taken.repeated:
            self.marks.append(_mark("repeated_call", call))

    def findings(self) -> list[Finding]:
        """Return all findings so far, in message order."""
        pairs, strays, orphans = self.matcher.settled()
        marks = [
            *(_mark("orphaned_call", call) for call in orphans),
            *(_mark("orphaned_result", answer) for answer in strays),
            *self.marks,
            *(_mark("misplaced_result", pair.answer) for pair in pairs),
        ]
        groups: dict[tuple[int, int], list[_Mark]] = {}
        for mark in marks:
            groups.setdefault((mark.index, _ORDER[mark.code]), []).append(mark)
        found = [_finding(groups[key]) for key in sorted(groups)]
        if self.tools is not None:
            index, place = self.tools
            found.append(Finding("incomplete_turn", NOTE, index, (), _UNFINISHED, place))
        return sorted(found, key=lambda finding: finding.index)


def diagnose(messages: Sequence[Any]) -> list[Finding]:
    """Return all findings of a conversation, in message order.

    Args:
        messages: any JSON values; a value that is not a message is a finding. An agent that stores one API message in
            several records must join them first, otherwise their calls appear interrupted.
    """
    diagnosis = Diagnosis()
    found: list[Finding] = []
    for index, message in enumerate(messages):
        found += shape_findings(message, index)
        diagnosis.take(typed_message(message))
    return sorted([*found, *diagnosis.findings()], key=lambda finding: finding.index)


def shape_findings(message: Any, index: int = 0, place: Place = NOWHERE) -> list[Finding]:
    """Return the findings that a stored message shows alone."""
    codes = _shapes(message) if type(message) is dict or isinstance(message, Mapping) else ["not_a_message"]
    return [_shape_finding(code, message, index, place) for code in codes] if codes else []


def _shape_finding(code: str, message: Any, index: int, place: Place) -> Finding:
    severity, text = FINDINGS[code]
    return Finding(code, severity, index, (), text.format(type(message).__name__), place)


def _shapes(message: Mapping[str, Any]) -> list[str]:
    role, content = message.get("role"), message.get("content")
    codes = [] if isinstance(role, str) and role else ["no_role"]
    if "tool_calls" in message:
        if message["tool_calls"] is None:
            codes.append("null_tool_calls")
        elif not calls_are_readable(message):
            codes.append("bad_tool_calls")
    if isinstance(content, list) and any(map(_is_empty_thinking, content)):
        codes.append("empty_thinking")
    return codes


def has_role(message: Mapping[str, Any]) -> bool:
    """True if the message has a role."""
    role = message.get("role")
    return isinstance(role, str) and role != ""


def calls_are_readable(message: Mapping[str, Any]) -> bool:
    """True if `tool_calls` is absent, or a list of objects."""
    calls = message.get("tool_calls", ())
    return calls == () or (isinstance(calls, list) and all(isinstance(call, dict) for call in calls))


def _is_empty_thinking(block: Any) -> bool:
    return (
        isinstance(block, dict)
        and block.get("thinking") == ""
        and block.get("type") == "thinking"
        and bool(block.get("signature"))
    )


def _calls_and_results(message: Message, index: int) -> tuple[list[Call | Answer], bool, bool, bool]:
    """Return the calls and results of a message that have an id.

    Also return whether it has results, whether it has other content, and whether a call or a result has no id.
    """
    found: list[Call | Answer] = []
    has_results = more = nameless = False
    for part in message.parts if message.role is not None else _parts_of_record(message):
        if isinstance(part, ToolCall):
            if part.call_id is None:
                nameless = more = True
            else:
                found.append(Call(index, part.call_id, 0, None, message.place))
        elif isinstance(part, ToolResult):
            has_results = True
            if part.call_id is None:
                nameless = True
            else:
                found.append(Answer(index, None, part.call_id, message.place))
        else:
            more = True
    return found, has_results, more, nameless


_PLAIN: tuple[list[Call | Answer], bool, bool, bool] = ([], False, True, False)
"""The same of a message that is one text, as most are."""


def _parts_of_record(message: Message) -> Iterator[Part]:
    """Yield the parts of a record without a role; such a record is the only part of its message."""
    record = message.parts[0].value if message.parts and isinstance(message.parts[0], Other) else None
    return typed_parts(record) if isinstance(record, Mapping) else iter(())


def _mark(code: str, part: Call | Answer) -> _Mark:
    return _Mark(part.index, code, part.call_id, part.place)


_UNFINISHED = "the tools have answered, the agent has not"

FINDINGS = {
    "not_a_message": (STOPS, "not a message but a value of type {}"),
    "no_role": (STOPS, "the message has no role"),
    "null_tool_calls": (STOPS, "`tool_calls` is null instead of a list"),
    "bad_tool_calls": (STOPS, "`tool_calls` is not a list of calls"),
    "no_call_id": (NOTE, "a tool call or a result has no id, so they cannot be paired"),
    "empty_thinking": (NOTE, "an empty thinking block has a signature; some versions of the API refuse it"),
    "orphaned_call": (STOPS, "tool call {} has no result"),
    "orphaned_result": (STOPS, "a result of {}, which has no call"),
    "repeated_result": (STOPS, "another result of {}"),
    "repeated_call": (STOPS, "the id {} is used by an earlier call"),
    "misplaced_result": (STOPS, "a result of {} comes after the user or the agent has spoken again"),
    "late_result": (NOTE, "a result of {} is not directly behind the call, as strict providers require"),
    "incomplete_turn": (
        STOPS,
        f"{_UNFINISHED}; some providers refuse a user message directly after a tool result",
    ),
    "consecutive_users": (NOTE, "two user messages in a row, without an answer"),
}
"""The severity and the text of each finding, in the order in which those of one message are reported."""

_ORDER = {code: number for number, code in enumerate(FINDINGS)}


def _finding(marks: Sequence[_Mark]) -> Finding:
    code, index = marks[0].code, marks[0].index
    severity, text = FINDINGS[code]
    ids = tuple(mark.call_id for mark in marks if mark.call_id is not None)
    if code == "orphaned_call" and len(ids) > 1:
        text = "tool calls {} have no result"
    return Finding(code, severity, index, ids, text.format(", ".join(ids)), marks[0].place)


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
