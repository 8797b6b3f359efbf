"""The functions of `maestro.work_session` and `maestro.breadcrumb`: their names, their signatures, what each does."""

import inspect
import json
import logging
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import maestro.breadcrumb as breadcrumb
import maestro.work_session as work_session
import pytest

from sessionary.errors import AmbiguousId, Invalid, NotFound, SchemaError, TransitionError
from sessionary.layouts.maestro.store import WorkStore

SIGNATURES = {
    work_session.create_session: "session_type, parent_session_id=None, parent_wsession_id=None,"
    " related_entity=None, metadata=None, base_path=None, status=None, purpose=None, context=None",
    work_session.load_session: "session_path",
    work_session.save_session: "session, session_path",
    work_session.list_sessions: "base_path=None, session_type=None, status=None",
    breadcrumb.create_breadcrumb: "prompt, response, tools_called, files_modified, parent_session_id, depth_level,"
    " model_used, token_count, cost=None, error=None, kind='note', tags=None, payload=None",
    breadcrumb.write_breadcrumb: "breadcrumb, session_id, sessions_dir=None",
    breadcrumb.load_breadcrumb: "filepath",
    breadcrumb.list_breadcrumbs: "session_id, sessions_dir=None, depth=None, date_range=None",
}
FIRST_OF_A_SESSION = (
    "session_id session_type parent_session_id status created modified related_entity breadcrumbs_dir"
    " metadata"
)
FIRST_OF_A_BREADCRUMB = (
    "timestamp breadcrumb_id prompt response tools_called files_modified parent_session_id depth_level"
    " model_used token_count cost error"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`docs/sessions` of the current folder, which is not made yet."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "docs" / "sessions"


def note(prompt: str = "p", stamp: str | None = None, depth: int = 0, **more: Any) -> breadcrumb.Breadcrumb:
    crumb = breadcrumb.create_breadcrumb(
        prompt, "r", [], [], None, depth, "opus", {"input": 1, "output": 2}, **more
    )
    crumb.timestamp = stamp or crumb.timestamp
    return crumb


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__name__)
def test_the_signatures_are_those_of_the_specification(function: Any) -> None:
    plain = [
        parameter.replace(annotation=parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    assert ", ".join(map(str, plain)) == SIGNATURES[function]


def test_the_fields_of_the_specification_come_first_and_in_its_order() -> None:
    for kind, first in (
        (work_session.WorkSession, FIRST_OF_A_SESSION.split()),
        (breadcrumb.Breadcrumb, FIRST_OF_A_BREADCRUMB.split()),
    ):
        assert [each.name for each in fields(kind)][: len(first)] == first
    session = work_session.WorkSession("s", "fix")
    session.status = "paused"  # mutable
    assert (session.parent_session_id, session.related_entity, session.metadata) == (None, {}, {})


def test_statuses_and_types_are_enums_with_the_words_of_the_files() -> None:
    assert [each.value for each in work_session.SessionStatus] == [
        "running", "paused", "completed", "interrupted", "failed",
    ]  # fmt: skip
    words = {each.value for each in work_session.SessionType}
    assert {"work_track", "work_phase", "work_task", "work_issue", "discussion", "analyze", "fix"} <= words


def test_a_session_is_made_in_the_folder_of_the_moment(root: Path, tmp_path: Path, monkeypatch: Any) -> None:
    first = work_session.create_session("work_task", metadata={"mine": 1}, purpose="why")
    assert (root / first.session_id / "session.json").is_file()
    assert first.breadcrumbs_dir == f"docs/sessions/{first.session_id}/breadcrumbs"
    assert (root / first.session_id / "breadcrumbs").is_dir()
    assert first.metadata == {"mine": 1, "cookie": first.session_id}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    second = work_session.create_session("fix")
    assert (elsewhere / "docs" / "sessions" / second.session_id).is_dir()
    assert [each.session_id for each in work_session.list_sessions()] == [second.session_id]
    assert [each.session_id for each in work_session.list_sessions(root)] == [first.session_id]
    assert work_session.get_sessions_base_path() == elsewhere / "docs" / "sessions"
    assert work_session.get_sessions_base_path("x") == Path("x")


@pytest.mark.parametrize("key", ["parent_session_id", "parent_wsession_id"])
def test_a_parent_is_given_by_either_name(root: Path, key: str) -> None:
    parent = work_session.create_session("work_track")
    named: dict[str, Any] = {key: parent.session_id}
    child = work_session.create_session("work_task", **named)
    stored = work_session.load_session(root / parent.session_id / child.session_id / "session.json")
    assert stored.parent_session_id == stored.parent_wsession_id == parent.session_id
    with pytest.raises(FileNotFoundError):
        work_session.create_session("work_task", parent_session_id="nobody-at-all")


def test_what_is_wrong_with_a_new_session_is_a_value_error(root: Path) -> None:
    wrongs: tuple[dict[str, Any], ...] = ({"session_type": " "}, {"session_type": "fix", "status": "asleep"})
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"type|status"):
            work_session.create_session(**wrong)
    with pytest.raises(Invalid):
        work_session.create_session("fix", "../outside")
    assert not root.exists()


def test_loading_says_what_is_missing_or_wrong(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        work_session.load_session(root / "x" / "session.json")
    (root / "x").mkdir(parents=True)
    (root / "x" / "session.json").write_text('{"session_id": 7, "status": "asleep"}')
    with pytest.raises(
        ValueError, match="session_type is missing; session_id is a number; unknown status 'asleep'"
    ):
        work_session.load_session(str(root / "x" / "session.json"))
    with pytest.raises(NotFound):
        breadcrumb.load_breadcrumb(root / "none.json")


def test_lists_are_filtered_and_warn_of_what_they_leave_out(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = work_session.create_session("work_task")
    work_session.create_session("fix", status="paused")
    (root / "older").mkdir()
    (root / "older" / "session.json").write_text(
        '{"id": "older", "root_task": "t", "subtasks": [], "status": "failed"}'
    )
    (root / "list").mkdir()
    (root / "list" / "session.json").write_text("[1, 2]")
    with caplog.at_level(logging.WARNING):
        assert [each.session_id for each in work_session.list_sessions(session_type="work_task")] == [
            first.session_id
        ]
        assert len(work_session.list_sessions(status="paused")) == 1
        assert len(work_session.list_sessions()) == 2
    reported = {(record.getMessage()) for record in caplog.records}
    assert any("older/session.json" in words and "older format" in words for words in reported)
    assert any("list/session.json" in words and "a list, not an object" in words for words in reported)


def test_a_save_is_seen_by_the_next_load_and_moves_the_time(root: Path) -> None:
    session = work_session.create_session("fix")
    path = root / session.session_id / "session.json"
    before = session.modified
    session.status = "interrupted"
    work_session.save_session(session, path)
    again = work_session.load_session(path)
    assert (again.status, again.state, again.modified > before) == ("interrupted", "closed", True)
    assert again.closed_at is not None
    assert again == session


def test_a_session_is_found_by_its_id_or_a_beginning_of_it(root: Path) -> None:
    session = work_session.create_session("fix")
    path = root / session.session_id / "session.json"
    for name in (session.session_id, session.session_id[:8]):
        assert work_session.find_session_by_id(name) == (session, path)
    assert work_session.find_session_by_id("none-such") is None
    assert work_session.find_session_by_id(session.session_id[:3]) is None
    ids = iter(["same-1", "same-2"])
    store = WorkStore.with_fs(WorkStore(root).fs, root, new_id=lambda: next(ids))
    store.create("fix"), store.create("fix")
    with pytest.raises(AmbiguousId) as caught:
        work_session.find_session_by_id("same")
    assert caught.value.details["matches"] == ["same-1", "same-2"]
    assert work_session.get_session_cookie(session) == session.session_id


def test_children_and_trees(root: Path) -> None:
    top = work_session.create_session("work_track")
    one = work_session.create_session("work_task", top.session_id)
    two = work_session.create_session("work_task", top.session_id, status="completed")
    assert work_session.get_child_sessions(top.session_id) == [one, two]
    assert work_session.get_open_child_sessions(top.session_id) == [one]
    (tree,) = work_session.get_session_hierarchy()["root"]
    assert (tree["session"].session_id, tree["flag"]) == (top.session_id, None)
    assert [(child["session"], child["children"]) for child in tree["children"]] == [(one, []), (two, [])]


def test_statuses_change_in_memory_by_the_rules(root: Path) -> None:
    session = work_session.create_session("fix")
    assert work_session.pause_session(session).status == "paused"
    assert work_session.resume_session(session).state == "running"
    assert work_session.interrupt_session(session, "power").metadata["interruption_reason"] == "power"
    assert work_session.is_session_closed(session)
    with pytest.raises(TransitionError, match="cannot become completed"):
        work_session.complete_session(session)
    work_session.resume_session(session)
    assert session.closed_at is None
    assert "completion_time" in work_session.complete_session(session).metadata
    with pytest.raises(ValueError, match="closed"):
        work_session.resume_session(session)
    assert work_session.load_session(root / session.session_id / "session.json").status == "running"


def test_a_breadcrumb_has_an_id_and_a_time_of_its_own() -> None:
    one, two = note(), note()
    assert one.breadcrumb_id != two.breadcrumb_id
    assert (one.kind, one.tags, one.payload, one.cost, one.error) == ("note", [], None, None, None)
    assert len(breadcrumb.generate_timestamp()) == len("20260101_000000_000000")
    assert len(breadcrumb.generate_breadcrumb_id()) == 36
    reported = note(kind="result", tags=["a"], payload={"b": 1}, cost=0.5, error="no")
    assert (reported.kind, reported.tags, reported.payload, reported.cost, reported.error) == (
        "result",
        ["a"],
        {"b": 1},
        0.5,
        "no",
    )


def test_breadcrumbs_are_listed_by_depth_and_by_instants(root: Path) -> None:
    session = work_session.create_session("fix").session_id
    for second, depth in ((3, 0), (1, 0), (2, 1)):
        path = breadcrumb.write_breadcrumb(
            note(f"{second}", f"20260301_09000{second}_500000", depth), session
        )
        assert path == str(
            root / session / "breadcrumbs" / str(depth) / f"20260301_09000{second}_500000.json"
        )

    def prompts(**more: Any) -> list[str]:
        return [crumb.prompt for crumb in breadcrumb.list_breadcrumbs(session, **more)]

    assert prompts() == prompts(sessions_dir=root) == ["1", "2", "3"]
    assert prompts(depth=1) == ["2"]
    assert prompts(depth=7) == []
    assert prompts(date_range=("2026-03-01T09:00:02", None)) == ["2", "3"]
    assert prompts(date_range=("2026-03-01T10:00:01+01:00", "20260301_090002_000000")) == ["1", "2"]
    assert prompts(date_range=(None, "2026-02-01")) == []
    with pytest.raises(ValueError, match="is not a time"):
        prompts(date_range=("yesterday", None))
    assert [crumb.prompt for crumb in breadcrumb.reconstruct_session_timeline(session)] == ["1", "2", "3"]
    assert breadcrumb.get_breadcrumb_summary(session) == {
        "total_breadcrumbs": 3,
        "total_tokens": {"input": 3, "output": 6},
        "total_cost": 0,
        "breadcrumbs_without_cost": 3,
        "duration": 2,
    }
    assert breadcrumb.get_breadcrumb_summary("nobody") == {
        "total_breadcrumbs": 0,
        "total_tokens": {"input": 0, "output": 0},
        "total_cost": 0,
        "breadcrumbs_without_cost": 0,
        "duration": 0,
    }


def test_an_unknown_key_makes_no_breadcrumb_vanish_and_is_kept(root: Path, tmp_path: Path) -> None:
    session = work_session.create_session("fix").session_id
    document = asdict(note("odd", "20260301_090001_000000")) | {"x-new": [1]}
    path = root / session / "breadcrumbs" / "0" / "20260301_090001_000000.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    (found,) = breadcrumb.list_breadcrumbs(session)
    assert breadcrumb.dataclass_to_dict(found) == document
    assert breadcrumb.dict_to_breadcrumb(document) == found
    with pytest.raises(SchemaError, match="breadcrumb_id is missing"):
        breadcrumb.dict_to_breadcrumb({"prompt": "p"})


def test_a_cost_is_never_guessed() -> None:
    assert breadcrumb.calculate_cost(1000, 1000, "Opus") == pytest.approx(0.09)
    assert breadcrumb.calculate_cost(1000, 1000, "claude") is None
    assert breadcrumb.calculate_cost(1000, 0, "own", {"own": (1.5, 0.0)}) == pytest.approx(1.5)
    assert breadcrumb.estimate_tokens("x" * 43) == 10


def test_calls_and_changes_are_captured_for_a_breadcrumb(tmp_path: Path) -> None:
    call = breadcrumb.capture_tool_call("bash", {"command": "ls"}, object(), "no")
    assert list(call) == ["tool", "args", "result", "error", "timestamp"]
    json.dumps(call)
    (tmp_path / "a.py").write_text("12345")
    change = breadcrumb.track_file_modification(str(tmp_path / "a.py"), "modify", "--- a")
    assert list(change) == ["path", "operation", "diff", "timestamp", "size"]
    assert change["size"] == 5
    assert breadcrumb.track_file_modification(str(tmp_path / "a.py"), "delete")["size"] is None
    assert breadcrumb.track_file_modification(str(tmp_path / "gone"), "create")["size"] is None


def test_a_dialogue_is_one_breadcrumb_of_unknown_cost() -> None:
    (crumb,) = breadcrumb.parse_ai_dialog("x" * 4000)
    assert (len(crumb.prompt), crumb.token_count, crumb.cost) == (1000, {"input": 1000, "output": 1000}, None)


def test_the_decorator_calls_the_function() -> None:
    @breadcrumb.auto_breadcrumb_wrapper
    def double(number: int) -> int:
        return 2 * number

    assert (double(4), double.__name__) == (8, "double")
