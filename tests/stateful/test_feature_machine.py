"""Any order of writes to a feature, by any process, with lost states and clocks that go back, against a plain model."""

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sessionary.errors import TransitionError
from sessionary.layouts.orchestrator.rules import FEATURE_MOVES, MODELS, TASK_MOVES, TASK_STATUSES
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.testing.wrapper import UNSYNCED

ID = "machine-2025-01-09"
TASKS = ("T1", "T2", "T3")


class FeatureMachine(RuleBasedStateMachine):
    """Section "Updating State", 4: task and feature transitions, updates, entries, repairs."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="feature-machine-"))
        self.time = datetime(2025, 1, 9, 12, tzinfo=UTC)
        self.tasks = dict.fromkeys(TASKS, "pending")
        self.started: set[str] = set()
        self.status = "active"
        self.active: str | None = None
        self.model = "sonnet"
        self.lines = 1
        self.states: list[Any] = []

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize()
    def begin(self) -> None:
        self.reopen()
        self.store.create(ID)
        tasks = [{"task_id": name} for name in TASKS]
        self.store.save_plan(ID, [{"phase_id": "p", "name": "P", "tasks": tasks}])

    @rule()
    def reopen(self) -> None:
        """Go on as another process."""
        self.store = FeatureStore.with_fs(UNSYNCED, self.root, now=lambda: self.time)

    @rule(seconds=st.integers(-100, 1000))
    def wait(self, seconds: int) -> None:
        self.time += timedelta(seconds=seconds)

    @rule(task=st.sampled_from([None, *TASKS]), model=st.sampled_from(MODELS))
    def update(self, task: str | None, model: str) -> None:
        if task is not None and self.tasks[task] in ("completed", "blocked"):
            with pytest.raises(TransitionError):
                self.store.update(ID, active_task=task, model_in_use=model)
            return
        self.store.update(ID, active_task=task, model_in_use=model)
        self.active, self.model = task, model
        self.lines += 1

    @rule(task=st.sampled_from(TASKS), status=st.sampled_from(TASK_STATUSES), reopen=st.booleans())
    def move_task(self, task: str, status: str, reopen: bool) -> None:
        old = self.tasks[task]
        reopened = reopen and (old, status) == ("completed", "in_progress")
        if old != status and status not in TASK_MOVES[old] and not reopened:
            with pytest.raises(TransitionError):
                self.store.task(ID, task, status, reopen=reopen)
            return
        assert self.store.task(ID, task, status, reopen=reopen) is (old != status)
        self.tasks[task] = status
        self.lines += old != status
        if status == "in_progress":
            self.started.add(task)
        if task == self.active and old != status and status in ("completed", "blocked"):
            self.active = None

    @rule(status=st.sampled_from(["active", "paused", "completed"]), reopen=st.booleans())
    def move_feature(self, status: str, reopen: bool) -> None:
        moves: dict[str, Any] = {
            "active": lambda: self.store.resume(ID, reopen=reopen),
            "paused": lambda: self.store.pause(ID),
            "completed": lambda: self.store.complete(ID),
        }
        reopened = reopen and (self.status, status) == ("completed", "active")
        if self.status != status and status not in FEATURE_MOVES[self.status] and not reopened:
            with pytest.raises(TransitionError):
                moves[status]()
            return
        assert moves[status]() is (self.status != status)
        self.lines += self.status != status
        self.status = status

    @rule(model=st.sampled_from(MODELS))
    def log(self, model: str) -> None:
        self.store.append(ID, {"command": "implement", "model": model, "task_id": "T1"})
        self.lines += 1

    @rule()
    def lose_the_state(self) -> None:
        state = self.store.load(ID)
        os.remove(self.root / ".ai-session" / ID / "state.yaml")
        self.store.repair(ID)
        assert self.store.load(ID) == state

    @precondition(lambda self: self.lines > 1)
    @rule()
    def lose_the_list(self) -> None:
        os.remove(self.root / ".ai-session" / "active-features.yaml")
        self.store.repair(ID)

    @invariant()
    def all_is_as_it_should_be(self) -> None:
        if not hasattr(self, "store"):
            return
        state = self.store.load(ID)
        assert (state.active_task, state.model_in_use) == (self.active, self.model)
        plan = {task["task_id"]: task for task in self.store.plan(ID)["phases"][0]["tasks"]}
        assert {name: task["status"] for name, task in plan.items()} == self.tasks
        for name, task in plan.items():
            assert (task["completed_at"] is not None) == (task["status"] == "completed")
            assert (task["started_at"] is not None) == (name in self.started)
        (row,) = self.store.list_features()
        assert row.status == self.status
        history = self.store.history(ID)
        assert len(history) == self.lines
        times = [entry["timestamp"] for entry in history if "state" in entry]
        assert all(one < other for one, other in pairwise(times))
        assert state.last_updated is not None
        assert times[-1] == state.last_updated.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert {problem.code for problem in self.store.validate()} <= {"time_goes_back"}


TestFeatures = FeatureMachine.TestCase
if settings().max_examples <= 100:
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    TestFeatures.settings = settings(max_examples=40, stateful_step_count=20, phases=phases, deadline=None)
