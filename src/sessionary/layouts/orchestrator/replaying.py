"""The state that a history tells of.

Where our own lines are, the last one says it whole: it holds the state after its operation. Commands that others
logged behind it say what they ran with, not what the state was set to, so they do not count; the state file did not
change with them either. Only a history without such lines is read as the contract's scripts meant it: the model and
the task of the last command that went well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sessionary.layouts.orchestrator import entries
from sessionary.layouts.orchestrator.rules import FEATURE_STATUSES, MODELS
from sessionary.layouts.orchestrator.times import parse

UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a history tells of the state; None or UNKNOWN where it tells nothing.

    Attributes:
        active_task: the id, None for no task, UNKNOWN if no line says.
        model_in_use: the model.
        started_at: when the feature began, if a line says so.
        last_updated: the newest time that counts.
        first: the time of the first entry.
        status: of the feature, if it was ever paused, resumed or completed.
    """

    active_task: Any = UNKNOWN
    model_in_use: str | None = None
    started_at: datetime | None = None
    last_updated: datetime | None = None
    first: datetime | None = None
    status: str | None = None


def replay(values: Sequence[dict[str, Any]]) -> Replayed:
    """The state after these entries."""
    ours = last_operation(values)
    first = next((time for entry in values if (time := parse(entry.get("timestamp")))), None)
    if ours is None:
        return _of_commands(values, first)
    state = ours[entries.STATE]
    return Replayed(
        state.get("active_task"),
        state.get("model_in_use"),
        parse(state.get("started_at")),
        parse(ours.get("timestamp")),
        first,
        status_of(values),
    )


def last_operation(values: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The last line of ours that went well and was not taken back."""
    return next(operations_back(reversed(values)), None)


def operations_back(backwards: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of ours that went well and were not taken back, from the last one on; the entries come so as well.

    A line is taken back by one behind it that names its timestamp. Where the clock stands still, the next operation may
    have the same time; it stands behind the line that takes back, and counts.
    """
    revoked: set[str] = set()
    for entry in backwards:
        if isinstance(entry.get(entries.REVOKES), str):
            revoked.add(entry[entries.REVOKES])
        elif is_operation(entry) and entry["timestamp"] not in revoked:
            yield entry


def is_operation(entry: dict[str, Any]) -> bool:
    """True for a line that records what the state became."""
    return (
        entries.STATE in entry
        and entries.is_success(entry)
        and isinstance(entry[entries.STATE], dict)
        and isinstance(entry.get("timestamp"), str)
    )


def status_of(values: Sequence[dict[str, Any]]) -> str | None:
    """The status that the feature was last brought to; None if no line says."""
    told = (entry.get(entries.FEATURE_STATUS) for entry in operations_back(reversed(values)))
    return next((str(status) for status in told if status in FEATURE_STATUSES), None)


def _of_commands(values: Sequence[dict[str, Any]], first: datetime | None) -> Replayed:
    """As the contract's scripts meant their lines: the last command that went well and has the key decides."""
    task: Any = UNKNOWN
    model: str | None = None
    newest: datetime | None = None
    for entry in values:
        time = parse(entry.get("timestamp"))
        if time is not None and (newest is None or time > newest):
            newest = time
        kind = entries.kind_of(entry)
        counts = kind in ("event", "phase") or entries.is_success(entry)
        if counts and "task_id" in entry and isinstance(entry["task_id"], str | None):
            task = entry["task_id"]
        if kind == "command" and counts and entry.get("model") in MODELS:
            model = entry["model"]
    return Replayed(task, model, None, newest, first, None)


def started(replayed: Replayed, *others: Any) -> datetime | None:
    """When the feature began: as our lines say, else the first of `others` that is a time, else the first entry."""
    told = (replayed.started_at, *map(parse, others), replayed.first)
    return next((time for time in told if time is not None), None)
