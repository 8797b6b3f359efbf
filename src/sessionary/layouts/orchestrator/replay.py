"""The state that follows from a history.

If it has lines of ours, the last one holds the whole state after its operation. Later commands logged by
others record what they ran with, not what the state was set to, so they do not count; the state file did not
change with them either. Only a history without lines of ours is read in the sense of the contract's scripts:
the model and the task of the last successful command.
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


@dataclass(slots=True)
class Replayed:
    """The state that a history gives; None or UNKNOWN for what it does not give.

    Attributes:
        first: the time of the first entry.
        active_task: the id, None for no task, UNKNOWN if no line says.
        started_at: when the feature began, if a line says so.
        last_updated: the newest time that counts.
    """

    entries: int
    first: datetime | None = None
    active_task: Any = UNKNOWN
    model_in_use: str | None = None
    started_at: datetime | None = None
    last_updated: datetime | None = None


def replay(values: Sequence[dict[str, Any]]) -> Replayed:
    """The state after these entries."""
    times = (time for entry in values if (time := parse(entry.get("timestamp"))))
    found = Replayed(len(values), next(times, None))
    operation = last_operation(values)
    if operation is not None:
        state = operation[entries.STATE]
        found.active_task, found.model_in_use = state.get("active_task"), state.get("model_in_use")
        found.started_at, found.last_updated = parse(state.get("started_at")), parse(operation["timestamp"])
        return found
    # In the sense of the contract's scripts: the last successful command with the key decides.
    found.last_updated = None if found.first is None else max([found.first, *times])
    for entry in values:
        kind = entries.kind_of(entry)
        counts = kind in ("event", "phase") or entry.get("status") == entries.SUCCESS
        if counts and "task_id" in entry and isinstance(entry["task_id"], str | None):
            found.active_task = entry["task_id"]
        if kind == "command" and counts and entry.get("model") in MODELS:
            found.model_in_use = entry["model"]
    return found


def last_operation(values: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The last line of ours that succeeded and was not revoked."""
    return next(operations_back(reversed(values)), None)


def operations_back(backwards: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of ours that succeeded and were not revoked, from the last one on; `entries` come in that order too.

    A line is revoked by a later one that names its timestamp. If the clock stands still, the next operation
    may have the same time; it comes after the revoking line, and counts.
    """
    revoked: set[str] = set()
    for entry in backwards:
        if isinstance(entry.get(entries.REVOKES), str):
            revoked.add(entry[entries.REVOKES])
        elif _is_operation(entry) and entry["timestamp"] not in revoked:
            yield entry


def _is_operation(entry: dict[str, Any]) -> bool:
    """True for a line that records a resulting state."""
    logged = isinstance(entry.get(entries.STATE), dict) and isinstance(entry.get("timestamp"), str)
    return logged and entry.get("status") == entries.SUCCESS


def status_of(values: Sequence[dict[str, Any]]) -> str | None:
    """The last status that the feature was set to; None if no line sets one."""
    statuses = (entry.get(entries.FEATURE_STATUS) for entry in operations_back(reversed(values)))
    return next((str(status) for status in statuses if status in FEATURE_STATUSES), None)


class Behind(NamedTuple):
    """A field of the state that differs from the result of the last operation.

    Attributes:
        older: True if the field had the value `found` before, according to the history: an old copy was restored.
    """

    found: str | None
    logged: str | None
    older: bool


def fields_behind(state: FeatureState, values: Sequence[dict[str, Any]]) -> dict[str, Behind]:
    """The contradictions of a state to its history, by field; empty if an operation is still to be finished.

    Another program sets the state without logging it. If it did not lock the feature, it may have restored a
    copy from before an operation of ours, which is then lost.
    """
    operations = operations_back(reversed(values))
    operation = next(operations, None)
    at = parse(operation["timestamp"]) if operation else None
    if operation is None or at is None or state.last_updated is None or state.last_updated < at:
        return {}
    last = operation[entries.STATE]
    found = {"active_task": state.active_task, "model_in_use": state.model_in_use}
    behind = {
        name: value
        for name, value in found.items()
        if name in last and last[name] != value and _may_be(name, last[name])
    }
    initial: dict[str, Any] = {"active_task": None, "model_in_use": DEFAULT_MODEL}
    earlier = [*(past[entries.STATE] for past in operations), initial] if behind else []
    return {
        name: Behind(value, last[name], any(value == past.get(name) for past in earlier))
        for name, value in behind.items()
    }


def _may_be(name: str, value: Any) -> bool:
    return value in MODELS if name == "model_in_use" else isinstance(value, str | None)
