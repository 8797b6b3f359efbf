"""One line of a history: how ours are made and checked, and how others are classified.

The nine fields come first, in the order of the contract. A line of an operation that changed the state also
holds the whole state, under `state`, and its other effects (`task_status`, `feature_status`): the line is the
operation, and can be replayed if its effect is missing. Three more keys are possible: `artifacts`, `revokes`
(the timestamp of a line whose operation failed after all), and keys added by a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sessionary.codec import encode_line, sanitize
from sessionary.layouts.orchestrator.rules import MODELS, broken
from sessionary.layouts.orchestrator.times import parse, stamp

FIELDS: Final = (
    "timestamp",
    "command",
    "arguments",
    "model",
    "agent",
    "task_id",
    "status",
    "duration_ms",
    "error",
)
SUCCESS, FAILURE = "success", "failure"
STATE, REVOKES, TASK_STATUS, FEATURE_STATUS = "state", "revokes", "task_status", "feature_status"
OURS: Final = (STATE, REVOKES)

# A command of a week has 6e8 ms; the contract's own scripts wrote nanoseconds, where half a second is 5e8. So
# the number alone decides only above a week.
LONGEST_MS: Final = 7 * 24 * 3600 * 1000
SCRIPT_KEYS: Final = frozenset({"session_enabled", "session_name", "session_state", "atdd_enforced"})


def line_of(entry: Mapping[str, Any]) -> bytes:
    """The line, with its newline."""
    return encode_line(sanitize(dict(entry))) + b"\n"


def operation(
    at: datetime, command: str, arguments: str, agent: str, current: Mapping[str, Any]
) -> dict[str, Any]:
    """The entry of a successful operation of ours, after which the state has the task and model of `current`."""
    return {
        "timestamp": stamp(at),
        "command": command,
        "arguments": arguments,
        "model": current["model_in_use"],
        "agent": agent,
        "task_id": current["active_task"],
        "status": SUCCESS,
        "duration_ms": 0,
    }


def checked(entry: Mapping[str, Any], *, now: datetime, fill: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as it is written: the nine fields in order, then other keys of the caller.

    Args:
        entry: the values of the caller; only `command` is required.
        now: the timestamp if the entry has none.
        fill: defaults for `model`, `agent` and `task_id`.

    Raises:
        SchemaError: with all faults at once.
    """
    failed = entry.get("error") is not None
    filled: dict[str, Any] = {
        "timestamp": stamp(now),
        "arguments": "",
        **fill,
        "status": FAILURE if failed else SUCCESS,
        "duration_ms": 0,
        **entry,
    }
    if isinstance(filled["timestamp"], datetime):
        filled["timestamp"] = stamp(filled["timestamp"])
    faults = faults_of(filled) + [f"{key}: is reserved for the store" for key in OURS if key in entry]
    if in_nanoseconds(filled):
        faults.append(f"duration_ms: {filled['duration_ms']} is more than a week; give milliseconds")
    if faults:
        raise broken("the history entry", faults, hint="correct the entry; nothing was written")
    placed = {name: filled[name] for name in FIELDS if filled.get(name) is not None or name == "task_id"}
    return placed | {name: value for name, value in filled.items() if name not in FIELDS}


def faults_of(entry: Mapping[str, Any]) -> list[str]:
    """All violations of the contract's format, each with its field and its remedy."""
    faults = []
    if parse(entry.get("timestamp")) is None:
        faults.append(f"timestamp: {_shown(entry, 'timestamp')} is not an ISO 8601 timestamp")
    command = entry.get("command")
    if not isinstance(command, str) or not command.strip():
        faults.append("command: give the name of the command, as text")
    faults += [
        f"{name}: {_shown(entry, name)} is not text"
        for name in ("arguments", "agent")
        if not isinstance(entry.get(name), str)
    ]
    if entry.get("model") not in MODELS:
        faults.append(f"model: {_shown(entry, 'model')} is not one of {', '.join(MODELS)}")
    if "task_id" not in entry or not is_task_id(entry["task_id"]):
        faults.append(f"task_id: {_shown(entry, 'task_id')} is neither a task id nor null")
    if entry.get("status") not in (SUCCESS, FAILURE):
        faults.append(f"status: {_shown(entry, 'status')} is neither success nor failure")
    duration = entry.get("duration_ms")
    if not isinstance(duration, int) or isinstance(duration, bool) or duration < 0:
        faults.append(f"duration_ms: {_shown(entry, 'duration_ms')} is not a number of milliseconds")
    return faults + _error_faults(entry)


def is_task_id(value: Any) -> bool:
    """True for a valid task id: text on one line; also for None."""
    return value is None or (isinstance(value, str) and bool(value.strip()) and value.splitlines() == [value])


def _error_faults(entry: Mapping[str, Any]) -> list[str]:
    error = entry.get("error")
    if entry.get("status") == FAILURE and (not isinstance(error, str) or not error.strip()):
        return ["error: required for a failure"]
    if entry.get("status") == SUCCESS and error is not None:
        return ["error: not allowed for a success; set status to failure"]
    return []


def _shown(entry: Mapping[str, Any], name: str) -> str:
    return f"{entry[name]!r}"[:60] if name in entry else "(missing)"


def kind_of(entry: Mapping[str, Any]) -> str:
    """The kind of a line: ``command``; ``event`` or ``phase``, also written by the contract's scripts; or ``other``."""
    if "command" in entry:
        return "phase" if "phase" in entry and "status" not in entry else "command"
    return "event" if "event" in entry else "other"


def milliseconds(entry: Mapping[str, Any]) -> int | None:
    """The duration of a command; None if unknown. Nanoseconds of the scripts are converted."""
    duration = entry.get("duration_ms")
    if not isinstance(duration, int | float) or isinstance(duration, bool) or duration < 0:
        return None
    return int(duration) // 1_000_000 if in_nanoseconds(entry) else int(duration)


def in_nanoseconds(entry: Mapping[str, Any]) -> bool:
    """True if the duration cannot be milliseconds: the scripts took the difference of two clocks in nanoseconds.

    Their lines are recognised by keys of their own. In them, values of a second or more in nanoseconds (a
    quarter of an hour in milliseconds) count as nanoseconds; elsewhere only values of more than a week.
    """
    duration = entry.get("duration_ms")
    if not isinstance(duration, int | float) or isinstance(duration, bool):
        return False
    return duration > (1_000_000 if SCRIPT_KEYS & entry.keys() else LONGEST_MS)
