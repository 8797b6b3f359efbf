"""The status of a feature: progress of its plan, time since its last change, statistics of its commands."""

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
    """Totals of the commands of a history. Events and phases of the contract's scripts are not commands.

    Attributes:
        entries: readable entries of every kind.
        commands: number of runs of each command. models, agents: number of uses of each.
        failures: failed commands.
        total_ms: milliseconds of all commands with a duration; average_ms: their average.
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
    """The status of a feature.

    Attributes:
        feature_id, name, description: the feature.
        status: ``active``, ``paused`` or ``completed``.
        state: task, model and times; None if the state cannot be read (then a problem says so).
        health: ``active`` (changed within an hour), ``idle`` (a day), ``stale``, or ``unknown``.
        tasks: number of tasks in each status; progress: percentage completed; None without tasks.
        stats: totals of the history.
        artifacts: number of files of each extension.
        last: the last five entries.
        problems: damage, and oddities.
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
    """The totals of the commands of a history."""
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
    """The health of a feature, by the time since its last change."""
    if last_updated is None:
        return "unknown"
    age = now - last_updated
    return "active" if age < IDLE_AFTER else "idle" if age < STALE_AFTER else "stale"


def counted_tasks(tasks: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, int], int | None]:
    """Tasks by status, and the percentage completed. Blocked tasks count as not completed."""
    counts = Counter(str(task.get("status")) for task in tasks.values())
    progress = counts[rules.COMPLETED] * 100 // len(tasks) if tasks else None
    return dict.fromkeys(rules.TASK_STATUSES, 0) | dict(counts), progress


def artifacts_of(fs: Fs, folder: str) -> dict[str, int]:
    """The number of files of each extension in the artifacts of a feature, including subfolders."""
    counts: Counter[str] = Counter()
    waiting = [f"{folder}/artifacts"]
    while waiting:
        place = waiting.pop()
        try:
            names = fs.listdir(place)
        except OSError:
            if place.endswith("/artifacts"):
                continue  # a missing folder; `validate` reports it
            counts[os.path.splitext(place)[1].lstrip(".").lower()] += 1  # not a folder but a file
            continue
        waiting += [f"{place}/{name}" for name in names if not name.startswith(".")]
    return dict(counts.most_common())
