"""ATIF: each message is in the step where the format wants it, and an import reads back the same messages."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionary import Workspace
from sessionary.export import Report, atif
from sessionary.export.steps import Begin, End, Head, Step
from sessionary.model import Message, Other, Part, Text, Thinking, ToolCall, ToolResult, Usage
from sessionary.transcript.typed import Numbered, numbered
from tests.plugs import harbor
from tests.support import strategies
from tests.unit.export.conftest import ID, Talk, record

WHEN = datetime(2026, 3, 1, 9, 0, 0, 123456, UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEAD = Head("s1", "claude_code", "/home/zoe/x.jsonl", "claude-code", "A title", cwd="/app", version="2.1")


def lines_of(*messages: Message, head: Head = HEAD, outside: tuple[int, ...] = ()) -> tuple[str, Report]:
    def steps() -> Iterator[Step]:
        yield Begin(head, (), 0)
        for number, message in enumerate(messages):
            yield Numbered(number, 1, message, number in outside)
        yield End(0)

    report = Report("atif", lambda text: text)
    return "\n".join(atif.write(steps(), report)), report


def steps_of(*messages: Message) -> list[Any]:
    text, _ = lines_of(*messages)
    steps: list[Any] = json.loads(text)["steps"]
    for step in steps:
        step.pop("extra", None)
        for result in step.get("observation", {}).get("results", []):
            result.pop("extra")
    return steps


def imported(text: str, folder: Path) -> Workspace:
    """A workspace with the sessions of an export."""
    (folder / "one.atif.json").write_text(text, "utf-8")
    workspace = Workspace(folder / "home", cache=str(folder / "cache"))
    workspace.import_file(folder / "one.atif.json")
    return workspace


def exported(workspace: Workspace, session: str, *, branches: bool = True) -> str:
    return b"".join(workspace.export(workspace.find(session), "atif", branches=branches)).decode()


def test_a_result_is_in_the_step_of_its_call_however_late() -> None:
    steps = steps_of(
        Message("user", "person", (Text("Which files?"),), WHEN),
        Message(
            "assistant",
            "agent",
            (Thinking("hm"), Text("I look."), ToolCall("c1", "ls", {"path": "."})),
            WHEN,
            model="m",
            usage=Usage(10, 20, 30, 40, cost=0.5),
        ),
        Message("user", "harness", (Text("a reminder"),)),
        Message("tool", "tool", (ToolResult("c1", "README", True),), WHEN),
    )
    assert steps == [
        {"step_id": 1, "source": "user", "message": "Which files?", "timestamp": "2026-03-01T09:00:00.123456Z"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I look.",
            "timestamp": "2026-03-01T09:00:00.123456Z",
            "model_name": "m",
            "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}],
            "metrics": {
                "prompt_tokens": 80, "completion_tokens": 20, "cached_tokens": 30, "cost_usd": 0.5
            },
            "observation": {"results": [{"source_call_id": "c1", "content": "README"}]},
        },
        {"step_id": 3, "source": "system", "message": "a reminder"},
    ]  # fmt: skip


def test_ids_of_calls_are_unique_and_arguments_are_objects() -> None:
    calls = (ToolCall("c", "a", "raw"), ToolCall("c", "b", {}), ToolCall(None, "d", [1]))
    (step,) = steps_of(
        Message("assistant", "agent", calls), Message("tool", "tool", (ToolResult("c", "done"),))
    )
    assert [(one["tool_call_id"], one["arguments"]) for one in step["tool_calls"]] == [
        ("c", {"input": "raw"}),
        ("c#2", {}),
        ("call-3", {"input": [1]}),
    ]
    assert step["observation"]["results"] == [{"source_call_id": "c#2", "content": "done"}]


def test_a_result_without_a_call_names_none() -> None:
    (step,) = steps_of(Message("tool", "tool", (ToolResult("gone", "late"),)))
    assert step == {
        "step_id": 1,
        "source": "system",
        "message": "",
        "observation": {"results": [{"content": "late"}]},
    }


def test_steps_are_held_back_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atif, "WINDOW", 2)
    said = [Message("assistant", "agent", (Text(str(number)),)) for number in range(4)]
    steps = steps_of(
        Message("assistant", "agent", (ToolCall("c", "x", {}),)),
        *said,
        Message("tool", "tool", (ToolResult("c", "late"),)),
    )
    assert [one["message"] for one in steps] == ["", "0", "1", "2", "3", ""]
    assert steps[5]["observation"] == {"results": [{"content": "late"}]}


def test_an_empty_session_has_a_step_as_the_format_demands(tmp_path: Path) -> None:
    text, _ = lines_of()
    assert len(json.loads(text)["steps"]) == 1
    workspace = imported(text, tmp_path)
    assert list(workspace.read(workspace.find("s1"))) == []
    assert json.loads(exported(workspace, "s1")) == json.loads(text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | strategies.text()
    | st.sampled_from(strategies.HUGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=8,
)
IDS = st.sampled_from(("a", "b", "c", None, "", "\ud800"))
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, strategies.text()),
    st.builds(Thinking, strategies.text()),
    st.builds(ToolCall, IDS, strategies.text(), VALUES),
    st.builds(ToolResult, IDS, VALUES, st.booleans()),
    st.builds(Other, strategies.text(), VALUES),
)
USAGES = st.builds(
    Usage, *[st.integers(0, 1000)] * 5, st.none() | st.floats(0, 10).map(lambda one: round(one, 4))
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(("user", "assistant", "tool", "system", None, "\x00")),
    st.sampled_from(("person", "agent", "tool", "harness", "compaction")),
    st.lists(PARTS, max_size=4).map(tuple),
    st.none() | st.integers(0, 4 * 10**15).map(lambda one: EPOCH + timedelta(microseconds=one)),
    st.none() | strategies.text(),
    st.none() | strategies.text(),
    st.none() | st.sampled_from(("m", "n")),
    st.none() | USAGES,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(MESSAGES, max_size=6), st.sets(st.integers(0, 5)), strategies.text())
def test_any_messages_come_back_and_the_json_is_valid(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Message], outside: set[int], title: str
) -> None:
    folder = tmp_path_factory.mktemp("one")
    text, report = lines_of(*messages, head=HEAD._replace(title=title), outside=tuple(outside))
    text.encode()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert report.losses == []
    workspace = imported(text, folder)
    read = list(numbered(workspace.read(workspace.find("s1")), asides=True))
    bare = [(one.outside, repr(without_place(one.message))) for one in read]
    assert bare == [(number in outside, repr(one)) for number, one in enumerate(messages)]
    assert json.loads(exported(workspace, "s1")) == json.loads(text)


@pytest.mark.lane("harbor")
@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=6), strategies.text())
def test_harbor_accepts_any_messages(messages: list[Message], title: str) -> None:
    harbor.validate(lines_of(*messages, head=HEAD._replace(title=title, id=title))[0])


@pytest.mark.lane("harbor")
def test_harbor_refuses_what_it_should() -> None:
    text, _ = lines_of(Message("user", "person", (Text("Hello"),)))
    harbor.validate(text)
    for old, new in (('"step_id": 1', '"step_id": 2'), ("v1.8", "v2.0"), ('"source"', '"sauce"')):
        with pytest.raises(ValueError, match="validation error"):
            harbor.validate(text.replace(old, new))


def without_place(message: Message) -> Message:
    return Message(
        message.role,
        message.origin,
        message.parts,
        message.time,
        message.id,
        message.parent,
        message.model,
        message.usage,
    )


@pytest.mark.lane("harbor")
def test_sub_agents_are_embedded_and_come_back(talk: Talk, tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "Look"}}]
    workspace = talk(
        record(1, "user", "Look around"),
        record(2, "assistant", call),
        record(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "Seen"}]),
        agent=({**record(1, "user", "Look"), "isSidechain": True, "agentId": "a1"},),
    )
    text = exported(workspace, ID)
    document = json.loads(text)
    harbor.validate(text)
    assert document["agent"]["name"] == "claude_code"
    (child,) = document["subagent_trajectories"]
    assert child["steps"][0]["message"] == "Look"
    again = imported(text, tmp_path)
    assert json.loads(exported(again, ID)) == document
    (summary,) = (one for one in again.list() if one.ref.session_id == child["trajectory_id"])
    assert (summary.nested, summary.parent, summary.agent) == (True, ID, "claude_code")
    assert again.find(ID).kind == "records"


def test_what_json_cannot_hold_at_all_is_a_loss() -> None:
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    text, report = lines_of(Message("assistant", "agent", (ToolCall("c", "x", {"deep": deep}),)))
    json.loads(text)
    assert [(one.code, one.count) for one in report.losses] == [("form", 1)]
