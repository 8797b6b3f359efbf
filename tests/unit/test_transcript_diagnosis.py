"""What keeps a conversation from being resumed: every finding by an example, and no value that raises."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.model import Place, Severity
from sessionary.transcript.diagnosis import Diagnosis, Finding, diagnose, diagnosis_of, shape_findings
from sessionary.transcript.matching import match
from sessionary.transcript.typed import message_of, typed_message
from tests.unit.conversations import (
    REMINDER,
    amplifier,
    answered,
    anthropic,
    conversations,
    openai,
    said,
    tool,
    user,
)

Found = tuple[str, int, tuple[str, ...]]


def reported(messages: list[Any]) -> list[Found]:
    return [(each.code, each.index, each.ids) for each in diagnose(messages)]


HEALTHY: dict[str, list[Any]] = {
    "empty": [],
    "amplifier": [user(), amplifier("a", "b"), tool("b"), tool("a"), said()],
    "openai": [user(), openai("a"), tool("a"), said()],
    "anthropic": [user(), anthropic("a", "b"), answered("a", "b"), said()],
    "two messages of results": [user(), anthropic("a", "b"), answered("a"), answered("b"), said()],
    "a person beside the results": [user(), anthropic("a"), answered("a", text="stop"), said()],
    "calls one after another": [user(), amplifier("a"), tool("a"), amplifier("b"), tool("b"), said()],
    "a reminder before a person": [user(), said(), user(REMINDER), user("next"), said()],
    "blocks within a result": [
        user(),
        openai("a"),
        {**tool("a"), "content": answered("a")["content"]},
        said(),
    ],
    "an unknown role": [{"role": "narrator", "content": "once"}],
}


@pytest.mark.parametrize("messages", HEALTHY.values(), ids=HEALTHY)
def test_nothing_is_wrong(messages: list[Any]) -> None:
    assert diagnose(messages) == []
    assert diagnosis_of(messages) == {
        "status": "healthy",
        "failure_modes": [],
        "orphaned_tool_ids": [],
        "misplaced_tool_ids": [],
        "incomplete_turns": [],
        "recommended_action": "none",
    }


STOPS: dict[str, tuple[list[Any], list[Found]]] = {
    "call without result, amplifier": ([user(), amplifier("a")], [("orphaned_call", 1, ("a",))]),
    "call without result, openai": ([user(), openai("a")], [("orphaned_call", 1, ("a",))]),
    "call without result, anthropic": ([user(), anthropic("a", "b")], [("orphaned_call", 1, ("a", "b"))]),
    "one of three": (
        [user(), anthropic("a", "b", "c"), answered("a", "c"), said()],
        [("orphaned_call", 1, ("b",))],
    ),
    "result without call": ([user(), tool("a"), said()], [("orphaned_result", 1, ("a",))]),
    "result without call, in a block": ([user(), answered("a"), said()], [("orphaned_result", 1, ("a",))]),
    "second result": (
        [user(), amplifier("a"), tool("a"), tool("a"), said()],
        [("repeated_result", 3, ("a",))],
    ),
    "second result in the same message": (
        [user(), anthropic("a"), answered("a", "a"), said()],
        [("repeated_result", 2, ("a",))],
    ),
    "second call of an id": (
        [user(), amplifier("a"), tool("a"), amplifier("a"), tool("a"), said()],
        [("repeated_call", 3, ("a",))],
    ),
    "a person between": (
        [user(), amplifier("a"), user("hurry"), tool("a"), said()],
        [("misplaced_result", 3, ("a",))],
    ),
    "the agent between": (
        [user(), amplifier("a"), said("hm"), tool("a"), said()],
        [("misplaced_result", 3, ("a",))],
    ),
    "another call between": (
        [user(), amplifier("a"), amplifier("b"), tool("a"), tool("b"), said()],
        [("misplaced_result", 3, ("a",))],
    ),
    "result before its call": (
        [user(), tool("a"), amplifier("a"), said()],
        [("misplaced_result", 1, ("a",))],
    ),
    "result in the agent's message": (
        [user(), anthropic("a"), {**answered("a"), "role": "assistant"}, said()],
        [("misplaced_result", 2, ("a",))],
    ),
    "a person beside a sibling's result": (
        [user(), amplifier("a", "b"), answered("a", text="stop"), tool("b"), said()],
        [("misplaced_result", 3, ("b",))],
    ),
    "null calls": ([user(), {**said(), "tool_calls": None}], [("null_tool_calls", 1, ())]),
    "calls that are not a list": ([user(), {**said(), "tool_calls": "a"}], [("bad_tool_calls", 1, ())]),
    "calls that are not objects": ([user(), {**said(), "tool_calls": [None]}], [("bad_tool_calls", 1, ())]),
    "no message": ([user(), None, said()], [("not_a_message", 1, ())]),
    "no role": ([user(), {"content": "x"}], [("no_role", 1, ())]),
    "a role that is not a word": ([{"role": None}, {"role": ""}], [("no_role", 0, ()), ("no_role", 1, ())]),
    "open calls of one id": (
        [user(), openai("a"), said(), openai("a"), tool("a"), said()],
        [("orphaned_call", 1, ("a",)), ("repeated_call", 3, ("a",))],
    ),
    "a person beside a stray result": (
        [user(), answered("x", text="and"), said()],
        [("orphaned_result", 1, ("x",))],
    ),
    "a stray result between two persons": (
        [user(), tool("x"), user("and"), said()],
        [("orphaned_result", 1, ("x",)), ("incomplete_turn", 1, ())],
    ),
    "a person after a tool": (
        [user(), amplifier("a"), tool("a"), user(REMINDER), user("so?"), said()],
        [("incomplete_turn", 2, ())],
    ),
}


@pytest.mark.parametrize(("messages", "found"), STOPS.values(), ids=STOPS)
def test_it_stops_a_resume(messages: list[Any], found: list[Found]) -> None:
    assert reported(messages) == found
    assert all(each.stops and each.severity is Severity.stops_resume for each in diagnose(messages))
    assert diagnosis_of(messages)["status"] == "broken"
    assert diagnosis_of(messages)["recommended_action"] == "repair"


NOTES: dict[str, tuple[list[Any], list[Found]]] = {
    "persons in a row": ([user(), user("and"), said()], [("consecutive_users", 1, ())]),
    "a result behind a reminder": (
        [user(), amplifier("a"), user(REMINDER), tool("a"), said()],
        [("late_result", 3, ("a",))],
    ),
    "the agent may still be at work": ([user(), amplifier("a"), tool("a")], [("incomplete_turn", 2, ())]),
    "empty thinking, signed": (
        [user(), {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]}],
        [("empty_thinking", 1, ())],
    ),
    "a call and a result without ids": (
        [user(), {"role": "assistant", "tool_calls": [{"tool": "bash"}]}, {"role": "tool"}, said()],
        [("no_call_id", 1, ()), ("no_call_id", 2, ())],
    ),
    "an id that is not a word": (
        [user(), {"role": "tool", "tool_call_id": 7, "content": ""}, said()],
        [("no_call_id", 1, ())],
    ),
}


@pytest.mark.parametrize(("messages", "found"), NOTES.values(), ids=NOTES)
def test_it_is_worth_a_note(messages: list[Any], found: list[Found]) -> None:
    assert reported(messages) == found
    assert not any(each.stops for each in diagnose(messages))


def test_findings_come_in_the_order_of_the_messages() -> None:
    talk = [tool("x"), user(), amplifier("a"), user("so?"), tool("a"), amplifier("b")]
    assert reported(talk) == [
        ("orphaned_result", 0, ("x",)),
        ("incomplete_turn", 0, ()),
        ("misplaced_result", 4, ("a",)),
        ("orphaned_call", 5, ("b",)),
    ]


def test_a_finding_as_json() -> None:
    (finding,) = diagnose([amplifier("a", "b")])
    assert finding.as_dict() == {
        "code": "orphaned_call",
        "severity": "stops_resume",
        "index": 0,
        "ids": ["a", "b"],
        "message": "tool calls a, b have no result",
    }


def test_the_fields_of_the_original() -> None:
    talk = [
        user(),
        amplifier("a"),
        user("hurry"),
        tool("a"),
        tool("x"),
        user("and"),
        anthropic("b"),
    ]
    assert diagnosis_of(talk) == {
        "status": "broken",
        "failure_modes": [
            "missing_tool_results",
            "ordering_violation",
            "incomplete_assistant_turn",
            "orphaned_result",
        ],
        "orphaned_tool_ids": ["b"],
        "misplaced_tool_ids": ["a"],
        "incomplete_turns": [{"after_line": 5, "after_index": 4, "missing": "assistant_response"}],
        "recommended_action": "repair",
    }


def test_the_original_takes_the_end_for_an_incomplete_turn() -> None:
    diagnosis = diagnosis_of([user(), amplifier("a"), tool("a")])
    assert diagnosis["failure_modes"] == ["incomplete_assistant_turn"]
    assert diagnosis["incomplete_turns"] == [
        {"after_line": 3, "after_index": 2, "missing": "assistant_response"}
    ]


@given(conversations())
def test_no_value_raises_and_every_finding_has_its_place(messages: list[Any]) -> None:
    found = diagnose(messages)
    assert [each.index for each in found] == sorted(each.index for each in found)
    for each in found:
        assert isinstance(each, Finding)
        assert 0 <= each.index < len(messages)
        assert each.message
        json.dumps(each.as_dict())
    broken = any(each.stops or each.code == "incomplete_turn" for each in found)
    assert diagnosis_of(messages)["status"] == ("broken" if broken else "healthy")


# Message by message


def streamed(messages: list[Any]) -> Diagnosis:
    diagnosis = Diagnosis()
    for number, message in enumerate(messages, 1):
        diagnosis.take(typed_message(message, Place("talk", number)))
    return diagnosis


@given(conversations(), st.integers(0, 9))
def test_a_diagnosis_stored_at_any_message_continues_from_there(messages: list[Any], cut: int) -> None:
    before = streamed(messages[:cut])
    try:
        state = msgspec.msgpack.encode(before)
    except UnicodeEncodeError:
        return  # a lone surrogate in an id
    before.findings()
    again = msgspec.msgpack.decode(state, type=Diagnosis)
    for number, message in enumerate(messages[cut:], cut + 1):
        again.take(typed_message(message, Place("talk", number)))
    assert again.findings() == streamed(messages).findings()


@given(conversations())
def test_every_finding_bears_the_place_of_its_message(messages: list[Any]) -> None:
    found = streamed(messages).findings()
    assert [each.place for each in found] == [Place("talk", each.index + 1) for each in found]
    shapes = [each for index, message in enumerate(messages) for each in shape_findings(message, index)]
    alone = [(each.code, each.index, each.ids) for each in sorted(shapes + found, key=lambda one: one.index)]
    assert alone == reported(messages)


@given(conversations())
def test_typed_messages_hold_the_calls_and_results_that_a_repair_sees(messages: list[Any]) -> None:
    found = {(each.code, each.index): sorted(each.ids) for each in diagnose(messages)}
    matching = match(messages)
    wrong: dict[str, list[Any]] = {
        "orphaned_call": matching.orphans(),
        "orphaned_result": matching.strays,
        "repeated_result": matching.repeats,
        "repeated_call": matching.repeated,
    }
    for code, parts in wrong.items():
        by_message: dict[tuple[str, int], list[str]] = {}
        for part in parts:
            by_message.setdefault((code, part.index), []).append(part.call_id)
        assert {key: sorted(ids) for key, ids in by_message.items()} == {
            key: ids for key, ids in found.items() if key[0] == code
        }


def test_a_call_from_long_ago_that_is_made_again_is_found() -> None:
    turns = [[user(), amplifier(f"c{number}"), tool(f"c{number}"), said()] for number in range(2000)]
    talk = [message for turn in turns for message in turn]
    assert reported([*talk, *turns[0]]) == [("repeated_call", len(talk) + 1, ("c0",))]


def test_a_diagnosis_holds_some_bytes_per_message() -> None:
    count = 20_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        diagnosis = Diagnosis()
        for number in range(count):
            name = f"call_{number:030}"
            for message in [user("y" * 500), amplifier(name), tool(name, "x" * 500), said()]:
                diagnosis.take(message_of(message))
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert diagnosis.messages == 4 * count
    assert diagnosis.findings() == []
    assert held < 10 * diagnosis.messages
