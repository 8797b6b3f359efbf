"""The sessions of Qwen Code: a tree of records with many subtypes, rewinds, forks, sub-agents."""

import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts import registry
from sessionary.layouts.agents.gemini import GeminiLayout
from sessionary.layouts.agents.qwen import QwenLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, SessionRef, Summary, Usage
from sessionary.testing.cursors import Reader
from tests.lanes import shared_folder
from tests.support.agent_files import (
    append,
    as_bytes,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    write_lines,
)

ID = "9a000000-0000-4000-8000-000000000001"
FOLDER = "-home-u-app"


def record(
    kind: str, number: int, parts: list[Any] | None = None, parent: int | None = -1, **fields: Any
) -> dict[str, Any]:
    before = number - 1 if parent == -1 else parent
    found = {
        "uuid": f"u{number}",
        "parentUuid": f"u{before}" if before else None,
        "sessionId": ID,
        "timestamp": f"2026-03-01T09:{number % 60:02}:00.000Z",
        "type": kind,
        "cwd": "/home/u/app",
        "version": "0.21.13",
        "gitBranch": "main",
        **fields,
    }
    return found if parts is None else {**found, "message": {"role": kind, "parts": parts}}


def system(subtype: str, number: int, parent: int | None = -1, **payload: Any) -> dict[str, Any]:
    return record("system", number, None, parent, subtype=subtype, systemPayload=payload)


def counts(given: int, made: int, cached: int = 0, thoughts: int = 0) -> dict[str, Any]:
    return {
        "promptTokenCount": given,
        "candidatesTokenCount": made,
        "cachedContentTokenCount": cached,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": given + made,
    }


def answer(number: int, text: str, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    return record("assistant", number, [{"text": text}], parent, model="qwen3", **fields)


def response(name: str, **reported: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "shell", "response": reported}}


ARGS = {"command": "make"}
TALK = (
    record("user", 1, [{"text": "Fix the login race"}]),
    record(
        "assistant", 2,
        [{"text": "Hm.", "thought": True}, {"functionCall": {"id": "t1", "name": "shell", "args": ARGS}}],
        model="qwen3", usageMetadata=counts(100, 20, 40, 5),
    ),
    record("tool_result", 3, [response("t1", output="ok")], toolCallResult={"callId": "t1", "status": "success"}),
    system("ui_telemetry", 4, uiEvent={"event.name": "api_response", "input_token_count": 100}),
    answer(5, "Done.", usageMetadata=counts(10, 5)),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".qwen"


def write(home: Path, *records: dict[str, Any] | bytes, name: str = ID, below: str = "chats") -> SessionRef:
    path = home / "projects" / FOLDER / below / f"{name}.jsonl"
    write_lines(path, *records)
    ref = QwenLayout(home).ref_for_path(path)
    assert ref is not None
    return ref


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(QwenLayout(home), ref)


def texts(home: Path, ref: SessionRef) -> list[str]:
    return [one.text for one in read(home, ref)]


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(QwenLayout(home), ref)


def test_a_conversation(home: Path) -> None:
    person, call, result, last = read(home, write(home, *TALK))
    assert (person.role, person.origin, person.text, person.id) == (
        "user",
        "person",
        "Fix the login race",
        "u1",
    )
    assert (call.thoughts, call.calls[0].name, call.calls[0].arguments) == (
        ["Hm."],
        "shell",
        {"command": "make"},
    )
    assert (result.role, result.text, result.results[0].is_error) == ("tool", "ok", False)
    assert (last.text, last.parent, last.model, last.place.line) == ("Done.", "u4", "qwen3", 5)


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Fix the login race", "ok")
    assert (found.cwd, found.branch, found.agent, found.version) == ("/home/u/app", "main", "qwen", "0.21.13")
    assert found.usage_by_model() == {"qwen3": Usage(input=70, output=25, cache_read=40, reasoning=5)}


def test_the_title_is_the_last_custom_title(home: Path) -> None:
    titles = [system("custom_title", 6 + at, customTitle=name) for at, name in enumerate(("Old", "New"))]
    assert summary(home, write(home, *TALK, *titles)).title == "New"


def test_a_rewind_leaves_a_branch_and_its_tokens_count(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        record("user", 6, [{"text": "And the logout?"}]),
        answer(7, "No.", usageMetadata=counts(1, 2)),
        system("rewind", 8, 5, truncatedCount=2),
        record("user", 9, [{"text": "Write a test"}]),
    )
    assert texts(home, ref)[-2:] == ["Done.", "Write a test"]
    found = summary(home, ref)
    assert [one.message for one in found.problems] == [
        "2 records of branches that were rewound or abandoned are not shown"
    ]
    assert (found.turns, found.usage_by_model()["qwen3"].output) == (2, 27)


def test_records_beside_the_line_do_not_move_its_end(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        system("session_artifact_event", 6, 5),
        system("custom_title", 7, 5, customTitle="T"),
        record("user", 8, [{"text": "Go on"}], 5),
        system("session_artifact_snapshot", 9, cwd="/elsewhere"),
    )
    assert texts(home, ref)[-1] == "Go on"
    assert (summary(home, ref).problems, summary(home, ref).cwd) == ([], "/home/u/app")


def test_what_the_user_typed_and_what_the_program_added(home: Path) -> None:
    parts = [
        {"text": "Look at @a.py"},
        {"text": "content of a.py"},
        {"inlineData": {"mimeType": "image/png"}},
    ]
    ref = write(home, record("user", 1, parts, systemPayload={"displayText": "Look at @a.py"}))
    person, added = read(home, ref)
    assert (person.text, person.origin, len(person.parts)) == ("Look at @a.py", "person", 2)
    assert (added.text, added.origin) == ("content of a.py", "harness")
    assert summary(home, ref).title == "Look at @a.py"


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ({"subtype": "notification"}, "harness"),
        ({"subtype": "cron"}, "harness"),
        ({"subtype": "mid_turn_user_message"}, "person"),
        ({"agentId": "a1"}, "harness"),
        ({}, "person"),
    ],
)
def test_who_is_behind_a_record_of_the_user(home: Path, fields: dict[str, Any], origin: str) -> None:
    (message,) = read(home, write(home, record("user", 1, [{"text": "x"}], **fields)))
    assert message.origin == origin


def test_system_records(home: Path) -> None:
    history = [{"role": "user", "parts": [{"text": "<state>so far</state>"}]}, {"role": "model", "parts": []}]
    ref = write(
        home,
        system("chat_compression", 1, info={"newTokenCount": 5}, compressedHistory=history),
        system("slash_command", 2, phase="invocation", rawCommand="/about"),
        system("slash_command", 3, phase="result", outputHistoryItems=[{"type": "info", "text": "0.21"}]),
        system("background_task_completed", 4, message="Task 1 is done"),
        system("at_command", 5, filesRead=["a.py"]),
        system("attribution_snapshot", 6, snapshot={}),
        system("managed_session_header", 7, sessionId="x"),
        system("of_tomorrow", 8, words=5),
        record("of_tomorrow", 9),
        {"words": "y"},
    )  # fmt: skip
    found = read(home, ref)
    assert [(one.role, one.origin, one.text) for one in found] == [
        ("system", "compaction", "<state>so far</state>"),
        ("system", "harness", "/about"),
        ("system", "harness", "0.21"),
        ("system", "harness", "Task 1 is done"),
        *[(None, "harness", "")] * 4,
    ]


def test_results_that_failed(home: Path) -> None:
    ref = write(
        home,
        record("tool_result", 1, [response("t1", error="no such file")]),
        record("tool_result", 2, [response("t2", output="stopped")], toolCallResult={"status": "cancelled"}),
        record(
            "tool_result", 3, toolCallResult={"callId": "t3", "status": "success", "resultDisplay": "shown"}
        ),
    )
    found = [one.results[0] for one in read(home, ref)]
    assert [(one.call_id, one.text, one.is_error) for one in found] == [
        ("t1", "no such file", True), ("t2", "stopped", True), ("t3", "shown", False),
    ]  # fmt: skip


def test_records_of_one_id_are_pieces_of_one_message_and_later_ones_are_copies(home: Path) -> None:
    first = record("assistant", 2, [{"text": "Hm.", "thought": True}])
    second = answer(2, "Done.", usageMetadata=counts(12, 4))
    ref = write(home, TALK[0], first, second, second, TALK[0])
    person, message = read(home, ref)
    assert (message.thoughts, message.text, message.model, message.usage) == (
        ["Hm."], "Done.", "qwen3", Usage(input=12, output=4),
    )  # fmt: skip
    assert person.id == "u1"


def test_copies_are_found_whatever_the_length_of_ids(home: Path) -> None:
    def named(number: int) -> str:
        return f"{ID[: 5 + number % 31]}{number}"

    before = [None, *map(named, range(50))]
    talk = [{**answer(1, f"text {n}"), "uuid": named(n), "parentUuid": before[n]} for n in range(50)]
    assert len(read(home, write(home, *talk, *talk[::3]))) == 50


def test_records_that_share_a_line_are_all_read(home: Path) -> None:
    ref = write(home, as_bytes(TALK[0]).rstrip() + as_bytes(TALK[1]), *TALK[2:])
    assert len(read(home, ref)) == 4
    assert [one.code for one in summary(home, ref).problems] == ["glued_records"]


def test_sub_agents_have_their_parent_and_are_nested(home: Path) -> None:
    write(home, *TALK)
    task = record("user", 1, [{"text": "Search"}], agentId="a1", isSidechain=True)
    write(home, task, name="agent-a1", below=f"subagents/{ID}")
    write(home, system("parent_session", 1, parentSessionId=ID), *TALK, name="spawned")
    found = {one.ref.session_id: one for one in summaries(QwenLayout(home))}
    assert {name: (one.parent, one.nested) for name, one in found.items()} == {
        ID: (None, False),
        "agent-a1": (ID, True),
        "spawned": (ID, True),
    }
    assert (found["agent-a1"].turns, found["agent-a1"].title) == (1, "Search")


def test_what_a_fork_repeats_counts_once(home: Path) -> None:
    first = write(home, *TALK)
    copies = [{**one, "forkedFrom": {"sessionId": ID, "messageUuid": one["uuid"]}} for one in TALK]
    ref = write(home, *copies, answer(6, "New", usageMetadata=counts(1, 2)), name="fork")
    found = summary(home, ref)
    assert (found.parent, found.nested, found.messages) == (ID, False, 5)
    assert found.usage_by_model() == {"qwen3": Usage(input=1, output=2)}
    first.path.unlink()
    assert summary(home, ref).usage_by_model()["qwen3"].output == 27, "nothing else states it then"


def test_old_folders_and_a_home_that_gemini_shares(home: Path) -> None:
    write_lines(home / "tmp" / "abc" / "chats" / f"{ID}.jsonl", *TALK)
    write_lines(
        home / "tmp" / "abc" / "chats" / "session-2026-03-01T09-00-a1b2c3d4.jsonl", {"sessionId": "x"}
    )
    (home / "projects" / FOLDER / "chats" / "deep").mkdir(parents=True)
    write_lines(home / "projects" / FOLDER / f"{ID}.jsonl", *TALK)
    assert [one.project for one in QwenLayout(home).discover()] == ["abc"]
    assert [one.session_id for one in GeminiLayout(home).discover()] == ["a1b2c3d4"]
    assert QwenLayout in registry.AGENTS


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    ref = write(home, *TALK)
    require_tolerance(QwenLayout(home), ref, {0: "Fix the login race", 4: "Done."})


def test_nothing_is_written(home: Path) -> None:
    write(home, *TALK)
    (home / "oauth_creds.json").write_text("secret")
    require_read_only(QwenLayout, home)


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(QwenLayout(home), ref)
    reader.go_on()
    append(ref, system("custom_title", 6, 5, customTitle="T"))
    reader.go_on()
    append(ref, record("user", 7, [{"text": "More"}], 5), answer(8, "Yes"))
    reader.go_on()
    assert reader.resets == 0


@pytest.mark.parametrize("added", [system("rewind", 6, 1), answer(5, "More of it")])
def test_a_rewind_and_more_of_a_message_begin_anew(home: Path, added: dict[str, Any]) -> None:
    ref = write(home, *TALK)
    reader = Reader(QwenLayout(home), ref)
    reader.go_on()
    append(ref, added)
    reader.go_on()
    assert reader.resets == 1


def some(choose: random.Random, number: int) -> dict[str, Any] | bytes:
    parent = number - 1 if choose.random() < 0.85 else choose.randint(0, number - 1)
    kind = choose.choice(
        ["user", "answer", "answer", "result", "again", "rewind", "beside", "other", "odd", "bad"]
    )
    if kind == "user":
        kinds: list[dict[str, Any]] = [
            {},
            {"systemPayload": {"displayText": "x"}},
            {"subtype": "notification"},
        ]
        shown = choose.choice(kinds)
        return record("user", number, [{"text": f"text {number}"}], parent, **shown)
    if kind == "answer":
        return answer(number, f"text {number}", parent, usageMetadata=counts(1, number))
    if kind == "result":
        return record("tool_result", number, [response(f"t{number}", output="x")], parent)
    if kind == "again":
        return answer(choose.choice([number - 1, choose.randint(1, number)]), "again", parent)
    if kind == "rewind":
        return system("rewind", number, choose.randint(0, number - 1))
    if kind == "beside":
        return system(
            choose.choice(["custom_title", "session_artifact_event"]),
            number,
            parent,
            customTitle=f"T{number}",
        )
    if kind == "other":
        return system(choose.choice(["ui_telemetry", "chat_compression", "of_tomorrow"]), number, parent)
    if kind == "odd":
        odd: list[dict[str, Any]] = [
            {"words": 1},
            {"uuid": 5, "type": []},
            {"uuid": f"u{number}", "message": 5},
        ]
        return choose.choice(odd)
    return choose.choice([b"\0\0\n", b"{\n", b'{"type": "user", "mess\n', b"\n"])


@pytest.mark.parametrize("seed", range(80))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    require_equal_pieces(QwenLayout(home), write(home, TALK[0]), some, seed)


# -- through the commands, and public files


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("QWEN_HOME", str(home))
    monkeypatch.delenv("QWEN_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    write(home, *TALK)
    for words, expected in (
        (["list"], "Fix the login race"),
        (["show", ID], "Done."),
        (["search", "Done"], ID[:8]),
        (["stats", "--json"], '"qwen3"'),
    ):
        assert main(words) == 0
        assert expected in capsys.readouterr().out
    assert main(["list", "--home", str(home)]) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for path in (shared_folder() / "samples" / "qwen").rglob("*.jsonl"):
        write_lines(home / "projects" / "-samples" / "chats" / path.name, path.read_bytes())
    found = {
        one.ref.session_id.removeprefix("019f0000-0000-7000-8000-"): one
        for one in summaries(QwenLayout(home))
    }
    assert {name: one.messages for name, one in found.items()} == {
        "000000000001": 6,
        "000000000002": 1,
        "000000000004": 3,
        "000000000005": 2,
        "019f0000000070008000000000000003": 1,
        "system_telemetry": 3,
    }
    rewound = found["000000000004"]
    assert (rewound.title, rewound.cwd) == ("Active branch title", "/tmp/as-qwen-fixture/new-project")
    assert rewound.usage_by_model() == {
        "synthetic-active-model": Usage(input=12, output=4),
    }
    assert [one.code for one in found["000000000005"].problems] == ["glued_records"]
