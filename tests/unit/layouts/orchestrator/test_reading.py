"""The rules of the contract for readers, recovery and migration; each test names the section that it holds us to."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import READ
from sessionary.errors import Conflict, Corrupt, Invalid, NotFound, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.orchestrator.history import parse_history
from tests.unit.layouts.orchestrator.conftest import ID, NOON

SEED_STATE = f"""version: "1.0"
feature_id: "{ID}"
current_state:
  active_task: "impl-core-commands"
  model_in_use: "opus"
  started_at: "2025-01-09T10:00:00Z"
  last_updated: "2025-01-09T15:30:45Z"
"""
SEED_ENTRY = (
    '{"timestamp":"2025-01-09T10:00:00Z","command":"plan","arguments":"Create AI orchestrator",'
    '"model":"gemini","agent":"agent-1","task_id":null,"status":"success","duration_ms":5234}'
)
SEED_INDEX = f"""active_features:
  - feature_id: "{ID}"
    started_at: "2025-01-09T10:00:00Z"
    last_active: "2025-01-09T15:30:00Z"
    status: "active"
"""


def codes(problems: Any) -> set[str]:
    return {problem.code for problem in problems}


def row(name: str, status: str = "active") -> str:
    return SEED_INDEX.partition("\n")[2].replace(ID, name).replace('active"\n', f'{status}"\n')


# -- the examples of the contract


def test_the_example_state_is_read(store: Any, feature: Any) -> None:
    """Appendix, "Example state.yaml"."""
    (feature / "state.yaml").write_text(SEED_STATE)
    state = store.load(ID)
    assert (state.active_task, state.model_in_use) == ("impl-core-commands", "opus")
    assert state.started_at == datetime(2025, 1, 9, 10, tzinfo=UTC)
    assert state.last_updated == datetime(2025, 1, 9, 15, 30, 45, tzinfo=UTC)
    assert store.last_report.problems == []


def test_the_example_entry_is_read_and_has_no_faults(store: Any, feature: Any) -> None:
    """Appendix, "Example history.jsonl entry"; "History Log Format"."""
    (feature / "history.jsonl").write_text(SEED_ENTRY + "\n")
    assert store.history(ID) == [json.loads(SEED_ENTRY)]
    assert store.last_report.problems == []
    assert store.status(ID).stats.average_ms == 5234


def test_the_example_list_is_read(store: Any, feature: Any, home: Any) -> None:
    """Section "Active Features Format"."""
    (home / "active-features.yaml").write_text(SEED_INDEX)
    assert [found.status for found in store.list_features()] == ["active"]
    assert store.validate() == []


# -- On Read: missing files, format, corruption


def test_missing_files_are_empty_and_reported(store: Any, feature: Any) -> None:
    """Section "On Read": handle missing files gracefully."""
    for name in ("history.jsonl", "implementation-plan.yaml"):
        (feature / name).unlink()
    (feature / "artifacts").rmdir()
    assert (store.history(ID), store.plan(ID)) == ([], {})
    assert codes(store.last_report.problems) == {"no_plan"}
    assert codes(store.validate(ID)) == {"no_history", "no_plan", "no_artifacts"}
    (feature / "state.yaml").unlink()
    with pytest.raises(NotFound, match="missing"):
        store.load(ID)
    assert "no_state" in codes(store.validate(ID))


def test_one_broken_feature_hides_no_other(store: Any, feature: Any) -> None:
    """Section "On Read": report corruption."""
    store.create("other-2025-01-09")
    (feature / "state.yaml").write_bytes(b"\xff\xfe{[")
    found = {each.feature_id: each for each in store.list_features()}
    assert found[ID].state is None
    assert codes(found[ID].problems) == {"bad_state"}
    assert found["other-2025-01-09"].state is not None
    assert store.status(ID).health == "unknown"


def test_all_faults_of_a_state_are_reported_at_once(store: Any, feature: Any) -> None:
    """Section "On Read": validate data format."""
    text = SEED_STATE.replace('"opus"', '"gpt9"').replace('"2025-01-09T15:30:45Z"', '"soon"')
    (feature / "state.yaml").write_text(text)
    with pytest.raises(SchemaError) as caught:
        store.load(ID)
    assert [fault.partition(":")[0] for fault in caught.value.details["faults"]] == [
        "current_state.model_in_use",
        "current_state.last_updated",
    ]
    reported = [problem for problem in store.validate(ID) if problem.code == "state_schema"]
    assert [(problem.line, problem.message.partition(":")[0]) for problem in reported] == [
        (5, "current_state.model_in_use"),
        (7, "current_state.last_updated"),
    ]
    assert all("repair" in str(problem.repair) for problem in reported)


def test_faults_of_plan_and_list_have_their_lines(store: Any, feature: Any, home: Any) -> None:
    """Section "On Read": report inconsistencies, with the place of each."""
    plan = feature / "implementation-plan.yaml"
    text = plan.read_text().replace("pending", "done", 1).replace('"p2"', "2")
    plan.write_text(text)
    index = home / "active-features.yaml"
    index.write_text(SEED_INDEX + row("gone-2025-01-09", "resting"))
    found = {problem.code: problem for problem in store.validate()}
    reported = [(p.line, p.message.partition(":")[0]) for p in store.validate(ID) if p.code == "plan_schema"]
    lines = text.splitlines()
    assert (
        reported
        == [
            (lines.index('        status: "done"') + 1, "phases[0].tasks[0].status"),
            (lines.index("  - phase_id: 2") + 1, "phases[1].phase_id"),
        ][::-1]
    )
    assert found["index_schema"].line == index.read_text().splitlines().index('    status: "resting"') + 1


def test_validate_reports_everything(store: Any, feature: Any, home: Any) -> None:
    """Section "On Read": report corruption or inconsistencies."""
    (home / "legacy").mkdir()
    (home / "legacy" / "state.yaml").write_text(SEED_STATE.replace(ID, "other"))
    (home / "README.md").unlink()
    (home / "active-features.yaml").write_text(SEED_INDEX + row("gone-2025-01-09", "resting"))
    (feature / "state.yaml").write_text(SEED_STATE)
    (feature / "history.jsonl").write_text(
        SEED_ENTRY
        + "\n"
        + SEED_ENTRY.replace("gemini", "claude").replace("10:00:00", "09:00:00")
        + '\n{"event": "session_start"}\nhalf'
    )
    (feature / "implementation-plan.yaml").write_text("phases: [{}]\n")
    assert codes(store.validate()) == {
        "irregular_id",
        "other_feature_id",
        "no_readme",
        "orphan_row",
        "missing_row",
        "index_schema",
        "no_plan",
        "no_history",
        "no_artifacts",
        "unknown_model",
        "time_goes_back",
        "event_entry",
        "torn_tail",
        "plan_schema",
        "task_without_plan",
    }


def test_a_folder_in_which_nothing_can_be_created_is_reported(store: Any, feature: Any, home: Any) -> None:
    """Section "On Session Creation": verify directory creation permissions."""
    from sessionary.disk.fs import OS_FS
    from sessionary.layouts.orchestrator.checking import store_problems
    from sessionary.layouts.orchestrator.index import parse_index

    index = parse_index((home / "active-features.yaml").read_bytes(), "i")
    assert codes(store_problems(OS_FS, str(home), [ID], index, writable=False)) == {"not_writable"}
    assert codes(store_problems(OS_FS, str(home), [ID], index, writable=True)) == set()


def test_an_active_task_that_is_not_open_is_reported(store: Any, feature: Any) -> None:
    """Section "On Read": report inconsistencies."""
    (feature / "state.yaml").write_text(SEED_STATE)
    assert "unknown_task" in codes(store.validate(ID))
    store.task(ID, "T2", "blocked")
    (feature / "state.yaml").write_text(
        SEED_STATE.replace("impl-core-commands", "T2").replace("2025-01-09T15", "2025-01-10T15")
    )
    assert "task_not_open" in codes(store.validate(ID))


# -- history: appending, filters, statistics


def test_an_entry_is_filled_in_and_has_the_nine_fields_in_order(store: Any, feature: Any) -> None:
    """Section "History Log Format"."""
    store.update(ID, active_task="T1", model_in_use="gemini")
    made = store.append(
        ID,
        {"command": "implement", "arguments": "--task T1", "error": "boom", "duration_ms": 12, "tokens": 5},
    )
    assert list(made) == [
        "timestamp",
        "command",
        "arguments",
        "model",
        "agent",
        "task_id",
        "status",
        "duration_ms",
        "error",
        "tokens",
    ]
    assert made["timestamp"] == "2025-01-09T12:00:02.000000Z"
    assert (made["model"], made["agent"], made["task_id"]) == ("gemini", "sessionary", "T1")
    assert (made["status"], made["error"], made["tokens"]) == ("failure", "boom", 5)
    assert store.history(ID)[-1] == made
    state = store.load(ID)
    store.append(ID, {"command": "x", "model": "opus", "task_id": None})
    assert store.load(ID) == state, "an entry never changes the state"


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({}, "command"),
        ({"command": " "}, "command"),
        ({"command": "x", "model": "gpt9"}, "model"),
        ({"command": "x", "status": "failed"}, "status"),
        ({"command": "x", "status": "failure"}, "error"),
        ({"command": "x", "status": "success", "error": "e"}, "error"),
        ({"command": "x", "duration_ms": -1}, "duration_ms"),
        ({"command": "x", "duration_ms": True}, "duration_ms"),
        ({"command": "x", "duration_ms": 1.5}, "duration_ms"),
        ({"command": "x", "task_id": 3}, "task_id"),
        ({"command": "x", "arguments": ["a"]}, "arguments"),
        ({"command": "x", "agent": None}, "agent"),
        ({"command": "x", "timestamp": "noon"}, "timestamp"),
        ({"command": "x", "state": {"active_task": "T3"}}, "state"),
        ({"command": "x", "revokes": "t"}, "revokes"),
    ],
)
def test_an_entry_that_breaks_the_contract_is_refused(bad: Any, field: str, store: Any, feature: Any) -> None:
    """Section "History Log Format"."""
    before = (feature / "history.jsonl").read_bytes()
    with pytest.raises(SchemaError) as caught:
        store.append(ID, bad)
    assert field in {fault.partition(":")[0] for fault in caught.value.details["faults"]}
    assert (feature / "history.jsonl").read_bytes() == before


def test_a_torn_tail_is_sealed_and_never_glued(store: Any, feature: Any) -> None:
    """Section "Locking Strategy": append-only; others may have been killed in the middle of a line."""
    with open(feature / "history.jsonl", "ab") as file:
        file.write(b'{"command": "half')
    assert "torn_tail" in codes(store.validate(ID))
    made = store.append(ID, {"command": "whole"})
    assert store.history(ID)[-1] == made
    assert b'{"command": "half\n{"timestamp"' in (feature / "history.jsonl").read_bytes()


def test_filters_of_a_history(store: Any, feature: Any, clock: Any) -> None:
    """Section "History Log Format": what each field is good for."""
    store.append(ID, {"command": "plan", "model": "gemini", "agent": "a"})
    clock.move(hours=1)
    store.append(ID, {"command": "implement", "model": "opus", "agent": "b", "error": "no"})
    store.append(ID, {"command": "implement", "model": "opus", "agent": "a"})

    def found(**filters: Any) -> list[tuple[str, str]]:
        return [(each["command"], each["agent"]) for each in store.history(ID, **filters)]

    assert found(command="implement") == [("implement", "b"), ("implement", "a")]
    assert found(model="gemini") == [("plan", "a")]
    assert found(agent="a") == [("plan", "a"), ("implement", "a")]
    assert found(failed=True) == [("implement", "b")]
    assert found(since="2025-01-09T13:00:00Z", agent="a") == [("implement", "a")]
    assert found(since=clock.time) == [("implement", "b"), ("implement", "a")]
    with pytest.raises(Invalid):
        found(since="noon")


def test_status_of_a_feature(store: Any, feature: Any, clock: Any) -> None:
    """Sections "Implementation Plan Schema" and "History Log Format", added up."""
    for name in ("T1", "T2"):
        store.task(ID, name, "in_progress")
    store.task(ID, "T1", "completed")
    store.append(ID, {"command": "implement", "duration_ms": 100})
    store.append(ID, {"command": "implement", "duration_ms": 300, "error": "no"})
    (feature / "artifacts" / "src").mkdir()
    for name in ("a.py", "b.md", "src/c.py"):
        (feature / "artifacts" / name).write_text("x")
    status = store.status(ID)
    assert (status.name, status.description, status.status) == (
        "AI orchestrator",
        "Commands for agents",
        "active",
    )
    assert status.tasks == {"pending": 1, "in_progress": 1, "completed": 1, "blocked": 0}
    assert status.progress == 33
    assert status.stats.commands == {"task": 3, "implement": 2, "plan": 1}
    assert status.stats.failures == 1
    assert (status.stats.total_ms, status.stats.models) == (400, {"sonnet": 6})
    assert status.artifacts == {"py": 2, "md": 1}
    assert [entry["command"] for entry in status.last] == ["task", "task", "task", "implement", "implement"]
    assert json.loads(json.dumps(status.as_dict()))["current_state"]["model_in_use"] == "sonnet"
    healths = []
    for hours in (0.9, 0.2, 22.8, 0.2):
        clock.move(hours=hours)
        healths.append(store.status(ID).health)
    assert healths == ["active", "idle", "idle", "stale"]


def test_five_tasks_of_which_two_are_done_are_forty_percent(store: Any, home: Any) -> None:
    """Section "Implementation Plan Schema", progress."""
    store.create("five-2025-01-09")
    tasks = [{"task_id": f"T{n}"} for n in range(5)]
    store.save_plan("five-2025-01-09", [{"phase_id": "p", "name": "P", "tasks": tasks}])
    for name in ("T0", "T1"):
        store.task("five-2025-01-09", name, "in_progress")
        store.task("five-2025-01-09", name, "completed")
    assert store.status("five-2025-01-09").progress == 40


# -- Recovery Procedures


def test_a_missing_state_is_restored_from_the_history(store: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 1."""
    store.update(ID, active_task="T1", model_in_use="opus")
    before = store.load(ID)
    (feature / "state.yaml").unlink()
    done = store.repair(ID)
    assert store.load(ID) == before
    assert done.actions == ["restored the state from 2 entries of the history"]
    assert done.problems == []
    assert store.repair(ID).actions == []


def test_a_corrupt_state_is_kept(store: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 1."""
    (feature / "state.yaml").write_text("invalid yaml content {")
    done = store.repair(ID)
    assert [Path(kept).read_text() for kept in done.kept] == ["invalid yaml content {"]
    assert Path(done.kept[0]).name == "state.yaml.corrupt-20250109T120002.000000Z"
    assert store.load(ID).model_in_use == "sonnet"


def test_every_prefix_of_a_history_gives_the_state_of_that_time(
    make: Any, store: Any, feature: Any, clock: Any
) -> None:
    """Section "Recovery Procedures", 1: what repair writes is what was there."""
    known = {len((feature / "history.jsonl").read_bytes()): store.load(ID)}
    steps: list[Any] = [
        lambda: store.update(ID, active_task="T1"),
        lambda: store.task(ID, "T1", "in_progress"),
        lambda: store.append(ID, {"command": "implement", "model": "gemini", "task_id": "T3"}),
        lambda: store.update(ID, model_in_use="opus"),
        lambda: store.pause(ID),
        lambda: store.resume(ID),
        lambda: store.task(ID, "T1", "completed"),
        lambda: store.update(ID, active_task="T2", model_in_use="gemini"),
        lambda: store.complete(ID),
    ]
    for step in steps:
        clock.move(seconds=7)
        step()
        known[len((feature / "history.jsonl").read_bytes())] = store.load(ID)
    whole = (feature / "history.jsonl").read_bytes()
    assert len(known) == len(steps) + 1
    # At the end of each entry, without its newline, in the middle of the next one, and at many places between.
    cuts = {*known, *(size - 1 for size in known), *range(min(known), len(whole), 31)} - {min(known) - 1}
    for cut in sorted(cuts):
        (feature / "history.jsonl").write_bytes(whole[:cut])
        (feature / "state.yaml").unlink()
        fresh = make()
        fresh.repair(ID)
        assert fresh.load(ID) == known[max(size for size in known if size <= cut + 1)], cut


def test_a_history_of_others_is_replayed_as_they_meant_it(store: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 1, for logs that hold no line of ours."""
    rows: list[dict[str, Any]] = [
        {
            "timestamp": "2025-01-09T10:00:00Z",
            "command": "plan",
            "model": "gemini",
            "task_id": None,
            "status": "success",
        },
        {
            "timestamp": "2025-01-09T11:00:00Z",
            "command": "implement",
            "model": "opus",
            "task_id": "T1",
            "status": "success",
        },
        {"timestamp": "2025-01-09T11:30:00Z", "command": "implement", "model": "gpt9", "status": "success"},
        {
            "timestamp": "2025-01-09T12:30:00Z",
            "command": "implement",
            "model": "sonnet",
            "task_id": "T9",
            "status": "failure",
        },
        {"timestamp": "2025-01-09T12:00:00Z", "event": "session_end", "task_id": "T2", "model": "sonnet"},
    ]
    (feature / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (feature / "state.yaml").unlink()
    store.repair(ID)
    state = store.load(ID)
    assert (state.model_in_use, state.active_task) == ("opus", "T2")
    assert state.last_updated == datetime(2025, 1, 9, 12, 30, tzinfo=UTC)
    assert state.started_at == NOON, "the list knows best when a feature of others began"


def test_missing_files_are_made_anew(store: Any, feature: Any, home: Any) -> None:
    """Section "Recovery Procedures", 2: recreate from specification."""
    for path in (feature / "history.jsonl", feature / "implementation-plan.yaml", feature / "state.yaml"):
        path.unlink()
    (feature / "artifacts").rmdir()
    (home / "README.md").unlink()
    (home / "active-features.yaml").unlink()
    done = store.repair(ID)
    assert len(done.actions) == 6
    assert [problem.code for problem in done.problems] == ["assumed", "assumed"], "start and model"
    assert store.validate() == []
    assert store.load(ID).started_at == datetime(2025, 1, 9, tzinfo=UTC)


def test_a_missing_row_is_added_with_its_status(store: Any, feature: Any, home: Any) -> None:
    """Sections "Recovery Procedures", 2, and "Active Features Format"."""
    store.pause(ID)
    before = (home / "active-features.yaml").read_bytes()
    (home / "active-features.yaml").unlink()
    assert store.list_features()[0].status == "paused", "the history knows"
    assert "no_index" in codes(store.validate())
    store.repair(ID)
    assert (home / "active-features.yaml").read_bytes() == before
    (home / "active-features.yaml").unlink()
    store.rebuild_index()
    assert (home / "active-features.yaml").read_bytes() == before


def test_a_cut_off_operation_is_finished_by_the_next_writer(
    make: Any, store: Any, feature: Any, home: Any
) -> None:
    """Section "Updating State", rule 1: all state changes are atomic."""
    index, plan, state = (
        home / "active-features.yaml",
        feature / "implementation-plan.yaml",
        feature / "state.yaml",
    )
    operations: list[Any] = [
        (lambda: store.task(ID, "T1", "blocked"), lambda: store.plan(ID)["phases"][0]["tasks"][0]["status"]),
        (lambda: store.pause(ID), lambda: store.list_features()[0].status),
    ]
    for operation, effect in operations:
        old = {path: path.read_bytes() for path in (index, plan, state)}
        operation()
        after = effect(), store.load(ID)
        for path, data in old.items():
            path.write_bytes(data)  # as if the process had died behind its line of the history
        assert (effect(), store.load(ID)) != after
        assert "unfinished_operation" in codes(store.validate(ID))
        make().append(ID, {"command": "next"})
        assert (effect(), store.load(ID)) == after
        assert "unfinished_operation" not in codes(store.validate(ID))


# -- Conflict Resolution: the list

CONFLICT = SEED_INDEX.replace(
    '    status: "active"\n',
    '<<<<<<< HEAD\n    status: "active"\n=======\n    status: "paused"\n>>>>>>> other\n',
)
DISAGREEING = SEED_INDEX + row(ID, "paused")


@pytest.mark.parametrize(
    "text", [CONFLICT, DISAGREEING, "active_features: [\n", "[1, 2]\n", "active_features: 5\n"]
)
def test_a_conflicted_list_is_never_merged_nor_overwritten(
    clock: Any, text: str, store: Any, feature: Any, home: Any
) -> None:
    """Section "Conflict Resolution": merge conflicts in active-features.yaml must be resolved manually."""
    index = home / "active-features.yaml"
    index.write_text(text)
    kind = Conflict if text in (CONFLICT, DISAGREEING) else Corrupt
    calls: list[Any] = [
        lambda: store.create("new-2025-01-09"),
        lambda: store.pause(ID),
        lambda: store.complete(ID),
    ]
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.details["lines"]
        assert str(index) == caught.value.path
    assert not (home / "new-2025-01-09").exists(), "refused before any folder is made"
    assert [found.feature_id for found in store.list_features()] == [ID], "reads ask the folders"
    assert store.last_report.problems
    clock.move(minutes=2)
    assert store.update(ID, active_task="T1").active_task == "T1", "work goes on"
    assert codes(store.last_report.problems) == {"row_not_written"}
    store.repair(ID)
    done = store.rebuild_index()
    assert index.read_text() == text
    (candidate,) = home.glob("active-features.yaml.candidate-*")
    assert str(candidate) in done.actions[0]
    assert ID in candidate.read_text()


def test_two_equal_rows_are_only_reported(store: Any, feature: Any, home: Any) -> None:
    """Section "Conflict Resolution"."""
    (home / "active-features.yaml").write_text(SEED_INDEX + row(ID))
    assert codes(store.validate()) == {"index_duplicate"}
    assert store.pause(ID)
    assert (home / "active-features.yaml").read_text().count(ID) == 1


def test_comments_and_unknown_keys_of_the_list_survive(store: Any, feature: Any, home: Any) -> None:
    """Section "Active Features Format", with a file that a user has edited."""
    index = home / "active-features.yaml"
    index.write_text(
        "# ours\nteam: blue\n" + SEED_INDEX.replace('status: "active"', 'status: "active"  # really')
    )
    store.pause(ID)
    text = index.read_text()
    assert text.startswith("# ours\nteam: blue\n")
    assert 'status: "paused"  # really\n' in text


# -- Version Detection, Migration Strategy


def test_a_missing_version_is_one(store: Any, feature: Any) -> None:
    """Section "Version Detection": assume v1.0 if missing."""
    (feature / "state.yaml").write_text(SEED_STATE.partition("\n")[2])
    assert store.load(ID).model_in_use == "opus"
    assert codes(store.last_report.problems) == {"no_version"}


def test_a_version_that_is_a_number_is_read(store: Any, feature: Any) -> None:
    """Section "Version Detection"."""
    (feature / "state.yaml").write_text(SEED_STATE.replace('"1.0"', "1.0"))
    store.load(ID)
    assert codes(store.last_report.problems) == {"odd_version"}


def test_a_newer_minor_version_is_read_and_its_keys_are_kept(store: Any, feature: Any) -> None:
    """Section "Version Detection"."""
    text = SEED_STATE.replace('"1.0"', '"1.3"').replace("impl-core-commands", "T1") + "extra: {a: [1, no]}\n"
    (feature / "state.yaml").write_text(text)
    store.update(ID, active_task="T2")
    written = (feature / "state.yaml").read_text()
    assert 'version: "1.3"' in written
    assert "extra: {a: [1, no]}" in written
    assert store.load(ID).active_task == "T2"


def test_an_unknown_major_version_is_not_touched(store: Any, feature: Any) -> None:
    """Sections "Version Detection" and "Breaking Changes": a new major version needs a migration path."""
    text = SEED_STATE.replace('"1.0"', '"2.0"')
    (feature / "state.yaml").write_text(text)
    for call in (store.load, store.update, store.repair, store.migrate):
        with pytest.raises(Unsupported, match=r"version '2\.0'"):
            call(ID)
    assert (feature / "state.yaml").read_text() == text
    assert codes(store.validate(ID)) >= {"newer_version"}


def test_a_migration_lays_the_new_beside_the_old(store: Any, feature: Any) -> None:
    """Section "Migration Strategy": never modify existing data in-place."""
    text = SEED_STATE.partition("\n")[2] + "extra: 1\n"
    (feature / "state.yaml").write_text(text)
    beside = store.migrate(ID)
    assert beside == feature / "state.v1.0.yaml"
    assert (feature / "state.yaml").read_text() == text
    assert beside.read_text().startswith('version: "1.0"\nfeature_id:')
    assert '"2025-01-09T10:00:00.000000Z"' in beside.read_text()
    store.migrate(ID, switch=True)
    assert (feature / "state.yaml").read_bytes() == beside.read_bytes()
    (kept,) = feature.glob("state.yaml.before-*")
    assert kept.read_text() == text
    assert store.migrate(ID) is None
    assert store.last_report.problems == []


# -- what the contract's scripts wrote


def test_the_list_of_the_scripts_is_read_and_put_right_on_request(
    store: Any, feature: Any, home: Any
) -> None:
    """Rows below an empty list are not YAML; half a row is left where a feature was deleted."""
    index = home / "active-features.yaml"
    text = "active_features: []\n" + row(ID, "paused") + row("abc").partition("\n")[2]
    index.write_text(text)
    assert store.list_features()[0].status == "paused"
    assert codes(store.last_report.problems) == {"index_of_scripts"}
    with pytest.raises(Corrupt):
        store.resume(ID)
    assert index.read_text() == text
    done = store.rebuild_index()
    assert [Path(kept).read_text() for kept in done.kept] == [text]
    assert index.read_text() == SEED_INDEX.replace('"active"', '"paused"')
    assert store.resume(ID)


def test_the_state_of_the_scripts_is_read_and_put_right_on_request(store: Any, feature: Any) -> None:
    """Setting a status put an indented line under feature_id."""
    text = SEED_STATE.replace("current_state:", '  status: "completed"\ncurrent_state:')
    (feature / "state.yaml").write_text(text)
    assert store.load(ID).active_task == "impl-core-commands"
    assert codes(store.last_report.problems) == {"status_line"}
    done = store.repair(ID)
    assert [Path(kept).read_text() for kept in done.kept] == [text]
    assert (feature / "state.yaml").read_text() == SEED_STATE


def test_the_history_of_the_scripts_is_read_named_and_put_right_on_request(store: Any, feature: Any) -> None:
    """One record on two lines, nanoseconds in duration_ms, events and phases beside the commands."""
    broken = (
        '{"timestamp":"2025-01-09T10:00:01Z","command":"implement","model":"sonnet","agent":"unknown",'
        '"status":"failure","duration_ms":213795733,"session_name":"s","error":"\x1b[31mone\ntwo"}\n'
    )
    event = '{"timestamp":"2025-01-09T10:00:00Z","event":"session_end","feature_id":"x","status":"failed"}\n'
    phase = '{"timestamp":"2025-01-09T10:00:02Z","command":"implement","phase":"red","task_id":"T1"}\n'
    (feature / "history.jsonl").write_text(event + broken + phase)
    history = store.history(ID)
    assert [entry.get("error") for entry in history] == [None, "\x1b[31mone\ntwo", None]
    assert codes(store.last_report.problems) == {
        "raw_newline",
        "event_entry",
        "phase_entry",
        "nanoseconds",
        "entry_fields",
    }
    stats = store.status(ID).stats
    assert (stats.commands, stats.total_ms, stats.failures) == ({"implement": 1}, 213, 1)
    store.repair(ID)
    assert (feature / "history.jsonl").read_text() == event + broken + phase, "only on request"
    done = store.repair(ID, rewrite_history=True)
    assert [Path(kept).read_text() for kept in done.kept] == [event + broken + phase]
    assert codes(store.validate(ID)) == {"event_entry", "phase_entry", "entry_fields"}
    assert store.history(ID)[1]["duration_ms"] == 213
    assert store.history(ID)[1]["error"] == "\x1b[31mone\ntwo"
    text = (feature / "history.jsonl").read_text()
    assert text.startswith(event)
    assert text.endswith(phase), "what is sound keeps its bytes"
    assert store.repair(ID, rewrite_history=True).actions == []
    store.append(ID, {"command": "go-on"})
    assert store.history(ID)[-1]["command"] == "go-on"


def test_milliseconds_are_not_taken_for_nanoseconds() -> None:
    rows = [
        {"command": "x", "duration_ms": 3_600_000},
        {"command": "x", "duration_ms": 900_000, "session_name": "s"},
    ]
    data = "".join(json.dumps(each) + "\n" for each in rows).encode()
    assert parse_history(data, "h").values == rows
    from sessionary.layouts.orchestrator.entries import milliseconds

    assert [milliseconds(each) for each in rows] == [3_600_000, 900_000]


def test_a_plan_that_cannot_be_repaired_is_reported(store: Any, feature: Any) -> None:
    """Section "Recovery Procedures", 2: what is there is not recreated."""
    plan = feature / "implementation-plan.yaml"
    for broken, code in ((b"phases: [\n", "bad_plan"), (b"- what a model answered\n", "bad_plan")):
        plan.write_bytes(broken)
        done = store.repair(ID)
        assert (done.actions, codes(done.problems)) == ([], {code})
        assert plan.read_bytes() == broken
    no_file(plan)
    assert codes(store.repair(ID).problems) == {"unreadable_file"}


# -- what the system refuses to read


def no_file(path: Path) -> None:
    """A folder where a file belongs: no user, not even the superuser, can read that."""
    path.unlink(missing_ok=True)
    path.mkdir()


@pytest.mark.parametrize("name", ["state.yaml", "implementation-plan.yaml", "history.jsonl"])
def test_a_file_that_cannot_be_read_hides_no_other_feature(name: str, store: Any, feature: Any) -> None:
    """Section "On Read": report corruption; everything else is there."""
    store.create("other-2025-01-09")
    no_file(feature / name)
    rows = {row.feature_id: row for row in store.list_features()}
    assert set(rows) == {ID, "other-2025-01-09"}
    assert (rows[ID].state is None) == (name == "state.yaml")
    reported = [problem for problem in store.validate() if problem.severity > 1]
    assert [(problem.code, problem.path) for problem in reported] == [
        ("unreadable_file", str(feature / name))
    ]
    status = store.status(ID)
    assert "unreadable_file" in codes(status.problems)
    assert (status.name == "AI orchestrator") == (name != "implementation-plan.yaml")
    question = {
        "state.yaml": store.load,
        "implementation-plan.yaml": store.plan,
        "history.jsonl": store.history,
    }
    with pytest.raises(StorageFailed) as caught:
        question[name](ID)
    assert caught.value.error_context
    assert caught.value.error_context["operation"] == "read"
    assert list((feature / name).iterdir()) == []


def test_a_list_that_cannot_be_read_does_not_hide_the_rest(store: Any, feature: Any, home: Any) -> None:
    """Sections "On Read" and "Conflict Resolution": the folders count, and nothing is written over it."""
    store.pause(ID)
    no_file(home / "active-features.yaml")
    assert [(row.feature_id, row.status) for row in store.list_features()] == [(ID, "paused")]
    assert codes(store.last_report.problems) == {"unreadable_file"}
    assert codes(store.validate()) == {"unreadable_file"}
    assert store.update(ID, model_in_use="opus").model_in_use == "opus"
    for call, argument in ((store.create, "x-2025-01-09"), (store.resume, ID)):
        with pytest.raises(StorageFailed) as caught:
            call(argument)
        assert caught.value.outcome == "not_committed"
    assert not (home / "x-2025-01-09").exists()
    assert list((home / "active-features.yaml").iterdir()) == []


@pytest.mark.skipif(
    not READ & getattr(os, "O_NONBLOCK", 0), reason="opening waits for the other end of a pipe"
)
@pytest.mark.parametrize("name", ["state.yaml", "implementation-plan.yaml", "history.jsonl"])
def test_a_pipe_named_like_a_file_of_a_feature_is_reported_and_never_waited_for(
    name: str, store: Any, feature: Any
) -> None:
    """Section "On Read": report corruption."""
    (feature / name).unlink()
    os.mkfifo(feature / name)
    assert [row.feature_id for row in store.list_features()] == [ID]
    assert "unreadable_file" in codes(store.validate())
    assert "unreadable_file" in codes(store.status(ID).problems)
    if name != "implementation-plan.yaml":
        with pytest.raises(StorageFailed):
            store.update(ID, model_in_use="opus")
