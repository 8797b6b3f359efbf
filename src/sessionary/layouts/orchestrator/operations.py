"""Writing operations on one feature: state, plan, tasks, history, status.

Each is a line of the history, with its time and its checks; `feature` applies an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from sessionary.disk import atomic
from sessionary.errors import NotFound, SchemaError, SessionaryError, StorageFailed
from sessionary.layouts.orchestrator import (
    agreements,
    checking,
    entries,
    names,
    planfile,
    reading,
    rules,
    times,
)
from sessionary.layouts.orchestrator.context import Context
from sessionary.layouts.orchestrator.feature import Feature, with_artifacts
from sessionary.layouts.orchestrator.statefile import CURRENT, FeatureState, StateFile
from sessionary.layouts.orchestrator.times import later, moment_of, not_ahead, parse, stamp
from sessionary.model import Problem, Severity

TOUCH_EVERY: Final = timedelta(minutes=1)


class _Keep:
    """Marks a parameter that was not given."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final[Any] = _Keep()


@contextmanager
def writing(
    context: Context, feature_id: str, agent: str | None, file: str = names.STATE
) -> Iterator[Feature]:
    """A feature under its lock, for a write; errors name `file` unless they name another."""
    with context.call("update", file, feature_id):
        names.check_id(feature_id)
        agreements.check(context, agent)
        feature = context.pool.get(f"{context.root}/{feature_id}")
        with feature.held(context.timeout):
            yield feature


def update(
    context: Context,
    feature_id: str,
    *,
    active_task: str | None,
    model_in_use: str,
    arguments: str | None,
    agent: str | None,
    command: str,
    last_updated: datetime | str | None,
) -> FeatureState:
    """Set fields of the state; see `FeatureStore.update`."""
    given = {"active_task": active_task, "model_in_use": model_in_use}
    given = {name: value for name, value in given.items() if value is not KEEP}
    with writing(context, feature_id, agent) as feature:
        if not entries.is_task_id(given.get("active_task")):
            raise SchemaError(
                f"active_task is {active_task!r}",
                faults=["active_task: give the id of a task, on one line, or None"],
                hint="nothing was written",
            )
        if "model_in_use" in given:
            rules.check_word("model_in_use", model_in_use, rules.MODELS)
        state = _state_of(context, feature)
        if given.get("active_task") is not None:
            _check_task(context, feature, given["active_task"])
        at = _moment(context, state, last_updated)
        words = (
            " ".join(f"{name}={value}" for name, value in given.items()) if arguments is None else arguments
        )
        entry = _entry(context, state, at, command, words, agent, given)
        feature.perform(entry, state)
        _touch(context, feature, state, at)
        current = entry[entries.STATE]
        return FeatureState(
            feature.feature_id,
            current["active_task"],
            current["model_in_use"],
            state.state.started_at,
            at,
        )


def save_plan(
    context: Context,
    feature_id: str,
    phases: Sequence[dict[str, Any]],
    *,
    name: str | None,
    description: str | None,
    agent: str | None,
) -> dict[str, Any]:
    """Replace the phases of the plan; see `FeatureStore.save_plan`."""
    with writing(context, feature_id, agent, names.PLAN) as feature:
        state = _state_of(context, feature)
        old = feature.plan()
        if old.error is not None:
            raise old.error
        blank = planfile.new_plan(feature_id, feature_id, "", context.now())["feature"]
        head = {"name": name, "description": description}
        document = planfile.replanned(old, phases, blank, {k: v for k, v in head.items() if v is not None})
        tasks = planfile.tasks_of(document)
        rules.check_active_task(state.state.active_task, tasks)
        at = _moment(context, state, None)
        entry = _entry(context, state, at, "plan", f"phases={len(phases)} tasks={len(tasks)}", agent, {})
        if not old.readable:
            path = f"{feature.folder}/{names.PLAN}"
            kept = atomic.quarantine(path, "corrupt", fs=context.fs, now=context.now())
            context.report.problems.append(
                checking.note("plan_replaced", kept, "the plan could not be read; it is kept here", None)
            )
            old = old._replace(data=None)
        feature.write_plan(old, document)
        try:
            feature.perform(entry, state)
        except StorageFailed as error:
            # The line cannot hold a plan, so the plan comes first here: it is stored, whatever happens to the
            # line.
            error.outcome = "unknown"
            error.details["stored"] = [names.PLAN, *error.details.get("stored", ())]
            raise
        _touch(context, feature, state, at)
        return document


def move_task(
    context: Context,
    feature_id: str,
    task_id: str,
    status: str,
    *,
    artifacts: Iterable[str],
    reopen: bool,
    agent: str | None,
) -> bool:
    """Set the status of a task; see `FeatureStore.task`."""
    with writing(context, feature_id, agent, names.PLAN) as feature:
        task = _task(feature, task_id)
        added = [artifacts] if isinstance(artifacts, str) else list(artifacts)
        if not all(isinstance(name, str) for name in added):
            raise SchemaError("artifacts are names of files", faults=["artifacts: give texts"])
        moves = rules.task_moves(task_id, str(task.get("status")), status, feature=feature_id, reopen=reopen)
        if not moves and with_artifacts(task, added) == (task.get("artifacts") or []):
            return False
        state = _state_of(context, feature)
        given: dict[str, Any] = {}
        if state.state.active_task == task_id and status in (rules.COMPLETED, rules.BLOCKED):
            given["active_task"] = None
        at = _moment(context, state, None)
        entry = _entry(context, state, at, "task", f"{task_id} {status}", agent, given)
        entry |= {"task_id": task_id, entries.TASK_STATUS: status}
        if added:
            entry["artifacts"] = added
        feature.perform(entry, state)
        _touch(context, feature, state, at)
        return True


def append(context: Context, feature_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Add an entry to the history; see `FeatureStore.append`."""
    with writing(context, feature_id, entry.get("agent"), names.HISTORY) as feature:
        fill: dict[str, Any] = {"agent": context.agent, "task_id": None}
        if "model" not in entry or "task_id" not in entry:
            state = reading.read_state(context.fs, feature.folder).state
            if state is not None:
                fill = {"model": state.model_in_use, **fill, "task_id": state.active_task}
        made = entries.checked(entry, now=context.now(), fill=fill)
        not_ahead("timestamp", moment_of("timestamp", made["timestamp"]), context.now())
        feature.log(made)
    with context.call("update", names.HISTORY, feature_id):
        feature.journal.flush()
    return made


def move(
    context: Context, feature_id: str, command: str, status: str, agent: str | None, *, reopen: bool = False
) -> bool:
    """Set the status of a feature; False if it has that already."""
    with writing(context, feature_id, agent, context.index.path) as feature:
        index = context.index.load()
        if index.error is not None:
            raise index.error
        now = reading.status_of_feature(context.fs, feature.folder, index)
        if not rules.feature_moves(feature_id, now, status, reopen=reopen):
            return False
        state = _state_of(context, feature)
        at = _moment(context, state, None)
        entry = _entry(context, state, at, command, "", agent, {})
        entry[entries.FEATURE_STATUS] = status
        feature.perform(entry, state)
        return True


def _entry(
    context: Context,
    state: StateFile,
    at: datetime,
    command: str,
    arguments: str,
    agent: str | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The line of an operation, with the resulting state.

    Raises:
        SchemaError: a value that the caller gave breaks the contract.
    """
    now = state.state
    current = {"active_task": now.active_task, "model_in_use": now.model_in_use, **given}
    made = {
        "timestamp": stamp(at),
        "command": command,
        "arguments": arguments,
        "model": current["model_in_use"],
        "agent": agent or context.agent,
        "task_id": current["active_task"],
        "status": entries.SUCCESS,
        "duration_ms": 0,
    }
    if faults := entries.faults_of(made):
        path = f"{context.root}/{state.state.feature_id}/{names.HISTORY}"
        raise SchemaError("; ".join(faults), faults=faults, path=path, hint="nothing was written")
    made[entries.STATE] = {**current, "started_at": state.document[CURRENT].get("started_at")}
    return made


def _moment(context: Context, state: StateFile, asked: datetime | str | None) -> datetime:
    """The time of a change: always after the stored one, whatever the clock."""
    stored = state.state.last_updated
    if asked is not None:
        moment = moment_of("last_updated", asked)
        not_ahead("last_updated", moment, context.now())
        if stored is not None and moment <= stored:
            raise SchemaError(
                f"last_updated {stamp(moment)} is not after the stored {stamp(stored)}",
                faults=["last_updated: times only increase"],
                hint="omit it to use the clock",
            )
        return moment
    now = times.in_utc(context.now())
    if stored is not None and now < stored:
        words = f"the clock, {stamp(now)}, is before the stored {stamp(stored)}"
        path = f"{context.root}/{state.state.feature_id}/{names.STATE}"
        problem = Problem("clock_went_back", Severity.note, path, None, None, words, "set the clock")
        context.report.problems.append(problem)
    return later(now, stored)


def _state_of(context: Context, feature: Feature) -> StateFile:
    state = feature.state()
    context.report.problems += state.problems
    return state


def _check_task(context: Context, feature: Feature, task_id: Any) -> None:
    plan = feature.plan()
    rules.check_active_task(task_id, plan.tasks)
    path = f"{feature.folder}/{names.PLAN}"
    if not plan.tasks:
        context.report.problems += checking.active_task_problems(path, str(task_id), plan.tasks)


def _task(feature: Feature, task_id: str) -> dict[str, Any]:
    plan = planfile.readable_plan(feature.plan(), feature.folder)
    task = plan.tasks.get(task_id)
    if task is None:
        known = ", ".join(list(plan.tasks)[:8])
        empty = (
            f"the plan has no tasks: add them with `sessionary feature plan {feature.feature_id} --from FILE`"
        )
        raise NotFound(
            f"the plan of {feature.feature_id} has no task {task_id}",
            path=f"{feature.folder}/{names.PLAN}",
            hint=f"its tasks: {known}" if known else empty,
        )
    return task


def _touch(context: Context, feature: Feature, state: StateFile, at: datetime) -> None:
    """Update `last_active` in the list, at most once a minute. A failure is reported, not raised.

    The state is already stored, and reads derive the exact time from it.
    """
    last = context.touched.get(feature.feature_id)
    if last is not None and timedelta(0) <= at - last < TOUCH_EVERY:
        return
    context.touched[feature.feature_id] = at
    try:
        _touch_row(context, feature.feature_id, state, at)
    except (SessionaryError, FileNotFoundError) as error:
        words = f"last_active of {feature.feature_id} was not written: {error}"
        problem = Problem("row_not_written", Severity.note, context.index.path, None, None, words, None)
        context.report.problems.append(problem)


def _touch_row(context: Context, feature_id: str, state: StateFile, at: datetime) -> None:
    with context.index.held():
        found = context.index.load()
        known = parse(found.rows.get(feature_id, {}).get("last_active"))
        if known is None or not timedelta(0) <= at - known < TOUCH_EVERY:
            began = stamp(state.state.started_at or at)
            context.index.put_locked(found, feature_id, {"last_active": stamp(at)}, began)
