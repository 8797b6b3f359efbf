"""Whatever state a feature is in, the remedy that is named leads out of it."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import (
    AlreadyExists,
    Corrupt,
    Invalid,
    NotFound,
    SchemaError,
    SessionaryError,
    TransitionError,
)
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.model import Severity
from tests.unit.layouts.orchestrator.conftest import ID, NOON

STATE = (
    'version: "1.0"\nfeature_id: "%s"\ncurrent_state:\n  active_task: %s\n  model_in_use: "%s"\n'
    '  started_at: "2025-01-09T12:00:00.000000Z"\n  last_updated: "%s"\n'
)


def codes(store: FeatureStore, feature_id: str | None = ID) -> set[str]:
    return {problem.code for problem in store.validate(feature_id)}


def write_state(feature: Path, task: str | None, model: str, updated: str) -> str:
    text = STATE % (ID, "null" if task is None else f'"{task}"', model, updated)
    (feature / "state.yaml").write_text(text)
    return text


# -- a foreign overwrite


def test_a_stale_copy_of_a_script_is_found_and_repaired(
    store: Any, make: Any, feature: Path, clock: Any
) -> None:
    """Section "Recovery Procedures", 1. A script read the state, we changed it, the script wrote its copy."""
    store.update(ID, active_task="T1")
    clock.move(minutes=1)
    store.update(ID, active_task="T2", model_in_use="opus")
    clock.move(minutes=1)
    stale = write_state(feature, "T1", "gemini", "2025-01-09T13:00:00Z")
    found = {p.code: p for p in make().validate(ID)}
    assert {"overwritten_state", "unlogged_state"} <= set(found)
    assert "active_task is 'T1' again" in found["overwritten_state"].message
    clock.move(hours=2)
    done = make().repair(ID)
    state = make().load(ID)
    assert (state.active_task, state.model_in_use) == ("T2", "gemini"), (
        "what was only set by the script stays"
    )
    assert Path(done.kept[0]).read_text() == stale
    assert not codes(make()) & {"overwritten_state", "unlogged_state", "unfinished_operation"}
    last = make().history(ID)[-1]
    assert (last["command"], last["state"]["active_task"]) == ("repair", "T2")
    assert make().repair(ID).actions == []


def test_a_state_that_a_script_set_without_logging_it_is_logged(store: Any, make: Any, feature: Path) -> None:
    """Section "Recovery Procedures", 1: the history must be able to restore it."""
    store.update(ID, active_task="T1")
    text = write_state(feature, "T2", "opus", "2025-01-09T13:00:00Z")
    assert "unlogged_state" in codes(make())
    assert "overwritten_state" not in codes(make())
    assert make().repair(ID).kept == []
    assert (feature / "state.yaml").read_text() == text
    (feature / "state.yaml").unlink()
    make().repair(ID)
    assert make().load(ID).active_task == "T2"
    assert make().load(ID).model_in_use == "opus"
    assert make().load(ID).last_updated == datetime(2025, 1, 9, 13, tzinfo=UTC)


def test_a_stale_copy_of_the_same_moment_is_repaired_too(store: Any, make: Any, feature: Path) -> None:
    store.update(ID, model_in_use="opus")
    at = store.load(ID).last_updated
    write_state(feature, "T3", "sonnet", at.isoformat().replace("+00:00", "Z"))
    assert {"overwritten_state", "unlogged_state"} <= codes(make())
    make().repair(ID)
    assert (make().load(ID).active_task, make().load(ID).model_in_use) == ("T3", "opus")
    assert not codes(make()) & {"overwritten_state", "unlogged_state", "times_not_monotonic"}


def test_an_operation_that_was_taken_back_contradicts_nothing(store: Any, make: Any, feature: Path) -> None:
    store.update(ID, model_in_use="opus")
    entry = dict(store.history(ID)[-1])
    gone = {
        **entry,
        "timestamp": "2025-01-09T12:59:00.000000Z",
        "state": {**entry["state"], "model_in_use": "gemini"},
    }
    with open(feature / "history.jsonl", "a") as file:
        failure = {**gone, "status": "failure", "error": "full", "revokes": gone["timestamp"]}
        failure.pop("state")
        file.write(f"{json.dumps(gone)}\n{json.dumps(failure)}\n")
    assert not codes(make()) & {"overwritten_state", "unlogged_state"}


# -- recovery


@pytest.mark.parametrize("ours", [True, False])
def test_without_plan_and_state_the_times_are_those_of_the_history(
    store: Any, make: Any, feature: Path, home: Path, ours: bool
) -> None:
    """Section "Recovery Procedures", 1 and 2: first and newest entry, and no time of its own making."""
    store.update(ID, active_task="T1", model_in_use="opus")
    lines = [
        '{"timestamp":"2025-01-10T07:08:09Z","command":"plan","model":"gemini","status":"success","task_id":null}',
        '{"timestamp":"2025-01-11T10:11:12Z","command":"implement","model":"opus","status":"success","task_id":"T1"}',
    ]
    if not ours:
        (feature / "history.jsonl").write_text("\n".join(lines) + "\n")
    before = store.load(ID)
    for name in ("state.yaml", "implementation-plan.yaml"):
        (feature / name).unlink()
    (home / "active-features.yaml").unlink()
    done = make().repair(ID)
    after = make().load(ID)
    if ours:
        assert after == before
    else:
        assert after.started_at == datetime(2025, 1, 10, 7, 8, 9, tzinfo=UTC)
        assert after.last_updated == datetime(2025, 1, 11, 10, 11, 12, tzinfo=UTC)
    created = make().plan(ID)["feature"]["created_at"]
    assert datetime.fromisoformat(created) == after.started_at
    assert [p.message for p in done.problems if p.code == "assumed"] == []
    row = (home / "active-features.yaml").read_text()
    assert f'started_at: "{created}"' in row


def test_a_time_that_had_to_be_assumed_is_reported(store: Any, make: Any, feature: Path, home: Path) -> None:
    for name in ("state.yaml", "implementation-plan.yaml", "history.jsonl"):
        (feature / name).unlink()
    (feature / "history.jsonl").touch()
    (home / "active-features.yaml").unlink()
    done = make().repair(ID)
    assert "the date of the id is assumed" in " ".join(p.message for p in done.problems)
    assert make().load(ID).started_at == datetime(2025, 1, 9, tzinfo=UTC)


# -- rows


def test_an_orphan_row_is_taken_out_on_request(store: Any, make: Any, feature: Path, home: Path) -> None:
    gone = "gone-2025-01-01"
    store.create(gone)
    for path in sorted((home / gone).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (home / gone).rmdir()
    before = (home / "active-features.yaml").read_text()
    assert "orphan_row" in codes(make(), None)
    for call in (make().load, make().update, make().repair, make().create):
        with pytest.raises(SessionaryError) as caught:
            call(gone)
        assert isinstance(caught.value, NotFound | AlreadyExists)
        assert "repair --rebuild-index" in str(caught.value.hint)
    done = make().rebuild_index()
    assert [Path(kept).read_text() for kept in done.kept] == [before]
    assert any(gone in action for action in done.actions)
    assert codes(make(), None) & {"orphan_row", "missing_row"} == set()
    assert make().create(gone) == gone


def test_a_row_of_an_archived_feature_stays(store: Any, make: Any, feature: Path, home: Path) -> None:
    store.complete(ID)
    store.archive(ID)
    before = (home / "active-features.yaml").read_bytes()
    assert make().rebuild_index().actions == []
    assert (home / "active-features.yaml").read_bytes() == before


@pytest.mark.parametrize("way", ["repair", "rebuild_index"])
def test_a_status_that_is_not_known_is_repaired_from_the_history(
    store: Any, make: Any, feature: Path, home: Path, way: str
) -> None:
    store.pause(ID)
    index = home / "active-features.yaml"
    before = (
        index.read_text().replace('"paused"', '"done"').replace('last_active: "2025', 'last_active: "soon')
    )
    index.write_text(before)
    assert "index_schema" in codes(make(), None)
    done = make().repair(ID) if way == "repair" else make().rebuild_index()
    assert [Path(kept).read_text() for kept in done.kept] == [before]
    assert 'status: "paused"' in index.read_text()
    assert "index_schema" not in codes(make(), None)
    assert make().resume(ID)


def test_a_status_that_is_not_known_says_what_sets_one(
    store: Any, make: Any, feature: Path, home: Path
) -> None:
    index = home / "active-features.yaml"
    index.write_text(index.read_text().replace('"active"', '"done"'))
    for call in (make().pause, make().complete):
        with pytest.raises(TransitionError) as caught:
            call(ID)
        assert f"`sessionary feature repair {ID}`" in str(caught.value.hint)
        assert caught.value.error_context is not None
        assert caught.value.error_context["file"] == str(index)
    make().repair(ID)
    assert make().pause(ID)


# -- plans


@pytest.mark.parametrize("content", ["", "# to be written\n", "---\n", "{}\n"])
def test_an_empty_plan_is_repaired_or_replaced(store: Any, make: Any, feature: Path, content: str) -> None:
    plan = feature / "implementation-plan.yaml"
    plan.write_text(content)
    assert codes(make()) == {"empty_plan"}
    done = make().repair(ID)
    assert not [p for p in done.problems if p.severity.name != "note"]
    assert codes(make()) == set()
    assert make().plan(ID)["phases"] == []
    if "#" in content:
        assert content in plan.read_text()
    plan.write_text(content)
    make().save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": [{"task_id": "T9"}]}])
    assert codes(make()) == set()


@pytest.mark.parametrize("content", ["phases: [\n", "- what a model answered\n"])
def test_a_plan_that_cannot_be_read_is_kept_and_replaced_on_request(
    store: Any, make: Any, feature: Path, content: str
) -> None:
    plan = feature / "implementation-plan.yaml"
    plan.write_text(content)
    calls: list[Any] = [lambda: make().task(ID, "T1", "in_progress"), lambda: make().plan(ID)]
    for call in calls:
        with pytest.raises(Corrupt) as caught:
            call()
        assert f"sessionary feature plan {ID} --from FILE" in str(caught.value.hint)
        assert caught.value.error_context is not None
        assert caught.value.error_context["file"] == str(plan)
    (left,) = make().repair(ID).problems
    assert left.code == "bad_plan"
    again = make()
    again.save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": [{"task_id": "T9"}]}])
    (kept,) = feature.glob("implementation-plan.yaml.corrupt-*")
    assert kept.read_text() == content
    assert str(kept) in [problem.path for problem in again.last_report.problems]
    assert codes(make()) == set()
    assert make().task(ID, "T9", "in_progress")


def test_a_task_of_a_status_that_is_not_known_is_repaired(store: Any, make: Any, feature: Path) -> None:
    """As the history says, else as its times say."""
    store.task(ID, "T1", "blocked")
    plan = feature / "implementation-plan.yaml"
    text = plan.read_text()
    text = text.replace('status: "blocked"', 'status: "stuck"').replace('status: "pending"', 'status: "done"')
    plan.write_text(text)
    with pytest.raises(TransitionError) as caught:
        make().task(ID, "T2", "in_progress")
    assert f"`sessionary feature repair {ID}`" in str(caught.value.hint)
    assert caught.value.error_context is not None
    assert caught.value.error_context["file"] == str(plan)
    done = make().repair(ID)
    assert [Path(kept).read_text() for kept in done.kept] == [text]
    tasks = {
        task["task_id"]: task["status"] for phase in make().plan(ID)["phases"] for task in phase["tasks"]
    }
    assert tasks == {"T1": "blocked", "T2": "pending", "T3": "pending"}
    assert "plan_schema" not in codes(make())


def test_what_a_plan_of_the_scripts_lacks_is_filled_in(make: Any, store: Any, feature: Path) -> None:
    """Their plans have no description and no artifacts, and tasks without times."""
    plan = feature / "implementation-plan.yaml"
    plan.write_text(
        'feature:\n  id: "x"  # by hand\n  name: "X"\n  created_at: "2025-01-09T10:00:00Z"\nphases:\n'
        '  - phase_id: "p"\n    name: "P"\n    tasks:\n      - task_id: "T1"\n        status: "completed"\n'
        '        completed_at: "2025-01-09T11:00:00Z"\n'
    )
    assert "plan_schema" in codes(make())
    make().repair(ID)
    assert codes(make()) == set()
    assert "# by hand" in plan.read_text()
    assert make().plan(ID)["phases"][0]["tasks"][0]["started_at"] == "2025-01-09T11:00:00Z"
    assert make().plan(ID)["feature"]["name"] == "X"


# -- histories


def test_damage_in_a_history_names_the_command_that_mends_it(store: Any, make: Any, feature: Path) -> None:
    """Sections "Conflict Resolution" and "On Read": histories are immutable, so only on request."""
    history = feature / "history.jsonl"
    sound = history.read_bytes()
    for number, (broken, code) in enumerate(
        ((b'{"timestamp": "20', "torn_tail"), (b"{no}\n", "bad_json"), (b"\0\0\0\n", "nul_run"))
    ):
        history.write_bytes(sound + broken)
        (found,) = [problem for problem in make().validate(ID) if problem.code == code]
        assert found.repair is not None
        assert f"`sessionary feature repair {ID} --rewrite-history`" in found.repair
        done = make().repair(ID)
        assert [problem.code for problem in done.problems] == [code], "it says what is left"
        assert history.read_bytes() == sound + broken
        done = make().repair(ID, rewrite_history=True)
        assert [problem.code for problem in done.problems] == ["left_out"]
        assert Path(done.kept[0]).read_bytes() == sound + broken
        assert history.read_bytes() == sound
        assert done.lost == [(sound.count(b"\n") + 1, len(broken.rstrip(b"\n")))]
        assert codes(make()) == {"not_recovered"}
        assert len(list(feature.glob("history.jsonl.original-*"))) == number + 1


BAD = b'{"timestamp": "2025-01-09T10:00:00Z", "command": "implement", "arguments": "caf\xe9 au lait"}'


@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_entry_with_a_bad_byte_is_kept(store: Any, make: Any, feature: Path, end: bytes) -> None:
    history = feature / "history.jsonl"
    sound = history.read_bytes()
    history.write_bytes(sound + BAD + end)
    done = make().repair(ID, rewrite_history=True)
    assert [entry.get("arguments") for entry in make().history(ID)][-1] == "caf\ufffd au lait"
    assert history.read_bytes().startswith(sound)
    assert done.lost == [(sound.count(b"\n") + 1, 1)]
    assert "left_out" not in {problem.code for problem in done.problems}
    assert Path(done.kept[0]).read_bytes() == sound + BAD + end
    (found,) = [problem for problem in make().validate(ID) if problem.code == "not_recovered"]
    assert (found.severity.name, found.path) == ("note", done.kept[0])
    number = sound.count(b"\n") + 1
    assert found.message == f"a repair could not recover all bytes of line {number} of the old history"
    assert make().repair(ID, rewrite_history=True).actions == []


def test_an_entry_with_a_bad_byte_is_left_out_on_request(store: Any, make: Any, feature: Path) -> None:
    history = feature / "history.jsonl"
    sound = history.read_bytes()
    history.write_bytes(sound + BAD + b"\n")
    (found,) = [problem for problem in make().validate(ID) if problem.code == "bad_utf8"]
    assert "--bad-bytes drop" in str(found.repair)
    done = make().repair(ID, rewrite_history=True, bad_bytes="drop")
    assert history.read_bytes() == sound
    assert done.lost == [(sound.count(b"\n") + 1, len(BAD))]
    with pytest.raises(Invalid):
        make().repair(ID, rewrite_history=True, bad_bytes="keep")


@pytest.mark.parametrize("base", [None, b'{"command": "before"}\n'])
def test_of_a_merge_conflict_both_sides_stay_once_and_the_base_goes(
    store: Any, make: Any, feature: Path, base: bytes | None
) -> None:
    history = feature / "history.jsonl"
    sound = history.read_bytes()
    both, mine, theirs = (b'{"command": "%s"}\n' % name for name in (b"both", b"mine", b"theirs"))
    middle = b"" if base is None else b"||||||| 0a1b2c3\n" + base
    conflict = b"<<<<<<< HEAD\n" + both + mine + middle + b"=======\n" + both + theirs + b">>>>>>> laptop\n"
    history.write_bytes(sound + conflict)
    done = make().repair(ID, rewrite_history=True)
    assert history.read_bytes() == sound + both + mine + theirs
    assert done.lost == []
    assert Path(done.kept[0]).read_bytes() == sound + conflict
    assert "conflict_marker" not in codes(make())


def test_records_that_share_a_line_are_not_lost(store: Any, make: Any, feature: Path) -> None:
    history = feature / "history.jsonl"
    first = b'{"command": "a", "timestamp": "2025-01-09T10:00:00Z"}'
    history.write_bytes(history.read_bytes() + first + first + b"\n")
    done = make().repair(ID, rewrite_history=True)
    assert done.lost == []
    assert "left_out" not in {problem.code for problem in done.problems}
    assert history.read_bytes().endswith(first + b"\n" + first + b"\n")


def test_a_record_that_only_we_cannot_read_is_not_left_out(store: Any, make: Any, feature: Path) -> None:
    history = feature / "history.jsonl"
    deep = b'{"command": "x", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    data = history.read_bytes() + deep + b"{no}\n"
    history.write_bytes(data)
    make().repair(ID, rewrite_history=True)
    assert history.read_bytes() == data.removesuffix(b"{no}\n")


# -- the archive


def test_an_archived_feature_is_restored(store: Any, make: Any, feature: Path, home: Path) -> None:
    """Section "Session Cleanup", 2: archive or preserve."""
    (feature / "artifacts" / "a.py").write_text("x")
    store.complete(ID)
    store.archive(ID)
    with pytest.raises(NotFound) as caught:
        make().resume(ID, reopen=True)
    assert f"`sessionary feature unarchive {ID}`" in str(caught.value.hint)
    assert make().unarchive(ID) == feature
    assert (feature / "artifacts" / "a.py").read_text() == "x"
    assert [row.status for row in make().list_features()] == ["completed"]
    assert make().resume(ID, reopen=True)
    assert make().update(ID, model_in_use="opus").model_in_use == "opus"
    assert make().validate() == []


def test_unarchive_never_replaces_a_feature(store: Any, make: Any, feature: Path, home: Path) -> None:
    with pytest.raises(AlreadyExists):
        store.unarchive(ID)
    store.complete(ID)
    place = store.archive(ID)
    feature.mkdir()
    with pytest.raises(AlreadyExists):
        make().unarchive(ID)
    assert place.is_dir()
    with pytest.raises(NotFound):
        make().unarchive("none-2025-01-09")


# -- fields


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"command": 5}, "command"),
        ({"command": ""}, "command"),
        ({"active_task": ""}, "active_task"),
        ({"active_task": " "}, "active_task"),
        ({"active_task": "T1\nT2"}, "active_task"),
        ({"active_task": 5}, "active_task"),
        ({"arguments": 5}, "arguments"),
        ({"agent": 5}, "agent"),
        ({"last_updated": "9999-12-31T23:59:59.999999Z"}, "last_updated"),
        ({"last_updated": NOON + timedelta(days=2)}, "last_updated"),
        ({"last_updated": math.nan}, "last_updated"),
    ],
)
def test_an_update_with_a_field_that_breaks_the_contract_is_refused(
    store: Any, feature: Path, given: dict[str, Any], field: str
) -> None:
    """Section "On State Update": validate against schema."""
    before = {path.name: path.read_bytes() for path in feature.iterdir() if path.is_file()}
    with pytest.raises(SchemaError) as caught:
        store.update(ID, **given)
    assert any(fault.startswith(field) for fault in caught.value.details["faults"])
    assert {path.name: path.read_bytes() for path in feature.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"task_id": ""}, "task_id"),
        ({"task_id": "a\nb"}, "task_id"),
        ({"duration_ms": math.nan}, "duration_ms"),
        ({"duration_ms": math.inf}, "duration_ms"),
        ({"duration_ms": 5_000_000_000}, "duration_ms"),
        ({"duration_ms": -1}, "duration_ms"),
        ({"timestamp": "9999-01-01T00:00:00Z"}, "timestamp"),
    ],
)
def test_an_entry_with_a_field_that_breaks_the_contract_is_refused(
    store: Any, feature: Path, given: dict[str, Any], field: str
) -> None:
    """Section "History Log Format": nine fields with their types."""
    before = (feature / "history.jsonl").read_bytes()
    with pytest.raises(SchemaError) as caught:
        store.append(ID, {"command": "x", **given})
    assert any(fault.startswith(field) for fault in caught.value.details["faults"])
    assert caught.value.error_context is not None
    assert caught.value.error_context["file"] == str(feature / "history.jsonl")
    assert (feature / "history.jsonl").read_bytes() == before


def test_a_number_that_json_lacks_never_gets_into_a_history(store: Any, feature: Path) -> None:
    store.append(ID, {"command": "x", "cost": math.nan, "inner": {"low": -math.inf}})
    line = (feature / "history.jsonl").read_text().splitlines()[-1]
    json.loads(line, parse_constant=pytest.fail)


def test_a_feature_of_the_end_of_time_can_still_be_written(store: Any, make: Any, feature: Path) -> None:
    """Section "On State Update": monotonic; a file may hold any time."""
    write_state(feature, None, "sonnet", "9999-12-31T23:59:59.999999Z")
    assert make().update(ID, model_in_use="opus").model_in_use == "opus"
    assert make().load(ID).model_in_use == "opus"


def test_an_error_names_the_file_at_fault(store: Any, make: Any, feature: Path, home: Path) -> None:
    """Section "Required Error Information": the affected file path."""
    calls: dict[Path, Any] = {
        feature / "implementation-plan.yaml": lambda: store.task(ID, "T1", "completed"),
        feature / "history.jsonl": lambda: store.append(ID, {"command": ""}),
        home / "active-features.yaml": lambda: store.archive(ID),
        feature / "state.yaml": lambda: store.update(ID, active_task="T7"),
    }
    for path, call in calls.items():
        with pytest.raises(SessionaryError) as caught:
            call()
        assert caught.value.error_context is not None
        assert caught.value.error_context["file"] == str(path)


@pytest.mark.parametrize("gone", [False, True])
def test_a_history_that_was_emptied_is_found_and_begun_anew(
    store: Any, make: Any, feature: Path, gone: bool
) -> None:
    """Section "Updating State", 3: each change is logged, so a state that was changed has lines."""
    assert "emptied_history" not in {problem.code for problem in make().validate(ID)}, "nothing was done yet"
    store.update(ID, model_in_use="opus")
    state = make().load(ID)
    (feature / "history.jsonl").write_bytes(b"")
    if gone:
        (feature / "history.jsonl").unlink()
    (found,) = [one for one in make().validate(ID) if one.code in ("emptied_history", "no_history")]
    assert found.severity >= Severity.hides_data
    assert "`sessionary feature repair`" in str(found.repair)
    actions = make().repair(ID).actions
    assert "logged the current state in the empty history; its earlier entries are lost" in actions
    (entry,) = make().history(ID)
    assert entry["state"]["model_in_use"] == "opus"
    assert make().load(ID).started_at == state.started_at
    assert [one for one in make().validate(ID) if one.severity > Severity.note] == []
    assert make().repair(ID).actions == []


def test_a_state_that_scripts_set_needs_no_line(make: Any, feature: Path) -> None:
    path = feature / "state.yaml"
    path.write_text(
        f'version: "1.0"\nfeature_id: "{ID}"\ncurrent_state:\n  active_task: null\n  model_in_use: "opus"\n'
        '  started_at: "2025-01-09T10:00:00Z"\n  last_updated: "2025-01-09T15:30:45Z"\n'
    )
    (feature / "history.jsonl").write_bytes(b"")
    assert "emptied_history" not in {problem.code for problem in make().validate(ID)}


def test_a_repair_says_that_it_finished_an_operation(store: Any, make: Any, feature: Path) -> None:
    old = (feature / "state.yaml").read_bytes()
    store.update(ID, model_in_use="opus")
    (feature / "state.yaml").write_bytes(old)
    assert "unfinished_operation" in {problem.code for problem in make().validate(ID)}
    (action,) = make().repair(ID).actions
    assert (action.startswith("finished the interrupted update-state of "), make().load(ID).model_in_use) == (
        True,
        "opus",
    )
    assert make().repair(ID).actions == []


def test_an_entry_may_hold_a_command_of_several_lines(store: Any, make: Any, feature: Path) -> None:
    store.append(ID, {"command": "git commit -m 'a\n\nb'"})
    assert make().history(ID)[-1]["command"] == "git commit -m 'a\n\nb'"
    assert (feature / "history.jsonl").read_bytes().count(b"\n") == len(make().history(ID))


def test_a_task_of_a_plan_without_tasks_names_what_gives_it_some(make: Any, feature: Path) -> None:
    (feature / "implementation-plan.yaml").write_bytes(b"")
    with pytest.raises(NotFound) as caught:
        make().task(ID, "T1", "in_progress")
    assert f"`sessionary feature plan {ID} --from FILE`" in str(caught.value.hint)
