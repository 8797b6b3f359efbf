"""What a workspace has for plots: times of tools, scores of a brainstorm, the board of a feature, spans of work."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.lock import FileLock
from sessionary.errors import NotFound, Unsupported
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.workspace import Workspace

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, cache=str(tmp_path / "cache"))


def write(tmp_path: Path, messages: list[dict[str, Any]]) -> None:
    folder = tmp_path / "projects" / "-p" / "sessions" / "one"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text("".join(json.dumps(one) + "\n" for one in messages))


def call(number: int, second: int | None) -> dict[str, Any]:
    time = {} if second is None else {"timestamp": f"2026-03-14T09:30:{second:02}Z"}
    asked = {"id": f"c{number}", "tool": f"t{number}", "arguments": {}}
    return {"role": "assistant", "content": "", "tool_calls": [asked], **time}


def result(number: int, second: int | None, text: str = "ok") -> dict[str, Any]:
    time = {} if second is None else {"timestamp": f"2026-03-14T09:30:{second:02}Z"}
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text, **time}


def test_the_time_of_a_tool_is_that_until_its_result(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "go"},
        call(1, 1),
        call(2, 2),
        result(2, 12),
        result(1, 5),
        call(3, 20),
        call(4, None),
        result(4, 30),
        call(5, 40),
        result(5, 39),
    ]
    write(tmp_path, messages)
    there = workspace(tmp_path)
    found = there.tool_times(there.find("one"))
    assert [(one.name, one.index, one.turn, one.seconds, one.answered) for one in found] == [
        ("t1", 1, 1, 4.0, True),
        ("t2", 2, 1, 10.0, True),
        ("t3", 5, 1, None, False),
        ("t4", 6, 1, None, True),
        ("t5", 8, 1, 0.0, True),
    ]
    assert found[0].begun == datetime(2026, 3, 14, 9, 30, 1, tzinfo=UTC)
    assert found[3].begun is None


def test_an_error_of_a_tool_is_known(tmp_path: Path) -> None:
    content = [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]
    write(tmp_path, [call(1, 1), {"role": "user", "content": content}])
    there = workspace(tmp_path)
    (found,) = there.tool_times(there.find("one"))
    assert found.failed


def test_the_scores_of_a_brainstorm_with_its_branches(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    store.create("auth", now=NOW)
    for number, ems in enumerate((40, 55, 70), 1):
        store.answer("auth", ["yes"], now=NOW + timedelta(minutes=number))
        store.continue_("auth", ems=ems, now=NOW + timedelta(minutes=number))
    store.back("auth", 2, now=NOW + timedelta(minutes=9))
    store.answer("auth", ["no"], now=NOW + timedelta(minutes=10))
    there = workspace(tmp_path)
    found = there.scores(there.find("auth"))
    assert [(one.iteration, one.ems, one.superseded) for one in found] == [
        (1, 25, False),
        (2, 40, True),
        (3, 55, True),
        (4, 70, True),
        (2, 40, False),
    ]
    assert [one.current for one in found] == [False, False, False, False, True]
    assert (found[0].phase, found[0].time) == ("divergent", NOW)


def test_entries_without_a_valid_score_are_left_out(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    store.create("auth", now=NOW)
    path = Path(store.path("auth"))
    path.write_text(path.read_text().replace("      ems: 25", "      ems: 250"))
    there = workspace(tmp_path)
    assert there.scores(there.find("auth")) == []


def test_the_board_of_a_feature(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    feature = store.create("hello-2025-01-09", name="Hello")
    tasks: list[dict[str, Any]] = [
        {"task_id": name, "description": name, "agent": "a", "artifacts": []} for name in ("T1", "T2")
    ]
    store.save_plan(feature, [{"phase_id": "p1", "name": "First", "tasks": tasks}])
    store.task(feature, "T1", "in_progress")
    there = workspace(tmp_path)
    found = there.board(there.find("hello"))
    ((name, shown),) = found.phases
    assert (name, [(one["task_id"], one["status"]) for one in shown]) == (
        "First",
        [("T1", "in_progress"), ("T2", "pending")],
    )
    assert (found.status.name, found.status.status, found.status.tasks["in_progress"]) == (
        "Hello",
        "active",
        1,
    )
    assert found.history[-1]["task_id"] == "T1"
    assert found.locks == []


def test_the_locks_of_a_feature_and_who_holds_them(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    feature = store.create("hello-2025-01-09")
    store.update(feature, model_in_use="opus")
    folder = tmp_path / ".ai-session" / feature
    there = workspace(tmp_path)
    ref = there.find("hello")
    (folder / ".state.lock").write_text("999999999\n")
    (left,) = there.board(ref).locks
    assert (left.file, left.pid, left.running) == (".state.lock", 999999999, False)
    lock = FileLock(str(folder / ".sessionary.lock"))
    lock.acquire(1)
    try:
        held, _ = there.board(ref).locks
        assert (held.file, held.running) == (".sessionary.lock", True)
    finally:
        lock.release()
    assert len(there.board(ref).locks) == 1


def test_a_board_survives_files_that_hold_something_else(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    feature = store.create("hello-2025-01-09")
    folder = tmp_path / ".ai-session" / feature
    (folder / "implementation-plan.yaml").write_text("phases: [1, {tasks: {}}, {name: x, tasks: [2]}]\n")
    (folder / "history.jsonl").write_text("broken\n")
    there = workspace(tmp_path)
    found = there.board(there.find("hello"))
    assert found.phases == [("?", []), ("x", [])]
    assert {one.code for one in found.status.problems} >= {"bad_json"}


def test_the_span_of_a_work_session(tmp_path: Path) -> None:
    store = WorkStore.with_fs(WorkStore(tmp_path).fs, tmp_path / "docs" / "sessions", now=lambda: NOW)
    session = store.create("work_task")
    crumb = create_breadcrumb("ask", "answer", [], [], None, 0, "m", {})
    crumb.timestamp = "20260314_093000_000000"
    store.write_breadcrumb(crumb, session.session_id)
    there = workspace(tmp_path)
    ref = there.find(session.session_id)
    found = there.work_span(ref)
    assert (found.kind, found.status, found.begun, found.ended) == ("work_task", "running", NOW, None)
    assert found.crumbs == [NOW]
    store.complete(session.session_id)
    assert there.work_span(ref).ended == NOW
    (tmp_path / "docs" / "sessions" / session.session_id / "session.json").write_text("{")
    assert there.work_span(ref).status is None
    assert there.work_span(ref).crumbs == [NOW]


def test_sessions_of_another_kind_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [call(1, 1)])
    there = workspace(tmp_path)
    ref = there.find("one")
    for asked in (there.scores, there.board, there.work_span):
        with pytest.raises(Unsupported, match="is of the kind amplifier"):
            asked(ref)


def test_a_session_that_is_gone(tmp_path: Path) -> None:
    FeatureStore(tmp_path).create("hello-2025-01-09")
    BrainstormStore(tmp_path).create("auth")
    there = workspace(tmp_path)
    feature, brainstorm = there.find("hello"), there.find("auth")
    (tmp_path / ".ai-session").rename(tmp_path / "moved")
    brainstorm.path.unlink()
    with pytest.raises(NotFound):
        there.board(feature)
    with pytest.raises(NotFound):
        there.scores(brainstorm)
