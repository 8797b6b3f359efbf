"""Real processes over one feature, and over one list: no update is lost, no row is lost."""

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.orchestrator.store import FeatureStore
from tests.support.torture import start, torture

ID = "busy-2025-01-09"
PROCESSES = 8
UPDATES = 6

UPDATER = """
import sys
from sessionary.layouts.orchestrator.store import FeatureStore
from tests.support.torture import ack, spec
me = spec()
store = FeatureStore(sys.argv[1], timeout=60, agent=f"agent-{me.number}")
models = ("gemini", "opus", "sonnet")
for count in range(int(sys.argv[2])):
    state = store.update("busy-2025-01-09", active_task=f"{me.number}.{me.run}.{count}")
    ack([state.active_task, state.last_updated.isoformat()])
"""

CREATOR = """
import sys
from sessionary.layouts.orchestrator.store import FeatureStore
from tests.support.torture import ack, spec
me = spec()
store = FeatureStore(sys.argv[1], timeout=60)
name = f"feature-{me.number}-2025-01-09"
store.create(name)
for count in range(int(sys.argv[2])):
    store.pause(name)
    store.resume(name)
store.pause(name)
ack(name)
"""


def run_all(source: str, folder: Path, count: int) -> list[Any]:
    workers = [start(source, [str(folder), str(count)], number=number) for number in range(PROCESSES)]
    try:
        for worker in workers:
            worker.finish()
    finally:
        for worker in workers:
            worker.kill()
    return [ack for worker in workers for ack in worker.acks]


@pytest.mark.lane("sigkill")
def test_eight_processes_update_one_feature(tmp_path: Path) -> None:
    """Section "Locking Strategy", a lock for updates of the state."""
    store = FeatureStore(tmp_path)
    store.create(ID)
    acks = run_all(UPDATER, tmp_path, UPDATES)
    history = store.history(ID)
    assert len(history) == PROCESSES * UPDATES
    assert sorted(entry["task_id"] for entry in history) == sorted(task for task, _ in acks)
    times = [entry["timestamp"] for entry in history]
    assert all(one < other for one, other in pairwise(times))
    assert store.load(ID).active_task == history[-1]["task_id"]
    assert store.validate() == [] or {p.code for p in store.validate()} == {"task_without_plan"}


@pytest.mark.lane("sigkill")
def test_eight_processes_write_eight_features(tmp_path: Path) -> None:
    """Section "Locking Strategy", a lock for updates of the state."""
    names = run_all(CREATOR, tmp_path, 1)
    store = FeatureStore(tmp_path)
    assert sorted(row.feature_id for row in store.list_features()) == sorted(names)
    assert {row.status for row in store.list_features()} == {"paused"}
    assert store.validate() == []


@pytest.mark.lane("sigkill")
def test_killed_updaters_lose_nothing_that_was_promised(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.create(ID)
    promises = torture(UPDATER, [str(tmp_path), "4"], workers=3, kills=5, most_acks=3)
    logged = {entry["task_id"] for entry in store.history(ID)}
    assert {promise.value[0] for promise in promises} <= logged
    state = store.update(ID)
    assert state.active_task == store.history(ID)[-1]["task_id"]
    assert not [problem for problem in store.validate(ID) if problem.code != "task_without_plan"]


HELD = """
import os, signal, sys
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.layouts.orchestrator.feature import Feature
def killed(feature):
    print("held", os.path.getsize(f"{feature.folder}/.state.lock"), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
Feature.settle = killed
FeatureStore(sys.argv[1]).update("busy-2025-01-09", model_in_use="opus")
"""


@pytest.mark.lane("sigkill")
def test_a_writer_that_is_killed_holding_the_lock_does_not_block_others(tmp_path: Path) -> None:
    """Section "Locking Strategy": the lock of the scripts is a file, which outlives its process."""
    store = FeatureStore(tmp_path, timeout=0)
    store.create(ID)
    killed = subprocess.run([sys.executable, "-c", HELD, str(tmp_path)], stdout=subprocess.PIPE, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout.startswith(b"held ")
    lock = store.home / ID / ".state.lock"
    assert lock.exists()
    assert {problem.code for problem in store.validate(ID)} == {"stale_lock"}
    assert store.update(ID, model_in_use="gemini").model_in_use == "gemini"
    assert not lock.exists()
