"""Where a feature stands: how far its plan is, how lately it was worked on, what its commands did."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from statistics import mean
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.layouts.orchestrator import entries, rules
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem

IDLE_AFTER = timedelta(hours=1)
STALE_AFTER = timedelta(hours=24)
LAST = 5


@dataclass(frozen=True, slots=True)
class HistoryStats:
    """What the commands of a history add up to. Events and phases of the contract's scripts are not commands.

    Attributes:
        entries: readable entries of every kind.
        commands: how often each command ran. models, agents: how often each was used.
        failures: commands that failed.
        total_ms: milliseconds of all commands that say how long they took; average_ms of one of them.
    """

    entries: int = 0
    commands: dict[str, int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    total_ms: int = 0
    average_ms: float | None = None


@dataclass(frozen=True, slots=True)
class FeatureStatus:
    """Where a feature stands.

    Attributes:
        feature_id, name, description: which feature.
        status: ``active``, ``paused`` or ``completed``.
        state: task, model and times; None if the state cannot be read (then a problem says so).
        health: ``active`` (touched within an hour), ``idle`` (a day), ``stale``, or ``unknown``.
        tasks: how many tasks are in each status; progress: completed of all, in percent; None without tasks.
        stats: of the history.
        artifacts: how many files of each extension there are.
        last: the last five entries.
        problems: what could not be read, or is unusual.
    """

    feature_id: str
    name: str | None
    description: str | None
    status: str
    state: FeatureState | None
    health: str
    tasks: dict[str, int]
    progress: int | None
    stats: HistoryStats
    artifacts: dict[str, int]
    last: list[dict[str, Any]]
    problems: list[Problem]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        state = None if self.state is None else state_dict(self.state)
        told = {
            name: getattr(self, name)
            for name in ("feature_id", "name", "description", "status", "health", "tasks", "progress")
        }
        return {
            **told,
            "current_state": state,
            "stats": asdict(self.stats),
            "artifacts": self.artifacts,
            "last": self.last,
            "problems": [problem.as_dict() for problem in self.problems],
        }


def state_dict(state: FeatureState) -> dict[str, Any]:
    """The current state with the keys of the contract."""
    return {
        "active_task": state.active_task,
        "model_in_use": state.model_in_use,
        "started_at": stamp(state.started_at) if state.started_at else None,
        "last_updated": stamp(state.last_updated) if state.last_updated else None,
    }


def stats_of(values: Sequence[Mapping[str, Any]]) -> HistoryStats:
    """What the commands of a history add up to."""
    commands = [entry for entry in values if entries.kind_of(entry) == "command"]
    durations = [took for entry in commands if (took := entries.milliseconds(entry)) is not None]
    return HistoryStats(
        len(values),
        _counted(commands, "command"),
        _counted(commands, "model"),
        _counted(commands, "agent"),
        sum(entry.get("status") in (entries.FAILURE, "failed") for entry in commands),
        sum(durations),
        round(mean(durations), 1) if durations else None,
    )


def _counted(commands: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    return dict(Counter(entry[name] for entry in commands if isinstance(entry.get(name), str)).most_common())


def health_of(last_updated: datetime | None, now: datetime) -> str:
    """How lately a feature was worked on."""
    if last_updated is None:
        return "unknown"
    age = now - last_updated
    return "active" if age < IDLE_AFTER else "idle" if age < STALE_AFTER else "stale"


def counted_tasks(tasks: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, int], int | None]:
    """Tasks by status, and the percentage that is completed. A blocked task is still to be done, so it counts."""
    counts = Counter(str(task.get("status")) for task in tasks.values())
    progress = counts[rules.COMPLETED] * 100 // len(tasks) if tasks else None
    return dict.fromkeys(rules.TASK_STATUSES, 0) | dict(counts), progress


def artifacts_of(fs: Fs, folder: str) -> dict[str, int]:
    """How many files of each extension lie in the artifacts of a feature, folders within it included."""
    counts: Counter[str] = Counter()
    waiting = [f"{folder}/artifacts"]
    while waiting:
        place = waiting.pop()
        try:
            names = fs.listdir(place)
        except OSError:
            if place.endswith("/artifacts"):
                continue  # a missing folder; `validate` tells of it
            counts[os.path.splitext(place)[1].lstrip(".").lower()] += 1  # not a folder but a file
            continue
        waiting += [f"{place}/{name}" for name in names if not name.startswith(".")]
    return dict(counts.most_common())
