"""The list of features, and the status of one: progress, health, statistics of its commands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from statistics import mean
from typing import Any, NamedTuple

from sessionary.disk.fs import Fs
from sessionary.layouts.clock import believed
from sessionary.layouts.orchestrator import entries, names, reading, rules
from sessionary.layouts.orchestrator.checking import history_problems
from sessionary.layouts.orchestrator.history import History, read_history
from sessionary.layouts.orchestrator.index import IndexFile
from sessionary.layouts.orchestrator.planfile import PlanFile
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.model import Problem

IDLE_AFTER = timedelta(hours=1)
STALE_AFTER = timedelta(hours=24)
LAST = 5


class FeatureRow(NamedTuple):
    """One feature in a list.

    Attributes:
        feature_id: the id.
        status: ``active``, ``paused`` or ``completed``.
        state: task, model and times; None if it cannot be read.
        archived: True if the feature is in the archive.
        problems: why the state is missing, or oddities of it.
    """

    feature_id: str
    status: str
    state: FeatureState | None
    archived: bool
    problems: list[Problem]


def rows_of(fs: Fs, home: str, index: IndexFile, *, archived: bool) -> list[FeatureRow]:
    """The features below a `.ai-session`, the one that changed last first; with `archived` also its archive."""
    rows = []
    for place in (home, f"{home}/{names.ARCHIVE}") if archived else (home,):
        for feature_id in reading.feature_ids(fs, place):
            folder = f"{place}/{feature_id}"
            found = reading.read_state(fs, folder)
            status = reading.status_of_feature(fs, folder, index)
            rows.append(FeatureRow(feature_id, status, found.state, place != home, found.problems))
    return sorted(rows, key=lambda row: believed(row.state and row.state.last_updated), reverse=True)


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
        fields = ("feature_id", "name", "description", "status", "health", "tasks", "progress")
        return {
            **{name: getattr(self, name) for name in fields},
            "current_state": self.state and self.state.as_dict(),
            "stats": asdict(self.stats),
            "artifacts": self.artifacts,
            "last": self.last,
            "problems": [problem.as_dict() for problem in self.problems],
        }


def status_of(
    fs: Fs, folder: str, plan: PlanFile, index: IndexFile, now: datetime, history: History | None = None
) -> FeatureStatus:
    """The status of a feature, whose plan and list have been read; its history is read unless it is given."""
    found = reading.read_state(fs, folder)
    history = history or read_history(fs, folder)
    tasks = Counter(str(task.get("status")) for task in plan.tasks.values())
    head = plan.head
    return FeatureStatus(
        os.path.basename(folder),
        head.get("name") if isinstance(head.get("name"), str) else None,
        head.get("description") if isinstance(head.get("description"), str) else None,
        reading.status_of_feature(fs, folder, index, history),
        found.state,
        _health(found.state and found.state.last_updated, now),
        dict.fromkeys(rules.TASK_STATUSES, 0) | dict(tasks),
        tasks[rules.COMPLETED] * 100 // len(plan.tasks) if plan.tasks else None,
        stats_of(history.values),
        _artifacts(fs, folder),
        history.values[-LAST:],
        [*found.problems, *plan.problems, *history_problems(history)],
    )


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


def _health(last_updated: datetime | None, now: datetime) -> str:
    if last_updated is None:
        return "unknown"
    age = now - last_updated
    return "active" if age < IDLE_AFTER else "idle" if age < STALE_AFTER else "stale"


def _artifacts(fs: Fs, folder: str) -> dict[str, int]:
    """The number of files of each extension in the artifacts of a feature, including subfolders."""
    counts: Counter[str] = Counter()
    waiting = [f"{folder}/{names.ARTIFACTS}"]
    while waiting:
        place = waiting.pop()
        try:
            found = fs.listdir(place)
        except OSError:
            if place.endswith(f"/{names.ARTIFACTS}"):
                continue  # a missing folder; `validate` reports it
            counts[os.path.splitext(place)[1].lstrip(".").lower()] += 1  # not a folder but a file
            continue
        waiting += [f"{place}/{name}" for name in found if not name.startswith(".")]
    return dict(counts.most_common())
