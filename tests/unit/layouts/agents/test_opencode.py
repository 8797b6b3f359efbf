"""The sessions of OpenCode: in both generations of its database and in files, what they say, and what is damaged."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessionary.catalog import Catalog
from sessionary.disk.fs import OS_FS
from sessionary.layouts.agents.opencode import OpenCodeLayout
from sessionary.layouts.base import Capability
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    TOOL,
    Message,
    Other,
    Problem,
    SessionRef,
    Usage,
)
from sessionary.testing.cursors import Reader
from tests.lanes import shared_folder

V1 = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT, directory TEXT,
                      time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
                   time_updated INTEGER, data TEXT);
"""
V2 = """
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, parent_id TEXT, fork_session_id TEXT, title TEXT, directory TEXT,
                         time_created INTEGER, time_updated INTEGER);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER,
                              time_updated INTEGER, data TEXT);
"""
START = 1_772_000_000_000


class Store:
    """A database of OpenCode that a test fills; its clock advances by a second for each row."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.now = START
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(V1 + V2)

    def run(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(statement, values)

    def tick(self) -> int:
        self.now += 1000
        return self.now

    def session(self, name: str, parent: str | None = None, title: str = "A title") -> None:
        now = self.tick()
        self.run(
            "INSERT INTO session VALUES (?,?,?,?,?,?,?)",
            name,
            "global",
            parent,
            title,
            "/home/u/app",
            now,
            now,
        )

    def message(self, session: str, name: str, role: str, *parts: dict[str, Any], **data: Any) -> None:
        now = self.tick()
        value = json.dumps({"role": role, "time": {"created": now}, **data})
        self.run("INSERT INTO message VALUES (?,?,?,?,?)", name, session, now, now, value)
        for number, part in enumerate(parts):
            row = (f"{name}-{number}", name, session, now, now, json.dumps(part))
            self.run("INSERT INTO part VALUES (?,?,?,?,?,?)", *row)

    def v2(self, session: str, seq: int, kind: str, **data: Any) -> None:
        now = self.tick()
        value = json.dumps({"time": {"created": now}, **data})
        self.run(
            "INSERT INTO session_message VALUES (?,?,?,?,?,?,?)",
            f"{session}-{seq}",
            session,
            kind,
            seq,
            now,
            now,
            value,
        )


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(call_id: str, status: str = "completed", name: str = "bash", **state: Any) -> dict[str, Any]:
    return {
        "type": "tool",
        "tool": name,
        "callID": call_id,
        "state": {"status": status, "input": {"command": "ls"}, **state},
    }


TOKENS = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 7, "write": 3}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data" / "opencode"


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home / "opencode.db")


def layout(home: Path) -> OpenCodeLayout:
    return OpenCodeLayout(home, OS_FS)


def refs(home: Path) -> dict[str, SessionRef]:
    return {ref.session_id: ref for ref in layout(home).discover()}


def read(home: Path, name: str) -> list[Message]:
    return [one for one in layout(home).read(refs(home)[name]) if isinstance(one, Message)]


def talk(store: Store) -> None:
    store.session("ses_1")
    store.message("ses_1", "msg_1", "user", text("Fix the login"), text("<file>", synthetic=True))
    store.message(
        "ses_1", "msg_2", "assistant", {"type": "step-start"}, {"type": "reasoning", "text": "Hm."}, text("Looking."),
        tool("c1", output="a.txt", metadata={"exit": 0}), tool("c2", output="no such file", metadata={"exit": 1}),
        tool("c3", "error", error="refused"), tool("c4", "running"), {"type": "patch", "hash": "f00"},
        {"type": "step-finish", "tokens": TOKENS, "cost": 0.5},
        modelID="sonnet", providerID="anthropic", tokens=TOKENS, cost=0.5, parentID="msg_1",
    )  # fmt: skip
    store.message("ses_1", "msg_3", "user", {"type": "compaction", "auto": True})
    store.message(
        "ses_1", "msg_4", "assistant", text("They fixed it."), summary=True, modelID="sonnet", tokens=TOKENS
    )


def test_a_conversation_of_version_1(home: Path, store: Store) -> None:
    talk(store)
    user, agent, answers, asked, summary = read(home, "ses_1")
    assert (user.origin, user.text) == (PERSON, "Fix the login\n<file>")
    assert (agent.origin, agent.text, agent.thoughts, agent.model) == (AGENT, "Looking.", ["Hm."], "sonnet")
    assert [(one.call_id, one.name, one.arguments) for one in agent.calls] == [
        (f"c{number}", "bash", {"command": "ls"}) for number in (1, 2, 3, 4)
    ]
    assert [(one.call_id, one.text, one.is_error) for one in answers.results] == [
        ("c1", "a.txt", False), ("c2", "no such file", True), ("c3", "refused", True),
    ]  # fmt: skip
    assert answers.origin == TOOL
    assert agent.usage == Usage(10, 7, 7, 3, 2, 0.5), "the tokens of the steps are those of the message"
    assert [part.kind for part in agent.parts if isinstance(part, Other)] == ["patch"]
    assert (asked.origin, summary.origin) == (HARNESS, COMPACTION)


def test_what_a_list_shows(home: Path, store: Store) -> None:
    talk(store)
    store.session("ses_2", parent="ses_1", title="A helper")
    found = {one.ref.session_id: one for one in summaries(layout(home))}
    one = found["ses_1"]
    assert (one.title, one.turns, one.messages, one.cwd) == ("A title", 1, 5, "/home/u/app")
    assert one.usage_by_model() == {"sonnet": Usage(20, 14, 14, 6, 4, 0.5)}
    assert [problem.code for problem in one.problems] == ["orphaned_call"]
    assert (found["ses_2"].parent, found["ses_2"].nested, one.nested) == ("ses_1", True, False)


def test_a_conversation_of_version_2(home: Path, store: Store) -> None:
    now = store.tick()
    store.run("INSERT INTO session_v2 VALUES (?,?,?,?,?,?,?)", "ses_9", None, "ses_1", "Fork", "/w", now, now)
    store.v2("ses_9", 1, "user", text="Go on")
    content = [{"type": "reasoning", "text": "Hm."}, text("Done."), {
        "type": "tool", "id": "c1", "name": "bash",
        "state": {"status": "completed", "input": {"command": "ls"}, "content": [text("a.txt")]},
    }]  # fmt: skip
    store.v2("ses_9", 2, "assistant", content=content, model={"id": "opus"}, tokens=TOKENS)
    store.v2("ses_9", 3, "shell", callID="s1", command="pwd", output="/w")
    store.v2("ses_9", 4, "compaction", reason="auto", summary="So far.")
    store.v2("ses_9", 5, "model-switched", model="haiku")
    store.v2("ses_9", 6, "something-new", value=1)
    user, agent, answer, call, shell, compaction, switched, new = read(home, "ses_9")
    assert (user.text, agent.text, agent.model, answer.results[0].text) == ("Go on", "Done.", "opus", "a.txt")
    assert (call.calls[0].arguments, shell.results[0].text) == ({"command": "pwd"}, "/w")
    assert (compaction.origin, compaction.text, switched.text) == (COMPACTION, "So far.", "model: haiku")
    assert (new.role, new.parts[0]) == (
        None,
        Other("record", {"type": "something-new", "time": {"created": store.now}, "value": 1}),
    )
    found = summary_of(layout(home), refs(home)["ses_9"])
    assert (found.parent, found.nested, found.turns) == ("ses_1", False, 1), "a fork is not a sub-agent"


def test_of_a_session_in_both_generations_the_newer_counts(home: Path, store: Store) -> None:
    talk(store)
    now = store.tick()
    store.run("INSERT INTO session_v2 VALUES (?,?,?,?,?,?,?)", "ses_1", None, None, "Moved", "/w", now, now)
    store.v2("ses_1", 1, "user", text="Only here")
    assert list(refs(home)) == ["ses_1"]
    assert [one.text for one in read(home, "ses_1")] == ["Only here"]


def test_what_a_fork_repeats_counts_once(home: Path, store: Store) -> None:
    tokens = {"input": 10, "output": 2}
    store.run("INSERT INTO session_v2 VALUES (?,?,?,?,?,?,?)", "one", None, None, "A", "/w", START, START)
    store.v2("one", 1, "assistant", content=[text("a")], model="m", tokens=tokens)
    created = store.now
    forked = store.tick()
    store.run("INSERT INTO session_v2 VALUES (?,?,?,?,?,?,?)", "two", None, "one", "A", "/w", forked, forked)
    store.v2("two", 1, "assistant", content=[text("a")], model="m", tokens=tokens, time={"created": created})
    store.v2("two", 2, "assistant", content=[text("b")], model="m", tokens={"input": 1, "output": 1})
    found = {one.ref.session_id: one for one in summaries(layout(home))}
    assert found["one"].usage_by_model() == {"m": Usage(input=10, output=2)}
    assert found["two"].usage_by_model() == {"m": Usage(input=1, output=1)}
    assert (found["two"].parent, found["two"].nested, found["two"].messages) == ("one", False, 2)
    store.run("DELETE FROM session_v2 WHERE id = 'one'")
    (alone,) = summaries(layout(home))
    assert alone.usage_by_model() == {"m": Usage(input=11, output=3)}, "the other one is gone: it counts here"


def test_a_session_of_version_1_goes_on_in_the_messages_of_version_2(home: Path, store: Store) -> None:
    store.session("ses_1")
    store.message("ses_1", "m1", "user", text("Old question"))
    store.v2("ses_1", 28, "user", text="New question")
    store.v2("ses_1", 29, "assistant", content=[text("New answer")], tokens=TOKENS, model={"id": "opus"})
    store.message("ses_1", "m2", "user", text("Old again"))
    assert [one.text for one in read(home, "ses_1")] == [
        "Old question",
        "New question",
        "New answer",
        "Old again",
    ]
    found = summary_of(layout(home), refs(home)["ses_1"])
    assert (found.turns, found.total_usage()) == (3, Usage(10, 7, 7, 3, 2))
    assert found.size == sum(len(row) for row in rows_of(store))


def rows_of(store: Store) -> list[str]:
    with closing(sqlite3.connect(store.path)) as connection:
        tables = ("message", "part", "session_message")
        return [data for table in tables for (data,) in connection.execute(f"SELECT data FROM {table}")]


def test_a_fork_without_a_link_is_known_by_the_times_of_its_copies(home: Path, store: Store) -> None:
    tokens = {"tokens": TOKENS, "modelID": "opus"}
    store.session("ses_0")
    store.message("ses_0", "m0", "user", text("Another conversation"))
    store.session("ses_1")
    store.message("ses_1", "m1", "user", text("Question"))
    store.message("ses_1", "m2", "assistant", text("Answer"), **tokens)
    store.session("ses_2", title="A title (fork #1)")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for name in ("m1", "m2"):
            copied = f"SELECT '{name}c', 'ses_2', time_created, time_updated, data FROM message WHERE id = '{name}'"
            connection.execute(f"INSERT INTO message {copied}")
    store.message("ses_2", "m3", "assistant", text("Own"), **tokens)
    fork = summary_of(layout(home), refs(home)["ses_2"])
    assert (fork.parent, fork.nested, fork.messages, fork.total_usage()) == (
        "ses_1",
        False,
        3,
        Usage(10, 7, 7, 3, 2),
    )
    assert summary_of(layout(home), refs(home)["ses_1"]).parent is None
    store.run("DELETE FROM session WHERE id = 'ses_1'")
    alone = summary_of(layout(home), refs(home)["ses_2"])
    assert (alone.parent, alone.total_usage()) == (None, Usage(20, 14, 14, 6, 4)), (
        "nothing else states it then"
    )


def test_what_a_revert_took_back_is_left_out_until_it_is_undone(home: Path, store: Store) -> None:
    store.run("ALTER TABLE session ADD COLUMN revert TEXT")
    row = "('ses_1', 'global', NULL, 'A title', '/home/u/app', ?, ?, NULL)"
    store.run(f"INSERT INTO session VALUES {row}", START, START)
    for number in range(3):
        store.message("ses_1", f"m{number}", "user", text(f"Question {number}"))
    reader = Reader(layout(home), refs(home)["ses_1"])
    reader.go_on()
    store.run("UPDATE session SET revert = ?", json.dumps({"messageID": "m1", "snapshot": "x"}))
    reader.go_on()
    reader.go_on()
    assert [one.text for one in read(home, "ses_1")] == ["Question 0"]
    found = summary_of(layout(home), refs(home)["ses_1"])
    assert (found.turns, [(one.code, one.message) for one in found.problems]) == (
        1, [("not_shown", "2 messages that were reverted are not shown")],
    )  # fmt: skip
    for stated in (json.dumps({"messageID": "gone"}), "no JSON", "[]", None):
        store.run("UPDATE session SET revert = ?", stated)
        assert len(read(home, "ses_1")) == 3, stated


def test_sessions_in_files(home: Path) -> None:
    storage = home / "storage"
    for path, value in {
        "session/p/ses_a.json": {
            "id": "ses_a",
            "title": "Old",
            "directory": "/w",
            "time": {"created": START},
        },
        "message/ses_a/msg_1.json": {"id": "msg_1", "role": "user", "time": {"created": START}},
        "message/ses_a/msg_2.json": {"id": "msg_2", "role": "assistant", "time": {"created": START + 1}},
        "part/msg_1/prt_1.json": text("Hello"),
        "part/prt_2.json": {"messageID": "msg_2", **tool("c1", "success", output="ok")},
        "part/prt_3.json": {"messageID": "msg_9", **text("of another")},
    }.items():
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_text(json.dumps(value))
    user, agent, answer = read(home, "ses_a")
    assert (user.text, [one.name for one in agent.calls], answer.results[0].text) == ("Hello", ["bash"], "ok")
    found = summary_of(layout(home), refs(home)["ses_a"])
    assert (found.title, found.cwd, found.turns, found.health) == ("Old", "/w", 1, "ok")
    (storage / "message/ses_a/msg_1.json").write_text('{"id": "msg_1", "ro')
    found = summary_of(layout(home), refs(home)["ses_a"])
    assert [problem.code for problem in found.problems] == ["bad_json"]
    assert found.messages == 2


def test_every_name_of_the_database_and_kilo(home: Path) -> None:
    for folder, name in ((home, "opencode-dev.db"), (home.parent / "kilo", "kilo.db")):
        Store(folder / name).session(f"ses_{name}")
    assert set(refs(home)) == {"ses_opencode-dev.db", "ses_kilo.db"}


def test_a_file_of_kilo_is_a_session_by_its_path_too(home: Path) -> None:
    path = home.parent / "kilo" / "storage" / "session" / "p" / "ses_k.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "ses_k", "title": "Old"}')
    assert layout(home).ref_for_path(path) == refs(home)["ses_k"]


def test_a_damaged_row_hides_no_other(home: Path, store: Store) -> None:
    talk(store)
    store.run("UPDATE part SET data = '{\"type\": \"te' WHERE id = 'msg_2-2'")
    store.run("UPDATE message SET data = ? WHERE id = 'msg_1'", b"\xff\x00")
    store.run("UPDATE part SET data = CAST(x'7bff7d' AS TEXT) WHERE id = 'msg_2-1'")
    items = list(layout(home).read(refs(home)["ses_1"]))
    problems = [one for one in items if isinstance(one, Problem)]
    assert [(one.code, one.path.rpartition("#")[2]) for one in problems] == [
        ("bad_json", "message/msg_1"), ("bad_json", "part/msg_2-1"), ("bad_json", "part/msg_2-2"),
    ]  # fmt: skip
    messages = [one for one in items if isinstance(one, Message)]
    texts = ["Fix the login\n<file>", "", "a.txt\nno such file\nrefused", "", "They fixed it."]
    assert [one.text for one in messages] == texts
    assert layout(home).raw(refs(home)["ses_1"], messages[0].place) == b"\xff\x00"


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_of_a_row_hides_no_other(home: Path, store: Store, seed: int) -> None:
    choose = random.Random(seed)
    store.session("ses_1")
    for number in range(6):
        store.message("ses_1", f"msg_{number}", "user", text(f"word {number}"))
    ref = refs(home)["ses_1"]
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        rows = [
            (table, *row)
            for table in ("message", "part")
            for row in connection.execute(f"SELECT id, data FROM {table}")
        ]
        for _ in range(60):
            table, name, value = choose.choice(rows)
            spoilt = bytearray(value.encode())
            at = choose.randrange(len(spoilt))
            spoilt[at : at + choose.choice((0, 1, 3))] = choose.randbytes(choose.choice((1, 2)))
            stored = "CAST(? AS TEXT)" if choose.random() < 0.7 else "?"
            connection.execute(f"UPDATE {table} SET data = {stored} WHERE id = ?", (bytes(spoilt), name))
            said = "\n".join(one.text for one in layout(home).read(ref) if isinstance(one, Message))
            for number in range(6):
                assert name.startswith(f"msg_{number}") or f"word {number}" in said
            assert summary_of(layout(home), ref).ref == ref
            connection.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (value, name))


def test_a_damaged_database_hides_no_other(home: Path, store: Store) -> None:
    talk(store)
    (home / "opencode-stable.db").write_bytes(b"no database at all" * 100)
    found: Iterator[SessionRef] = layout(home).discover()
    assert next(found).session_id == "ses_1"
    with pytest.raises(Exception, match="not a database"):
        next(found)


def test_a_list_reads_only_what_changed(home: Path, store: Store, tmp_path: Path) -> None:
    talk(store)
    store.session("ses_2")
    store.message("ses_2", "msg_9", "user", text("Other"))
    catalog, read = Catalog(str(tmp_path / "cache")), list[str]()

    class Noting(OpenCodeLayout):
        def read(self, ref: SessionRef, after: Any = None, may_match: Any = None) -> Any:
            read.append(ref.session_id)
            return super().read(ref, after, may_match)

    def listed() -> dict[str, int]:
        return {one.ref.session_id: one.messages for one in catalog.summaries(Noting(home, OS_FS))}

    assert listed() == {"ses_1": 5, "ses_2": 1}
    read.clear()
    assert listed() == {"ses_1": 5, "ses_2": 1}
    assert read == []
    store.message("ses_2", "msg_10", "user", text("More"))
    assert listed() == {"ses_1": 5, "ses_2": 2}
    assert read == ["ses_2"]


@pytest.mark.parametrize("seed", range(25))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, store: Store, seed: int) -> None:
    choose = random.Random(seed)
    store.session("ses_1")
    reader = Reader(layout(home), refs(home)["ses_1"])
    for number in range(8):
        for _ in range(choose.randint(0, 3)):
            what = choose.choice(["add", "add", "add", "update", "part", "remove"])
            name = f"msg_{number}_{choose.random()}"
            if what == "add":
                role = choose.choice(["user", "assistant"])
                store.message(
                    "ses_1", name, role, text(name), tool(name, choose.choice(["completed", "running"]))
                )
            elif what == "update":
                query = (
                    "UPDATE message SET time_updated = ?, data = ? WHERE id = (SELECT max(id) FROM message)"
                )
                store.run(query, store.tick(), json.dumps({"role": "user"}))
            elif what == "part":
                query = "UPDATE part SET time_updated = ?, data = ? WHERE id = (SELECT min(id) FROM part)"
                store.run(query, store.tick(), json.dumps(text(name)))
            else:
                store.run("DELETE FROM message WHERE id = (SELECT min(id) FROM message)")
        reader.go_on()


def test_what_is_added_is_read_alone(home: Path, store: Store) -> None:
    talk(store)
    reader = Reader(layout(home), refs(home)["ses_1"])
    reader.go_on()
    store.message("ses_1", "msg_5", "user", text("Thanks"))
    reader.go_on()
    assert reader.resets == 0
    store.run("UPDATE message SET time_updated = ? WHERE id = 'msg_2'", store.tick())
    reader.go_on()
    assert reader.resets == 1


def test_nothing_is_written(home: Path, store: Store) -> None:
    talk(store)
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()
    }
    for one in summaries(layout(home)):
        list(layout(home).check(one.ref))
        list(layout(home).parts(one.ref))
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()
    } == before
    assert OpenCodeLayout.capabilities == {Capability.NESTS, Capability.RESUME}


@pytest.mark.lane("samples")
def test_the_public_samples_are_read_without_loss(tmp_path: Path) -> None:
    samples = shared_folder() / "samples" / "opencode"
    home = tmp_path / "opencode"
    for folder in ("storage_legacy", "storage_v2"):
        found = OpenCodeLayout(home, OS_FS)
        (home / "storage").parent.mkdir(exist_ok=True)
        if (home / "storage").is_symlink():
            (home / "storage").unlink()
        (home / "storage").symlink_to(samples / folder)
        listed = list(summaries(found))
        assert listed
        assert all(one.messages and one.turns and one.health == "ok" for one in listed), listed
    (home / "opencode.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(home / "opencode.db")) as connection:
        connection.executescript((samples / "opencode.sql").read_text())
    found_texts = [one.text for one in read(home, "registry-opencode")]
    assert found_texts == ["inspect the sqlite fixture", "the sqlite rows are readable"]
