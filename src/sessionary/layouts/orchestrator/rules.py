"""The state machines of the contract: status transitions of tasks and features, and valid active tasks.

The contract requires valid transitions and names only pending, in progress, completed. A blocked task can be
unblocked; a completed one stays completed unless it is explicitly reopened.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sessionary.errors import SchemaError, StorageFailed, TransitionError
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem, Severity

MODELS: Final = ("gemini", "opus", "sonnet")
DEFAULT_MODEL: Final = "sonnet"
"""The contract defines no default model; its own scripts start with this one."""

PENDING, IN_PROGRESS, COMPLETED, BLOCKED = "pending", "in_progress", "completed", "blocked"
ACTIVE, PAUSED = "active", "paused"
TASK_STATUSES: Final = (PENDING, IN_PROGRESS, COMPLETED, BLOCKED)
FEATURE_STATUSES: Final = (ACTIVE, PAUSED, COMPLETED)

TASK_MOVES: Final[Mapping[str, tuple[str, ...]]] = {
    PENDING: (IN_PROGRESS, BLOCKED),
    IN_PROGRESS: (COMPLETED, BLOCKED, PENDING),
    BLOCKED: (PENDING, IN_PROGRESS),
    COMPLETED: (),
}
FEATURE_MOVES: Final[Mapping[str, tuple[str, ...]]] = {
    ACTIVE: (PAUSED, COMPLETED),
    PAUSED: (ACTIVE, COMPLETED),
    COMPLETED: (),
}


def task_moves(task: str, old: str, new: str, *, feature: str = "ID", reopen: bool = False) -> bool:
    """True if the task changes; False if it has that status already. `feature` is named in the remedy.

    Raises:
        SchemaError: the status does not exist.
        TransitionError: the transition is not allowed.
    """
    return _moves(f"task {task}", old, new, TASK_MOVES, feature, IN_PROGRESS, reopen)


def feature_moves(feature: str, old: str, new: str, *, reopen: bool = False) -> bool:
    """True if the feature changes; False if it has that status already. Raises as `task_moves`."""
    return _moves(f"feature {feature}", old, new, FEATURE_MOVES, feature, ACTIVE, reopen)


def _moves(
    what: str,
    old: str,
    new: str,
    moves: Mapping[str, tuple[str, ...]],
    feature: str,
    reopened: str,
    reopen: bool,
) -> bool:
    check_word("status", new, tuple(moves))
    allowed = moves.get(old, ())
    if old == new or new in allowed or (old == COMPLETED and new == reopened and reopen):
        return old != new
    if old == COMPLETED:
        hint = f"a completed one stays completed; --reopen makes it {reopened}"
    elif old not in moves:
        hint = f"{old!r} is not a known status; `sessionary feature repair {feature}` sets one"
    else:
        hint = f"from {old} it can become: {', '.join(allowed)}"
    raise TransitionError(f"{what} is {old} and cannot become {new}", hint=hint)


def moved_task(task: Mapping[str, Any], status: str, at: datetime) -> dict[str, Any]:
    """The changes of a task that gets this status, with the times of start and completion.

    A completed task was started: without a time in the file, now.
    """
    changes: dict[str, Any] = {"status": status}
    if status in (IN_PROGRESS, COMPLETED) and not task.get("started_at"):
        changes["started_at"] = stamp(at)
    if status == COMPLETED:
        changes["completed_at"] = stamp(at)
    elif task.get("completed_at"):
        changes["completed_at"] = None
    return changes


def check_active_task(active: str | None, tasks: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that the active task is in the plan, neither completed nor blocked; without a plan, any is accepted.

    Raises:
        SchemaError: the plan has no such task.
        TransitionError: it is completed or blocked.
    """
    if active is None or not tasks:
        return
    task = tasks.get(active)
    if task is None:
        known = ", ".join(list(tasks)[:8])
        raise SchemaError(
            f"active_task {active!r} is not a task of the plan",
            faults=[f"current_state.active_task: {active!r} is not in the plan"],
            hint=f"tasks of the plan: {known}",
        )
    if task.get("status") in (COMPLETED, BLOCKED):
        raise TransitionError(
            f"task {active} is {task['status']} and cannot be the active one",
            hint="unblock or reopen it first, or choose another",
        )


def check_word(field: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise SchemaError unless the value is one of a fixed set."""
    if value not in words:
        raise SchemaError(
            f"{field} is {value!r}",
            faults=[f"{field}: {value!r} is not one of {', '.join(words)}"],
            hint=f"use one of: {', '.join(words)}",
        )


def broken(what: str, faults: list[str], **context: Any) -> SchemaError:
    """The error for something with these violations of the contract."""
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return SchemaError(f"{what} breaks the contract: {faults[0]}{more}", faults=faults, **context)


def note(code: str, path: str, message: str, remedy: str | None) -> Problem:
    """A note: informational, not damage."""
    return Problem.of_file(code, Severity.note, path, message, remedy)


def unreadable(error: StorageFailed) -> Problem:
    """The problem for a file that the system refuses to read. Other files and features are still read."""
    return Problem.of_file(
        "unreadable_file", Severity.stops_resume, error.path or "", error.message, error.hint
    )
