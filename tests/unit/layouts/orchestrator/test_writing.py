"""The rules of the contract for writers; each test names the section that it holds us to."""

import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sessionary.disk.lock import FileLock
from sessionary.errors import (
    AlreadyExists,
    Corrupt,
    Invalid,
    InvalidId,
    Locked,
    NotFound,
    SchemaError,
    SessionaryError,
    StorageFailed,
    TransitionError,
)
from sessionary.layouts.orchestrator.rules import FEATURE_MOVES, TASK_MOVES, TASK_STATUSES
from sessionary.layouts.orchestrator.store import FeatureStore
from tests.support.faults import Fault, FaultFs
from tests.unit.layouts.orchestrator.conftest import ID, task


def lines(feature: Path) -> list[str]:
    return (feature / "history.jsonl").read_text().splitlines()


def state_of(feature: Path) -> dict[str, Any]:
    """What another YAML reader sees."""
    loaded: dict[str, Any] = yaml.load((feature / "state.yaml").read_bytes(), Loader=yaml.BaseLoader)
    return loaded


# -- Creating a Session; Validation on session creation


def test_creating_a_session_makes_all_of_the_directory_layout(store: Any, home: Any) -> None:
    """Sections "Directory Layout" and "Creating a Session", the six steps."""
    assert store.create(ID, name="AI orchestrator", description="d") == ID
    assert {path.name for path in home.iterdir()} == {ID, "active-features.yaml", "README.md", ".index.lock"}
    inside = {path.name for path in (home / ID).iterdir()}
    assert inside == {"implementation-plan.yaml", "history.jsonl", "state.yaml", "artifacts"}
    assert (home / ID / "history.jsonl").read_bytes() == b""
    plan = yaml.load((home / ID / "implementation-plan.yaml").read_bytes(), Loader=yaml.BaseLoader)
    assert plan == {
        "feature": {
            "id": ID,
            "name": "AI orchestrator",
            "description": "d",
            "created_at": "2025-01-09T12:00:00.000000Z",
        },
        "phases": [],
    }
    assert store.validate() == []


def test_a_new_state_has_the_form_of_the_example(store: Any, home: Any) -> None:
    """Appendix, "Example state.yaml"."""
    store.create(ID)
    store.update(ID, active_task="impl-core-commands", model_in_use="opus")
    assert (home / ID / "state.yaml").read_text() == (
        'version: "1.0"\n'
        f'feature_id: "{ID}"\n'
        "current_state:\n"
        '  active_task: "impl-core-commands"\n'
        '  model_in_use: "opus"\n'
        '  started_at: "2025-01-09T12:00:00.000000Z"\n'
        '  last_updated: "2025-01-09T12:00:00.000001Z"\n'
    )


def test_the_list_has_the_form_of_the_contract_and_the_newest_first(store: Any, home: Any) -> None:
    """Section "Active Features Format"."""
    store.create(ID)
    store.create("other-2025-01-09")
    rows = yaml.load((home / "active-features.yaml").read_bytes(), Loader=yaml.BaseLoader)
    row = {"started_at": "2025-01-09T12:00:00.000000Z", "last_active": "2025-01-09T12:00:00.000000Z"}
    assert rows == {
        "active_features": [
            {"feature_id": name, **row, "status": "active"} for name in ("other-2025-01-09", ID)
        ]
    }


@pytest.mark.parametrize(
    "bad",
    [
        "abc",
        "x--y-2025-01-09",
        "x-2025-13-45",
        "X-2025-01-09",
        "-x-2025-01-09",
        "2025-01-09",
        "x_y-2025-01-09",
        "x-2025-1-9",
        "../x-2025-01-09",
        f"{'x' * 300}-2025-01-09",
        "",
    ],
)
def test_a_feature_id_is_a_slug_and_a_real_date(bad: str, store: Any, home: Any) -> None:
    """Sections "Feature ID Format" and "On Session Creation": validate feature ID format."""
    with pytest.raises(InvalidId):
        store.create(bad)
    assert not home.exists()


def test_a_slug_may_hold_digits_and_dates(store: Any) -> None:
    """Section "Feature ID Format": the slug takes as much as it can."""
    assert store.create("rapid-1-2024-02-29-2025-01-09") == "rapid-1-2024-02-29-2025-01-09"


def test_an_id_is_made_of_name_and_date_and_is_unique(store: Any) -> None:
    """Section "Creating a Session", step 1."""
    made = [store.create(name="Größe & Maß: v2!") for _ in range(3)]
    assert made == [f"grosse-mass-v2{number}-2025-01-09" for number in ("", "-2", "-3")]
    with pytest.raises(InvalidId):
        store.create(name="日本")


def test_no_id_twice_in_folders_list_or_archive(store: Any, feature: Any, home: Any) -> None:
    """Section "On Session Creation": ensure no duplicate feature IDs."""
    before = (feature / "state.yaml").read_bytes()
    with pytest.raises(AlreadyExists):
        store.create(ID)
    assert (feature / "state.yaml").read_bytes() == before
    os.rename(feature, home / "moved away")
    with pytest.raises(AlreadyExists):
        store.create(ID)
    os.rename(home / "moved away", feature)
    store.complete(ID)
    store.archive(ID)
    with pytest.raises(AlreadyExists):
        store.create(ID)


def test_a_folder_that_may_not_be_made_is_reported(tmp_path: Any) -> None:
    """Section "On Session Creation": verify directory creation permissions."""
    import errno

    fs = FaultFs(plan=Fault("mkdir", 1, errno.EACCES))
    with pytest.raises(StorageFailed) as caught:
        FeatureStore.with_fs(fs, tmp_path).create(ID)
    assert caught.value.errno == errno.EACCES
    assert caught.value.outcome == "not_committed"


def test_a_list_that_cannot_be_written_puts_the_folder_away(tmp_path: Any, home: Any, store: Any) -> None:
    """Section "Creating a Session", step 6 fails: there is no feature, and the error says where the folder is."""
    import errno

    count = FaultFs()
    FeatureStore.with_fs(count, tmp_path / "other").create(ID)
    renames = count.counts["rename"]
    fs = FaultFs(plan=Fault("rename", renames, errno.EIO))
    with pytest.raises(StorageFailed, match="the new folder was moved to .archive/.failed-" + ID) as caught:
        FeatureStore.with_fs(fs, tmp_path).create(ID)
    place = home / ".archive" / f".failed-{ID}"
    assert caught.value.details["moved_to"] == str(place)
    assert (place / "state.yaml").exists()
    assert store.list_features(archived=True) == []
    assert store.create(ID) == ID


# -- Updating State


def test_an_update_changes_the_fields_given_and_no_others(store: Any, feature: Any) -> None:
    """Sections "Updating State" and "Conflict Resolution": last write wins, by field."""
    store.update(ID, active_task="T1")
    store.update(ID, model_in_use="gemini")
    current = state_of(feature)["current_state"]
    assert (current["active_task"], current["model_in_use"]) == ("T1", "gemini")
    assert store.update(ID, active_task=None).active_task is None
    assert state_of(feature)["current_state"]["active_task"] == "null"


def test_every_update_logs_one_line_even_if_nothing_changes(store: Any, feature: Any) -> None:
    """Section "Updating State", rule 3."""
    before = len(lines(feature))
    for _ in range(3):
        store.update(ID)
    store.update(ID, active_task="T1", model_in_use="opus", agent="agent-1")
    assert len(lines(feature)) == before + 4
    last = store.history(ID)[-1]
    assert list(last)[:8] == [
        "timestamp",
        "command",
        "arguments",
        "model",
        "agent",
        "task_id",
        "status",
        "duration_ms",
    ]
    assert (last["command"], last["arguments"]) == ("update-state", "active_task=T1 model_in_use=opus")
    assert (last["model"], last["agent"], last["task_id"], last["status"]) == (
        "opus",
        "agent-1",
        "T1",
        "success",
    )


def test_existing_lines_are_never_changed(store: Any, feature: Any) -> None:
    """Sections "Updating State", rule 3, and "Conflict Resolution": history logs are immutable."""
    before = (feature / "history.jsonl").read_bytes()
    store.update(ID, active_task="T1")
    store.task(ID, "T1", "in_progress")
    store.append(ID, {"command": "implement"})
    store.pause(ID)
    assert (feature / "history.jsonl").read_bytes().startswith(before)


def test_times_increase_even_if_the_clock_does_not(store: Any, feature: Any, clock: Any) -> None:
    """Section "On State Update": ensure timestamps are monotonic. Always six fraction digits."""
    first = store.update(ID).last_updated
    assert store.update(ID).last_updated == first + timedelta(microseconds=1)
    assert store.last_report.problems == []
    clock.move(hours=-3)
    assert store.update(ID).last_updated == first + timedelta(microseconds=2)
    assert [problem.code for problem in store.last_report.problems] == ["clock_went_back"]
    written = state_of(feature)["current_state"]
    assert written["last_updated"] == "2025-01-09T12:00:02.000002Z"
    assert written["started_at"] == "2025-01-09T12:00:00.000000Z"


def test_a_time_of_the_caller_must_be_later(store: Any, feature: Any) -> None:
    """Section "On State Update": ensure timestamps are monotonic."""
    stored = store.update(ID, last_updated="2025-01-09T13:00:00Z").last_updated
    before = lines(feature)
    for time in (stored, stored - timedelta(seconds=1), "yesterday"):
        with pytest.raises(SchemaError):
            store.update(ID, last_updated=time)
    assert lines(feature) == before


@pytest.mark.parametrize("model", ["gpt9", "", None, "Opus"])
def test_a_model_outside_the_three_is_refused(model: Any, store: Any, feature: Any) -> None:
    """Section "On State Update": verify model values are valid."""
    before = lines(feature), state_of(feature)
    with pytest.raises(SchemaError, match="model_in_use"):
        store.update(ID, model_in_use=model)
    assert (lines(feature), state_of(feature)) == before


def test_the_active_task_is_an_open_task_of_the_plan(store: Any, feature: Any) -> None:
    """Section "Session Structure": active_task is a task ID or null."""
    with pytest.raises(SchemaError, match="not a task of the plan"):
        store.update(ID, active_task="T9")
    for odd in (7, ["T1"], True):
        with pytest.raises(SchemaError):
            store.update(ID, active_task=odd)
    store.task(ID, "T2", "blocked")
    with pytest.raises(TransitionError, match="blocked"):
        store.update(ID, active_task="T2")


def test_without_a_plan_any_task_is_taken_with_a_note(store: Any) -> None:
    """Section "Session Structure"; a plan comes later than the first task as often as not."""
    store.create("bare-2025-01-09")
    store.update("bare-2025-01-09", active_task="anything")
    assert [problem.code for problem in store.last_report.problems] == ["task_without_plan"]


def test_comments_unknown_keys_and_order_survive_an_update(store: Any, feature: Any) -> None:
    """Section "Updating State", with a file that a user has edited."""
    path = feature / "state.yaml"
    text = path.read_text().replace('version: "1.0"', '# ours\nversion: "1.0"\nowner: "Ana"  # ask her')
    path.write_text(text.replace("  active_task: null", "  active_task: null  # the one of the moment"))
    store.update(ID, active_task="T1")
    written = path.read_text()
    assert '  active_task: "T1"  # the one of the moment\n' in written
    assert 'owner: "Ana"  # ask her\n' in written
    assert written.startswith("# ours\n")
    assert store.load(ID).active_task == "T1"


def test_last_active_is_written_at_most_once_a_minute(
    store: Any, make: Any, feature: Any, home: Any, clock: Any
) -> None:
    """Section "Active Features Format": last_active is derived; the state has the exact time."""
    index = home / "active-features.yaml"

    def last_active() -> str:
        rows = yaml.load(index.read_bytes(), Loader=yaml.BaseLoader)["active_features"]
        return str(rows[0]["last_active"])

    before = last_active()
    clock.move(seconds=30)
    store.update(ID)
    make().update(ID)
    assert last_active() == before
    clock.move(seconds=31)
    store.update(ID)
    assert last_active() == "2025-01-09T12:01:03.000000Z"
    inode = index.stat().st_ino
    clock.move(seconds=59)
    store.update(ID)
    make().update(ID)
    assert index.stat().st_ino == inode
    store.pause(ID)
    assert last_active() == "2025-01-09T12:02:02.000002Z"


def test_a_state_that_cannot_be_read_is_not_written_over(store: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 1: only a repair restores it."""
    (feature / "state.yaml").write_text("version: [\n")
    with pytest.raises(Corrupt) as caught:
        store.update(ID, model_in_use="opus")
    assert "repair" in str(caught.value.hint)
    assert (feature / "state.yaml").read_text() == "version: [\n"


def test_a_state_that_breaks_the_schema_is_not_updated(store: Any, feature: Any) -> None:
    """Section "On State Update": validate against schema."""
    path = feature / "state.yaml"
    path.write_text(path.read_text().replace("sonnet", "gpt9").replace("started_at: ", "began_at: "))
    before = path.read_bytes(), (feature / "history.jsonl").read_bytes()
    for change in ({"model_in_use": "opus"}, {"active_task": "T1"}, {}):
        with pytest.raises(SchemaError) as caught:
            store.update(ID, **change)
        assert [fault.partition(":")[0] for fault in caught.value.details["faults"]] == [
            "current_state.model_in_use",
            "current_state.started_at",
        ]
        assert (path.read_bytes(), (feature / "history.jsonl").read_bytes()) == before


# -- tasks


def plan_task(store: Any, task_id: str) -> dict[str, Any]:
    tasks = [task for phase in store.plan(ID)["phases"] for task in phase["tasks"]]
    return next(task for task in tasks if task["task_id"] == task_id)


def test_a_plan_has_the_form_of_the_schema(store: Any, feature: Any) -> None:
    """Section "Implementation Plan Schema"."""
    assert list(store.plan(ID)) == ["feature", "phases"]
    assert plan_task(store, "T1") == {
        "task_id": "T1",
        "description": "do T1",
        "agent": "agent-1",
        "status": "pending",
        "started_at": None,
        "completed_at": None,
        "artifacts": [],
    }


def test_times_of_a_task(store: Any, feature: Any, clock: Any) -> None:
    """Section "Implementation Plan Schema": started_at, completed_at, artifacts."""
    assert store.task(ID, "T1", "in_progress")
    began = plan_task(store, "T1")["started_at"]
    assert began == "2025-01-09T12:00:02.000000Z"
    clock.move(minutes=1)
    store.task(ID, "T1", "blocked")
    store.task(ID, "T1", "in_progress")
    assert plan_task(store, "T1")["started_at"] == began
    clock.move(minutes=1)
    store.task(ID, "T1", "completed", artifacts=["a.py", "b.py"])
    done = plan_task(store, "T1")
    assert (done["started_at"], done["completed_at"]) == (began, "2025-01-09T12:02:02.000000Z")
    assert done["artifacts"] == ["a.py", "b.py"]
    with pytest.raises(TransitionError, match="cannot become") as caught:
        store.task(ID, "T1", "in_progress")
    assert "reopen" in str(caught.value.hint)
    assert store.task(ID, "T1", "in_progress", reopen=True)
    again = plan_task(store, "T1")
    assert (again["started_at"], again["completed_at"]) == (began, None)


@pytest.mark.parametrize("old", TASK_STATUSES)
@pytest.mark.parametrize("new", TASK_STATUSES)
def test_every_move_of_a_task(old: str, new: str, store: Any, feature: Any) -> None:
    """Section "Updating State", rule 4: state transitions must be valid."""
    way = {
        "pending": [],
        "in_progress": ["in_progress"],
        "completed": ["in_progress", "completed"],
        "blocked": ["blocked"],
    }
    for step in way[old]:
        store.task(ID, "T1", step)
    before = lines(feature)
    if old == new:
        assert store.task(ID, "T1", new) is False
        assert lines(feature) == before, "what changes nothing is not logged"
    elif new in TASK_MOVES[old]:
        assert store.task(ID, "T1", new)
        assert plan_task(store, "T1")["status"] == new
        assert len(lines(feature)) == len(before) + 1
    else:
        with pytest.raises(TransitionError):
            store.task(ID, "T1", new)
        assert (plan_task(store, "T1")["status"], lines(feature)) == (old, before)


def test_a_task_that_is_done_or_blocked_is_active_no_more(store: Any, feature: Any) -> None:
    """Sections "Session Structure" and "Updating State", rule 4."""
    store.update(ID, active_task="T1")
    store.task(ID, "T1", "in_progress")
    assert store.load(ID).active_task == "T1"
    store.task(ID, "T1", "completed")
    assert store.load(ID).active_task is None
    assert store.history(ID)[-1]["state"]["active_task"] is None


def test_artifacts_are_added_and_none_twice(store: Any, feature: Any) -> None:
    """Section "Implementation Plan Schema": artifacts is a list of generated files."""
    store.task(ID, "T1", "in_progress", artifacts=["a.py"])
    assert store.task(ID, "T1", "in_progress", artifacts=["b.py", "a.py"])
    assert store.task(ID, "T1", "in_progress", artifacts=["a.py"]) is False
    assert plan_task(store, "T1")["artifacts"] == ["a.py", "b.py"]


def test_what_a_caller_gives_for_the_line_is_checked(store: Any, feature: Any) -> None:
    """Section "History Log Format"."""
    before = lines(feature)
    for odd in ({"command": " "}, {"arguments": 5}, {"agent": 7}):
        with pytest.raises(SchemaError):
            store.update(ID, **odd)
    with pytest.raises(SchemaError, match="artifacts"):
        store.task(ID, "T1", "in_progress", artifacts=["a", 3])
    assert lines(feature) == before
    store.task(ID, "T1", "in_progress", artifacts="a.py")
    assert plan_task(store, "T1")["artifacts"] == ["a.py"]


def test_a_plan_without_a_head_gets_one(store: Any, feature: Any) -> None:
    """Section "Implementation Plan Schema"; the scripts stored what a model answered."""
    (feature / "implementation-plan.yaml").write_text("risks: [one]\nphases: []\n")
    store.save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": [task("T1")]}], name="Named")
    plan = store.plan(ID)
    assert (plan["feature"]["id"], plan["feature"]["name"], plan["risks"]) == (ID, "Named", ["one"])
    assert store.validate(ID) == []


def test_a_name_that_no_file_can_hold_leaves_nothing_behind(store: Any, home: Any) -> None:
    """Section "Creating a Session"."""
    from sessionary.errors import Invalid

    with pytest.raises(Invalid, match="surrogate"):
        store.create(ID, name="a\ud800")
    assert {path.name for path in home.iterdir()} == {".index.lock"}


def test_an_unknown_task_or_status(store: Any, feature: Any) -> None:
    """Section "Implementation Plan Schema": status is one of four."""
    with pytest.raises(NotFound, match="no task T9"):
        store.task(ID, "T9", "in_progress")
    with pytest.raises(SchemaError, match="done"):
        store.task(ID, "T1", "done")


def test_comments_of_a_plan_survive(store: Any, feature: Any) -> None:
    """Section "Updating State", with a plan that a user has edited."""
    path = feature / "implementation-plan.yaml"
    path.write_text(path.read_text().replace("phases:", "phases:  # agreed on Monday"))
    store.task(ID, "T1", "in_progress")
    assert "phases:  # agreed on Monday\n" in path.read_text()
    assert plan_task(store, "T1")["status"] == "in_progress"


def test_a_feature_is_renamed_in_its_plan_and_that_is_logged(store: Any, feature: Any) -> None:
    file = feature / "implementation-plan.yaml"
    store.save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": [task("T1")]}], name="Old")
    file.write_bytes(b"# by hand\n" + file.read_bytes())
    before = store.plan(ID)
    assert store.set_name(ID, "New name") == "Old"
    assert store.plan(ID) == before | {"feature": before["feature"] | {"name": "New name"}}
    assert file.read_bytes().startswith(b"# by hand\n")
    entry = list(store.history(ID))[-1]
    assert (entry["command"], entry["arguments"]) == ("rename", "New name")
    count = len(lines(feature))
    assert store.set_name(ID, "New name") == "New name"
    assert len(lines(feature)) == count
    with pytest.raises(Invalid):
        store.set_name(ID, " ")


def test_a_feature_whose_plan_cannot_be_read_keeps_it_under_a_new_name(store: Any, feature: Any) -> None:
    file = feature / "implementation-plan.yaml"
    file.write_bytes(b"feature: [")
    with pytest.raises(Corrupt):
        store.set_name(ID, "New name")
    assert file.read_bytes() == b"feature: ["


def test_a_new_plan_keeps_how_far_its_tasks_are(store: Any, feature: Any) -> None:
    """Section "Implementation Plan Schema"; progress changes by `task` alone."""
    store.task(ID, "T1", "in_progress", artifacts=["a.py"])
    began = plan_task(store, "T1")["started_at"]
    store.save_plan(
        ID, [{"phase_id": "p", "name": "All", "tasks": [task("T1"), task("T4")]}], name="New name"
    )
    kept = plan_task(store, "T1")
    assert (kept["status"], kept["started_at"], kept["artifacts"]) == ("in_progress", began, ["a.py"])
    assert store.plan(ID)["feature"]["name"] == "New name"
    with pytest.raises(SchemaError, match="`task` changes that"):
        store.save_plan(ID, [{"phase_id": "p", "name": "All", "tasks": [task("T1", status="completed")]}])


def test_all_faults_of_a_plan_are_reported_at_once(store: Any, feature: Any) -> None:
    """Section "On State Update": validate against schema."""
    before = (feature / "implementation-plan.yaml").read_bytes()
    phases = [{"name": 1, "tasks": [{"task_id": 5, "status": "done"}, "x"]}, "y"]
    with pytest.raises(SchemaError) as caught:
        store.save_plan(ID, phases)
    places = {fault.partition(":")[0] for fault in caught.value.details["faults"]}
    assert {"phases[0].phase_id", "phases[0].name", "phases[0].tasks[0].task_id", "phases[1]"} <= places
    assert (feature / "implementation-plan.yaml").read_bytes() == before


def test_the_active_task_cannot_be_planned_away(store: Any, feature: Any) -> None:
    """Section "Session Structure": active_task is a task ID or null."""
    store.update(ID, active_task="T1")
    with pytest.raises(SchemaError, match="not a task of the plan"):
        store.save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": [task("T2")]}])


# -- the feature as a whole; Session Cleanup


@pytest.mark.parametrize("old", FEATURE_MOVES)
@pytest.mark.parametrize("new", FEATURE_MOVES)
def test_every_move_of_a_feature(old: str, new: str, store: Any, feature: Any, home: Any) -> None:
    """Sections "Active Features Format" and "Updating State", rule 4."""
    moves = {"active": store.resume, "paused": store.pause, "completed": store.complete}
    if old != "active":
        moves[old](ID)
    before = lines(feature), (home / "active-features.yaml").read_bytes()
    if old == new:
        assert moves[new](ID) is False
        assert (lines(feature), (home / "active-features.yaml").read_bytes()) == before
    elif new in FEATURE_MOVES[old]:
        assert moves[new](ID) is True
        assert store.list_features()[0].status == new
    else:
        with pytest.raises(TransitionError):
            moves[new](ID)
        assert (lines(feature), (home / "active-features.yaml").read_bytes()) == before


def test_a_completed_feature_can_be_reopened(store: Any, feature: Any) -> None:
    """Section "Updating State", rule 4."""
    store.complete(ID)
    assert store.resume(ID, reopen=True)
    assert store.list_features()[0].status == "active"


def test_only_what_is_completed_is_archived_and_nothing_is_deleted(
    store: Any, feature: Any, home: Any
) -> None:
    """Section "Session Cleanup", rules 1 to 3."""
    (feature / "artifacts" / "a.py").write_text("x")
    for paused in (False, True):
        if paused:
            store.pause(ID)
        with pytest.raises(TransitionError, match="cannot be archived"):
            store.archive(ID)
    store.complete(ID)
    place = store.archive(ID)
    assert place == home / ".archive" / ID
    assert (place / "artifacts" / "a.py").read_text() == "x"
    assert not feature.exists()
    assert 'status: "completed"' in (home / "active-features.yaml").read_text()
    assert store.list_features() == []
    assert [row.feature_id for row in store.list_features(archived=True)] == [ID]
    assert store.validate() == []
    with pytest.raises(NotFound) as caught:
        store.update(ID)
    assert "archived" in str(caught.value.hint)


# -- Concurrency Handling


def test_a_lock_that_is_not_let_go_is_an_error_that_says_who(store: Any, make: Any, feature: Any) -> None:
    """Sections "Locking Strategy" and "Recovery Procedures", 3."""
    lock = FileLock(str(feature / ".sessionary.lock"))
    with lock.held(), pytest.raises(Locked) as caught:
        make(timeout=0.05).update(ID)
    assert caught.value.details["waited"] == 0.05
    assert caught.value.error_context is not None
    assert caught.value.error_context["operation"] == "update"


def test_a_lock_is_waited_for(make: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 3: lock conflicts are retried."""
    lock = FileLock(str(feature / ".sessionary.lock"))
    lock.acquire()
    timer = threading.Timer(0.05, lock.release)
    timer.start()
    assert make(timeout=10).update(ID, model_in_use="opus").model_in_use == "opus"
    timer.join()


def test_plans_are_read_under_a_shared_lock(make: Any, feature: Any) -> None:
    """Section "Locking Strategy": read locks for implementation-plan.yaml."""
    lock = FileLock(str(feature / ".sessionary.lock"))
    lock.acquire(exclusive=False)
    assert make(timeout=0.05).plan(ID)["feature"]["id"] == ID, "readers do not exclude one another"
    lock.release()
    with lock.held(), pytest.raises(Locked):
        make(timeout=0.05).plan(ID)
    with lock.held():
        assert make(timeout=0.05).load(ID).model_in_use == "sonnet", "only plans need the lock"


def test_the_default_patience_is_five_seconds(tmp_path: Any) -> None:
    """Section "Recovery Procedures", 3."""
    assert FeatureStore(tmp_path).timeout == 5.0


# -- Error Handling


def test_every_error_has_the_context_of_the_contract(store: Any, feature: Any) -> None:
    """Section "Required Error Information"."""
    calls: dict[str, Any] = {
        "create": lambda: store.create("abc"),
        "read": lambda: store.load("gone-2025-01-09"),
        "update": lambda: store.update(ID, model_in_use="gpt9"),
    }
    for operation, call in calls.items():
        with pytest.raises(SessionaryError) as caught:
            call()
        context = caught.value.error_context
        assert context is not None
        assert list(context) == ["operation", "file", "feature_id", "timestamp", "details"]
        assert context["operation"] == operation
        assert context["feature_id"] in ("abc", "gone-2025-01-09", ID)
        assert context["details"] == str(caught.value)
        assert str(feature.parent) in context["file"]
        assert caught.value.as_dict()["error_context"] == context


def test_root_may_be_the_folder_itself(tmp_path: Any, feature: Any) -> None:
    assert FeatureStore(tmp_path / ".ai-session").load(ID) == FeatureStore(tmp_path).load(ID)
