"""Every public write of a feature, cut off by power at every point, and with each of its calls failing in each way.

What must hold in each state: what was acknowledged is there; what was not is there as a whole after the next write, or
not at all; plan, list, history and state then agree; and the feature goes on.
"""

import errno
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.orchestrator.replay import replay
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.model import Severity
from tests.support.faults import Effect, sweep
from tests.support.sweeps import crash_sweep

ID = "sweep-2025-01-09"
START = datetime(2025, 1, 9, 10, tzinfo=UTC)
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
TASKS = [{"task_id": "T1"}, {"task_id": "T2"}]
TASKS = [{**task, "description": "d", "agent": "a"} for task in TASKS]
PHASES = [{"phase_id": "p", "name": "P", "tasks": TASKS}]


class Clock:
    """A second more at each look."""

    def __init__(self, start: datetime = START) -> None:
        self.time = start

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


def setup(folder: Any) -> None:
    store = FeatureStore.with_fs(_unsynced(), folder, now=Clock())
    store.create(ID, name="Sweep")
    store.save_plan(ID, PHASES)
    store.update(ID, active_task="T1")
    store.task(ID, "T1", "in_progress")


def _unsynced() -> Any:
    from sessionary.testing.wrapper import UNSYNCED

    return UNSYNCED


def seen(folder: Any) -> dict[str, Any]:
    """What there is, for comparison: all but times."""
    store = FeatureStore(folder)
    state = store.load(ID)
    tasks = {
        task["task_id"]: (task["status"], task["artifacts"])
        for phase in store.plan(ID)["phases"]
        for task in phase["tasks"]
    }
    (row,) = store.list_features(archived=True)
    return {
        "phases": len(store.plan(ID)["phases"]),
        "task": state.active_task,
        "model": state.model_in_use,
        "tasks": tasks,
        "status": row.status,
        "archived": row.archived,
        "commands": [entry["command"] for entry in store.history(ID) if entry["status"] == "success"],
    }


CALLS: dict[str, Any] = {
    "update": lambda store: store.update(ID, model_in_use="opus", active_task="T2"),
    "task": lambda store: store.task(ID, "T1", "completed", artifacts=["a.py"]),
    "append": lambda store: store.append(ID, {"command": "implement"}),
    "pause": lambda store: store.pause(ID),
    "save_plan": lambda store: store.save_plan(ID, [*PHASES, {"phase_id": "q", "name": "Q", "tasks": []}]),
    "rename": lambda store: store.set_name(ID, "Another name"),
    "complete": lambda store: store.complete(ID),
    "block": lambda store: store.task(ID, "T1", "blocked"),
}
# Of a feature that rests, or that is completed.
LATER_CALLS: dict[str, Any] = {
    "resume": (lambda store: store.pause(ID), lambda store: store.resume(ID)),
    "reopen": (lambda store: store.complete(ID), lambda store: store.resume(ID, reopen=True)),
}


def outcome(call: Any, tmp_path: Any) -> tuple[Any, Any]:
    """What is seen before and after the call, worked out without faults."""
    folder = tmp_path / "plain"
    folder.mkdir()
    setup(folder)
    before = seen(folder)
    call(FeatureStore.with_fs(_unsynced(), folder, now=later_clock()))
    return before, seen(folder)


def later_clock() -> Clock:
    return Clock(START + timedelta(hours=1))


def check_of(before: Any, after: Any) -> Any:
    def check(folder: Any, acked: Any) -> None:
        store = FeatureStore.with_fs(_unsynced(), folder, now=Clock(START + timedelta(hours=2)))
        found = seen(folder)
        if acked:
            assert found == after
        store.append(ID, {"command": "go-on"})
        found = seen(folder)
        assert found["commands"].pop() == "go-on"
        revoked = [e.get("revokes") for e in store.history(ID)]
        if found != after:
            commands = [e["command"] for e in store.history(ID) if e["status"] == "success"]
            gone = [e for e in store.history(ID) if e["timestamp"] in revoked and e["status"] == "success"]
            assert len(gone) <= 1
            if gone:
                found["commands"] = before["commands"]
                assert len(commands) == len(before["commands"]) + 2
            plan = {name: before[name] for name in ("tasks", "phases")}
            assert {**found, **plan} == before, "neither old nor new"
            assert found["tasks"] in (before["tasks"], after["tasks"])
            assert found["phases"] in (before["phases"], after["phases"])
        wrong = {"unfinished_operation", "times_not_monotonic", "emptied_history"}
        assert not wrong & {problem.code for problem in store.validate(ID)}
        rebuilt_is_the_same(folder)
        left = os.listdir(Path(folder, ".ai-session", ID))
        assert set(left) <= {*FILES, *(name for name in left if name.endswith(".tmp"))}

    return check


FILES = {"state.yaml", "history.jsonl", "implementation-plan.yaml", "artifacts", ".sessionary.lock"}


def rebuilt_is_the_same(folder: Any) -> None:
    """The history records the current state."""
    store = FeatureStore(folder)
    state = store.load(ID)
    reported = replay(store.history(ID))
    assert (reported.active_task, reported.model_in_use) == (state.active_task, state.model_in_use)
    assert (reported.started_at, reported.last_updated) == (state.started_at, state.last_updated)


@pytest.mark.parametrize("name", CALLS)
def test_power_cuts(name: str, tmp_path: Path) -> None:
    """Section "Updating State", 1: atomic."""
    call = CALLS[name]
    before, after = outcome(call, tmp_path)

    def run(fs: Any) -> None:
        call(FeatureStore.with_fs(fs, fs.root, now=later_clock()))
        fs.mark(name)

    report = crash_sweep(setup, run, check_of(before, after), tmp_path, limit=60)
    assert report.states > 5
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", LATER_CALLS)
def test_writes_continue_after_power_cuts(name: str, tmp_path: Path) -> None:
    """Section "Updating State", 1: atomic."""
    first, call = LATER_CALLS[name]

    def begin(folder: Any) -> None:
        setup(folder)
        first(FeatureStore.with_fs(_unsynced(), folder, now=Clock(START + timedelta(minutes=1))))

    def run(fs: Any) -> None:
        call(FeatureStore.with_fs(fs, fs.root, now=later_clock()))
        fs.mark(name)

    plain = tmp_path / "plain"
    plain.mkdir()
    begin(plain)
    before = seen(plain)
    call(FeatureStore.with_fs(_unsynced(), plain, now=later_clock()))
    after = seen(plain)
    assert (before["status"] in ("paused", "completed"), after["status"]) == (True, "active")
    report = crash_sweep(begin, run, check_of(before, after), tmp_path, limit=60)
    assert report.states > 5
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", CALLS)
def test_every_call_fails_once(name: str, tmp_path: Path) -> None:
    """Section "Updating State", 1: atomic."""
    call = CALLS[name]
    before, after = outcome(call, tmp_path)

    def run(fs: Any, folder: Any) -> None:
        call(FeatureStore.with_fs(fs, folder, now=later_clock()))
        fs.mark(name)

    report = sweep(setup, run, check_of(before, after), tmp_path, effects=EFFECTS)
    assert report.states > 20
    assert not report.violations, report.describe()


def test_a_line_that_was_not_flushed_is_flushed_before_it_is_finished(tmp_path: Path) -> None:
    """A writer is killed between line and flush; the next one finishes; then the power goes."""
    folder = tmp_path / "plain"
    folder.mkdir()
    setup(folder)
    CALLS["update"](FeatureStore.with_fs(_unsynced(), folder, now=later_clock()))
    line = (folder / ".ai-session" / ID / "history.jsonl").read_bytes().splitlines(keepends=True)[-1]

    def run(fs: Any) -> None:
        path = f"{fs.root}/.ai-session/{ID}/history.jsonl"
        fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
        fs.write(fd, line)
        fs.close(fd)
        FeatureStore.with_fs(fs, fs.root, now=later_clock()).task(ID, "T1", "completed")
        fs.mark("finished")

    def check(place: Any, acked: Any) -> None:
        store = FeatureStore(place)
        rows = [entry["command"] for entry in store.history(ID)]
        assert store.load(ID).model_in_use == "sonnet" or "update-state" in rows[2:], "the state is ahead"
        if acked:
            assert (store.load(ID).model_in_use, rows[-2:]) == ("opus", ["update-state", "task"])

    report = crash_sweep(setup, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_an_operation_of_the_same_time_as_one_taken_back_counts(tmp_path: Path) -> None:
    """The clock may stand still between a failure and the next try."""
    from tests.support.faults import Fault, FaultFs

    setup(tmp_path)
    clock = later_clock()()
    before = FeatureStore(tmp_path).load(ID)
    fs = FaultFs(_unsynced(), Fault("rename", 1, errno.EIO))
    with pytest.raises(StorageFailed) as caught:
        FeatureStore.with_fs(fs, tmp_path, now=lambda: clock).update(ID, model_in_use="gemini")
    assert caught.value.outcome == "not_committed"
    assert FeatureStore(tmp_path).load(ID) == before
    store = FeatureStore.with_fs(_unsynced(), tmp_path, now=lambda: clock)
    store.update(ID, model_in_use="opus")
    times = [entry["timestamp"] for entry in store.history(ID)[-3:]]
    assert times[0] == times[1] == times[2]
    rebuilt_is_the_same(tmp_path)


def test_what_is_said_not_to_be_committed_is_never_seen(tmp_path: Path) -> None:
    """Section "Updating State", 1: after `not_committed` no later writer may bring the change about."""

    def run_of(call: Any) -> Any:
        def run(fs: Any, folder: Any) -> None:
            try:
                call(FeatureStore.with_fs(fs, folder, now=later_clock()))
            except StorageFailed as error:
                fs.mark(error.outcome)
                raise

        return run

    for name in ("update", "task", "pause", "save_plan"):
        place = tmp_path / name
        place.mkdir()
        before, _ = outcome(CALLS[name], place)

        def check(folder: Any, acked: Any, before: Any = before) -> None:
            if acked != ("not_committed",):
                return
            assert {**seen(folder), "commands": []} == {**before, "commands": []}
            FeatureStore(folder).append(ID, {"command": "go-on"})
            assert {**seen(folder), "commands": []} == {**before, "commands": []}

        report = sweep(setup, run_of(CALLS[name]), check, place, effects=(errno.EIO, errno.ENOSPC, "short"))
        assert not report.violations, report.describe()


def test_a_disk_that_stays_full_loses_nothing(tmp_path: Path) -> None:
    before, after = outcome(CALLS["update"], tmp_path)

    def run(fs: Any, folder: Any) -> None:
        CALLS["update"](FeatureStore.with_fs(fs, folder, now=later_clock()))
        fs.mark("update")

    report = sweep(
        setup,
        run,
        check_of(before, after),
        tmp_path,
        calls=("write",),
        effects=(errno.ENOSPC,),
        lasting=True,
    )
    assert not report.violations, report.describe()


def test_create_is_all_or_nothing(tmp_path: Path) -> None:
    """Section "Creating a Session": six steps. A cut before the list is written leaves the whole feature."""

    def run(fs: Any) -> None:
        FeatureStore.with_fs(fs, fs.root, now=Clock()).create(ID, name="Sweep")
        fs.mark("created")

    def check(folder: Any, acked: Any) -> None:
        store = FeatureStore(folder)
        rows = store.list_features()
        problems = {problem.code for problem in store.validate()} if rows else set()
        assert rows or not acked
        if rows:
            assert problems <= {"missing_row", "no_index", "no_readme"}
            assert store.load(ID).model_in_use == "sonnet"
            assert store.plan(ID)["feature"]["name"] == "Sweep"
            assert store.history(ID) == []
            store.repair(ID)
            assert store.validate() == []
        if acked:
            assert not problems
        else:
            home = Path(folder, ".ai-session")
            if not rows:
                store.create(ID, name="again")
            assert not [name for name in os.listdir(home) if name.startswith(".create-")] or rows

    report = crash_sweep(lambda folder: None, run, check, tmp_path, limit=60)
    assert report.states > 20
    assert not report.violations, report.describe()


def test_a_create_that_fails_leaves_no_feature(tmp_path: Path) -> None:
    """Section "Creating a Session", 2 to 6, in one piece."""

    def run(fs: Any, folder: Any) -> None:
        store = FeatureStore.with_fs(fs, folder, now=Clock())
        try:
            store.create(ID, name="Sweep")
            fs.mark("created")
        except StorageFailed as error:
            fs.mark(error.outcome)
            raise

    def check(folder: Any, acked: Any) -> None:
        store = FeatureStore(folder)
        if acked == ("created",):
            assert [row.feature_id for row in store.list_features()] == [ID]
        if acked == ("not_committed",):
            assert store.list_features() == []
            store.create(ID, name="again")
            assert store.plan(ID)["feature"]["name"] == "again"

    report = sweep(lambda folder: None, run, check, tmp_path, effects=EFFECTS)
    assert report.states > 40
    assert not report.violations, report.describe()


def test_archive_is_at_one_place_or_the_other(tmp_path: Path) -> None:
    """Section "Session Cleanup", 1 to 3."""

    def begin(folder: Any) -> None:
        setup(folder)
        FeatureStore.with_fs(_unsynced(), folder, now=later_clock()).complete(ID)

    def run(fs: Any) -> None:
        FeatureStore.with_fs(fs, fs.root, now=Clock()).archive(ID)
        fs.mark("archived")

    def check(folder: Any, acked: Any) -> None:
        store = FeatureStore(folder)
        (row,) = store.list_features(archived=True)
        assert row.archived or not acked
        assert row.status == "completed"
        assert store.load(ID).active_task == "T1"
        if not row.archived:
            store.archive(ID)
        with pytest.raises(NotFound):
            store.update(ID)

    report = crash_sweep(begin, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_unarchive_is_at_one_place_or_the_other(tmp_path: Path) -> None:
    """Section "Session Cleanup", 2."""

    def begin(folder: Any) -> None:
        setup(folder)
        store = FeatureStore.with_fs(_unsynced(), folder, now=later_clock())
        store.complete(ID)
        store.archive(ID)

    def run(fs: Any) -> None:
        FeatureStore.with_fs(fs, fs.root, now=Clock()).unarchive(ID)
        fs.mark("unarchived")

    def check(folder: Any, acked: Any) -> None:
        store = FeatureStore(folder)
        (row,) = store.list_features(archived=True)
        assert not (row.archived and acked)
        if row.archived:
            store.unarchive(ID)
        assert store.resume(ID, reopen=True)
        assert store.load(ID).active_task == "T1"
        assert not list(Path(folder).rglob(".state.lock"))

    for report in (
        crash_sweep(begin, run, check, tmp_path),
        sweep(begin, _unarchive, check, tmp_path, effects=EFFECTS),
    ):
        assert report.states > 5
        assert not report.violations, report.describe()


def _unarchive(fs: Any, folder: Any) -> None:
    FeatureStore.with_fs(fs, folder, now=Clock()).unarchive(ID)
    fs.mark("unarchived")


def test_repair_and_migration_keep_the_old_bytes(tmp_path: Path) -> None:
    """Section "Migration Strategy", never in place, new beside old, with a tool."""
    broken = b"version: '1.0'\nfeature_id: [\n"

    def begin(folder: Any) -> None:
        setup(folder)
        Path(folder, ".ai-session", ID, "state.yaml").write_bytes(broken)

    def run(fs: Any) -> None:
        FeatureStore.with_fs(fs, fs.root, now=later_clock()).repair(ID)
        fs.mark("repaired")

    def check(folder: Any, acked: Any) -> None:
        home = Path(folder, ".ai-session", ID)
        kept = [path.read_bytes() for path in home.iterdir() if path.name.startswith("state.yaml")]
        assert broken in kept
        store = FeatureStore(folder)
        if not acked:
            store.repair(ID)
        assert (store.load(ID).active_task, store.load(ID).model_in_use) == ("T1", "sonnet")

    report = crash_sweep(begin, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_acknowledgments_survive(tmp_path: Path) -> None:
    """Section "Contract Acknowledgment", all agents."""
    spec = tmp_path / "spec.md"
    spec.write_text("**Version**: 1.0\n")

    def begin(folder: Any) -> None:
        FeatureStore.with_fs(_unsynced(), folder, now=Clock()).acknowledge("one", spec)

    def run(fs: Any) -> None:
        FeatureStore.with_fs(fs, fs.root, now=Clock()).acknowledge("two", spec)
        fs.mark("two")

    def check(folder: Any, acked: Any) -> None:
        found = FeatureStore(folder).verify_acknowledgment(spec_path=spec)
        assert [each.agent for each in found] in (
            [["one"], ["one", "two"]] if not acked else [["one", "two"]]
        )
        assert all(each.holds for each in found)

    report = crash_sweep(begin, run, check, tmp_path)
    assert not report.violations, report.describe()


SPLIT = b'{"command": "x", "session_name": "s", "duration_ms": 5000000000, "error": "one\ntwo"}\n'
SCRIPT_INDEX = (
    f'active_features: []\n  - feature_id: "{ID}"\n    started_at: "2025-01-09T10:00:01Z"\n'
    '    last_active: "2025-01-09T10:00:01Z"\n    status: "active"\n'
)


def begin_damaged(folder: Any) -> None:
    setup(folder)
    home = Path(folder, ".ai-session")
    (home / "active-features.yaml").write_text(SCRIPT_INDEX)
    with open(home / ID / "history.jsonl", "ab") as file:
        file.write(SPLIT)
    state = (home / ID / "state.yaml").read_text()
    (home / ID / "state.yaml").write_text(state.partition("\n")[2])


MENDING: dict[str, Any] = {
    "rewrite": lambda store: store.repair(ID, rewrite_history=True),
    "migrate_beside": lambda store: store.migrate(ID),
    "rebuild_index": lambda store: store.rebuild_index(),
    "migrate": lambda store: store.migrate(ID, switch=True),
}


def check_mended(folder: Any, acked: Any) -> None:
    """Nothing is gone: each file is what it was or what it should be, and the old bytes are there in both cases."""
    store = FeatureStore(folder)
    home = Path(folder, ".ai-session")
    found = store.history(ID)
    assert len(found) == 4
    assert found[-1]["error"] == "one\ntwo"
    assert [row.status for row in store.list_features()] == ["active"]
    assert store.load(ID).active_task == "T1"
    texts = {path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert any(SPLIT in text for text in texts)
    assert SCRIPT_INDEX.encode() in texts
    assert any(text.startswith(b"feature_id") for text in texts)
    codes = {problem.code for problem in store.validate()}
    if "rewrite" in acked:
        assert not codes & {"raw_newline", "nanoseconds"}
    if "rebuild_index" in acked:
        assert "index_of_scripts" not in codes
    if "migrate" in acked:
        assert "no_version" not in codes


@pytest.mark.parametrize("name", MENDING)
def test_mending_under_power_cuts(name: str, tmp_path: Path) -> None:
    def run(fs: Any) -> None:
        MENDING[name](FeatureStore.with_fs(fs, fs.root, now=later_clock()))
        fs.mark(name)

    report = crash_sweep(begin_damaged, run, check_mended, tmp_path, limit=60)
    assert report.states > 5
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", MENDING)
def test_mending_with_calls_that_fail(name: str, tmp_path: Path) -> None:
    def run(fs: Any, folder: Any) -> None:
        MENDING[name](FeatureStore.with_fs(fs, folder, now=later_clock()))
        fs.mark(name)

    report = sweep(begin_damaged, run, check_mended, tmp_path, effects=EFFECTS)
    assert report.states > 10
    assert not report.violations, report.describe()


STALE = (
    f'version: "1.0"\nfeature_id: "{ID}"\ncurrent_state:\n  active_task: null\n  model_in_use: "opus"\n'
    '  started_at: "2025-01-09T10:00:01.000000Z"\n  last_updated: "2025-01-09T10:30:00Z"\n'
)
BAD_PLAN = b"- what a model answered\n"


def begin_overwritten(folder: Any) -> None:
    """A script has put an older task back into the state, and a planner its answer in place of the plan."""
    setup(folder)
    place = Path(folder, ".ai-session", ID)
    (place / "state.yaml").write_text(STALE)
    (place / "implementation-plan.yaml").write_bytes(BAD_PLAN)


OVERWRITTEN: dict[str, Any] = {
    "repair": lambda store: store.repair(ID),
    "save_plan": lambda store: store.save_plan(ID, PHASES),
}


def check_overwritten(name: str, folder: Any, acked: Any) -> None:
    store = FeatureStore(folder)
    place = Path(folder, ".ai-session", ID)
    texts = [path.read_bytes() for path in place.iterdir() if path.is_file()]
    state = store.load(ID)
    if name == "repair":
        assert STALE.encode() in texts
    if "repair" in acked:
        assert (state.active_task, state.model_in_use) == ("T1", "opus")
    if "save_plan" in acked:
        assert store.plan(ID)["phases"][0]["phase_id"] == "p"
    assert BAD_PLAN in texts
    store.repair(ID)
    assert store.load(ID).model_in_use == "opus"
    assert not {problem.code for problem in store.validate(ID)} & {"overwritten_state", "unlogged_state"}
    rebuilt_is_the_same(folder)


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_what_others_have_overwritten_under_power_cuts_and_faults(name: str, tmp_path: Path) -> None:
    """Section "Recovery Procedures", 1 and 2."""

    def run(fs: Any, folder: Any = None) -> None:
        OVERWRITTEN[name](FeatureStore.with_fs(fs, folder or fs.root, now=later_clock()))
        fs.mark(name)

    check = partial(check_overwritten, name)
    for report in (
        crash_sweep(begin_overwritten, run, check, tmp_path, limit=60),
        sweep(begin_overwritten, run, check, tmp_path, effects=EFFECTS),
    ):
        assert report.states > 10
        assert not report.violations, report.describe()


def begin_emptied(folder: Any) -> None:
    setup(folder)
    Path(folder, ".ai-session", ID, "history.jsonl").write_bytes(b"")


def check_begun_anew(folder: Any, acked: Any) -> None:
    store = FeatureStore(folder)
    assert (store.load(ID).active_task, store.load(ID).model_in_use) == ("T1", "sonnet")
    if acked:
        assert [entry["command"] for entry in store.history(ID)] == ["repair"]
        rebuilt_is_the_same(folder)
    store.repair(ID, rewrite_history=True)  # the new line may be torn
    assert store.history(ID)
    assert not {problem.code for problem in store.validate(ID) if problem.severity > Severity.note}


def test_a_history_is_begun_anew_under_power_cuts_and_faults(tmp_path: Path) -> None:
    """Section "Recovery Procedures", 2."""

    def run(fs: Any, folder: Any = None) -> None:
        FeatureStore.with_fs(fs, folder or fs.root, now=later_clock()).repair(ID)
        fs.mark("repair")

    for report in (
        crash_sweep(begin_emptied, run, check_begun_anew, tmp_path, limit=60),
        sweep(begin_emptied, run, check_begun_anew, tmp_path, effects=EFFECTS),
    ):
        assert report.states > 10
        assert not report.violations, report.describe()


def test_every_public_write_is_swept(tmp_path: Path) -> None:
    """Whatever says that it is durable writes; a new one has to be swept, too."""
    promises = {
        name
        for kind in FeatureStore.__mro__
        for name, member in vars(kind).items()
        if name[0] != "_" and "Durability:" in (getattr(member, "__doc__", None) or "")
    }
    called = {"create", "archive", "unarchive", "acknowledge"}  # these have tests of their own above
    for calls, prepare in ((CALLS, setup), (MENDING, begin_damaged)):
        for name, call in calls.items():
            (tmp_path / name).mkdir()
            prepare(tmp_path / name)
            store = FeatureStore.with_fs(_unsynced(), tmp_path / name, now=later_clock())
            called |= _called(store, call)
    for first, call in LATER_CALLS.values():
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        setup(folder)
        store = FeatureStore.with_fs(_unsynced(), folder, now=later_clock())
        first(store)
        called |= _called(store, call)
    # `pause` and its kin promise what `update` does, in words of their own.
    assert {"update", "task", "append", "save_plan", "pause", "create", "archive", "repair"} <= promises
    assert promises | {"resume", "complete", "rebuild_index", "migrate"} <= called


def _called(store: FeatureStore, call: Any) -> set[str]:
    """The names of the calls that are made on a store."""
    names: set[str] = set()

    class Noting:
        def __getattr__(self, name: str) -> Any:
            names.add(name)
            return getattr(store, name)

    call(Noting())
    return names
