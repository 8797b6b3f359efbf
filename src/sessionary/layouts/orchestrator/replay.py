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
from typing import Any, NamedTuple

from sessionary.layouts.orchestrator import entries
from sessionary.layouts.orchestrator.rules import DEFAULT_MODEL, FEATURE_STATUSES, MODELS
from sessionary.layouts.orchestrator.statefile import FeatureState
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
        entries: how many entries there are.
    """

    active_task: Any = UNKNOWN
    model_in_use: str | None = None
    started_at: datetime | None = None
    last_updated: datetime | None = None
    first: datetime | None = None
    status: str | None = None
    entries: int = 0


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
        len(values),
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


class Behind(NamedTuple):
    """A field of the state that is not what the last operation made it.

    Attributes:
        found: what the state says.
        told: what the operation says.
        older: True if the history says that the field had the value `found` before: a stale copy was written back.
    """

    found: str | None
    told: str | None
    older: bool


def fields_behind(state: FeatureState, values: Sequence[dict[str, Any]]) -> dict[str, Behind]:
    """Where a state contradicts its history, by field; empty if an operation is still to be finished.

    Another program sets the state without logging it. If it did not lock the feature, it may have written back a copy
    from before an operation of ours, by which that one is lost.
    """
    operations = list(operations_back(reversed(values)))
    at = parse(operations[0]["timestamp"]) if operations else None
    if at is None or state.last_updated is None or state.last_updated < at:
        return {}
    last = operations[0][entries.STATE]
    initial: dict[str, Any] = {"active_task": None, "model_in_use": DEFAULT_MODEL}
    earlier = [*(operation[entries.STATE] for operation in operations[1:]), initial]
    found = {"active_task": state.active_task, "model_in_use": state.model_in_use}
    return {
        name: Behind(value, last[name], any(value == past.get(name) for past in earlier))
        for name, value in found.items()
        if name in last and last[name] != value and _may_be(name, last[name])
    }


def _may_be(name: str, value: Any) -> bool:
    return value in MODELS if name == "model_in_use" else isinstance(value, str | None)


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
    return Replayed(task, model, None, newest, first, None, len(values))


def started(replayed: Replayed, *others: Any) -> datetime | None:
    """When the feature began: as our lines say, else the first of `others` that is a time, else the first entry."""
    told = (replayed.started_at, *map(parse, others), replayed.first)
    return next((time for time in told if time is not None), None)
