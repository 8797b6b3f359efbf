"""The sessions of Cursor's editor: what its rows say, which are read, and what is damaged in them."""

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sessionary.catalog import Catalog
from sessionary.disk.fs import OS_FS
from sessionary.errors import StorageFailed
from sessionary.layouts.agents import cursor
from sessionary.layouts.agents.cursor import CursorLayout
from sessionary.layouts.agents.rows import PAGE
from sessionary.layouts.sqlite import Database
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Aside,
    Fact,
    Message,
    Other,
    Problem,
    SessionRef,
    ToolResult,
    Usage,
)
from sessionary.testing.cursors import Reader
from tests.support.agent_files import messages, words
from tests.support.cursor_files import KEY, START, Editor, tool

WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", sys.argv[2:])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "cursor").mkdir()
    return tmp_path / "cursor"


@pytest.fixture
def editor(home: Path) -> Editor:
    return Editor(home / "User")


def layout(home: Path) -> CursorLayout:
    return CursorLayout(home, OS_FS)


def refs(home: Path) -> dict[str, SessionRef]:
    return {ref.session_id: ref for ref in layout(home).discover()}


def read(home: Path, name: str = "s1") -> list[Message]:
    return messages(layout(home), refs(home)[name])


def facts(home: Path, name: str) -> dict[str, str]:
    found = layout(home).read(refs(home)[name])
    return {one.name: one.value for one in found if isinstance(one, Fact)}


def talk(editor: Editor, name: str = "s1") -> None:
    rich = {"root": {"children": [{"type": "paragraph", "children": [{"text": "Fix "}, {"text": "it"}]}]}}
    editor.bubble(name, "b1", 1, text="Fix the login", images=[{"uuid": "x"}])
    editor.bubble(name, "b2", 2, thinking={"text": "Hm.", "signature": "x"})
    editor.bubble(name, "b3", 2, text="Looking.", tokenCount={"inputTokens": 10, "outputTokens": 5})
    editor.bubble(name, "b4", 2, toolFormerData=tool("c1", result='{"contents": "a word"}'))
    editor.bubble(name, "b5", 2, toolFormerData=tool("c2", status="error", error="no such file"))
    editor.bubble(
        name,
        "b6",
        2,
        modelInfo={"modelName": "sonnet"},
        toolFormerData=tool("c3", additionalData={"codeblockId": "d1"}),
    )
    editor.put(f"codeBlockDiff:{name}:d1", {"newModelDiffWrtV0": [{"modified": ["x"]}]})
    editor.bubble(name, "b7", 2, toolFormerData=tool("c4", status="cancelled"))
    editor.bubble(name, "b8", 2, toolFormerData={"additionalData": {"status": "error"}}, text="Done.")
    editor.bubble(name, "b9", 1, text="", richText=json.dumps(rich))
    editor.bubble(name, "b10", 2, codeBlocks=[{"content": "x = 1"}])
    editor.bubble(name, "b11", 7, text="of a new kind")
    editor.session(name)


def test_a_conversation(home: Path, editor: Editor) -> None:
    talk(editor)
    user, thought, agent, *tools, done, again, code, new = read(home)
    assert (user.role, user.origin, user.text, user.id) == ("user", PERSON, "Fix the login", "b1")
    assert [part.kind for part in user.parts if isinstance(part, Other)] == ["images"]
    assert user.time is not None
    assert user.time.isoformat() == "2026-03-01T10:00:01+00:00"
    assert (thought.origin, thought.thoughts, thought.usage, thought.model) == (AGENT, ["Hm."], None, "opus")
    assert (agent.text, agent.usage) == ("Looking.", Usage(10, 5))
    assert [[(one.call_id, one.arguments) for one in each.calls] for each in tools[::2]] == [
        [(f"c{number}", {"path": "a.txt"})] for number in (1, 2, 3, 4)
    ]
    assert [each.results[0] for each in tools[1::2]] == [
        ToolResult("c1", '{"contents": "a word"}'),
        ToolResult("c2", "no such file", True),
        ToolResult("c3", ""),
        ToolResult("c4", "cancelled", True),
    ]
    assert {each.origin for each in tools[1::2]} == {TOOL}
    assert tools[4].model == "sonnet"
    assert tools[4].parts[1] == Other("diff", {"newModelDiffWrtV0": [{"modified": ["x"]}]})
    assert (done.text, [part.kind for part in done.parts if isinstance(part, Other)]) == ("Done.", ["tool"])
    assert (again.origin, again.text) == (PERSON, "Fix it")
    assert code.parts == (Other("codeBlocks", [{"content": "x = 1"}]),)
    assert (new.role, new.origin, new.parts[0].kind) == (None, HARNESS, "record")  # type: ignore[union-attr]
    assert json.loads(layout(home).raw(refs(home)["s1"], agent.place))["text"] == "Looking."


def test_what_a_list_shows(home: Path, editor: Editor) -> None:
    talk(editor)
    editor.session("s1", usageData={"opus": {"costInCents": 25, "amount": 3}, "odd": {"costInCents": -1}})
    one = summary_of(layout(home), refs(home)["s1"])
    assert (one.title, one.turns, one.messages, one.health) == ("A title", 2, 15, "ok")
    assert one.usage_by_model() == {"opus": Usage(10, 5, cost=0.25), "sonnet": Usage()}
    assert one.created is not None
    assert one.created.timestamp() * 1000 == START
    with closing(sqlite3.connect(editor.path)) as connection:
        query = "SELECT sum(length(CAST(value AS BLOB))) FROM cursorDiskKV WHERE key NOT LIKE 'code%'"
        assert one.size == connection.execute(query).fetchone()[0]


def test_sessions_without_a_message_are_not_listed(home: Path, editor: Editor) -> None:
    editor.session("draft", name=None)
    editor.put("composerData:null", None)
    editor.put("composerData:broken", '{"composerId": "bro')
    editor.put("agentKv:blob:00", b"\x00")
    assert list(refs(home)) == ["broken"]
    items = list(layout(home).read(refs(home)["broken"]))
    assert [one.code for one in items if isinstance(one, Problem)] == ["bad_json"]


def test_messages_within_the_row_of_old_versions(home: Path, editor: Editor) -> None:
    bubbles = [
        {"type": 1, "bubbleId": "b1", "text": "Hi", "blobEncryptionKey": KEY},
        {"type": 2, "text": "Hello"},
    ]
    editor.session("s1", conversation=bubbles)
    editor.bubble("s2", "b1", 1, text="Split")
    editor.listed["s2"].append({"bubbleId": "b2", "type": 2})
    editor.session("s2", conversationMap={"b2": {"text": "In the map"}})
    assert words(layout(home), refs(home)["s1"]) == "Hi\nHello"
    first, second = read(home)
    assert json.loads(layout(home).raw(refs(home)["s1"], second.place)) == bubbles[1]
    assert KEY.encode() not in layout(home).raw(refs(home)["s1"], first.place)
    assert words(layout(home), refs(home)["s2"]) == "Split\nIn the map"


def test_messages_that_a_session_does_not_list(home: Path, editor: Editor) -> None:
    talk(editor)
    editor.put("bubbleId:s1:b0", {"type": 2, "text": "of a branch that was left"})
    items = list(layout(home).read(refs(home)["s1"]))
    assert [one.message.text for one in items if isinstance(one, Aside)] == ["of a branch that was left"]
    assert [(one.code, one.severity.name) for one in items if isinstance(one, Problem)] == [
        ("not_shown", "note")
    ]


def test_messages_without_their_session(home: Path, editor: Editor) -> None:
    for name in ("b2", "b1"):
        editor.bubble("s1", name, 1, text=f"said {name}")
    items = list(layout(home).read(refs(home)["s1"]))
    assert [one.text for one in items if isinstance(one, Message)] == ["said b2", "said b1"]
    assert [(one.code, one.severity.name) for one in items if isinstance(one, Problem)] == [
        ("no_session", "hides_data")
    ]


def test_damaged_rows_hide_no_other(home: Path, editor: Editor) -> None:
    talk(editor)
    editor.put("bubbleId:s1:b3", '{"type": 2, "te')
    editor.put("bubbleId:s1:b8", b"\xff\x00")
    editor.put("bubbleId:s1:b9", "null")
    editor.run("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:s1:b10'")
    editor.put("codeBlockDiff:s1:d1", "[")
    editor.run("UPDATE cursorDiskKV SET value = CAST(x'7bff7d' AS TEXT) WHERE key = 'bubbleId:s1:b7'")
    editor.run("INSERT INTO cursorDiskKV VALUES (CAST('bubbleId:' || x'ff' AS TEXT), '{')")
    editor.put("bubbleId::b1", {"type": 1})
    editor.put("composerData:", "{")
    assert list(refs(home)) == ["s1"]
    items = list(layout(home).read(refs(home)["s1"]))
    assert [(one.code, one.path.rpartition(":")[2]) for one in items if isinstance(one, Problem)] == [
        ("bad_json", "b3"), ("bad_json", "b7"), ("bad_json", "b8"),
        ("missing_message", "b9"), ("missing_message", "b10"),
    ]  # fmt: skip
    assert all(one.repair for one in items if isinstance(one, Problem))
    assert len([one for one in items if isinstance(one, Message)]) == 9


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_never_raises(home: Path, editor: Editor, seed: int) -> None:
    choose = random.Random(seed)
    talk(editor)
    with closing(sqlite3.connect(editor.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        rows = connection.execute("SELECT key, value FROM cursorDiskKV").fetchall()
        for _ in range(60):
            key, value = choose.choice(rows)
            spoilt = bytearray(value.encode())
            at = choose.randrange(len(spoilt))
            spoilt[at : at + choose.choice((0, 1, 3))] = choose.randbytes(choose.choice((1, 2)))
            stored = "CAST(? AS TEXT)" if choose.random() < 0.7 else "?"
            connection.execute(
                f"UPDATE cursorDiskKV SET value = {stored} WHERE key = ?", (bytes(spoilt), key)
            )
            found = layout(home)
            (ref,) = found.discover()
            said = words(found, ref)
            for name, expected in (
                ("b1", "Fix the login"),
                ("b3", "Looking."),
                ("b4", "a word"),
                ("b8", "Done."),
            ):
                assert expected in said or key in (f"bubbleId:s1:{name}", "composerData:s1")
            assert summary_of(found, ref).ref == ref
            connection.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", (value, key))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_pages_of_the_database(home: Path, editor: Editor, seed: int) -> None:
    choose = random.Random(seed)
    for number in range(40):
        editor.bubble("s1", f"b{number}", 1, text=f"{number} " + "x" * 3000)
    editor.session("s1")
    data, most = editor.path.read_bytes(), 0
    for _ in range(40):
        spoilt = bytearray(data)
        page = choose.randrange(len(data) // 4096) * 4096
        spoilt[page : page + 4096] = choose.choice([bytes(4096), choose.randbytes(4096)])
        editor.path.write_bytes(spoilt)
        try:
            listed = list(summaries(layout(home)))
            items = list(layout(home).read(refs(home)["s1"]))
        except StorageFailed:
            continue
        assert [one.ref.session_id for one in listed] == ["s1"]
        said = [one for one in items if isinstance(one, Message)]
        assert len(said) == 40 or any(isinstance(one, Problem) for one in items)
        most += len(said) >= 38
    assert most > 20, "a damaged page of one message hides few others"


def test_a_damaged_database_hides_no_other_store(home: Path, editor: Editor) -> None:
    talk(editor)
    path = home / "globalStorage" / "state.vscdb"
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 300)
    found = layout(home).discover()
    assert next(found).session_id == "s1"
    with pytest.raises(StorageFailed, match="not a database"):
        next(found)


def test_a_sub_agent_is_below_its_parent(home: Path, editor: Editor) -> None:
    for name in ("s1", "s2", "s3", "s4", "s5"):
        editor.bubble(name, "b1", 1, text="Hi")
    editor.session("s1", subagentComposerIds=["s2"], subComposerIds=["s3"])
    editor.session("s2")
    editor.session("s3", isBestOfNSubcomposer=True)
    editor.session("s4", subagentInfo={"parentComposerId": "s1"})
    editor.session("s5")
    editor.run("CREATE TABLE composerHeaders (composerId TEXT, isSubagent INTEGER, lastUpdatedAt INTEGER)")
    editor.run("INSERT INTO composerHeaders VALUES ('s5', 1, 5)")
    found = {one.ref.session_id: (one.parent, one.nested) for one in summaries(layout(home))}
    assert found == {
        "s1": (None, False), "s2": ("s1", True), "s3": ("s1", True), "s4": ("s1", True), "s5": (None, True),
    }  # fmt: skip


def test_the_folder_of_a_session(home: Path, editor: Editor) -> None:
    for name in ("own", "repo", "head", "workspace", "old", "none"):
        editor.bubble(name, "b1", 1, text="Hi")
    editor.session("own", workspaceIdentifier={"uri": {"fsPath": "/home/u/own"}}, createdOnBranch="main")
    editor.session("repo", trackedGitRepos=[{"repoPath": "/home/u/repo"}])
    for name in ("head", "workspace", "none"):
        editor.session(name)
    editor.session("old", name=None)
    editor.run("CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, value TEXT)")
    head = {"name": "Not used", "workspaceIdentifier": {"uri": {"external": "file:///home/u/a%20b"}}}
    editor.run("INSERT INTO composerHeaders VALUES ('head', 'w9', ?)", json.dumps(head))
    editor.run("INSERT INTO composerHeaders VALUES ('workspace', 'w1', '{')")
    editor.run("INSERT INTO composerHeaders VALUES ('none', '../w1', NULL)")
    for workspace in ("w1", "w2"):
        (editor.folder / "workspaceStorage" / workspace).mkdir(parents=True)
        value = json.dumps({"folder": f"file:///home/u/{workspace}"})
        (editor.folder / "workspaceStorage" / workspace / "workspace.json").write_text(value)
    old = [{"composerId": "old", "name": "Of old", "createdOnBranch": "dev"}]
    with (
        closing(sqlite3.connect(editor.folder / "workspaceStorage/w2/state.vscdb")) as connection,
        connection,
    ):
        connection.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
        value = json.dumps({"allComposers": old})
        connection.execute("INSERT INTO ItemTable VALUES ('composer.composerData', ?)", (value,))
    assert {name: facts(home, name).get("cwd") for name in refs(home)} == {
        "own": "/home/u/own", "repo": "/home/u/repo", "head": "/home/u/a b", "workspace": "/home/u/w1",
        "old": "/home/u/w2", "none": None,
    }  # fmt: skip
    assert facts(home, "own")["branch"] == "main"
    assert (facts(home, "old")["title"], facts(home, "old")["branch"]) == ("Of old", "dev")


def test_the_settings_of_each_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (*cursor.HOMES, "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    found = {}
    for system in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", system)
        places = [one.path for one in CursorLayout(CursorLayout.default_home(), OS_FS).locations()]
        found[system] = places[2].removeprefix(f"{tmp_path}/")
        assert places[:2] == [f"{tmp_path}/.cursor", f"{tmp_path}/.cursor-server"]
    assert found == {
        "linux": ".config/Cursor/User/globalStorage/state.vscdb",
        "darwin": "Library/Application Support/Cursor/User/globalStorage/state.vscdb",
        "win32": "AppData/Roaming/Cursor/User/globalStorage/state.vscdb",
    }
    monkeypatch.setenv("CURSOR_CONFIG_DIR", "~/own")
    assert CursorLayout.default_home() == tmp_path / "own"


def test_a_list_reads_only_what_changed(home: Path, editor: Editor, tmp_path: Path) -> None:
    talk(editor)
    editor.bubble("s2", "b1", 1, text="Other")
    editor.session("s2")
    catalog, read = Catalog(str(tmp_path / "cache")), list[str]()

    class Noting(CursorLayout):
        def read(self, ref: SessionRef, after: Any = None, may_match: Any = None) -> Any:
            read.append(ref.session_id)
            return super().read(ref, after, may_match)

    def listed() -> dict[str, int]:
        return {one.ref.session_id: one.messages for one in catalog.summaries(Noting(home, OS_FS))}

    assert listed() == {"s1": 15, "s2": 1}
    read.clear()
    assert listed() == {"s1": 15, "s2": 1}
    assert read == []
    editor.put("bubbleId:s2:b1", {"type": 1, "text": "Changed"})
    editor.bubble("s2", "b2", 1, text="More")
    editor.session("s2")
    assert listed() == {"s1": 15, "s2": 2}
    assert read == ["s2"]


@pytest.mark.parametrize("seed", range(20))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, editor: Editor, seed: int) -> None:
    choose = random.Random(seed)
    editor.bubble("s1", "b", 1, text="Hi")
    editor.session("s1")
    reader = Reader(layout(home), refs(home)["s1"])
    for number in range(8):
        more: dict[str, Any] = {}
        for step in range(choose.randint(0, 3)):
            what = choose.choice(["add", "add", "add", "update", "remove", "loose", "cost", "model"])
            name = f"b{number}-{step}"
            if what == "add":
                data = tool(name, status=choose.choice(["completed", "loading"]))
                editor.bubble("s1", name, choose.choice([1, 2]), text=name, toolFormerData=data)
            elif what == "update":
                last = editor.listed["s1"][-1]["bubbleId"]
                editor.put(f"bubbleId:s1:{last}", {"type": 2, "text": f"changed {name}"})
            elif what == "remove":
                editor.run(
                    "DELETE FROM cursorDiskKV WHERE key = (SELECT min(key) FROM cursorDiskKV WHERE key > 'b:')"
                )
            elif what == "loose" and choose.random() < 0.3:
                editor.listed["s1"].pop(0) if len(editor.listed["s1"]) > 1 else None
            elif what == "cost":
                more["usageData"] = {"opus": {"costInCents": number}}
            else:
                more["modelConfig"] = {"modelName": choose.choice(["grok", "default"])}
        editor.session("s1", **more)
        reader.go_on()


def test_what_is_added_is_read_alone(home: Path, editor: Editor) -> None:
    talk(editor)
    reader = Reader(layout(home), refs(home)["s1"])
    reader.go_on()
    editor.bubble("s1", "b12", 1, text="Thanks")
    editor.session("s1")
    reader.go_on()
    assert reader.resets == 0
    editor.put("bubbleId:s1:b3", {"type": 2, "text": "changed"})
    reader.go_on()
    assert reader.resets == 1


def test_rows_are_found_by_ranges_of_keys_and_read_in_pages(
    home: Path, editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(editor.path)) as connection, connection:
        rows = [(f"agentKv:blob:{number:064d}", b"x" * 100) for number in range(2000)]
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
    for number in range(PAGE + 20):
        editor.bubble("s1", f"b{number}", 1, text=f"{number}")
    editor.session("s1")
    plans: list[str] = []
    sizes: list[int] = []
    whole = Database.fetch

    def noting(self: Database, statement: str, parameters: Any = ()) -> Any:
        plans.extend(
            f"{row[3]}: {statement}" for row in whole(self, f"EXPLAIN QUERY PLAN {statement}", parameters)
        )
        found = whole(self, statement, parameters)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(Database, "fetch", noting)
    assert len(read(home)) == PAGE + 20
    summary_of(layout(home), refs(home)["s1"])
    scans = [one for one in plans if one.startswith("SCAN") and "pragma_table_info" not in one]
    assert scans == [], "the index answers each query"
    counting = [
        one for one in plans if "count(*)" in one and "cursorDiskKV" in one and one.startswith("SEARCH")
    ]
    assert counting
    assert all("COVERING INDEX" in one for one in counting), "no value is read to find what changed"
    with_values = [size for size in sizes if size > 1]
    assert max(with_values) == PAGE + 20, "the ids; values come in pages"


@pytest.mark.parametrize("state", ["open", "killed"])
def test_a_database_is_read_while_it_is_written(home: Path, editor: Editor, state: str) -> None:
    talk(editor)
    value = json.dumps({"type": 2, "text": "Only in the log"})
    command = [sys.executable, "-c", WRITER, str(editor.path), value, "bubbleId:s1:b3"]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    if state == "killed":
        writer.kill()
        writer.wait()
    folder = editor.path.parent
    before = {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()}
    assert len(before) == 3
    assert "Only in the log" in words(layout(home), refs(home)["s1"])
    summary_of(layout(home), refs(home)["s1"])
    assert {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()} == before
    writer.communicate()


def test_a_row_that_is_not_a_message_is_not_shown_as_it_is(home: Path, editor: Editor) -> None:
    talk(editor)
    found = layout(home)
    ref = refs(home)["s1"]
    place = read(home)[0].place
    with pytest.raises(Exception, match="There is no record cursorAuth"):
        found.raw(ref, replace(place, path=f"{editor.path}#cursorAuth/accessToken"))
    document = found.raw(ref, replace(place, path=f"{editor.path}#composerData:s1"))
    assert KEY.encode() not in document
    assert json.loads(document)["name"] == "A title"
    with pytest.raises(Exception, match="Session 'nothing' not found"):
        list(found.read(SessionRef("cursor", "nothing", f"{editor.path}#nothing", None)))
