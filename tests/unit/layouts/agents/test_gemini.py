"""The sessions of Gemini CLI: the log that later records change, old documents, projects, sub-agents."""

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts import registry
from sessionary.layouts.agents.gemini import GeminiLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, SessionRef, Severity, Summary, Usage
from sessionary.testing.cursors import Reader
from tests.lanes import shared_folder
from tests.support.agent_files import (
    append,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    words,
    write_lines,
)

ID = "a1b2c3d4-0000-4000-8000-000000000001"
NAME = "session-2026-03-01T09-00-a1b2c3d4"
META = {
    "sessionId": ID,
    "projectHash": "app",
    "startTime": "2026-03-01T09:00:00.000Z",
    "lastUpdated": "2026-03-01T09:00:00.000Z",
    "kind": "main",
}


def said(number: int, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    stamp = f"2026-03-01T09:{number % 60:02}:00.000Z"
    return {"id": f"m{number}", "timestamp": stamp, "type": kind, "content": content, **fields}


def call(name: str, output: str, status: str = "success") -> dict[str, Any]:
    response = {"id": name, "name": "run_shell_command", "response": {"output": output}}
    return {
        "id": name,
        "name": "run_shell_command",
        "args": {"command": "make"},
        "status": status,
        "timestamp": "2026-03-01T09:30:00.000Z",
        "result": [{"functionResponse": response}],
    }


ANSWER = said(
    2,
    "gemini",
    "Looking.",
    thoughts=[{"subject": "Plan", "description": "Read the code"}],
    tokens={"input": 100, "output": 20, "cached": 40, "thoughts": 5, "tool": 3, "total": 128},
    model="gemini-3",
    toolCalls=[call("t1", "all green")],
)
TALK = (
    META,
    said(1, "user", [{"text": "Fix the login race"}]),
    ANSWER,
    said(3, "gemini", "Done.", model="gemini-3"),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


def write(
    home: Path, *records: dict[str, Any] | bytes, name: str = f"{NAME}.jsonl", project: str = "app"
) -> SessionRef:
    path = home / "tmp" / project / "chats" / name
    write_lines(path, *records)
    ref = GeminiLayout(home).ref_for_path(path)
    assert ref is not None
    return ref


def document(home: Path, *stored: dict[str, Any], **fields: Any) -> SessionRef:
    text = json.dumps({**META, **fields, "messages": stored}, indent=2).encode()
    return write(home, text, name=f"{NAME}.json")


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(GeminiLayout(home), ref)


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(GeminiLayout(home), ref)


def test_a_conversation(home: Path) -> None:
    person, answer, result, last = read(home, write(home, *TALK))
    assert (person.role, person.origin, person.text, person.id) == (
        "user",
        "person",
        "Fix the login race",
        "m1",
    )
    assert (answer.text, answer.thoughts, answer.model) == ("Looking.", ["Plan\nRead the code"], "gemini-3")
    assert [(one.call_id, one.name, one.arguments) for one in answer.calls] == [
        ("t1", "run_shell_command", {"command": "make"})
    ]
    assert (result.role, result.text, result.results[0].is_error) == ("tool", "all green", False)
    assert (last.text, last.place.line, str(last.time)) == ("Done.", 4, "2026-03-01 09:03:00+00:00")


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Fix the login race", "ok")
    assert (found.ref.session_id, found.agent, found.nested) == ("a1b2c3d4", "gemini", False)
    assert found.usage_by_model() == {"gemini-3": Usage(input=63, output=25, cache_read=40, reasoning=5)}


def test_thoughts_that_the_output_includes_count_once(home: Path) -> None:
    tokens = {"input": 10, "output": 20, "cached": 0, "thoughts": 5, "tool": 0, "total": 30}
    found = summary(home, write(home, META, said(1, "gemini", "x", model="m", tokens=tokens)))
    assert found.usage_by_model() == {"m": Usage(input=10, output=20, reasoning=5)}


def test_a_later_version_of_a_message_takes_its_place(home: Path) -> None:
    first, *_ = said(2, "gemini", "Wor"), None
    ref = write(
        home, META, said(1, "user", "Go"), first, said(3, "user", "And?"), {**first, "content": "Works"}
    )
    assert [one.text for one in read(home, ref)] == ["Go", "Works", "And?"]
    assert summary(home, ref).problems == []


def test_a_rewind_removes_a_message_and_all_after_it(home: Path) -> None:
    ref = write(home, *TALK, {"$rewindTo": "m3"}, said(4, "user", "Again"))
    assert [one.id for one in read(home, ref)] == ["m1", "m2", None, "m4"]
    (note,) = summary(home, ref).problems
    assert (note.code, note.severity) == ("not_shown", Severity.note)
    assert note.message == "1 record removed by a rewind or a replacement is not shown"


def test_what_a_rewound_response_cost_counts(home: Path) -> None:
    ref = write(home, *TALK, {"$rewindTo": "m2"}, said(4, "user", "Again"))
    found = summary(home, ref)
    assert (found.messages, found.turns) == (2, 2)
    assert found.usage_by_model()["gemini-3"] == Usage(input=63, output=25, cache_read=40, reasoning=5)


def test_a_rewind_to_an_unknown_message_removes_all(home: Path) -> None:
    ref = write(home, *TALK, {"$rewindTo": "zz"}, said(4, "user", "Again"))
    assert [one.id for one in read(home, ref)] == ["m4"]
    assert summary(home, ref).problems[0].message.startswith("3 records ")


def test_a_set_of_messages_replaces_all(home: Path) -> None:
    snapshot = [said(1, "user", "<state_snapshot>so far</state_snapshot>"), said(9, "gemini", "New"), "odd"]
    ref = write(home, *TALK, {"$set": {"messages": snapshot}}, said(10, "user", "Go on"))
    assert [(one.id, one.origin) for one in read(home, ref)] == [
        ("m1", "compaction"), ("m9", "agent"), (None, "harness"), ("m10", "person"),
    ]  # fmt: skip


def test_a_patch_changes_removes_and_reorders(home: Path) -> None:
    patch = {
        "updates": [
            {"id": "m1", "content": "Fix it"},
            {"id": "m2", "toolCalls": [{"id": "t1", "result": [{"text": "shortened"}]}]},
            {"id": "unknown", "content": "x"},
        ],
        "removeIds": ["m3"],
        "orderIds": ["m2", "m1"],
    }
    ref = write(home, *TALK, {"$patch": patch})
    assert [one.text for one in read(home, ref)] == ["Looking.", "shortened", "Fix it"]


def test_the_title_is_the_last_summary(home: Path) -> None:
    ref = write(home, {**META, "summary": "Old"}, *TALK[1:], {"$set": {"summary": "New"}})
    assert summary(home, ref).title == "New"


@pytest.mark.parametrize("text", ["/stats model", "?", "<session_context>\nToday is…", "/chat:save x"])
def test_what_the_user_did_not_say_to_the_model_is_not_a_turn(home: Path, text: str) -> None:
    found = summary(home, write(home, META, said(1, "user", text), said(2, "user", "/home/u/app is broken")))
    assert (found.turns, found.title) == (1, "/home/u/app is broken")


def test_notices_and_unknown_records_are_shown(home: Path) -> None:
    ref = write(home, META, said(1, "info", "Trusted"), said(2, "of-tomorrow", "x"), {"words": "y"})
    found = read(home, ref)
    assert [(one.role, one.text) for one in found] == [("system", "Trusted"), (None, ""), (None, "")]


def test_parts_that_are_not_text_are_kept(home: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    response = {"functionResponse": {"id": "t9", "name": "x", "response": {"error": "no such file"}}}
    ref = write(home, META, said(1, "user", [picture, {"text": "See"}]), said(2, "user", [response]))
    first, second = read(home, ref)
    assert [type(part).__name__ for part in first.parts] == ["Other", "Text"]
    assert (second.origin, second.results[0].text, second.results[0].is_error) == (
        "tool",
        "no such file",
        True,
    )


def response(name: str, output: str) -> dict[str, Any]:
    return {"functionResponse": {"id": name, "name": "run_shell_command", "response": {"output": output}}}


@pytest.mark.parametrize("as_document", [False, True])
def test_a_result_that_is_stored_at_the_call_and_behind_it_is_one(home: Path, as_document: bool) -> None:
    asked = {"functionCall": {"id": "t1", "name": "run_shell_command", "args": {"command": "make"}}}
    stored = (
        said(1, "user", "Go"),
        said(2, "gemini", [asked], toolCalls=[call("t1", "all green")]),
        {**said(3, "user", [response("t1", "all green")]), "id": "m2_response"},
        said(4, "user", [response("t1", "all green")]),
        said(5, "user", [response("t9", "of a call that is missing")]),
    )
    ref = document(home, *stored) if as_document else write(home, META, *stored)
    found = read(home, ref)
    assert [(len(one.calls), [result.text for result in one.results]) for one in found] == [
        (0, []), (1, []), (0, ["all green"]), (0, ["of a call that is missing"]),
    ]  # fmt: skip
    assert [one.code for one in summary(home, ref).problems] == ["orphaned_result"]


def test_a_session_that_grows_repeats_no_result(home: Path) -> None:
    ref = write(home, META, said(1, "user", "Go"), said(2, "gemini", "", toolCalls=[call("t1", "green")]))
    reader = Reader(GeminiLayout(home), ref)
    reader.go_on()
    append(ref, said(3, "user", [response("t1", "green")]), said(4, "gemini", "Done."))
    reader.go_on()
    assert (reader.resets, len(read(home, ref)), summary(home, ref).health) == (0, 4, "ok")


def test_a_cancelled_call_has_an_answer_and_a_running_one_has_none(home: Path) -> None:
    cancelled = {**call("t1", ""), "status": "cancelled", "result": None}
    running = {**call("t2", ""), "status": "executing", "result": None}
    ref = write(
        home, META, said(1, "gemini", "", toolCalls=[cancelled]), said(2, "gemini", "", toolCalls=[running])
    )
    found = read(home, ref)
    assert [one.text for one in found[1].results] == ["cancelled"]
    assert summary(home, ref).health == "ok"
    append(ref, said(3, "user", "Go on"))
    assert [one.code for one in summary(home, ref).problems] == ["orphaned_call"]


@pytest.mark.parametrize("how", ["marker", "registry", "hash", "unknown"])
def test_the_project_is_found_by_the_name_of_its_folder(home: Path, how: str) -> None:
    path = "/home/u/app"
    project = sha256(path.encode()).hexdigest() if how == "hash" else "app"
    ref = write(home, *TALK, project=project)
    if how == "marker":
        (home / "tmp" / "app" / ".project_root").write_text(f"{path}\n")
    elif how != "unknown":
        (home / "projects.json").write_text(json.dumps({"projects": {"/else": "other", path: "app"}}))
    assert summary(home, ref).cwd == (None if how == "unknown" else path)


@pytest.mark.parametrize("content", ["{", "[]", '{"projects": 5}', "\0"])
def test_a_damaged_registry_hides_no_session(home: Path, content: str) -> None:
    ref = write(home, *TALK)
    (home / "projects.json").write_text(content)
    assert summary(home, ref).messages == 4


def test_sub_agents_have_their_parent_and_are_nested(home: Path) -> None:
    write(home, *TALK)
    write(home, {**META, "kind": "subagent"}, said(1, "user", "Search"), name=f"{ID}/codebase-1.jsonl")
    found = {one.ref.session_id: one for one in summaries(GeminiLayout(home))}
    assert set(found) == {"a1b2c3d4", "codebase-1"}
    assert (found["codebase-1"].parent, found["codebase-1"].nested) == ("a1b2c3d4", True)
    assert (found["a1b2c3d4"].parent, found["a1b2c3d4"].nested) == (None, False)


def test_an_old_document(home: Path) -> None:
    ref = document(home, *TALK[1:], summary="Login")
    found = summary(home, ref)
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Login", "ok")
    assert found.usage_by_model() == {"gemini-3": Usage(input=63, output=25, cache_read=40, reasoning=5)}
    last = read(home, ref)[-1]
    assert json.loads(GeminiLayout(home).raw(ref, last.place)) == TALK[3]
    assert last.place.line is not None


def test_a_log_replaces_the_old_document_it_was_converted_from(home: Path) -> None:
    document(home, *TALK[1:])
    write(home, *TALK)
    assert [ref.locator[-6:] for ref in GeminiLayout(home).discover()] == [".jsonl"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"5", b"\0" * 40, b'{"messages": 5}', b'{"a": 5}', b'{"messages": [1, null]}']
)
def test_a_document_of_another_shape_is_reported_or_shown(home: Path, content: bytes) -> None:
    ref = write(home, content, name=f"{NAME}.json")
    found = summary(home, ref)
    assert found.problems or found.messages == 2


def test_half_a_surrogate_pair_in_a_document_is_read(home: Path) -> None:
    ref = write(
        home, b'{"messages": [{"id": "m1", "type": "user", "content": "\\ud800 here"}]}', name=f"{NAME}.json"
    )
    assert "here" in read(home, ref)[0].text


def test_a_truncated_document_shows_the_messages_before(home: Path) -> None:
    ref = document(home, *TALK[1:])
    ref.path.write_bytes(ref.path.read_bytes()[:-60])
    found = summary(home, ref)
    assert ([one.code for one in found.problems], found.health) == (["bad_json"], "lost_data")
    assert words(GeminiLayout(home), ref).splitlines()[0] == "Fix the login race"


def test_records_that_share_a_line_are_all_read(home: Path) -> None:
    glued = json.dumps(TALK[1]).encode() + json.dumps(TALK[2]).encode() + b"\n"
    ref = write(home, META, glued, TALK[3])
    assert [one.id for one in read(home, ref)] == ["m1", "m2", None, "m3"]
    assert [one.code for one in summary(home, ref).problems] == ["glued_records"]


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    ref = write(home, *TALK)
    require_tolerance(GeminiLayout(home), ref, {1: "Fix the login race", 3: "Done."})


def test_any_damage_of_a_document_ends_no_reader(home: Path) -> None:
    ref = document(
        home, said(1, "user", "Fix the login race"), said(2, "gemini", "Looking."), said(3, "user", "Now?")
    )
    layout, data, chance = GeminiLayout(home), ref.path.read_bytes(), random.Random(3)
    for _ in range(300):
        at = chance.randrange(len(data))
        ref.path.write_bytes(data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :])
        text = words(layout, ref)
        far = at < data.index(b'"m1"') or at > data.index(b'"m3"')
        assert not far or "Looking." in text
        summary_of(layout, ref)


def test_nothing_is_written(home: Path) -> None:
    write(home, *TALK)
    write(home, META, said(1, "user", "Search"), name=f"{ID}/sub.jsonl")
    document(home, *TALK[1:])
    (home / "oauth_creds.json").write_text("secret")
    require_read_only(GeminiLayout, home)


def test_what_is_not_a_session_is_left_out(home: Path) -> None:
    write(home, *TALK)
    for name in ("logs.json", "checkpoint-a.json", "chats/notes.txt", "chats/x.jsonl.unreadable-1"):
        (home / "tmp" / "app" / name).write_text("{}")
    (home / "projects.json").write_text("{}")
    assert [ref.session_id for ref in GeminiLayout(home).discover()] == ["a1b2c3d4"]
    assert GeminiLayout(home).ref_for_path(home / "tmp" / "app" / "logs.json") is None
    assert list(GeminiLayout(home / "nothing").discover()) == []
    assert GeminiLayout in registry.AGENTS


@pytest.mark.parametrize(
    ("stated", "days"),
    [
        (None, 30),
        ({"maxAge": "7d"}, 7),
        ({"maxAge": "2w"}, 14),
        ({"maxAge": 5}, 30),
        ({"enabled": False}, None),
    ],
)
def test_when_it_deletes_sessions(home: Path, stated: Any, days: int | None) -> None:
    write(home, *TALK)
    if stated is not None:
        (home / "settings.json").write_text(json.dumps({"general": {"sessionRetention": stated}}))
    found = GeminiLayout(home).retention()
    assert (found and found.days) == days


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(GeminiLayout(home), ref)
    reader.go_on()
    append(ref, {"$set": {"summary": "S", "lastUpdated": "x"}}, said(4, "user", "And the logout?"))
    reader.go_on()
    append(ref, said(5, "gemini", "Hm"), said(5, "gemini", "Done"))
    reader.go_on()
    assert reader.resets == 1, "only for a version of a message that came in the same piece"


@pytest.mark.parametrize(
    "change",
    [
        {"$rewindTo": "m3"},
        said(2, "gemini", "New"),
        {"$set": {"messages": []}},
        {"$patch": {"removeIds": ["m1"]}},
    ],
)
def test_a_change_of_earlier_messages_begins_anew(home: Path, change: dict[str, Any]) -> None:
    ref = write(home, *TALK)
    reader = Reader(GeminiLayout(home), ref)
    reader.go_on()
    append(ref, change)
    reader.go_on()
    assert reader.resets == 1


def test_a_document_is_read_anew(home: Path) -> None:
    ref = document(home, *TALK[1:])
    reader = Reader(GeminiLayout(home), ref)
    reader.go_on()
    document(home, *TALK[1:], said(4, "user", "More"))
    reader.go_on()
    assert len(reader.items) == 5


def some(choose: random.Random, number: int) -> dict[str, Any] | bytes:
    kind = choose.choice(
        ["user", "user", "gemini", "gemini", "again", "rewind", "set", "title", "patch", "odd", "bad"]
    )
    old = f"m{choose.randint(1, number)}"
    if kind == "again":
        return {**said(number, "gemini", f"new {number}"), "id": old}
    if kind == "rewind":
        return {"$rewindTo": old}
    if kind == "set":
        return {
            "$set": {"messages": [said(choose.randint(1, number), "user", f"set {number}") for _ in range(3)]}
        }
    if kind == "title":
        return {"$set": {"summary": f"T{number}"}}
    if kind == "patch":
        return {"$patch": {"id": old, "content": "changed", "removeIds": ["m2"], "orderIds": [old, "m1"]}}
    if kind == "odd":
        odd: list[dict[str, Any]] = [
            {"words": number},
            {"$set": 5},
            {"sessionId": "x", "messages": [said(number, "user", "x")]},
        ]
        return choose.choice(odd)
    if kind == "bad":
        return choose.choice([b"\0\0\n", b"{\n", b'{"type": "user", "mess\n', b"\n"])
    calls = [call(f"t{number}", "ok")] if choose.random() < 0.5 else []
    return said(number, kind, f"text {number}", toolCalls=calls)


@pytest.mark.parametrize("seed", range(60))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    require_equal_pieces(GeminiLayout(home), write(home, META, said(1, "user", "Begin")), some, seed)


# -- through the commands, and public files


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home.parent))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    write(home, *TALK)
    for words_given, expected in (
        (["list"], "Fix the login race"),
        (["show", "a1b2c3d4"], "Done."),
        (["search", "green"], "a1b2c3d4"),
        (["stats", "--json"], '"gemini-3"'),
    ):
        assert main(words_given) == 0
        assert expected in capsys.readouterr().out


def test_what_was_rewound_is_shown_on_request_and_found(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(home, *TALK, {"$rewindTo": "m2"}, said(4, "user", "Write a test"))

    def run(*words: str) -> str:
        assert main([*words, "--home", str(home)]) == 0
        return capsys.readouterr().out

    assert "Looking." not in run("show", "a1b2c3d4")
    lines = [line for line in run("show", "a1b2c3d4", "--branches").splitlines() if line]
    begin = next(at for at, line in enumerate(lines) if "outside of the conversation" in line)
    end = next(at for at, line in enumerate(lines) if "the conversation continues" in line)
    assert any("Looking." in line for line in lines[begin:end])
    assert any("all green" in line for line in lines[begin:end]), "with the result of its call"
    assert any("Write a test" in line for line in lines[end:])
    shown = json.loads(run("show", "a1b2c3d4", "--branches", "--json"))["messages"]
    assert [(one["index"], one.get("outside", False)) for one in shown] == [
        (0, False),
        *[(1, True)] * 3,
        (1, False),
    ]
    (hit,) = json.loads(run("search", "green", "--json"))["hits"]
    assert (hit["locator"], hit["outside"]) == ("a1b2c3d4:0", True)
    assert "outside of the conversation" in run("search", "green")
    assert "Fix the login race" in run("show", hit["locator"])


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for path in (shared_folder() / "samples" / "gemini").rglob("*.json*"):
        name = f"session-2026-03-01T09-00-{path.name}"
        write_lines(home / "tmp" / "samples" / "chats" / name, path.read_bytes())
    found = {one.ref.session_id: one for one in summaries(GeminiLayout(home))}
    assert {name: one.messages for name, one in found.items()} == {
        "agentsview_standard_session": 4,
        "agentsview_system_messages": 3,
        "agentsview_thinking_only": 2,
        "agentsview_tool_calls": 3,
        "agentsview_tool_calls_with_results": 3,
        "jsonl_v040": 4,
        "session-set-snapshot": 2,
    }
    assert {one.health for one in found.values()} == {"ok"}
    assert found["jsonl_v040"].usage_by_model() == {
        "gemini-3-flash-preview": Usage(input=12422, output=228, cache_read=11502)
    }


def test_a_session_is_continued_by_its_whole_id(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "slug" / "chats"
    chats.mkdir(parents=True)
    log, document = (
        chats / f"session-2026-03-01T09-00-{ID[:8]}.jsonl",
        chats / "session-2026-03-01T09-00-ffffffff.json",
    )
    log.write_text(json.dumps({"sessionId": ID}) + "\n")
    document.write_text(json.dumps({"sessionId": "ffffffff-1", "messages": []}, indent=2))
    layout = GeminiLayout(tmp_path)
    found = {ref.locator: layout.resume_command(ref) for ref in layout.discover()}
    assert found[str(log)] == ["gemini", "--resume", ID]
    assert found[str(document)] == ["gemini", "--resume", "ffffffff-1"]
