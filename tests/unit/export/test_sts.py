"""STS: each line is what the format wants, and an import reads back the same messages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionary import Workspace
from sessionary.export import Report, sts
from sessionary.export.steps import Begin, End, Head, Step
from sessionary.model import Message, Text, Thinking, ToolCall, ToolResult
from sessionary.transcript.typed import Numbered, numbered
from tests.unit.export.conftest import ID, Talk, record
from tests.unit.export.test_atif import HEAD, MESSAGES, WHEN, without_place


def lines_of(
    *messages: Message, head: Head = HEAD, outside: tuple[int, ...] = ()
) -> tuple[list[str], Report]:
    def steps() -> Iterator[Step]:
        yield Begin(head, (), 0)
        for number, message in enumerate(messages):
            yield Numbered(number, 1, message, number in outside)
        yield End(0)

    report = Report("sts", lambda text: text)
    return list(sts.write(steps(), report)), report


def imported(lines: list[str], folder: Path) -> Workspace:
    (folder / "one.sts.jsonl").write_text("\n".join(lines), "utf-8")
    workspace = Workspace(folder / "home", cache=str(folder / "cache"))
    workspace.import_file(folder / "one.sts.jsonl")
    return workspace


def exported(workspace: Workspace, session: str) -> list[Any]:
    found = workspace.export(workspace.find(session), "sts", branches=True)
    return [json.loads(line) for line in found]


def test_the_lines_are_those_of_the_format() -> None:
    lines, _ = lines_of(
        Message("user", "person", (Text("Which files?"),), WHEN),
        Message(
            "assistant", "agent", (Thinking("hm"), Text("I look."), ToolCall("c1", "ls", {"a": 1})), model="m"
        ),
        Message("tool", "tool", (ToolResult("c1", "README"), ToolResult("c2", [{"type": "image"}]))),
    )
    found = [json.loads(line) for line in lines]
    assert found[0] == {
        "type": "session", "harness": "claude-code", "id": "s1", "name": "A title",
        "sessionary": {"cwd": "/app", "version": "2.1"},
    }  # fmt: skip
    assert [one["message"] for one in found[1:]] == [
        {"role": "user", "content": "Which files?", "timestamp": 1772355600123},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoningContent": "hm",
            "toolCalls": [{"id": "c1", "function": {"name": "ls", "arguments": '{"a": 1}'}}],
            "model": "m",
        },
        {"role": "tool", "toolCallId": "c1", "content": "README"},
        {"role": "tool", "toolCallId": "c2", "content": "[image]"},
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(MESSAGES, max_size=6), st.sets(st.integers(0, 5)))
def test_any_messages_come_back_and_the_json_is_valid(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Message], outside: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("one")
    lines, report = lines_of(*messages, outside=tuple(outside))
    for line in lines:
        line.encode()
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert report.losses == []
    workspace = imported(lines, folder)
    read = list(numbered(workspace.read(workspace.find("s1")), asides=True))
    bare = [(one.outside, repr(without_place(one.message))) for one in read]
    assert bare == [(number in outside, repr(one)) for number, one in enumerate(messages)]
    assert [one["message"] for one in exported(workspace, "s1")[1:]] == [
        json.loads(line)["message"] for line in lines[1:]
    ]


def test_an_export_of_the_import_is_the_same(talk: Talk, tmp_path: Path) -> None:
    said = {**record(2, "assistant", "Done."), "version": "2.1"}
    said["message"] |= {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 4}}
    workspace = talk(record(1, "user", "Look around"), said)
    first = exported(workspace, ID)
    assert exported(imported([json.dumps(one) for one in first], tmp_path), ID) == first


def test_sub_agents_are_a_loss(talk: Talk) -> None:
    workspace = talk(record(1, "user", "Go"), agent=(record(1, "user", "Help"),))
    export = workspace.export(workspace.find(ID), "sts")
    assert len(list(export)) == 2
    assert [(one.code, one.what) for one in export.report.losses] == [("form", "session of a sub-agent")]


def test_a_trace_of_another_program_is_read(tmp_path: Path) -> None:
    lines = [
        '{"type": "session", "harness": "llama.app", "id": "x", "extra": 1}',
        '{"type": "message", "message": {"role": "user", "content": "Hi", "timestamp": 1772355600123, "mood": "good"}}',
        "{torn",
        '{"type": "message", "message": {"role": "tool", "toolCallId": "gone", "content": "ok"}}',
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines))
    workspace = Workspace(tmp_path / "home", cache=str(tmp_path / "cache"))
    done = workspace.import_file(path)
    assert (done.format, [(one.code, one.line) for one in done.problems]) == ("sts", [("bad_line", 3)])
    read = [one for one in workspace.read(workspace.find("x")) if isinstance(one, Message)]
    assert [(one.role, one.origin, one.text) for one in read] == [
        ("user", "person", "Hi"),
        ("tool", "tool", "ok"),
    ]
    assert workspace.summary(workspace.find("x")).agent == "llama.app"
