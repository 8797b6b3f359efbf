"""The chats of VS Code: the log of changes, old documents, transcripts beside them, where they lie."""

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts import registry
from sessionary.layouts.agents.vscode_chat import VsCodeChatLayout
from sessionary.layouts.files import PartKind
from sessionary.layouts.summary import summary_of
from sessionary.model import Aside, Message, Other, Problem, SessionRef, Severity, Summary, ToolCall, Usage
from sessionary.testing.cursors import Reader
from tests.support.agent_files import (
    append,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    words,
    write_lines,
)

ID = "5e551045-0000-4000-8000-000000000001"
OTHER = "5e551045-0000-4000-8000-000000000002"
TIME = 1_772_355_600_000  # 2026-03-01 09:00 UTC


def request(number: int, text: str, *response: Any, **fields: Any) -> dict[str, Any]:
    return {
        "requestId": f"r{number}",
        "timestamp": TIME + number * 60_000,
        "modelId": "copilot/gpt-5",
        "agent": {"id": "github.copilot.editsAgent", "extensionVersion": "0.33.1"},
        "message": {"text": text, "parts": []},
        "variableData": {"variables": []},
        "responseId": f"a{number}",
        "response": list(response),
        **fields,
    }


def initial(*requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "kind": 0,
        "v": {"version": 3, "sessionId": ID, "creationDate": TIME, "requests": list(requests), **fields},
    }


def sets(*path: Any, to: Any) -> dict[str, Any]:
    return {"kind": 1, "k": list(path), "v": to}


def push(*path: Any, add: Any, cut: int | None = None) -> dict[str, Any]:
    return {"kind": 2, "k": list(path), "v": add, **({} if cut is None else {"i": cut})}


def call(name: str, tool: str = "copilot_readFile", **fields: Any) -> dict[str, Any]:
    return {
        "kind": "toolInvocationSerialized",
        "toolCallId": name,
        "toolId": tool,
        "isComplete": True,
        "isConfirmed": {"type": 1},
        "invocationMessage": {"value": "Reading a.py"},
        "pastTenseMessage": {"value": "Read a.py"},
        **fields,
    }


def done(name: str = "c1", answer: Any = "print('hi')", **metadata: Any) -> dict[str, Any]:
    arguments = json.dumps({"filePath": "a.py"})
    return {
        "timings": {"totalElapsed": 5},
        "metadata": {
            "toolCallRounds": [
                {
                    "response": "Looking.",
                    "toolCalls": [{"id": name, "name": "read_file", "arguments": arguments}],
                }
            ],
            "toolCallResults": {name: {"content": [{"value": answer}]}},
            **metadata,
        },
    }


TALK = (
    initial(),
    push("requests", add=[request(1, "Fix the login race")]),
    push("requests", 0, "response", add=[{"kind": "thinking", "value": "Hm."}, {"value": "Looking."}, call("c1")]),
    sets("requests", 0, "promptTokens", to=100),
    sets("requests", 0, "completionTokens", to=20),
    sets("requests", 0, "result", to=done()),
    push("requests", 0, "response", add=[{"value": "Done."}]),
    sets("requests", 0, "modelState", to={"value": 1, "completedAt": TIME + 90_000}),
    sets("customTitle", to="Login race"),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


def workspace(home: Path, name: str = "ws1", product: str = "Code") -> Path:
    return home / product / "User" / "workspaceStorage" / name


def write(home: Path, *records: dict[str, Any] | bytes, name: str = f"{ID}.jsonl") -> SessionRef:
    place = workspace(home)
    write_lines(place / "chatSessions" / name, *records)
    (place / "workspace.json").write_text(json.dumps({"folder": "file:///home/u/my%20app"}))
    ref = VsCodeChatLayout(home).ref_for_path(place / "chatSessions" / name)
    assert ref is not None
    return ref


def transcript(home: Path, *records: dict[str, Any], name: str = ID) -> Path:
    path = workspace(home) / "GitHub.copilot-chat" / "transcripts" / f"{name}.jsonl"
    write_lines(path, *records)
    return path


def event(kind: str, number: int, **data: Any) -> dict[str, Any]:
    stamp = f"2026-03-01T09:{number:02}:00.000Z"
    return {"type": kind, "id": f"e{number}", "parentId": None, "timestamp": stamp, "data": data}


EVENTS = (
    event("session.start", 1, sessionId=ID, producer="copilot-agent", copilotVersion="0.51.0"),
    event("user.message", 2, content="Fix the login race", attachments=[]),
    event("assistant.turn_start", 3, turnId="0"),
    event(
        "assistant.message", 4, messageId="m1", content="Looking.", reasoningText="Hm.",
        toolRequests=[{"toolCallId": "c1", "name": "read_file", "arguments": '{"filePath": "a.py"}'}],
    ),
    event("tool.execution_start", 5, toolCallId="c1", toolName="read_file", arguments={"filePath": "a.py"}),
    event("tool.execution_complete", 6, toolCallId="c1", success=False, result={"content": "no such file"}),
    event("assistant.turn_end", 7, turnId="0"),
)  # fmt: skip


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(VsCodeChatLayout(home), ref)


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(VsCodeChatLayout(home), ref)


def asides(home: Path, ref: SessionRef) -> list[str]:
    return [one.message.text for one in VsCodeChatLayout(home).read(ref) if isinstance(one, Aside)]


def codes(home: Path, ref: SessionRef) -> list[str]:
    return [one.code for one in summary(home, ref).problems]


def test_a_conversation(home: Path) -> None:
    user, answer, result, last = read(home, write(home, *TALK))
    assert (user.role, user.origin, user.text, user.id) == ("user", "person", "Fix the login race", "r1")
    assert (answer.text, answer.thoughts, answer.model, answer.id) == ("Looking.", ["Hm."], "gpt-5", "a1")
    assert [(one.call_id, one.name, one.arguments) for one in answer.calls] == [
        ("c1", "copilot_readFile", {"filePath": "a.py"})
    ]
    assert (result.role, result.text, result.results[0].is_error) == ("tool", "print('hi')", False)
    assert (last.text, last.usage, str(last.time)) == ("Done.", None, "2026-03-01 09:01:30+00:00")
    assert (user.place.line, str(user.time)) == (2, "2026-03-01 09:01:00+00:00")


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK, sets("repoData", to={"localBranch": "main"})))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Login race", "ok")
    assert (found.ref.session_id, found.ref.project, found.agent) == (ID, "ws1", "vscode_chat")
    assert (found.cwd, found.branch, found.version) == ("/home/u/my app", "main", "0.33.1")
    assert found.usage_by_model() == {"gpt-5": Usage(input=100, output=20)}


def test_the_last_value_of_a_count_is_the_one_that_counts(home: Path) -> None:
    more = (sets("requests", 0, "completionTokens", to=50), sets("requests", 0, "completionTokens", to=70))
    metadata: dict[str, Any] = {"promptTokens": 7, "outputTokens": 7, "resolvedModel": "gpt-5-mini"}
    ref = write(home, *TALK, *more, sets("requests", 0, "result", to=done(**metadata)))
    assert summary(home, ref).usage_by_model() == {"gpt-5-mini": Usage(input=100, output=70)}


def test_old_versions_state_tokens_in_the_metadata(home: Path) -> None:
    ref = write(home, initial(request(1, "Hi", {"value": "Ho"}, result=done(promptTokens=9, outputTokens=4))))
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=9, output=4)}


def test_texts_with_references_are_one_text(home: Path) -> None:
    uri = {"scheme": "file", "path": "/home/u/a.py"}
    parts = [
        "See ",
        {"kind": "inlineReference", "inlineReference": {"uri": uri}},
        {"value": " and "},
        {"kind": "inlineReference", "name": "main", "inlineReference": {"name": "x"}},
        {"kind": "codeblockUri", "uri": uri},
        {"kind": "markdownVuln", "content": {"value": ", then"}},
        {"kind": "markdownContent", "content": {"value": " go."}},
    ]
    _, answer = read(home, write(home, initial(request(1, "Where?", *parts))))
    assert answer.text == "See `/home/u/a.py` and `main`, then go."


def test_edits_and_unknown_parts_are_kept(home: Path) -> None:
    edit = {
        "kind": "textEditGroup",
        "uri": {"path": "/home/u/a.py"},
        "edits": [[{"text": "x"}]],
        "done": True,
    }
    parts = [
        edit,
        {"kind": "undoStop", "id": "u"},
        {"kind": "ofTomorrow", "x": 1},
        7,
        {"x": 1},
    ]
    ref = write(home, initial(request(1, "Edit", *parts, result={"errorDetails": {"message": "Too long"}})))
    _, answer = read(home, ref)
    assert [getattr(part, "kind", "") for part in answer.parts] == [
        "",
        "ofTomorrow",
        "part",
        "part",
        "error",
    ]
    assert answer.calls == [
        ToolCall(None, "textEditGroup", {"path": "/home/u/a.py", "edits": [[{"text": "x"}]], "done": True})
    ]
    assert answer.parts[1] == Other("ofTomorrow", {"kind": "ofTomorrow", "x": 1})
    assert summary(home, ref).health == "ok"


def test_what_is_attached_is_kept(home: Path) -> None:
    variables = {"variables": [{"kind": "file", "name": "a.py"}, {"name": "b"}]}
    user, *_ = read(home, write(home, initial(request(1, "See", variableData=variables))))
    assert [getattr(part, "kind", "text") for part in user.parts] == ["text", "file", "attachment"]


@pytest.mark.parametrize(
    ("fields", "arguments", "answer", "failed"),
    [
        ({}, {"message": "Reading a.py"}, "Read a.py", False),
        ({"toolSpecificData": {"rawInput": {"q": 1}}}, {"q": 1}, "Read a.py", False),
        (
            {
                "toolSpecificData": {
                    "kind": "terminal",
                    "commandLine": {"original": "make"},
                    "terminalCommandOutput": {"text": "boom"},
                    "terminalCommandState": {"exitCode": 2},
                }
            },
            {"command": "make"},
            "boom",
            True,
        ),
        (
            {"resultDetails": {"input": '{"a": 1}', "output": [{"value": "no"}], "isError": True}},
            {"a": 1},
            "no",
            True,
        ),
        ({"isConfirmed": {"type": 0}}, {"message": "Reading a.py"}, "refused by the user", True),
        ({"isConfirmed": False}, {"message": "Reading a.py"}, "refused by the user", True),
    ],
)
def test_what_is_stored_with_a_call(
    home: Path, fields: dict[str, Any], arguments: Any, answer: str, failed: bool
) -> None:
    _, model, tool = read(home, write(home, initial(request(1, "Go", call("c9", **fields)))))
    assert model.calls[0].arguments == arguments
    assert (tool.results[0].text, tool.results[0].is_error) == (answer, failed)


def test_a_call_that_runs_has_no_result(home: Path) -> None:
    ref = write(home, initial(request(1, "Go", call("c9", isComplete=False))))
    assert [one.role for one in read(home, ref)] == ["user", "assistant"]
    assert summary(home, ref).health == "ok"


def test_calls_with_other_ids_are_paired_in_their_order(home: Path) -> None:
    tree = {"node": {"children": [{"text": "one "}, {"children": [{"text": "two"}]}]}}
    _, model, tool = read(home, write(home, initial(request(1, "Go", call("x7"), result=done("c1", tree)))))
    assert (model.calls[0].call_id, model.calls[0].arguments) == ("x7", {"filePath": "a.py"})
    assert (tool.results[0].call_id, tool.results[0].text) == ("x7", "one two")


@pytest.mark.parametrize("fields", [{"isSystemInitiated": True}, {"confirmation": "Run"}])
def test_what_the_program_asks_begins_no_turn(home: Path, fields: dict[str, Any]) -> None:
    ref = write(home, initial(request(1, "Done: build", {"value": "Ok"}, **fields), request(2, "Next")))
    assert (summary(home, ref).turns, summary(home, ref).title) == (1, "Next")


# -- the log of changes


def test_requests_that_were_sent_again_are_outside_of_the_conversation(home: Path) -> None:
    again = push("requests", add=[request(3, "Fix it with a lock", {"value": "Locked."})], cut=1)
    second = push("requests", add=[request(2, "And now?", {"value": "Now that.", "kind": None})])
    ref = write(home, *TALK, second, sets("requests", 1, "completionTokens", to=5), again)
    assert [one.text for one in read(home, ref) if one.role == "user"] == [
        "Fix the login race",
        "Fix it with a lock",
    ]
    assert asides(home, ref) == ["And now?", "Now that."]
    found = summary(home, ref)
    assert found.usage_by_model() == {"gpt-5": Usage(input=100, output=25)}, "what they cost counts"
    (note,) = found.problems
    assert (note.code, note.message) == (
        "not_shown",
        "1 record of requests that were undone or sent again is not shown",
    )


@pytest.mark.parametrize("fields", [{"shouldBeRemovedOnSend": {"requestId": "r1"}}, {"isHidden": True}])
@pytest.mark.parametrize("later", [False, True])
def test_requests_that_were_undone_are_outside_of_the_conversation(
    home: Path, fields: dict[str, Any], later: bool
) -> None:
    first = request(1, "No", {"value": "Never"}, **({} if later else fields))
    changes = [sets("requests", 0, name, to=value) for name, value in fields.items()] if later else []
    ref = write(home, initial(first, request(2, "Yes")), *changes)
    assert [one.text for one in read(home, ref)] == ["Yes"]
    assert asides(home, ref) == ["No", "Never"]
    assert codes(home, ref) == ["not_shown"]


def test_the_same_request_stated_again_is_a_new_version(home: Path) -> None:
    first, second = request(1, "Fix", {"value": "Fi"}), request(1, "Fix", {"value": "Fixed."})
    ref = write(home, initial(first), push("requests", add=[second], cut=0), initial(second))
    assert [one.text for one in read(home, ref)] == ["Fix", "Fixed."]
    assert (asides(home, ref), codes(home, ref)) == ([], [])


def test_every_kind_of_change(home: Path) -> None:
    ref = write(
        home,
        initial(request(1, "One", {"value": "a"}, {"value": "b"}, {"value": "c"})),
        push("requests", 0, "response", add=[{"value": "x"}], cut=1),
        sets("requests", 0, "response", 2, to={"value": "y"}),
        sets("requests", 0, "message", "text", to="Uno"),
        sets("requests", 1, to=request(2, "Two", {"value": "z"})),
        {"kind": 3, "k": ["requests", 1, "response"]},
        sets("requests", 1, "vote", to=1),
        sets("inputState", to={"inputText": ""}),
    )
    assert [one.text for one in read(home, ref)] == ["Uno", "axy", "Two"]
    assert codes(home, ref) == []


def test_records_of_another_kind_are_shown(home: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"kind": 9, "k": ["requests"]},
        {"kind": True, "v": {}},
        {"kind": 0, "v": 5},
        {"kind": 1, "k": [], "v": 1},
        {"kind": 1, "k": [None]},
        {"words": 1},
    ]
    ref = write(home, *odd, *TALK)
    found = [one for one in read(home, ref) if one.role is None]
    assert [one.parts for one in found] == [(Other("record", one),) for one in odd]
    assert len(read(home, ref)) == len(odd) + 4


def test_a_change_of_a_missing_value_is_reported_and_hides_nothing(home: Path) -> None:
    lost = [one for one in TALK if one.get("k") != ["requests"]]
    ref = write(home, *lost, push("requests", add=[request(2, "And now?", {"value": "Now that."})]))
    assert words(VsCodeChatLayout(home), ref).splitlines()[-2:] == ["And now?", "Now that."]
    assert "Looking." in words(VsCodeChatLayout(home), ref), "the response to the request that is lost"
    (problem,) = summary(home, ref).problems
    assert (problem.code, problem.severity, problem.line) == ("missing_path", Severity.stops_resume, 2)


@pytest.mark.parametrize(
    "path", [["requests", 0, "response", 9, "value"], ["requests", 0, "nothing", "x"], ["requests", 0, 1]]
)
def test_a_path_that_leads_nowhere_is_reported_once(home: Path, path: list[Any]) -> None:
    ref = write(home, *TALK, sets(*path, to=1), sets(*path, to=2))
    assert codes(home, ref) == ["missing_path"]
    assert len(read(home, ref)) == 4


@pytest.mark.parametrize("at", [10**9, -1, True, "x", None, 1.5])
def test_an_index_that_no_list_has_takes_no_room(home: Path, at: Any) -> None:
    ref = write(
        home, *TALK, sets("requests", at, "vote", to=1), {"kind": 2, "k": ["requests"], "v": [], "i": at}
    )
    assert [one.text for one in read(home, ref) if one.role == "user"] == ["Fix the login race"]


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    ref = write(
        home,
        initial(),
        push("requests", add=[request(1, "Fix the login race")]),
        push("requests", 0, "response", add=[{"value": "Looking."}]),
        sets("customTitle", to="T"),
        push("requests", add=[request(2, "Now?")]),
        push("requests", 1, "response", add=[{"value": "Done."}]),
    )
    require_tolerance(VsCodeChatLayout(home), ref, {1: "Fix the login race", 5: "Done."})


# -- old documents


def document(home: Path, *requests: Any, indent: int | None = None, **fields: Any) -> SessionRef:
    text = json.dumps({**initial()["v"], "requests": requests, **fields}, indent=indent).encode()
    return write(home, text, name=f"{ID}.json")


@pytest.mark.parametrize("indent", [None, 2])
def test_an_old_document(home: Path, indent: int | None) -> None:
    first = request(1, "Fix the login race", "Looking.", call("c1"), {"value": "Done."}, result=done())
    ref = document(home, first, request(2, "Thanks"), indent=indent, customTitle="Login")
    found = summary(home, ref)
    assert (found.messages, found.turns, found.title, found.health) == (5, 2, "Login", "ok")
    assert (found.cwd, found.version) == ("/home/u/my app", "0.33.1")
    last = read(home, ref)[-1]
    assert json.loads(VsCodeChatLayout(home).raw(ref, last.place)) == request(2, "Thanks")


def test_requests_of_the_oldest_versions(home: Path) -> None:
    found = read(home, document(home, {"message": "Hi", "response": ["Ho", {"value": "!"}]}, 5))
    assert [one.text for one in found] == ["Hi", "Ho!"]


def test_a_log_replaces_the_document_it_was_converted_from(home: Path) -> None:
    document(home, request(1, "Old"))
    write(home, *TALK)
    assert [ref.locator[-6:] for ref in VsCodeChatLayout(home).discover()] == [".jsonl"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_truncated_document_shows_the_requests_before(home: Path, indent: int | None) -> None:
    ref = document(home, *(request(at, f"Text {at}") for at in range(5)), indent=indent)
    ref.path.write_bytes(ref.path.read_bytes()[:-20])
    assert [one.text for one in read(home, ref)] == ["Text 0", "Text 1", "Text 2", "Text 3"]
    assert summary(home, ref).health == "lost_data"


@pytest.mark.parametrize("content", [b"", b"[]", b"5", b"\0" * 40, b'{"requests": 5}', b'{"a": "\xff"}'])
def test_a_document_of_another_shape_is_reported(home: Path, content: bytes) -> None:
    assert codes(home, write(home, content, name=f"{ID}.json"))


def test_any_damage_of_a_document_ends_no_reader(home: Path) -> None:
    ref = document(home, request(1, "Fix it"), request(2, "Now?", {"value": "Looking."}), request(3, "Go"))
    layout, data, chance = VsCodeChatLayout(home), ref.path.read_bytes(), random.Random(3)
    for _ in range(300):
        at = chance.randrange(len(data))
        ref.path.write_bytes(data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :])
        far = data.index(b'"r1"') < at < data.index(b'"r2"') - 20 or at > data.index(b'"r3"')
        assert not far or "Looking." in words(layout, ref)
        summary_of(layout, ref)


# -- transcripts


def test_a_transcript_alone_is_a_session(home: Path) -> None:
    path = transcript(home, *EVENTS)
    (workspace(home) / "workspace.json").write_text(json.dumps({"folder": "file:///home/u/app"}))
    (ref,) = VsCodeChatLayout(home).discover()
    assert (ref.session_id, ref.locator) == (ID, str(path))
    user, answer, result = read(home, ref)
    assert (user.text, answer.text, answer.thoughts) == ("Fix the login race", "Looking.", ["Hm."])
    assert answer.calls[0].arguments == {"filePath": "a.py"}
    assert (result.text, result.results[0].is_error) == ("no such file", True)
    found = summary(home, ref)
    assert (found.turns, found.cwd, found.version, found.health) == (1, "/home/u/app", "0.51.0", "ok")


def test_a_chat_and_its_transcript_are_one_session(home: Path) -> None:
    ref = write(home, *TALK)
    alone = read(home, ref)
    transcript(home, *EVENTS)
    assert [one.locator for one in VsCodeChatLayout(home).discover()] == [ref.locator]
    assert read(home, ref) == alone
    assert [(one.name, one.kind) for one in VsCodeChatLayout(home).parts(ref)] == [
        (f"chatSessions/{ID}.jsonl", PartKind.JOURNAL),
        (f"GitHub.copilot-chat/transcripts/{ID}.jsonl", PartKind.JOURNAL),
        ("workspace.json", PartKind.DOCUMENT),
    ]


def test_the_transcript_of_an_empty_chat_is_the_conversation(home: Path) -> None:
    ref = write(home, initial())
    before = VsCodeChatLayout(home, now=lambda: 1e10).fingerprint(ref)
    reader = Reader(VsCodeChatLayout(home), ref)
    reader.go_on()
    transcript(home, *EVENTS)
    reader.go_on()
    assert [one.text for one in read(home, ref)] == ["Fix the login race", "Looking.", "no such file"]
    assert VsCodeChatLayout(home, now=lambda: 1e10).fingerprint(ref) != before
    append(ref, *TALK[1:])
    reader.go_on()
    assert read(home, ref)[-1].text == "Done."


def test_the_transcript_of_a_damaged_chat_is_beside_the_conversation(home: Path) -> None:
    ref = write(home, TALK[0], b"\0\0\n", *TALK[1:])
    transcript(home, *EVENTS)
    assert read(home, ref)[-1].text == "Done."
    assert asides(home, ref) == ["Fix the login race", "Looking.", "no such file"]
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=100, output=20)}
    assert codes(home, ref) == ["nul_run", "not_shown"]


# -- where they lie


def test_a_chat_that_was_copied_is_one_session(home: Path) -> None:
    write(home, *TALK)
    empty = home / "Code" / "User" / "globalStorage"
    write_lines(empty / "emptyWindowChatSessions" / f"{ID}.jsonl", *TALK[:2])
    write_lines(empty / "emptyWindowChatSessions" / f"{OTHER}.jsonl", *TALK)
    write_lines(empty / "transferredChatSessions" / f"{OTHER}.json", b"{}")
    found = {one.session_id: one for one in VsCodeChatLayout(home).discover()}
    assert set(found) == {ID, OTHER}
    newest = empty / "emptyWindowChatSessions" / f"{ID}.jsonl"
    assert found[ID].locator == str(newest)
    assert (found[ID].project, summary(home, found[ID]).cwd) == (None, None)


def test_the_products_and_the_folders_of_one_are_found(home: Path) -> None:
    for product in ("Code", "Code - Insiders", "VSCodium"):
        write_lines(workspace(home, product=product) / "chatSessions" / f"{product[-3:]}.jsonl", *TALK)
    layout = VsCodeChatLayout(home)
    assert {one.session_id for one in layout.discover()} == {"ode", "ers", "ium"}
    assert [(Path(one.path).parent.name, one.state) for one in layout.locations()] == [
        ("Code", "found"),
        ("Code - Insiders", "found"),
        ("VSCodium", "found"),
    ]
    for folder in (home / "Code", home / "Code" / "User"):
        assert [one.session_id for one in VsCodeChatLayout(folder).discover()] == ["ode"]
    commands = {one.session_id: layout.resume_command(one) for one in layout.discover()}
    assert commands == {"ode": ["code"], "ers": ["code-insiders"], "ium": ["codium"]}


def test_the_folders_of_servers_are_found_by_default(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setattr("sys.platform", "linux")
    path = (
        tmp_path
        / ".vscode-server/data/User/workspaceStorage/w/GitHub.copilot-chat/transcripts"
        / f"{ID}.jsonl"
    )
    write_lines(path, *EVENTS)
    layout = VsCodeChatLayout(VsCodeChatLayout.default_home())
    assert [one.locator for one in layout.discover()] == [str(path)]
    assert layout.ref_for_path(path) is not None
    assert VsCodeChatLayout(tmp_path / "nothing").ref_for_path(path) is None


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config"),
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Roaming"),
    ],
)
def test_the_default_folder(
    platform: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    monkeypatch.setattr("sys.platform", platform)
    assert VsCodeChatLayout.default_home() == tmp_path / folder


@pytest.mark.parametrize(
    ("stated", "cwd", "option"),
    [
        ({"folder": "file:///home/u/app"}, "/home/u/app", ["--folder-uri", "file:///home/u/app"]),
        ({"folder": "file:///c%3A/Users/u"}, "c:/Users/u", ["--folder-uri", "file:///c%3A/Users/u"]),
        (
            {"folder": "vscode-remote://wsl%2Bubuntu/home/u"},
            "/home/u",
            ["--folder-uri", "vscode-remote://wsl%2Bubuntu/home/u"],
        ),
        (
            {"workspace": "file:///home/u/all.code-workspace"},
            "/home/u",
            ["--file-uri", "file:///home/u/all.code-workspace"],
        ),
        (
            {"workspace": "file:///c/Workspaces/1/workspace.json"},
            None,
            ["--file-uri", "file:///c/Workspaces/1/workspace.json"],
        ),
        ({"folder": "--evil"}, None, []),
        ({"folder": 5}, None, []),
        ("nothing", None, []),
    ],
)
def test_the_folder_that_was_open(home: Path, stated: Any, cwd: str | None, option: list[str]) -> None:
    ref = write(home, *TALK)
    (workspace(home) / "workspace.json").write_text(json.dumps(stated))
    assert summary(home, ref).cwd == cwd
    assert VsCodeChatLayout(home).resume_command(ref) == ["code", *option]


def index(home: Path, *rows: tuple[str, Any]) -> None:
    with sqlite3.connect(workspace(home) / "state.vscdb") as database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.executemany("INSERT INTO ItemTable VALUES (?, ?)", rows)
    database.close()


@pytest.mark.parametrize(
    ("entries", "expected"), [({ID: {}}, []), ({OTHER: {}}, ["not_indexed"]), (5, ["not_indexed"])]
)
def test_a_chat_that_the_index_lacks_is_reported(home: Path, entries: Any, expected: list[str]) -> None:
    ref = write(home, *TALK)
    index(home, ("chat.ChatSessionStore.index", json.dumps({"version": 1, "entries": entries})))
    assert [one.code for one in VsCodeChatLayout(home).check(ref)] == expected
    assert codes(home, ref) == [], "a list does not open the database"


def test_an_index_that_cannot_be_read_is_reported(home: Path) -> None:
    ref = write(home, *TALK)
    (workspace(home) / "state.vscdb").write_bytes(b"no database at all" * 100)
    assert [one.code for one in VsCodeChatLayout(home).check(ref)] == ["unreadable_index"]


def test_nothing_is_written(home: Path) -> None:
    write(home, *TALK)
    document(home, request(1, "Old"))
    transcript(home, *EVENTS, name=OTHER)
    index(home)
    require_read_only(VsCodeChatLayout, home)
    layout = VsCodeChatLayout(home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    for ref in layout.discover():
        list(layout.check(ref))
    assert before == {path: path.stat().st_mtime_ns for path in home.rglob("*")}


def test_what_is_not_a_session_is_left_out(home: Path) -> None:
    ref = write(home, *TALK)
    for name in ("chatSessions/notes.txt", "state.vscdb.backup", "chatEditingSessions"):
        (workspace(home) / name).write_text("{}")
    assert [one.session_id for one in VsCodeChatLayout(home).discover()] == [ref.session_id]
    assert VsCodeChatLayout(home).ref_for_path(workspace(home) / "workspace.json") is None
    assert list(VsCodeChatLayout(home / "nothing").discover()) == []
    assert VsCodeChatLayout in registry.AGENTS


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(VsCodeChatLayout(home), ref)
    reader.go_on()
    append(
        ref,
        sets("inputState", to={}),
        sets("requests", 0, "vote", to=1),
        push("requests", add=[request(2, "B")]),
    )
    reader.go_on()
    append(
        ref, push("requests", add=[request(3, "C")]), push("requests", 2, "response", add=[{"value": "c"}])
    )
    reader.go_on()
    assert reader.resets == 0


@pytest.mark.parametrize(
    "change",
    [
        sets("requests", 0, "response", to=[]),
        push("requests", add=[], cut=0),
        push("requests", add=[request(1, "Again")]),
        sets("requests", 0, to=request(9, "Else")),
        sets("requests", to=[]),
        {"kind": 3, "k": ["requests"]},
        initial(),
        sets("requests", 0, "isHidden", to=True),
        sets("requests", 3, "result", to={}),
    ],
)
def test_a_change_of_earlier_requests_begins_anew(home: Path, change: dict[str, Any]) -> None:
    ref = write(home, *TALK)
    reader = Reader(VsCodeChatLayout(home), ref)
    reader.go_on()
    append(ref, change)
    reader.go_on()
    assert reader.resets == 1


def some(choose: random.Random, number: int) -> dict[str, Any] | bytes:
    at = choose.randint(0, max(number // 3, 1))
    made = request(choose.randint(1, number + 20), f"text {number}", {"value": f"answer {number}"})
    changes: list[dict[str, Any] | bytes] = [
        push("requests", add=[made]),
        push("requests", add=[made]),
        push("requests", add=[made, request(number + 50, "more")], cut=choose.choice([None, at])),
        push("requests", at, "response", add=[{"value": f"word {number}"}, call(f"t{number}")]),
        sets("requests", at, "result", to=done(f"t{number}")),
        sets("requests", at, "completionTokens", to=number),
        sets("requests", at, "shouldBeRemovedOnSend", to=choose.choice([None, {"requestId": "x"}])),
        sets("customTitle", to=f"T{number}"),
        sets("requests", at, "vote", to=1),
        {"kind": 3, "k": ["requests", at, "response"]},
        {"kind": 7, "odd": number},
        choose.choice([b"\0\0\n", b"{\n", b"\n", b'{"kind": 1, "k": ["requ\n']),
    ]
    return choose.choice(changes)


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.parametrize("beside", [False, True])
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int, beside: bool) -> None:
    if beside:
        transcript(home, *EVENTS)
    require_equal_pieces(VsCodeChatLayout(home), write(home, initial()), some, seed)


# -- through the commands


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path)
    write(home, *TALK)
    transcript(home, *EVENTS, name=OTHER)
    for words_given, expected in (
        (["list"], "Login race"),
        (["show", ID], "Done."),
        (["search", "no such file"], OTHER),
        (["stats", "--json"], '"gpt-5"'),
        (["doctor"], "2 sessions"),
        (["open", ID], "code --folder-uri file:///home/u/my%20app"),
    ):
        assert main(words_given) == 0, words_given
        assert expected in capsys.readouterr().out, words_given
    (row,) = (one for one in json.loads(run(capsys, "list", "--json")) if one["id"] == ID)
    assert (row["kind"], row["cwd"], row["models"]) == ("vscode_chat", "/home/u/my app", ["gpt-5"])
    for named in (home, home / "Code", home / "Code" / "User"):
        assert ID in run(capsys, "list", "--json", "--home", str(named))


def run(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    assert main(list(given)) == 0
    return capsys.readouterr().out


def test_problems_have_a_place(home: Path) -> None:
    ref = write(home, *TALK, sets("requests", 5, "result", to={}))
    (problem,) = (one for one in VsCodeChatLayout(home).read(ref) if isinstance(one, Problem))
    assert (problem.path, problem.line) == (ref.locator, len(TALK) + 1)
    assert (problem.byte or 0) > 0
