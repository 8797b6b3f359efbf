"""The sessions of GitHub Copilot CLI: events as messages, usage stated at the end, the title beside the events."""

import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts import registry
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.files import PartKind
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, SessionRef, Summary, Usage
from sessionary.testing.cursors import Reader
from tests.lanes import shared_folder
from tests.support.agent_files import (
    append,
    copilot_id,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    write_lines,
)

ID = "c0ffee00-0000-4000-8000-000000000001"


def event(kind: str, number: int, **data: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "id": copilot_id(number),
        "parentId": copilot_id(number - 1) if number > 1 else None,
        "timestamp": f"2026-03-01T09:{number % 60:02}:00.000Z",
        "data": data,
    }


def asks(name: str, tool: str = "bash", **given: Any) -> dict[str, Any]:
    return {"toolCallId": name, "name": tool, "arguments": given, "type": "function"}


def metrics(**counts: tuple[int, int, int]) -> dict[str, Any]:
    names = ("inputTokens", "outputTokens", "cacheReadTokens")
    return {model: {"usage": dict(zip(names, given, strict=True))} for model, given in counts.items()}


START = event(
    "session.start", 1, sessionId=ID, version=1, copilotVersion="1.0.11", selectedModel="gpt-5",
    context={"cwd": "/home/u/app", "branch": "main"},
)  # fmt: skip
TALK = (
    START,
    event("user.message", 2, content="Fix the login race", attachments=[{"type": "file", "path": "a.py"}]),
    event("assistant.turn_start", 3, turnId="0"),
    event(
        "assistant.message", 4, messageId="m1", content="", reasoningText="Hm.", outputTokens=12,
        toolRequests=[asks("t1", command="make")],
    ),
    event("tool.execution_start", 5, toolCallId="t1", toolName="bash", arguments={"command": "make"}),
    event("tool.execution_complete", 6, toolCallId="t1", success=True, result={"content": "ok"}),
    event("assistant.message", 7, messageId="m2", content="Done.", toolRequests=[], outputTokens=5),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".copilot"


def write(
    home: Path, *records: dict[str, Any] | bytes, name: str = ID, workspace: str | None = None
) -> SessionRef:
    path = home / "session-state" / name / "events.jsonl"
    write_lines(path, *records)
    if workspace is not None:
        (path.parent / "workspace.yaml").write_text(workspace)
    ref = CopilotCliLayout(home).ref_for_path(path.parent)
    assert ref is not None
    return ref


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(CopilotCliLayout(home), ref)


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(CopilotCliLayout(home), ref)


def test_a_conversation(home: Path) -> None:
    person, call, answer, last = read(home, write(home, *TALK))
    assert (person.role, person.origin, person.text) == ("user", "person", "Fix the login race")
    assert [type(part).__name__ for part in person.parts] == ["Text", "Other"]
    assert (call.thoughts, call.calls[0].name, call.calls[0].arguments) == (
        ["Hm."],
        "bash",
        {"command": "make"},
    )
    assert (call.model, call.id, call.parent) == ("gpt-5", "m1", copilot_id(3))
    assert (answer.role, answer.text, answer.results[0].call_id) == ("tool", "ok", "t1")
    assert (last.text, last.place.line, str(last.time)) == ("Done.", 7, "2026-03-01 09:07:00+00:00")


def test_the_call_of_a_sub_agent_is_shown_with_its_result(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    within = {"parentToolCallId": "t1"}
    write(
        home,
        START,
        event("user.message", 2, content="Look"),
        event(
            "assistant.message",
            3,
            messageId="m1",
            content="",
            toolRequests=[asks("t1", "task", prompt="look")],
        ),
        event("subagent.started", 4, toolCallId="t1"),
        event("user.message", 5, content="look", **within),
        event(
            "assistant.message",
            6,
            messageId="m2",
            content="",
            toolRequests=[asks("t2", command="ls")],
            **within,
        ),
        event(
            "tool.execution_complete", 7, toolCallId="t2", success=True, result={"content": "a.py"}, **within
        ),
        event("assistant.message", 8, messageId="m3", content="Found a.py", toolRequests=[], **within),
        event("tool.execution_complete", 9, toolCallId="t1", success=True, result={"content": "Found a.py"}),
        event("assistant.message", 10, messageId="m4", content="Done.", toolRequests=[]),
    )
    assert main(["show", ID]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:1] in "▸ ✗" and line] == [
        "▸ task  look", "▸ bash  ls", "  │ a.py", "▸ task  look", "  │ Found a.py",
    ]  # fmt: skip


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Fix the login race", "ok")
    assert (found.cwd, found.branch, found.agent) == ("/home/u/app", "main", "copilot_cli")
    assert found.usage_by_model() == {"gpt-5": Usage(output=17)}


def test_a_shutdown_states_what_the_messages_do_not(home: Path) -> None:
    ref = write(home, *TALK, event("session.shutdown", 8, modelMetrics=metrics(**{"gpt-5": (100, 17, 60)})))
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=40, output=17, cache_read=60)}
    assert summary(home, ref).messages == 4


def test_counts_of_a_later_shutdown_include_those_before(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        event("session.shutdown", 8, modelMetrics=metrics(**{"gpt-5": (100, 17, 60)})),
        event("session.resume", 9, selectedModel="mini"),
        event("assistant.message", 10, messageId="m3", content="x", outputTokens=3),
        event("session.shutdown", 11, modelMetrics=metrics(**{"gpt-5": (100, 17, 60), "mini": (10, 4, 0)})),
    )
    assert summary(home, ref).usage_by_model() == {
        "gpt-5": Usage(input=40, output=17, cache_read=60),
        "mini": Usage(input=10, output=4),
    }


def test_counts_that_begin_anew_with_a_resume_are_added(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        event("session.shutdown", 8, modelMetrics=metrics(**{"gpt-5": (100, 17, 60)})),
        event("assistant.message", 10, messageId="m3", content="x", outputTokens=3),
        event("session.shutdown", 11, modelMetrics=metrics(**{"gpt-5": (50, 3, 10)})),
    )
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=80, output=20, cache_read=70)}


def used(number: int, given: int, made: int, cached: int = 0, model: str = "gpt-5") -> dict[str, Any]:
    counts = {"inputTokens": given, "outputTokens": made, "cacheReadTokens": cached}
    return event("session.usage_record", number, usage={"model": model, **counts})


@pytest.mark.parametrize("first", ["record", "answer"])
def test_a_request_with_a_record_counts_once(home: Path, first: str) -> None:
    answer = event("assistant.message", 3, messageId="m1", content="x", outputTokens=17)
    pair = [used(2, 100, 17, 60), answer] if first == "record" else [answer, used(2, 100, 17, 60)]
    ref = write(home, START, *pair)
    counted = Usage(input=40, output=17, cache_read=60)
    assert summary(home, ref).usage_by_model() == {"gpt-5": counted}, "also without a shutdown"
    append(ref, event("session.shutdown", 8, modelMetrics=metrics(**{"gpt-5": (100, 17, 60)})))
    assert summary(home, ref).usage_by_model() == {"gpt-5": counted}
    append(ref, event("session.resume", 9), used(10, 5, 4), used(11, 7, 1, model="mini"))
    append(
        ref,
        event("session.shutdown", 12, modelMetrics=metrics(**{"gpt-5": (105, 21, 60), "mini": (9, 1, 0)})),
    )
    assert summary(home, ref).usage_by_model() == {
        "gpt-5": Usage(input=45, output=21, cache_read=60),
        "mini": Usage(input=9, output=1),
    }, "two tokens of mini have no record"
    assert summary(home, ref).messages == 1


def test_records_of_a_killed_program_count_beside_counts_that_begin_anew(home: Path) -> None:
    ref = write(home, START, used(2, 100, 17), event("session.resume", 3), used(4, 5, 4))
    append(ref, event("session.shutdown", 5, modelMetrics=metrics(**{"gpt-5": (6, 4, 0)})))
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=106, output=21)}


def test_reasoning_and_unnamed_models_count_once(home: Path) -> None:
    usage = {"inputTokens": "10", "outputTokens": 9, "reasoningTokens": 4, "cacheWriteTokens": 2}
    ref = write(
        home,
        event("assistant.message", 1, content="x", outputTokens=3),
        event("session.shutdown", 2, modelMetrics={"gpt-5": {"usage": usage}, "odd": 5}),
    )
    found = summary(home, ref).usage_by_model()
    assert found == {
        "(not named)": Usage(output=3),
        "gpt-5": Usage(input=8, output=6, cache_write=2, reasoning=4),
    }


def test_pieces_of_a_response_are_one_message(home: Path) -> None:
    pieces = [
        event(
            "assistant.message", 2 + at, messageId="m1", content=f"piece {at}", outputTokens=at, chunkIndex=at
        )
        for at in range(3)
    ]
    ref = write(home, START, *pieces)
    (message,) = read(home, ref)
    assert (message.text, message.usage) == ("piece 0\npiece 1\npiece 2", Usage(output=2))
    append(ref, event("session.shutdown", 9, modelMetrics=metrics(**{"gpt-5": (1, 2, 0)})))
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=1, output=2)}


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("id: x\nsummary: Fix the race\nuser_named: false\n", "Fix the race"),
        ("name: Mine\nsummary: Fix the race\n", "Mine"),
        ('summary: "Fix: the race"\r\n', "Fix: the race"),
        ("summary: >-\n  Fix the\n  race\n", "Fix the race"),
        ("summary: null\n", "Fix the login race"),
        ("summary: 'torn\n", "Fix the login race"),
        ("\0\0", "Fix the login race"),
        ("- a\n", "Fix the login race"),
        ("", "Fix the login race"),
    ],
)
def test_the_title_is_that_of_the_workspace(home: Path, stated: str, title: str) -> None:
    ref = write(home, *TALK, workspace=stated)
    assert summary(home, ref).title == title
    assert [(part.name, part.kind) for part in CopilotCliLayout(home).parts(ref)] == [
        ("events.jsonl", PartKind.JOURNAL),
        ("workspace.yaml", PartKind.DOCUMENT),
    ]


def test_a_changed_title_changes_the_fingerprint(home: Path) -> None:
    ref = write(home, *TALK, workspace="summary: a\n")
    layout = CopilotCliLayout(home, now=lambda: 4e9)
    before = layout.fingerprint(ref)
    (ref.path.parent / "workspace.yaml").write_text("summary: bb\n")
    assert before != layout.fingerprint(ref) != b""


def test_notices_compactions_and_unknown_events_are_shown(home: Path) -> None:
    ref = write(
        home,
        event("session.info", 1, infoType="x", message="Folder is trusted"),
        event("session.error", 2, errorType="x"),
        event("session.compaction_complete", 3, success=True, summaryContent="So far"),
        event("system.notification", 4, content="A task is done"),
        event("tool.user_requested", 5, toolCallId="t9", toolName="bash", arguments={"command": "ls"}),
        event(
            "tool.execution_complete", 6, toolCallId="t9", success=False, error={"message": "no such file"}
        ),
        event("assistant.reasoning", 7, reasoningId="r", content="Let me see"),
        event("of.tomorrow", 8, words="x"),
        {"words": "y"},
    )
    found = read(home, ref)
    assert [(one.role, one.origin) for one in found] == [
        ("system", "harness"), ("system", "harness"), ("system", "compaction"), ("system", "harness"),
        ("user", "harness"), ("tool", "tool"), ("assistant", "agent"), (None, "harness"), (None, "harness"),
    ]  # fmt: skip
    assert [one.text for one in found[:4]] == [
        "Folder is trusted",
        "session.error",
        "So far",
        "A task is done",
    ]
    assert (found[5].results[0].text, found[5].results[0].is_error) == ("no such file", True)
    assert summary(home, ref).turns == 0


def test_what_a_sub_agent_is_asked_is_not_a_turn(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        event("subagent.started", 8, toolCallId="t2", agentName="explore"),
        event("user.message", 9, content="Search", parentToolCallId="t2"),
        event("assistant.message", 10, content="Found", parentToolCallId="t2", model="mini", outputTokens=2),
        event("user.message", 11, content="(skill)", source="skill-pdf"),
    )
    found = summary(home, ref)
    assert (found.turns, found.messages) == (1, 7)
    assert found.usage_by_model()["mini"] == Usage(output=2)


def test_a_rewind_removes_events_that_are_still_there(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        event("session.snapshot_rewind", 8, upToEventId=copilot_id(7), eventsRemoved=1),
        event("user.message", 9, content="Again"),
        event("session.snapshot_rewind", 10, upToEventId="gone", eventsRemoved=1),
    )
    assert [one.text for one in read(home, ref)][-2:] == ["ok", "Again"]
    found = summary(home, ref)
    assert [one.message for one in found.problems] == ["1 record removed by a rewind is not shown"]
    assert found.usage_by_model() == {"gpt-5": Usage(output=17)}


def test_the_same_event_twice_counts_once(home: Path) -> None:
    found = summary(home, write(home, *TALK, TALK[-1], *TALK[1:3]))
    assert (found.messages, found.turns) == (4, 1)


def test_a_flat_file_of_an_old_version(home: Path) -> None:
    path = home / "session-state" / f"{ID}.jsonl"
    write_lines(path, *TALK)
    (ref,) = CopilotCliLayout(home).discover()
    assert (ref.session_id, summary(home, ref).messages) == (ID, 4)
    write(home, *TALK)
    assert [one.locator.endswith("events.jsonl") for one in CopilotCliLayout(home).discover()] == [True]


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    ref = write(home, *TALK)
    require_tolerance(CopilotCliLayout(home), ref, {1: "Fix the login race", 6: "Done."})


def test_nothing_is_written(home: Path) -> None:
    ref = write(home, *TALK, workspace="summary: >-\n  a\n")
    for name in ("inuse.4194303.lock", "vscode.metadata.json", "session.db"):
        (ref.path.parent / name).write_text('{"a":')
    (home / "config.json").write_text("{}")
    require_read_only(CopilotCliLayout, home)
    assert CopilotCliLayout in registry.AGENTS


def test_what_is_not_a_session_is_left_out(home: Path) -> None:
    write(home, *TALK)
    (home / "session-state" / "empty").mkdir()
    (home / "session-store.db").write_text("")
    assert [ref.session_id for ref in CopilotCliLayout(home).discover()] == [ID]
    assert CopilotCliLayout(home).ref_for_path(home / "session-state" / "empty") is None


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(CopilotCliLayout(home), ref)
    reader.go_on()
    append(ref, event("user.message", 8, content="And the logout?"), TALK[3])
    reader.go_on()
    append(ref, event("session.shutdown", 9, modelMetrics=metrics(**{"gpt-5": (100, 17, 60)})))
    reader.go_on()
    assert reader.resets == 0


def test_a_rewind_after_the_cursor_begins_anew(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(CopilotCliLayout(home), ref)
    reader.go_on()
    append(ref, event("session.snapshot_rewind", 8, upToEventId=copilot_id(2)))
    reader.go_on()
    assert reader.resets == 1


def some(choose: random.Random, number: int) -> dict[str, Any] | bytes:
    kind = choose.choice(
        ["user", "answer", "answer", "result", "again", "rewind", "model", "used", "end", "odd", "bad"]
    )
    if kind == "user":
        return event("user.message", number, content=f"text {number}")
    if kind == "answer":
        name, model = f"m{number // choose.randint(1, 2)}", choose.choice([{}, {"model": "mini"}])
        return event("assistant.message", number, messageId=name, content="x", outputTokens=number, **model)
    if kind == "result":
        return event(
            "tool.execution_complete", number, toolCallId=f"t{number}", success=True, result={"content": "x"}
        )
    if kind == "again":
        return event("user.message", choose.randint(1, number), content="again")
    if kind == "rewind":
        return event("session.snapshot_rewind", number, upToEventId=f"e{choose.randint(1, number)}")
    if kind == "model":
        return event("session.model_change", number, newModel=choose.choice(["a", "b"]))
    if kind == "used":
        return used(number, choose.randint(0, 99), choose.randint(0, 99), 3, choose.choice(["a", "b"]))
    if kind == "end":
        counts = {choose.choice(["a", "b", "mini"]): (choose.randint(0, 99), choose.randint(0, 99), 3)}
        return event("session.shutdown", number, modelMetrics=metrics(**counts))
    if kind == "odd":
        odd: list[dict[str, Any]] = [
            {"words": number},
            {"type": 5, "data": []},
            {"type": "user.message", "data": 5},
        ]
        return choose.choice(odd)
    return choose.choice([b"\0\0\n", b"{\n", b'{"type": "user", "mess\n', b"\n"])


@pytest.mark.parametrize("seed", range(60))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    require_equal_pieces(CopilotCliLayout(home), write(home, START), some, seed)


# -- through the commands, and public files


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COPILOT_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    write(home, *TALK, workspace="summary: The race\n")
    for words, expected in (
        (["list"], "The race"),
        (["show", ID[:8]], "Done."),
        (["search", "Done"], ID[:8]),
        (["stats", "--json"], '"gpt-5"'),
    ):
        assert main(words) == 0
        assert expected in capsys.readouterr().out
    assert main(["list", "--home", str(home)]) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", shared_folder() / "samples" / "copilot"
    for path in folder.rglob("*.jsonl"):
        name = path.parent.name if path.name == "events.jsonl" else path.stem
        write_lines(home / "session-state" / name / "events.jsonl", path.read_bytes())
    found = {one.ref.session_id: one for one in summaries(CopilotCliLayout(home))}
    drift = found["schema_drift"]
    assert {one.health for one in found.values() if one is not drift} == {"ok"}
    assert [one.code for one in drift.problems] == ["orphaned_result"], "its second call is not stored"
    assert (drift.messages, drift.usage_by_model()) == (
        5,
        {"gpt-4.1": Usage(input=200, output=50, cache_read=800)},
    )
    subdir = found["aaaabbbb-1111-2222-3333-ccccddddeeee"]
    assert (subdir.title, subdir.messages, subdir.cwd) == ("List the files", 4, "/tmp/project")
