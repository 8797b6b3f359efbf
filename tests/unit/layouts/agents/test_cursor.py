"""The sessions of Cursor: its transcripts, which of three stores counts, and keys of encryption."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.catalog import Catalog, Unread
from sessionary.codec import decode
from sessionary.disk.fs import OS_FS
from sessionary.errors import StorageFailed, Unsupported
from sessionary.layouts.agents.cursor import CursorLayout
from sessionary.layouts.agents.cursor_messages import masked, masked_bytes
from sessionary.layouts.base import Capability
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import AGENT, HARNESS, PERSON, TOOL, Message, Other, Problem, SessionRef
from sessionary.redaction import MARK
from sessionary.search import Needle, Query, Search
from sessionary.search.targets import targets
from sessionary.testing.cursors import Reader
from sessionary.workspace import Workspace
from tests.lanes import shared_folder
from tests.support.agent_files import (
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    words,
    write_lines,
)
from tests.support.cursor_files import KEY, Chat, Editor, tool

ID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "cursor").mkdir()
    return tmp_path / "cursor"


def layout(home: Path) -> CursorLayout:
    return CursorLayout(home, OS_FS)


def refs(home: Path) -> dict[str, SessionRef]:
    return {ref.session_id: ref for ref in layout(home).discover()}


def transcript(home: Path, name: str = ID, below: str | None = None) -> Path:
    folder = home / "projects" / "home-u-app" / "agent-transcripts" / (below or name)
    return folder / "subagents" / f"{name}.jsonl" if below else folder / f"{name}.jsonl"


def line(role: str, *content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(content)}, **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def talk(home: Path) -> None:
    prompt = "<user_info>\nOS: linux\n</user_info>\n<user_query>\nFix the login\n</user_query>"
    call = {"type": "tool_use", "name": "Read", "input": {"path": "a.txt"}, "id": "c1"}
    hidden = {"type": "redacted-reasoning", "data": "x"}
    write_lines(
        transcript(home),
        line("user", text(prompt)),
        line("assistant", {"type": "thinking", "thinking": "Hm."}, text("Looking."), call, model="auto"),
        line("user", {"type": "tool-result", "name": "Read", "content": [text("a word")]}),
        line("assistant", hidden, {"type": "custom", "text": "new"}, text("Done.")),
        {"type": "turn_ended", "status": "success"},
        line("user", text("<rules>\nnone\n</rules>\nAnd now?"), {"type": "image", "data": "x"}),
        {"type": "turn_ended", "status": "error", "error": {"message": "no network"}},
        {"type": "something_new", "value": 1},
    )


def test_a_transcript(home: Path) -> None:
    talk(home)
    added, user, agent, answer, done, rules, again, ended, new = messages(layout(home), refs(home)[ID])
    assert (added.origin, added.text) == (HARNESS, "<user_info>\nOS: linux\n</user_info>")
    assert (user.role, user.origin, user.text) == ("user", PERSON, "Fix the login")
    assert (agent.origin, agent.text, agent.thoughts, agent.model) == (AGENT, "Looking.", ["Hm."], "auto")
    assert [(one.call_id, one.name, one.arguments) for one in agent.calls] == [
        (None, "Read", {"path": "a.txt"})
    ]
    assert (answer.role, answer.origin, answer.text) == ("tool", TOOL, "a word")
    assert [type(part).__name__ for part in done.parts] == ["Thinking", "Other", "Text"]
    assert (rules.origin, again.origin, again.text) == (HARNESS, PERSON, "And now?")
    assert [part.kind for part in again.parts if isinstance(part, Other)] == ["image"]
    assert (ended.origin, ended.text) == (HARNESS, "the turn ended: error: no network")
    assert (new.role, new.parts) == (None, (Other("record", {"type": "something_new", "value": 1}),))


def test_what_a_list_shows_of_a_transcript(home: Path) -> None:
    talk(home)
    (home / "projects/home-u-app/.workspace-trusted").write_text('{"workspacePath": "/home/u/app"}')
    write_lines(transcript(home, "child", ID), line("user", text("Help")), line("assistant", text("Yes")))
    found = {one.ref.session_id: one for one in summaries(layout(home))}
    one = found[ID]
    assert (one.title, one.turns, one.messages, one.cwd, one.nested) == (
        "Fix the login", 2, 9, "/home/u/app", False,
    )  # fmt: skip
    assert (one.health, one.problems) == ("ok", []), (
        "no call of a transcript has a result: that is not damage"
    )
    assert one.updated is not None
    assert (found["child"].parent, found["child"].nested) == (ID, True)


def test_the_folder_is_known_before_a_session_is_read(home: Path) -> None:
    talk(home)
    (home / "projects/home-u-app/.workspace-trusted").write_text('{"workspacePath": "/home/u/app"}')
    Chat(home, "s2").add({"role": "user", "content": "Hi"})
    editor = Editor(home / "User")
    editor.bubble("s3", "b1", 1, text="Hi")
    editor.session("s3", workspaceIdentifier={"uri": {"fsPath": "/home/u/shop"}}, createdOnBranch="main")
    (home / "chats/h/s4").mkdir(parents=True)
    (home / "chats/h/s4/meta.json").write_text('{"hasConversation": true, "title": "Lost", "cwd": "/w"}')
    headers = [Unread(layout(home), ref, b"", None).header() for ref in refs(home).values()]
    assert {one.ref.session_id: (one.title, one.cwd, one.branch) for one in headers if one is not None} == {
        ID: (None, "/home/u/app", None),
        "s2": (None, "/home/u/my app", None),
        "s3": ("A title", "/home/u/shop", "main"),
        "s4": ("Lost", "/w", None),
    }


def test_transcripts_of_old_versions(home: Path) -> None:
    folder = home / "projects/p/agent-transcripts"
    write_lines(folder / "flat.jsonl", line("user", text("Flat")))
    (folder / "old.txt").write_text("user:\n<user_query>\nHi\n</user_query>\n\nassistant:\nLook: user: x\n")
    (folder / "flat.txt").write_text("user:\nthe same session\n")
    assert words(layout(home), refs(home)["flat"]) == "Flat"
    user, agent = messages(layout(home), refs(home)["old"])
    assert (user.origin, user.text, agent.origin, agent.text) == (PERSON, "Hi", AGENT, "Look: user: x")


def test_files_that_are_not_sessions(home: Path) -> None:
    talk(home)
    for name in (
        "projects/p/agent-tools/a.txt",
        "projects/p/agent-transcripts/x/y/z.jsonl",
        "chats/a/store.db",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    assert list(refs(home)) == [ID]
    assert layout(home).ref_for_path(transcript(home)) == refs(home)[ID]
    assert layout(home).ref_for_path(home / "projects/p/agent-tools/a.txt") is None


def test_the_fullest_store_of_a_session_counts(home: Path) -> None:
    talk(home)
    assert refs(home)[ID].locator.endswith(f"{ID}.jsonl")
    chat = Chat(home, ID, hasConversation=True)
    chat.add({"role": "user", "content": "of the store"})
    assert refs(home)[ID].locator == str(chat.path)
    editor = Editor(home / "User")
    editor.bubble(ID, "b1", 1, text="of the editor")
    editor.session(ID)
    assert refs(home) == {ID: SessionRef("cursor", ID, f"{editor.path}#{ID}", None)}
    assert words(layout(home), refs(home)[ID]) == "of the editor"
    assert layout(home).resume_command(refs(home)[ID]) == ["cursor-agent", "--resume", ID]


def test_a_session_of_the_editor_alone_is_not_resumed(home: Path) -> None:
    editor = Editor(home / "User")
    editor.bubble("s1", "b1", 1, text="Hi")
    editor.session("s1")
    with pytest.raises(Unsupported, match="only the editor") as refused:
        layout(home).resume_command(refs(home)["s1"])
    assert "editor" in (refused.value.hint or "")


def test_a_store_without_messages_leaves_the_transcript(home: Path) -> None:
    talk(home)
    chat = Chat(home, ID)
    assert "Fix the login" in words(layout(home), refs(home)[ID])
    chat.path.write_bytes(b"no database at all" * 300)
    items = list(layout(home).read(refs(home)[ID]))
    assert [(one.code, one.severity.name) for one in items if isinstance(one, Problem)] == [
        ("unreadable_store", "hides_data")
    ]
    assert "Fix the login" in words(layout(home), refs(home)[ID])
    transcript(home).unlink()
    with pytest.raises(StorageFailed, match="not a database"):
        list(layout(home).read(refs(home)[ID]))


def test_a_store_that_breaks_later_leaves_the_transcript(home: Path) -> None:
    chat = Chat(home, ID)
    chat.add({"role": "user", "content": "of the store"})
    reader = Reader(layout(home), refs(home)[ID])
    reader.go_on()
    talk(home)
    chat.path.write_bytes(b"no database at all" * 300)
    reader.go_on()
    assert reader.resets == 1


def test_a_home_with_a_number_sign(tmp_path: Path) -> None:
    home = tmp_path / "c#"
    talk(home)
    Chat(home, "s2").add({"role": "user", "content": "Hi"})
    editor = Editor(home / "User")
    editor.bubble("s3", "b1", 1, text="Hi")
    editor.session("s3")
    found = layout(home)
    for name, ref in refs(home).items():
        assert words(found, ref)
        assert found.raw(ref, messages(found, ref)[0].place)
        assert found.ref_for_path(Path(ref.locator)) == ref
        in_files = name not in ("s2", "s3")
        assert (bool(found.files(ref)), found.place_of_rows(ref) is None) == (in_files, in_files)


def test_a_document_without_a_store(home: Path) -> None:
    for name, holds in (("gone", True), ("empty", False)):
        (home / "chats/h" / name).mkdir(parents=True)
        value = {"hasConversation": holds, "title": "Lost", "cwd": "/w", "updatedAtMs": 1_772_000_000_000}
        (home / "chats/h" / name / "meta.json").write_text(json.dumps(value))
    assert list(refs(home)) == ["gone"]
    found = summary_of(layout(home), refs(home)["gone"])
    assert (found.title, found.cwd, [one.code for one in found.problems]) == ("Lost", "/w", ["no_store"])


def test_damage_hides_no_other_record(home: Path) -> None:
    talk(home)
    kept = {0: "Fix the login", 1: "Looking.", 2: "a word", 3: "Done.", 5: "And now?", 6: "no network"}
    require_tolerance(layout(home), refs(home)[ID], kept)


@pytest.mark.parametrize("seed", range(20))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    def make(choose: random.Random, number: int) -> dict[str, Any] | bytes:
        kinds: list[dict[str, Any] | bytes] = [
            line("user", text(f"<user_query>{number}</user_query>")),
            line("assistant", text(f"{number}"), {"type": "tool_use", "name": "Read", "input": {}}),
            {"type": "turn_ended", "status": "aborted"},
            b"no record\n",
        ]
        return choose.choice(kinds)

    write_lines(transcript(home), line("user", text("Hi")))
    require_equal_pieces(layout(home), refs(home)[ID], make, seed)


def test_nothing_is_written(home: Path) -> None:
    talk(home)
    Chat(home, "s2").add({"role": "user", "content": "Hi"})
    editor = Editor(home / "User")
    editor.bubble("s3", "b1", 1, text="Hi")
    editor.session("s3")
    require_read_only(CursorLayout, home)
    assert CursorLayout.capabilities == {Capability.NESTS, Capability.RESUME}


@pytest.mark.parametrize(
    "record",
    [
        {"blobEncryptionKey": KEY},
        {"a": [{"speculativeSummarizationEncryptionKey": KEY}]},
        {"text": json.dumps({"blobEncryptionKey": KEY})},
        {"text": json.dumps({"text": json.dumps({"blobEncryptionKey": KEY, "x": 1})})},
        {"text": f"blobEncryptionKey: {KEY}\nnext"},
        {"text": f"blobEncryptionKey = '{KEY}'"},
    ],
)
def test_keys_of_encryption_are_masked(record: dict[str, Any]) -> None:
    data = json.dumps(record).encode()
    assert KEY not in str(masked(json.loads(data)))
    assert MARK in str(masked(json.loads(data)))
    assert KEY.encode() not in masked_bytes(data)
    assert isinstance(decode(masked_bytes(data)), dict)
    assert KEY.encode() not in masked_bytes(data[:-1]), "also in a record that does not decode"
    plain = b'{"text": "an EncryptionKey is needed", "n":  1.50}'
    assert masked_bytes(plain) == plain


def test_a_record_that_is_nested_deeply_gives_no_key_away(home: Path) -> None:
    deep = "[" * 900 + json.dumps({"blobEncryptionKey": KEY}) + "]" * 900
    editor = Editor(home / "User")
    editor.bubble("s1", "b1", 1, text="Hi")
    editor.session("s1")
    editor.put("bubbleId:s1:b1", '{"type": 9, "value": ' + deep + "}")
    (message,) = messages(layout(home), refs(home)["s1"])
    assert message.parts == (Other("record", {"type": "record that is nested too deeply to be shown"}),)
    assert KEY not in repr(message)


def everything(home: Path) -> None:
    """A session in each store, with keys wherever they may stand."""
    quoted = json.dumps({"blobEncryptionKey": KEY})
    write_lines(transcript(home), line("assistant", text(quoted)), {"type": "new", "blobEncryptionKey": KEY})
    chat = Chat(home, "s2", hasConversation=True)
    chat.add({"role": "tool", "content": [{"type": "tool-result", "result": {"blobEncryptionKey": KEY}}]})
    chat.add({"role": "odd", "blobEncryptionKey": KEY}, quoted.encode(), b"\x00 " + quoted.encode())
    editor = Editor(home / "User")
    editor.bubble("s3", "b1", 2, toolFormerData=tool("c1", result=quoted, params=quoted))
    editor.bubble("s3", "b2", 9, blobEncryptionKey=KEY)
    editor.put("bubbleId:s3:loose", {"type": 1, "text": quoted})
    editor.session("s3", conversationMap={"b3": {"type": 1, "text": quoted, "blobEncryptionKey": KEY}})
    editor.put("composerData:s4", '{"blobEncryptionKey": "' + KEY)


def test_no_key_comes_out_of_any_store(home: Path) -> None:
    everything(home)
    found = layout(home)
    read = list(found.discover())
    assert {ref.session_id for ref in read} == {ID, "s2", "s3", "s4"}
    shown = masks = 0
    for ref in read:
        summary = summary_of(found, ref)
        items = list(found.read(ref))
        assert KEY not in repr((summary, items))
        assert KEY.encode().hex() not in repr((summary, items))
        masks += repr(items).count(MARK)
        for item in items:
            message = item if isinstance(item, Message) else getattr(item, "message", None)
            if isinstance(message, Message):
                shown += 1
                assert KEY.encode() not in found.raw(ref, message.place)
    assert (shown, masks) == (10, 10)


def test_no_key_comes_out_of_the_stored_records(home: Path) -> None:
    everything(home)
    chat = next(home.glob("chats/*/s2/meta.json"))
    chat.write_text(json.dumps({**json.loads(chat.read_text()), "blobEncryptionKey": KEY}))
    workspace = Workspace(home)
    found = {
        (ref.session_id, Path(file.name).name): list(workspace.stored_records(ref, file.name))
        for ref in workspace.refs()
        for file in workspace.stored_files(ref)
    }
    assert {name: len(some) for name, some in found.items()} == {
        (ID, f"{ID}.jsonl"): 2,
        ("s2", "store.db"): 8,
        ("s2", "meta.json"): 1,
        ("s3", "state.vscdb"): 4,
        ("s4", "state.vscdb"): 1,
    }
    assert KEY not in repr(found)
    assert repr(found).count(MARK) >= len(found)
    assert any(b'"data": "{' in one.data for one in found["s2", "store.db"]), (
        "a blob of text is shown as text"
    )


def search(home: Path, said: str) -> list[str]:
    found = layout(home)
    query = Query((Needle(said),))
    wanted = targets(lambda ref: found, Catalog(None), list(found.discover()))
    return [hit.ref.session_id for hit in Search(query).hits(wanted)]


def test_a_search_reads_only_sessions_that_may_match(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(home)
    for name in ("s2", "s3"):
        Chat(home, name).add({"role": "user", "content": f"a needle of {name}"})
    editor = Editor(home / "User")
    for name in ("s4", "s5"):
        editor.bubble(name, "b1", 1, text=f"\u00c4 NEEDLE of {name}")
        editor.session(name)
    assert sorted(search(home, "needle")) == ["s2", "s3", "s4", "s5"]
    read: list[str] = []
    whole = CursorLayout._items

    def noting(self: CursorLayout, ref: SessionRef, after: Any) -> Any:
        read.append(ref.session_id)
        return whole(self, ref, after)

    monkeypatch.setattr(CursorLayout, "_items", noting)
    assert search(home, "\u00e4 needle of s5") == ["s5"]
    assert set(read) <= {"s5", "s4", "s2", "s3"}
    read.clear()
    assert search(home, "nowhere") == []
    assert read == []


@pytest.mark.lane("samples")
def test_the_public_sample_is_read_without_loss(home: Path) -> None:
    sample = shared_folder() / "samples" / "cursor" / "agent-sessions" / "schema_drift.jsonl"
    transcript(home).parent.mkdir(parents=True)
    transcript(home).write_bytes(sample.read_bytes())
    user, agent, answer, done = messages(layout(home), refs(home)[ID])
    assert (user.origin, answer.role, done.text) == (
        PERSON,
        "tool",
        "The build issue is in Example.swift:42.",
    )
    assert (agent.model, agent.calls[0].arguments) == ("cursor-auto", {"path": "build.log"})
    assert answer.text == "Compile failed in Example.swift:42"
