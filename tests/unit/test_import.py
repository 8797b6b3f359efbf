"""`Workspace.import_file`: every item is stored as it was, once, and the source stays as it is."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessionary import Workspace
from sessionary.errors import Corrupt, Invalid, NotFound, StorageFailed, Unsupported
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.model import Message
from sessionary.workspace.imports import taking_over

STEPS = [
    {"step_id": 1, "source": "user", "message": "Fix it"},
    {
        "step_id": 2,
        "source": "agent",
        "message": [
            {"type": "text", "text": "Yes"},
            {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
        ],
        "reasoning_effort": "high",
        "tool_calls": [{"tool_call_id": "c", "function_name": "sh", "arguments": {"cmd": "ls"}, "extra": {"x": 1}}],
        "observation": {"results": [{"source_call_id": "c", "content": "README"}]},
        "metrics": {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4, "logprobs": [0.1]},
    },
    {"step_id": 3, "source": "system", "message": "", "observation": {"results": [{"content": "done"}]}},
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home", cache=str(tmp_path / "cache"))


def trajectory(folder: Path, **fields: Any) -> Path:
    agent = {"name": "other", "version": "1", "model_name": "m"}
    path = folder / "run.json"
    document = {"schema_version": "ATIF-v1.4", "session_id": "run", "agent": agent, "steps": STEPS, **fields}
    path.write_text(json.dumps(document))
    return path


def openai_database(folder: Path, *rows: str) -> Path:
    path = folder / "conversations.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE IF NOT EXISTS agent_sessions (session_id TEXT PRIMARY KEY, created_at, updated_at);"
            "CREATE TABLE IF NOT EXISTS agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,"
            " message_data TEXT, created_at);"
            "INSERT OR IGNORE INTO agent_sessions (session_id) VALUES ('one')"
        )
        database.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES ('one', ?)",
            [(row,) for row in rows],
        )
    return path


def item(text: str) -> str:
    return json.dumps({"role": "user", "content": text})


def states(workspace: Workspace, path: Path) -> list[tuple[str, int]]:
    return [(one.state, one.items) for one in workspace.import_file(path).sessions]


def items_of(workspace: Workspace, session: str) -> list[Any]:
    path = workspace.find(session).path
    return RecordJournal(path.parent, path.parent.name, session).read(lambda state: state.values())


@pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(9)])
def test_a_trajectory_of_another_program_is_read(workspace: Workspace, tmp_path: Path, version: str) -> None:
    path = trajectory(tmp_path, schema_version=version)
    before = path.read_bytes()
    assert states(workspace, path) == [("added", 4)]
    ref = workspace.find("run")
    read = [one for one in workspace.read(ref) if isinstance(one, Message)]
    assert [(one.role, one.text) for one in read] == [
        ("user", "Fix it"),
        ("assistant", "Yes"),
        ("tool", "README"),
        ("tool", "done"),
    ]
    assert read[1].calls[0].arguments == {"cmd": "ls"}
    assert read[1].model == "m", "it is the model of the trajectory"
    assert read[1].usage is not None
    assert (read[1].usage.input, read[1].usage.cache_read) == (6, 4)
    summary = workspace.summary(ref)
    assert (summary.agent, summary.version, summary.turns, summary.messages) == ("other", "1", 1, 4)
    assert list(workspace.check(ref)) == []
    assert path.read_bytes() == before


def test_what_no_message_has_is_kept(workspace: Workspace, tmp_path: Path) -> None:
    workspace.import_file(trajectory(tmp_path, notes="a note", extra={"k": 1}))
    path = workspace.find("run").path
    kept = RecordJournal(path.parent, "import", "run").read(lambda state: state.table("atif"))
    assert kept["root"]["notes"] == "a note"
    assert kept["root"]["extra"] == {"k": 1}
    assert kept["2"] == {"reasoning_effort": "high", "metrics": {"logprobs": [0.1]}, "tool_calls": [{"x": 1}]}


def test_a_second_import_adds_what_is_new_and_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    path = openai_database(tmp_path, item("a"), item("b"))
    assert states(workspace, path) == [("added", 2)]
    assert states(workspace, path) == [("unchanged", 0)]
    openai_database(tmp_path, item("c"))
    assert states(workspace, path) == [("extended", 1)]
    assert [one["content"] for one in items_of(workspace, "one")] == ["a", "b", "c"]


def test_an_interrupted_import_is_finished_by_the_next(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_over, "CHUNK", 2)
    path = openai_database(tmp_path, *map(item, "abcde"))
    change, calls = RecordJournal.change, 0

    def fail(journal: RecordJournal, decide: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StorageFailed("no space")
        return change(journal, decide)

    with monkeypatch.context() as broken:
        broken.setattr(RecordJournal, "change", fail)
        with pytest.raises(StorageFailed):
            workspace.import_file(path)
    assert len(items_of(workspace, "one")) == 2
    assert states(workspace, path) == [("extended", 3)]
    assert [one["content"] for one in items_of(workspace, "one")] == list("abcde")


def test_a_session_that_continued_here_is_not_mixed_with_the_source(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = openai_database(tmp_path, item("a"))
    workspace.import_file(path)
    file = workspace.find("one").path
    with RecordJournal(file.parent, "openai-agents", "one") as journal:
        journal.change(lambda state: Change(add=[{"role": "user", "content": "here"}]))
    assert states(workspace, path) == [("unchanged", 0)]
    openai_database(tmp_path, item("there"))
    assert states(workspace, path) == [("conflict", 0)]
    assert [one["content"] for one in items_of(workspace, "one")] == ["a", "here"]


def test_another_source_with_the_same_id_is_left_out(workspace: Workspace, tmp_path: Path) -> None:
    workspace.import_file(trajectory(tmp_path))
    other = trajectory(tmp_path, steps=[{"step_id": 1, "source": "user", "message": "Other"}])
    assert states(workspace, other) == [("conflict", 0)]
    assert len(items_of(workspace, "run")) == 4


def test_a_row_that_is_not_json_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    done = workspace.import_file(openai_database(tmp_path, item("a"), "{torn", item("b\ud800")))
    assert [(one.code, one.message.partition(":")[0]) for one in done.problems] == [
        ("bad_row", "row 2 of agent_messages is not JSON and was not imported")
    ]
    assert items_of(workspace, "one") == [{"role": "user", "content": one} for one in ("a", "b\ud800")]


def test_adk_events_state_and_shared_state(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "adk.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE sessions (app_name, user_id, id, state, create_time, update_time);"
            "CREATE TABLE events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data);"
            "CREATE TABLE app_states (app_name, state, update_time);"
            "CREATE TABLE user_states (app_name, user_id, state, update_time);"
            """INSERT INTO sessions VALUES ('a', 'u', 's', '{"k": 1}', '', '2026-03-01 09:00:00.5')"""
            """;INSERT INTO app_states VALUES ('a', '{"x": 2}', '')"""
            """;INSERT INTO user_states VALUES ('a', 'u', '{}', '')"""
        )
        for number in (2, 1):
            data = {
                "author": "user",
                "timestamp": float(number),
                "content": {"parts": [{"text": str(number)}]},
            }
            row = (f"e{number}", "a", "u", "s", "i", number, json.dumps(data))
            database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    assert states(workspace, path) == [("added", 0), ("added", 2)]
    assert states(workspace, path) == [("unchanged", 0), ("unchanged", 0)]
    file = workspace.find("s").path
    state = RecordJournal(file.parent, "google-adk", "s", ("a", "u")).state()
    assert [(one["id"], one["invocation_id"]) for one in state.values()] == [("e1", "i"), ("e2", "i")]
    assert state.table("state") == {"k": 1}
    assert state.value("session", "updated") == 1772355600.5
    assert set(state.keys) == {"e1", "e2"}
    shared = RecordJournal(file.parent / "state", "google-adk", "a").state()
    assert shared.table("state") == {"x": 2}


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"not json", Invalid, "is not JSON"),
        (b"{}", Invalid, "is unknown"),
        (b'{"schema_version": "ATIF-v1.9", "steps": []}', Unsupported, "has version ATIF-v1.9"),
        (b'{"schema_version": "ATIF-v1.8"}', Invalid, "has no list of steps"),
        (b"SQLite format 3\x00", Corrupt, "not a database"),
    ],
)
def test_what_is_not_a_session_is_refused(
    workspace: Workspace, tmp_path: Path, content: bytes, error: type[Exception], words: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(error, match=words) as raised:
        workspace.import_file(path)
    assert str(path) in str(raised.value)


def test_a_missing_file_and_a_database_of_another_program(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        workspace.import_file(tmp_path / "gone")
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE sessions (id)")
    with pytest.raises(Invalid, match="a database without sessions"):
        workspace.import_file(tmp_path / "other.db")


def test_a_hostile_trajectory_is_read_or_refused(workspace: Workspace, tmp_path: Path) -> None:
    steps: list[Any] = [
        {
            "source": 1,
            "message": 2,
            "extra": {"sessionary": {"at": "x", "message": {"parts": 3}, "header": 4}},
        },
        "no step",
        {"source": "agent", "tool_calls": [1, {"arguments": "text"}], "observation": {"results": [3, {}]}},
        {"source": "user", "message": "Hello", "timestamp": "never", "metrics": {"prompt_tokens": "many"}},
        {"extra": {"sessionary": {"message": {"parts": [1, {"type": "text", "text": 1}], "usage": []}}}},
    ]
    done = workspace.import_file(trajectory(tmp_path, session_id="../../etc\x00", steps=steps, agent=[]))
    assert [one.code for one in done.problems] == ["bad_step"]
    (summary,) = workspace.list()
    assert summary.ref.path.parent == tmp_path / "home" / "import"
    texts = [one.text for one in workspace.read(summary.ref) if isinstance(one, Message)]
    assert "Hello" in texts


def test_threads_of_langgraph_need_langgraph(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "threads.db")) as database:
        database.executescript("CREATE TABLE checkpoints (thread_id); CREATE TABLE writes (thread_id)")
    monkeypatch.setitem(sys.modules, "sessionary.plugs.langgraph_import", None)
    with pytest.raises(Unsupported, match="is a database of LangGraph, which cannot be loaded") as raised:
        workspace.import_file(tmp_path / "threads.db")
    assert "pip install 'sessionary[langgraph]'" in str(raised.value.hint)


def test_a_sub_agent_of_a_session_with_a_long_id_belongs_to_it(workspace: Workspace, tmp_path: Path) -> None:
    child = {"schema_version": "ATIF-v1.8", "trajectory_id": "child", "agent": {}, "steps": STEPS}
    workspace.import_file(trajectory(tmp_path, session_id="x" * 100, subagent_trajectories=[child]))
    (top,) = workspace.tree(workspace.list())
    assert [(one.ref.session_id, one.relation) for one in top.children] == [("child", "sub")]
    assert top.ref.session_id.startswith("x" * 24)
