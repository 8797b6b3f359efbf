"""Sessions of frameworks in the commands: messages of each shape, what no longer stands, damage, cursors."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from sessionary.cli import main
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.names import FRAMEWORKS
from sessionary.layouts.summary import summary_of
from sessionary.model import Aside, Message, Problem, SessionRef, Usage
from tests.support.agent_files import (
    append,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
)

OPENAI = (
    {"role": "user", "content": "Fix the login race"},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "make"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done."}],
    },
)
CLAUDE = (
    {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Fix the login race"}},
    {
        "type": "assistant", "uuid": "u2", "parentUuid": "u1",
        "message": {
            "id": "m1", "role": "assistant", "model": "opus",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "make"}},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
    },
    {"type": "user", "uuid": "u3", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}},
    {"type": "assistant", "uuid": "u4", "message": {"id": "m2", "role": "assistant", "content": "Done."}},
)  # fmt: skip
ADK = (
    {"id": "e1", "author": "user", "timestamp": 1767225600.5, "content": {"parts": [{"text": "Fix the login race"}]}},
    {"id": "e2", "author": "agent", "content": {"parts": [
        {"text": "Hm.", "thought": True},
        {"function_call": {"id": "c1", "name": "bash", "args": {"command": "make"}}}]},
     "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 4, "total_token_count": 7},
     "model_version": "gemini"},
    {"id": "e3", "author": "agent", "content": {"parts": [
        {"functionResponse": {"id": "c1", "name": "bash", "response": {"output": "ok"}}}]}},
    {"id": "e4", "author": "agent", "content": {"parts": [{"text": "Done."}]}},
)  # fmt: skip
PYDANTIC = (
    {"kind": "request", "parts": [
        {"part_kind": "user-prompt", "content": "Fix the login race", "timestamp": "2026-03-01T09:00:00Z"}]},
    {"kind": "response", "model_name": "opus", "usage": {"input_tokens": 3, "output_tokens": 4}, "parts": [
        {"part_kind": "thinking", "content": "Hm."},
        {"part_kind": "tool-call", "tool_name": "bash", "args": '{"command": "make"}', "tool_call_id": "c1"}]},
    {"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "bash", "content": "ok", "tool_call_id": "c1"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
)  # fmt: skip


def packed(**fields: Any) -> list[Any]:
    """A message as LangGraph serialises it."""
    inner = msgpack.encode(["langchain_core.messages", "Message", fields, "model_validate_json"])
    return ["msgpack", msgpack.encode(msgpack.Ext(5, inner))]


LANGGRAPH = (
    packed(type="human", content="Fix the login race"),
    packed(
        type="ai", content=[{"type": "text", "text": "Hm."}],
        tool_calls=[{"id": "c1", "name": "bash", "args": {"command": "make"}}],
        usage_metadata={"input_tokens": 3, "output_tokens": 4}, response_metadata={"model_name": "opus"},
    ),
    packed(type="tool", content="ok", tool_call_id="c1"),
    packed(type="ai", content="Done."),
)  # fmt: skip
IMPORT = (
    {"role": "user", "origin": "person", "timestamp": "2026-03-01T09:00:00Z", "parts": [
        {"type": "text", "text": "Fix the login race"}]},
    {"role": "assistant", "origin": "agent", "timestamp": "2026-03-01T09:00:01Z", "model": "opus",
     "usage": {"input": 3, "output": 2}, "parts": [
        {"type": "thinking", "text": "Hm."},
        {"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "make"}}]},
    {"model": "opus", "usage": {"output": 2}},
    {"role": "tool", "origin": "tool", "timestamp": "2026-03-01T09:00:02Z", "parts": [
        {"type": "tool_result", "id": "c1", "content": "ok", "is_error": False}]},
    {"role": "assistant", "origin": "agent", "timestamp": "2026-03-01T09:00:03Z", "parts": [
        {"type": "text", "text": "Done."}]},
)  # fmt: skip
ITEMS = dict(zip(FRAMEWORKS, (OPENAI, CLAUDE, LANGGRAPH, ADK, PYDANTIC, IMPORT), strict=True))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


def write(home: Path, framework: str, *items: Any, session: str = "one", **change: Any) -> SessionRef:
    with RecordJournal(home / framework, framework, session, durability="none") as journal:
        journal.change(lambda state: Change(add=items, **change))
    ref = RecordsLayout(home).ref_for_path(Path(journal.path))
    assert ref is not None
    return ref


def change(home: Path, framework: str, made: Change) -> None:
    with RecordJournal(home / framework, framework, "one", durability="none") as journal:
        journal.change(lambda state: made)


def texts(home: Path, ref: SessionRef) -> list[str]:
    return [one.text for one in messages(RecordsLayout(home), ref)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_items_of_each_framework_are_messages(home: Path, framework: str) -> None:
    ref = write(home, framework, *ITEMS[framework])
    found = messages(RecordsLayout(home), ref)
    first, last = found[0], found[-1]
    assert (first.role, first.origin, first.text) == ("user", "person", "Fix the login race")
    assert (last.role, last.origin, last.text) == ("assistant", "agent", "Done.")
    (call,) = [part for one in found for part in one.calls]
    assert (call.call_id, call.name, call.arguments) == ("c1", "bash", {"command": "make"})
    (result,) = [part for one in found for part in one.results]
    assert (result.call_id, result.text, result.is_error) == ("c1", "ok", False)
    assert "Hm." in [words for one in found for words in (*one.thoughts, one.text)]
    assert all(one.time is not None for one in found)
    summary = summary_of(RecordsLayout(home), ref)
    assert (summary.agent, summary.title, summary.turns, summary.health) == (
        framework,
        "Fix the login race",
        1,
        "ok",
    )
    if framework != "openai-agents":
        assert summary.total_usage() == Usage(input=3, output=4)


def test_what_was_dropped_is_not_shown(home: Path) -> None:
    ref = write(home, "openai-agents", *OPENAI)
    change(home, "openai-agents", Change(drop=[(1, 3)]))
    assert texts(home, ref) == ["Fix the login race", "Done."]
    change(home, "openai-agents", Change(drop=[(0, 4)]))
    assert texts(home, ref) == []


def test_items_outside_of_the_view_are_asides(home: Path) -> None:
    ref = write(home, "langgraph", *LANGGRAPH, set={"view": {"items": [[0, 0], [3, 3]], "title": "Login"}})
    found = list(RecordsLayout(home).read(ref))
    assert [one.text for one in found if isinstance(one, Message)] == ["Fix the login race", "Done."]
    assert len([one for one in found if isinstance(one, Aside)]) == 2
    summary = summary_of(RecordsLayout(home), ref)
    assert (summary.title, summary.messages) == ("Login", 2)
    assert summary.total_usage() == Usage(input=3, output=4)


def test_scope_and_id(home: Path) -> None:
    with RecordJournal(home / "google-adk", "google-adk", "s/1", ["app", "user"], durability="none") as one:
        one.change(lambda state: Change(add=ADK))
    (ref,) = RecordsLayout(home).discover()
    assert (ref.kind, ref.session_id, ref.project) == ("records", "s/1", "google-adk/app/user")


def test_a_folder_may_hold_the_sessions_itself(tmp_path: Path) -> None:
    with RecordJournal(tmp_path, "openai-agents", "one", durability="none") as journal:
        journal.change(lambda state: Change(add=OPENAI))
    (ref,) = RecordsLayout(tmp_path).discover()
    assert summary_of(RecordsLayout(tmp_path), ref).title == "Fix the login race"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_any_damage_is_reported_and_hides_nothing_else(home: Path, framework: str) -> None:
    ref = write(home, framework, ITEMS[framework][0])
    for item in ITEMS[framework][1:]:
        write(home, framework, item)
    last = len(ref.path.read_bytes().splitlines()) - 1
    require_tolerance(RecordsLayout(home), ref, {1: "Fix the login race", last: "Done."}, rounds=150)


@pytest.mark.parametrize(
    "value", [None, 1, "x", [], {}, {"n": "x", "op": 5, "first": [], "add": {}, "drop": [1], "set": []}]
)
def test_records_of_any_shape_are_read(home: Path, value: Any) -> None:
    ref = write(home, "openai-agents", *OPENAI)
    append(ref, json.dumps(value).encode() + b"\n")
    append(
        ref, {"n": 2, "at": 5, "op": "change", "first": 5, "add": [value], "set": {"view": {"items": value}}}
    )
    list(RecordsLayout(home).read(ref))
    summary_of(RecordsLayout(home), ref)


def test_a_missing_record_is_reported(home: Path) -> None:
    ref = write(home, "openai-agents", *OPENAI[:2])
    for item in OPENAI[2:]:
        write(home, "openai-agents", item)
    lines = ref.path.read_bytes().splitlines(keepends=True)
    ref.path.write_bytes(b"".join(lines[:2] + lines[4:]))
    (problem,) = [one for one in RecordsLayout(home).read(ref) if isinstance(one, Problem)]
    assert (problem.code, problem.severity.name, problem.message) == (
        "missing_records",
        "lost_data",
        "records 2 to 3 are missing",
    )


@pytest.mark.parametrize("seed", range(3))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    ref = write(home, "openai-agents", OPENAI[0])

    def make(choose: random.Random, number: int) -> dict[str, Any]:
        record: dict[str, Any] = {"n": number, "at": "2026-03-01T09:00:00.000Z", "op": "change"}
        if choose.random() < 0.15:
            low = choose.randint(0, number)
            return {**record, "drop": [[low, low + choose.randint(0, 3)]]}
        if choose.random() < 0.15:
            record["set"] = {"view": {"items": [[0, number + choose.randint(-2, 2)]], "title": f"T{number}"}}
        return {**record, "first": number, "add": [choose.choice(OPENAI)]}

    reader = require_equal_pieces(RecordsLayout(home), ref, make, seed)
    assert reader.resets < 12


def test_reading_writes_nothing(home: Path) -> None:
    write(home, "openai-agents", *OPENAI)
    require_read_only(RecordsLayout, home)


def test_every_command_reads_them(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "openai-agents", *OPENAI)
    for call in (["list", "--json"], ["show", "one"], ["search", "race"], ["check", "one"], ["stats"]):
        assert main([*call[:1], "--home", str(home), *call[1:]]) == 0, call
        out = capsys.readouterr().out
        if call[0] == "list":
            (row,) = json.loads(out)
            assert (row["kind"], row["agent"], row["title"]) == (
                "records",
                "openai-agents",
                "Fix the login race",
            )
        if call[0] in ("show", "search"):
            assert "login race" in out
