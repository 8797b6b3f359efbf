"""An act of the demo: the state of a feature is destroyed, and rebuilt from its history.

The rebuilt state is compared with the old one, field by field, and the damaged file must be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessionary.errors import Corrupt
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.testing.demo_stage import BrokenPromise

FEATURE = "demo-sign-in-2025-01-09"
RUIN = b"current_state: [ripped off in the mid"
PHASES: list[dict[str, Any]] = [
    {
        "phase_id": "P1",
        "name": "Build",
        "tasks": [
            {"task_id": "T1", "description": "The form"},
            {"task_id": "T2", "description": "The button"},
        ],
    }
]


def rebuilt_from_history(project: Path) -> Iterator[str]:
    """Work on a feature in `project`, a folder of its own, destroy its state, and yield the lines of the demo.

    Raises:
        BrokenPromise: the rebuilt state differs from the old one, or the destroyed bytes were not kept.
    """
    store = FeatureStore(project)
    yield "9. The state of a feature is destroyed, and rebuilt from its history."
    yield ""
    _work(store)
    before, entries = store.load(FEATURE), len(store.history(FEATURE))
    yield f"   {entries} commands: task {before.active_task}, model {before.model_in_use}."
    state = store.home / FEATURE / "state.yaml"
    state.write_bytes(RUIN)
    yield from _refuses(store)
    done = store.repair(FEATURE)
    yield from (f"   Repaired: {action}." for action in done.actions)
    if store.load(FEATURE) != before:
        raise BrokenPromise(f"the rebuilt state is {store.load(FEATURE)}, but it was {before}")
    if [path.read_bytes() for path in state.parent.glob("state.yaml.corrupt-*")] != [RUIN]:
        raise BrokenPromise("the bytes of the destroyed state were not kept")
    yield "   Task, model and times are as before, to the microsecond; the damaged file is kept."
    yield ""


def _work(store: FeatureStore) -> None:
    store.create(FEATURE, name="Sign in")
    store.save_plan(FEATURE, PHASES)
    store.task(FEATURE, "T1", "in_progress")
    store.update(FEATURE, active_task="T1", model_in_use="opus")
    store.task(FEATURE, "T1", "completed")
    store.update(FEATURE, active_task="T2", model_in_use="gemini")


def _refuses(store: FeatureStore) -> Iterator[str]:
    """An update of an unreadable state must be refused, and must not overwrite it."""
    try:
        store.update(FEATURE, model_in_use="sonnet")
    except Corrupt:
        if (store.home / FEATURE / "state.yaml").read_bytes() == RUIN:
            yield "   Destroyed: an update is refused, and overwrites nothing."
            return
    raise BrokenPromise("an update overwrote an unreadable state")
