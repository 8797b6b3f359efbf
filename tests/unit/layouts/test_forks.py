"""Forks: what a new session takes along, what it is called, and what it never does to another."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import AlreadyExists, Invalid, InvalidId
from sessionary.layouts.amplifier.forks import fork_session, fork_session_in_memory, get_fork_preview
from sessionary.layouts.amplifier.lineage import get_session_lineage, list_session_forks
from sessionary.layouts.amplifier.store import SessionStore
from tests.unit.layouts.surgery_samples import (
    EVENTS,
    ID,
    MESSAGES,
    METADATA,
    PROMPTS,
    events_of,
    lines,
    read,
    turn,
    write_session,
)

NOW = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "sessions" / ID)


def fork(session: Path, **more: Any) -> Any:
    return fork_session(session, now=lambda: NOW, **more)


def event_lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def as_fork(events: list[dict[str, Any]], session_id: str, parent_id: str = ID) -> list[dict[str, Any]]:
    return [{**event, "session_id": session_id, "parent_session_id": parent_id} for event in events]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_fork_after_any_turn(session: Path, at: int) -> None:
    before = read(session)
    result = fork(session, turn=at, new_session_id="new")
    folder = session.parent / "new"
    assert (folder / "transcript.jsonl").read_bytes() == lines(MESSAGES[: 4 * at])
    assert event_lines(folder) == as_fork(EVENTS[: 1 + 7 * at], "new")
    assert result.session_id == "new"
    assert result.session_dir == folder
    assert result.parent_id == ID
    assert result.forked_from_turn == at
    assert result.message_count == 4 * at
    assert result.messages is None
    assert result.events_count == 1 + 7 * at
    assert read(session) == before


def test_without_a_turn_all_of_it_comes_along_under_a_new_id(session: Path) -> None:
    result = fork(session)
    assert result.forked_from_turn == 3
    assert len(result.session_id) == 36
    assert SessionStore(session.parent).load(result.session_id)[0] == MESSAGES


def test_name_folder_and_configuration_of_the_agent_come_along(session: Path) -> None:
    document = {
        **METADATA,
        "config": {"tools": ["bash"]},
        "agent_name": "explorer",
        "trace_id": "t",
        "child_span": "c",
    }
    (session / "metadata.json").write_text(json.dumps(document))
    (session / "config.md").write_text("---\n---\n")
    fork(session, turn=2, new_session_id="new")
    folder = session.parent / "new"
    assert json.loads((folder / "metadata.json").read_bytes()) == {
        "session_id": "new",
        "parent_id": ID,
        "forked_from_turn": 2,
        "forked_at": "2026-03-02T00:00:00+00:00",
        "created": "2026-03-02T00:00:00+00:00",
        "turn_count": 2,
        "bundle": "bundle:foundation",
        "model": "model-a",
        "name": "Fix login race",
        "working_dir": "/home/u/app",
        "config": {"tools": ["bash"]},
        "agent_name": "explorer",
    }
    assert (folder / "config.md").read_text() == "---\n---\n"


def test_a_parent_without_metadata(session: Path) -> None:
    (session / "metadata.json").unlink()
    result = fork(session, new_session_id="new")
    metadata = json.loads((session.parent / "new" / "metadata.json").read_bytes())
    assert result.parent_id == ID
    assert (metadata["bundle"], metadata["model"], metadata["turn_count"]) == (None, None, 3)


@pytest.mark.parametrize("stamped", ["metadata", "timestamp", "ts", "nowhere"])
def test_events_come_along_wherever_times_stand(tmp_path: Path, stamped: str) -> None:
    messages = [m for n, prompt in enumerate(PROMPTS, 1) for m in turn(n, prompt, stamped=stamped)]
    session = write_session(tmp_path / ID, messages)
    assert fork(session, turn=1, new_session_id="new").events_count == 8


def test_without_events(session: Path) -> None:
    assert fork(session, new_session_id="new", include_events=False).events_count == 0
    assert not (session.parent / "new" / "events.jsonl").exists()
    (session / "events.jsonl").unlink()
    assert fork(session, new_session_id="newer").events_count == 0
    assert (session.parent / "newer" / "events.jsonl").read_bytes() == b""


def test_a_fork_of_a_fork_has_one_parent(session: Path) -> None:
    fork(session, new_session_id="one")
    fork(session.parent / "one", new_session_id="two")
    assert event_lines(session.parent / "two") == as_fork(EVENTS, "two", "one")
    assert (session.parent / "two" / "events.jsonl").read_bytes().count(b"parent_session_id") == len(EVENTS)


ODD = [
    b'{"data": {"session_id": "inner", "deep": {"session_id": "x"}}, "session_id": "old"}',
    b'{"event": "says \\"session_id\\": \\"no\\"", "data": {"session_id": "inner"}}',
    b'{"list": [1, {"session_id": "x"}], "session_id": "old", "parent_session_id": "older"}',
    b'  {"ts": "t", "lvl": "INFO", "event": "e", "session_id": null}',
    b'{"ts":"t","lvl":"INFO","event":"e","session_id":"old","data":{"session_id":"inner"}}',
    b'{"ts": "t", "lvl": "INFO", "event": "\\u0061\\"", "session_id": "o\\"ld"}',
]


@pytest.mark.parametrize("line", ODD)
def test_the_outer_id_is_replaced_in_any_position(session: Path, line: bytes) -> None:
    (session / "events.jsonl").write_bytes(line + b"\n")
    fork(session, new_session_id="new")
    assert event_lines(session.parent / "new") == as_fork([json.loads(line)], "new")


@pytest.mark.parametrize("line", [b'{"session_id": "old", torn', b"[1]", b"", b"\xff{}"])
def test_what_is_not_an_event_is_passed_on_as_it_is(session: Path, line: bytes) -> None:
    data = lines(EVENTS[:1]) + line + b"\n" + lines(EVENTS[1:2])
    (session / "events.jsonl").write_bytes(data)
    fork(session, new_session_id="new")
    found = (session.parent / "new" / "events.jsonl").read_bytes().split(b"\n")
    assert [json.loads(found[0]), json.loads(found[2])] == as_fork(EVENTS[:2], "new")
    assert found[1].endswith(line[-4:])


@pytest.mark.parametrize("size", [100, 4096, 1 << 20, 5 << 20])
@pytest.mark.parametrize("shift", [0, 1, 4000])
def test_lines_longer_than_a_block_and_heads_over_its_edge(session: Path, size: int, shift: int) -> None:
    first = {"ts": "t", "lvl": "INFO", "event": "a", "session_id": ID, "data": "x" * ((1 << 20) - shift)}
    second = {"ts": "t", "lvl": "INFO", "event": "b", "session_id": ID, "data": {"session_id": "y" * size}}
    odd = {"data": {"a": {"b": "z" * size}}, "event": "c", "session_id": ID}
    events: list[dict[str, Any]] = [first, second, odd, EVENTS[0]]
    (session / "events.jsonl").write_bytes(lines(events))
    assert fork(session, new_session_id="new").events_count == 4
    assert event_lines(session.parent / "new") == as_fork(events, "new")


@pytest.mark.parametrize("bad", ["../../X", "a/b", "..", ".hidden", " x", "a\nb", "con"])
def test_an_id_that_leads_elsewhere_is_refused(session: Path, bad: str) -> None:
    with pytest.raises(InvalidId):
        fork(session, new_session_id=bad)
    assert [path.name for path in session.parent.iterdir()] == [ID]


def test_an_id_that_exists_is_refused(session: Path) -> None:
    other = write_session(session.parent / "other", MESSAGES[:4])
    before = read(other)
    with pytest.raises(AlreadyExists, match="Session 'other' already exists"):
        fork(session, new_session_id="other")
    assert read(other) == before


def test_another_folder_is_made_when_needed(session: Path, tmp_path: Path) -> None:
    result = fork(session, target_dir=tmp_path / "deep" / "er", new_session_id="new")
    assert result.session_dir == tmp_path / "deep" / "er" / "new"
    assert SessionStore(tmp_path / "deep" / "er").load("new")[0] == MESSAGES


def test_the_words_of_the_errors_are_the_originals(session: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No transcript\.jsonl in .*nowhere"):
        fork(tmp_path / "nowhere")
    for bad in (0, 4):
        with pytest.raises(ValueError, match=rf"^Turn {bad} out of range. Valid range: 1-3$"):
            fork(session, turn=bad)
    (session / "transcript.jsonl").write_bytes(b"\n")
    with pytest.raises(ValueError, match=r"^Cannot fork: session has no user messages$"):
        fork(session)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A session that was stopped while a tool ran."""
    return write_session(tmp_path / ID, MESSAGES[:6])


def test_open_calls_are_completed_removed_or_refused(stopped: Path) -> None:
    fork(stopped, new_session_id="completed")
    completed = SessionStore(stopped.parent).load("completed")[0]
    assert completed[:6] == MESSAGES[:6]
    assert completed[6]["tool_call_id"] == "toolu_2"
    fork(stopped, new_session_id="removed", handle_orphaned_tools="remove")
    assert "toolu_2" not in (stopped.parent / "removed" / "transcript.jsonl").read_text()
    with pytest.raises(Invalid, match="Orphaned tool calls at fork boundary"):
        fork(stopped, new_session_id="refused", handle_orphaned_tools="error")
    assert not (stopped.parent / "refused").exists()


def test_damage_of_the_parent_is_reported_and_the_rest_comes_along(session: Path) -> None:
    data = (session / "transcript.jsonl").read_bytes().split(b"\n")
    data[3] = b'{"torn": '
    (session / "transcript.jsonl").write_bytes(b"\n".join(data))
    result = fork(session, new_session_id="new")
    assert result.message_count == 11
    assert [problem.code for problem in result.problems] == ["bad_json"]


def test_in_memory() -> None:
    result = fork_session_in_memory(MESSAGES, turn=1, parent_id=ID)
    assert result.session_dir is None
    assert (result.parent_id, result.forked_from_turn, result.message_count) == (ID, 1, 4)
    assert result.messages == MESSAGES[:4]
    assert fork_session_in_memory(MESSAGES).messages == MESSAGES
    empty = fork_session_in_memory([{"role": "assistant", "content": "a"}])
    assert (empty.messages, empty.forked_from_turn, empty.parent_id) == ([], 0, "unknown")
    with pytest.raises(ValueError, match="exceeds max turns"):
        fork_session_in_memory(MESSAGES, turn=9)


def test_a_preview(stopped: Path) -> None:
    assert get_fork_preview(stopped, 2) == {
        "parent_id": ID,
        "turn": 2,
        "max_turns": 2,
        "message_count": 6,
        "has_orphaned_tools": True,
        "orphaned_tool_count": 1,
        "last_user_message": "ok",
        "last_assistant_message": "Looking.",
    }
    with pytest.raises(ValueError, match=r"Turn 3 out of range \(1-2\)"):
        get_fork_preview(stopped, 3)
    with pytest.raises(FileNotFoundError, match=r"No transcript\.jsonl in"):
        get_fork_preview(stopped / "nowhere", 1)


def test_forks_are_distinguished_from_sub_agents(session: Path) -> None:
    fork(session, turn=1, new_session_id="older")
    fork_session(session, turn=2, new_session_id="newer", now=lambda: NOW.replace(year=2027))
    child = {"session_id": "c_explorer", "parent_id": ID, "agent_name": "explorer"}
    write_session(session.parent / "c_explorer", metadata=child)
    (session.parent / "stray").write_text("no folder")
    forks = list_session_forks(session)
    assert [found["session_id"] for found in forks] == ["newer", "older"]
    assert forks[1] == {
        "session_id": "older",
        "session_dir": session.parent / "older",
        "forked_from_turn": 1,
        "forked_at": "2026-03-02T00:00:00+00:00",
        "turn_count": 1,
    }


def test_lineage_up_and_down(session: Path) -> None:
    fork(session, new_session_id="one")
    fork(session.parent / "one", new_session_id="two")
    lineage = get_session_lineage(session.parent / "one")
    assert lineage["ancestors"] == [ID]
    assert (lineage["parent_id"], lineage["forked_from_turn"], lineage["depth"]) == (ID, 3, 1)
    assert [child["session_id"] for child in lineage["children"]] == ["two"]
    assert get_session_lineage(session.parent / "two")["ancestors"] == ["one", ID]
    assert get_session_lineage(session)["parent_id"] is None


@pytest.mark.parametrize("parents", [{"a": "b", "b": "a"}, {"a": "a"}, {"a": "../a"}])
def test_a_circle_of_parents_ends(tmp_path: Path, parents: dict[str, str]) -> None:
    for name, parent in parents.items():
        write_session(tmp_path / name, metadata={"session_id": name, "parent_id": parent})
    lineage = get_session_lineage(tmp_path / "a")
    assert lineage["ancestors"] == [parent for parent in {parents["a"]} if parent != "a"]


def test_what_a_killed_fork_left_is_removed(session: Path) -> None:
    left = session.parent / ".fork-0011223344556677"
    left.mkdir()
    (left / ".lock").touch()
    (left / "transcript.jsonl").write_bytes(b"half")
    fork(session, new_session_id="new")
    assert not left.exists()


def test_prompts_that_the_last_turns_share(tmp_path: Path) -> None:
    prompts = ("ok", "ok")
    messages = [m for n, prompt in enumerate(prompts, 1) for m in turn(n, prompt, stamped="nowhere")]
    events = [e for n, prompt in enumerate(prompts, 1) for e in events_of(n, prompt, times=False, ids=False)]
    session = write_session(tmp_path / ID, messages, events)
    assert fork(session, turn=1, new_session_id="new").events_count == 7
