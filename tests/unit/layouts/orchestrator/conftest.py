"""A project with a clock that we move, and one feature with a plan."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.testing.wrapper import UNSYNCED

ID = "ai-orchestrator-2025-01-09"
NOON = datetime(2025, 1, 9, 12, tzinfo=UTC)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Callable[..., FeatureStore]:
    """A store over the same project, as another process would have it."""

    def opened(**settings: Any) -> FeatureStore:
        return FeatureStore.with_fs(UNSYNCED, tmp_path, now=clock, **settings)

    return opened


@pytest.fixture
def store(make: Callable[..., FeatureStore]) -> FeatureStore:
    return make()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".ai-session"


@pytest.fixture
def feature(store: FeatureStore, home: Path, clock: Clock) -> Path:
    """The folder of a feature with two phases and three tasks."""
    store.create(ID, name="AI orchestrator", description="Commands for agents")
    clock.move(seconds=1)
    store.save_plan(
        ID,
        [
            {"phase_id": "p1", "name": "Design", "tasks": [task("T1"), task("T2")]},
            {"phase_id": "p2", "name": "Build", "tasks": [task("T3")]},
        ],
    )
    clock.move(seconds=1)
    return home / ID


def task(task_id: str, **more: Any) -> dict[str, Any]:
    return {"task_id": task_id, "description": f"do {task_id}", "agent": "agent-1", **more}
