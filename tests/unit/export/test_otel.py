"""Spans of OpenTelemetry: one trace for each turn, whose spans are within their parents."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionary.export import Report, otel
from sessionary.export.steps import Begin, End, Step
from sessionary.model import Message, Text, ToolCall, ToolResult, Usage
from sessionary.transcript.typed import Numbered, numbered
from tests.unit.export.test_atif import HEAD, MESSAGES, WHEN


def spans_of(*messages: Message, children: int = 0) -> tuple[list[list[Any]], Report]:
    def steps() -> Iterator[Step]:
        yield Begin(HEAD, (), 0)
        yield from numbered(messages)
        for number in range(children):
            yield Begin(HEAD._replace(id=f"child {number}"), (), 1)
            yield Numbered(0, 1, Message("user", "person", (Text("Help"),), WHEN))
            yield End(1)
        yield End(0)

    report = Report("otel", lambda text: text)
    turns = []
    for line in otel.write(steps(), report):
        line.encode()
        document = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        (resource,) = document["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        assert scope["schemaUrl"] == "https://opentelemetry.io/schemas/gen-ai-dev/0.1.0"
        turns.append(scope["spans"])
    return turns, report


def attributes(span: Any) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_a_turn_is_a_trace_of_model_and_tools() -> None:
    later = [WHEN + timedelta(seconds=number) for number in range(4)]
    turns, report = spans_of(
        Message("user", "person", (Text("Which files?"),), later[0]),
        Message(
            "assistant",
            "agent",
            (ToolCall("c", "ls", {"a": 1}),),
            later[1],
            model="claude-x",
            usage=Usage(1, 2, 3, 4),
        ),
        Message("tool", "tool", (ToolResult("c", "README", True),), later[2]),
        Message("assistant", "agent", (Text("One."),), later[3]),
        Message("user", "person", (Text("Thanks"),), later[3]),
    )
    assert report.losses == []
    assert [[one["name"] for one in spans] for spans in turns] == [
        ["invoke_agent claude-code", "chat claude-x", "execute_tool ls", "chat"],
        ["invoke_agent claude-code"],
    ]
    root, chat, tool, _ = turns[0]
    assert attributes(chat)["gen_ai.usage.input_tokens"] == "8"
    assert attributes(chat)["gen_ai.provider.name"] == "anthropic"
    assert json.loads(attributes(chat)["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Which files?"}]}
    ]
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "s1",
        "gen_ai.tool.name": "ls",
        "gen_ai.tool.call.id": "c",
        "gen_ai.tool.call.arguments": '{"a": 1}',
        "gen_ai.tool.call.result": '"README"',
        "error.type": "_OTHER",
    }
    assert (tool["status"], int(tool["endTimeUnixNano"]) - int(tool["startTimeUnixNano"])) == (
        {"code": 2},
        10**9,
    )
    assert root["startTimeUnixNano"] == "1772355600123456000"


@pytest.mark.parametrize(
    "value",
    ["half \ud83d", float("nan"), float("-inf"), {"key \ud83d": 1}],
    ids=["text", "nan", "inf", "key"],
)
def test_what_strict_json_does_not_have_is_a_loss(value: Any) -> None:
    messages = [
        Message("user", "person", (Text("Which files? \0 中文 \U0001f600"),), WHEN),
        Message("assistant", "agent", (ToolCall("c", "ls", {"a": [1, 2.5, None, True, 2**70]}),), WHEN),
    ]
    assert spans_of(*messages)[1].losses == []
    _, report = spans_of(*messages, Message("tool", "tool", (ToolResult("c", value, False),), WHEN))
    assert [(one.code, one.what, one.count) for one in report.losses] == [
        ("form", "text or number that strict JSON does not have", 1)
    ]


def test_a_sub_agent_is_linked_to_its_parent() -> None:
    turns, _ = spans_of(Message("user", "person", (Text("Go"),), WHEN), children=1)
    parent, child = turns[1][0], turns[0][0]
    if "links" in child:
        parent, child = child, parent
    assert parent["links"] == [{"traceId": child["traceId"], "spanId": child["spanId"]}]


@settings(max_examples=100, deadline=None)
@given(st.lists(MESSAGES, max_size=8))
def test_spans_of_any_messages_form_trees(messages: list[Message]) -> None:
    turns, _ = spans_of(*messages)
    seen = set()
    for spans in turns:
        root, *below = spans
        assert "parentSpanId" not in root
        for span in spans:
            assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
            assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
            assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
            assert (span["traceId"], span["spanId"]) not in seen
            seen.add((span["traceId"], span["spanId"]))
        assert {one["parentSpanId"] for one in below} <= {root["spanId"]}
        assert {one["traceId"] for one in spans} == {root["traceId"]}
