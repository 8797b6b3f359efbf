"""implementation-plan.yaml: phases and their tasks.

Plans are written by planners and users, so they are read tolerantly: an invalid task is reported and not
counted as a task, but never removed from the file.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.codec.yaml_faults import lines_of
from sessionary.codec.yaml_read import load_yaml
from sessionary.disk.fs import Fs, read_bytes, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, NotFound, SchemaError, StorageFailed
from sessionary.layouts.orchestrator import names, rules
from sessionary.layouts.orchestrator.times import parse, stamp
from sessionary.model import Problem, Severity


class PlanFile(NamedTuple):
    """A plan, as read.

    Attributes:
        data: its bytes; None if there is no file.
        document: its parsed content; empty if it cannot be read.
        tasks: the tasks by id, in file order; of two with one id the first.
        problems: damage, and oddities.
        readable: False if the file exists but holds no plan: then it must not be overwritten.
        error: why the system refuses to read it; else None.
    """

    data: bytes | None
    document: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    problems: list[Problem]
    readable: bool
    error: StorageFailed | None = None

    @property
    def head(self) -> dict[str, Any]:
        """Its map `feature`; empty if there is none."""
        head = self.document.get("feature")
        return head if isinstance(head, dict) else {}


def read_plan(fs: Fs, folder: str, timeout: float | None = None) -> PlanFile:
    """Read the plan of a feature; damage is returned among the problems, and a failed read as its `error`.

    Args:
        timeout: take the shared lock under which plans are read, and wait for it this long.
    """
    path = f"{folder}/{names.PLAN}"
    try:
        with _lock(fs, folder, timeout):
            data = read_bytes(fs, path)
    except StorageFailed as error:
        return PlanFile(None, {}, {}, [rules.unreadable(error)], False, error)
    if data is None:
        words = "the implementation plan is missing"
        remedy = "`sessionary feature repair` creates an empty one"
        missing = Problem.of_file("no_plan", Severity.hides_data, path, words, remedy)
        return PlanFile(None, {}, {}, [missing], True)
    return parse_plan(data, path)


def phases_of(data: bytes, path: str) -> list[dict[str, Any]]:
    """The phases of a YAML or JSON file: a list of them, or a map that has it under `phases`.

    Raises:
        Corrupt, SchemaError: it holds none.
    """
    document = load_yaml(data, path=path)
    phases = document.get("phases") if isinstance(document, dict) else document
    if not isinstance(phases, list) or not all(isinstance(phase, dict) for phase in phases):
        raise SchemaError(
            f"{path} contains no list of phases",
            path=path,
            faults=["phases: give a list of maps"],
            hint="for example: [{phase_id: P1, name: Build, tasks: [{task_id: T1, description: The form}]}]",
        )
    return phases


def _lock(fs: Fs, folder: str, timeout: float | None) -> AbstractContextManager[None]:
    """The shared lock of a feature.

    A missing lock file means that none of our writers was here, and a reader creates none; nor can it lock a
    file on a read-only medium. A plan is replaced as a whole, so it is read completely without the lock too.
    """
    path = f"{folder}/{names.LOCK}"
    if timeout is None or stat_or_none(fs, path) is None or not os.access(path, os.W_OK):
        return nullcontext()
    return FileLock(path, fs).once(timeout, exclusive=False)


def readable_plan(found: PlanFile, folder: str) -> PlanFile:
    """The plan, unless it cannot be read: no task in such a file can be changed. Raises Corrupt or StorageFailed."""
    if found.error is not None:
        raise found.error
    if not found.readable:
        raise Corrupt(found.problems[0].message, path=f"{folder}/{names.PLAN}", hint=found.problems[0].repair)
    return found


def task_in(found: PlanFile, folder: str, task_id: str) -> dict[str, Any]:
    """A task of the plan. Raises as `readable_plan`, or NotFound."""
    task = readable_plan(found, folder).tasks.get(task_id)
    if task is None:
        feature_id, known = os.path.basename(folder), ", ".join(list(found.tasks)[:8])
        empty = f"the plan has no tasks: add them with `sessionary feature plan {feature_id} --from FILE`"
        raise NotFound(
            f"the plan of {feature_id} has no task {task_id}",
            path=f"{folder}/{names.PLAN}",
            hint=f"its tasks: {known}" if known else empty,
        )
    return task


def parse_plan(data: bytes, path: str) -> PlanFile:
    """Parse the bytes of a plan."""
    try:
        document = load_yaml(data, path=path)
    except Corrupt as error:
        return PlanFile(data, {}, {}, [_bad(path, error.message, error.details.get("line"))], False)
    if document is None or document == {}:
        words = "the implementation plan is empty"
        remedy = "`sessionary feature repair` writes one without phases"
        empty = Problem.of_file("empty_plan", Severity.hides_data, path, words, remedy)
        return PlanFile(data, {}, {}, [empty], True)
    if not isinstance(document, dict):
        words = "the plan is not a map; the contract's scripts store the answer of a model unchecked"
        return PlanFile(data, {}, {}, [_bad(path, words, None)], False)
    faults = faults_of(document)
    problems = [_fault(path, fault, line) for fault, line in zip(faults, lines_of(data, faults), strict=True)]
    return PlanFile(data, document, tasks_of(document), problems, True)


def tasks_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tasks of a plan by id."""
    found: dict[str, dict[str, Any]] = {}
    for _, task in walk(document):
        task_id = task.get("task_id")
        if isinstance(task_id, str):
            found.setdefault(task_id, task)
    return found


def walk(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every task with its place, in the order of the phases."""
    phases = document.get("phases")
    for number, phase in enumerate(phases if isinstance(phases, list) else []):
        tasks = phase.get("tasks") if isinstance(phase, dict) else None
        for place, task in enumerate(tasks if isinstance(tasks, list) else []):
            if isinstance(task, dict):
                yield f"phases[{number}].tasks[{place}]", task


def faults_of(document: Mapping[str, Any]) -> list[str]:
    """All violations of the contract's schema, each with its place."""
    faults = _feature_faults(document) + _phase_faults(document)
    seen: set[str] = set()
    for place, task in walk(document):
        faults += _task_faults(place, task)
        task_id = task.get("task_id")
        if isinstance(task_id, str):
            if task_id in seen:
                faults.append(f"{place}.task_id: duplicate {task_id!r}; the first one is used")
            seen.add(task_id)
    return faults


def _not_text(place: str, holder: Mapping[str, Any], *fields: str) -> list[str]:
    return [
        f"{place}.{name}: is missing, or not text" for name in fields if not isinstance(holder.get(name), str)
    ]


def _feature_faults(document: Mapping[str, Any]) -> list[str]:
    feature = document.get("feature")
    if not isinstance(feature, dict):
        return ["feature: is missing, or not a map"]
    faults = _not_text("feature", feature, "id", "name", "description")
    if parse(feature.get("created_at")) is None:
        faults.append(f"feature.created_at: {feature.get('created_at')!r} is not an ISO 8601 timestamp")
    return faults


def _phase_faults(document: Mapping[str, Any]) -> list[str]:
    phases = document.get("phases")
    if not isinstance(phases, list):
        return ["phases: is missing, or not a list"]
    faults = []
    for number, phase in enumerate(phases):
        if not isinstance(phase, dict):
            faults.append(f"phases[{number}]: is not a map")
            continue
        faults += _not_text(f"phases[{number}]", phase, "phase_id", "name")
        tasks = phase.get("tasks")
        if not isinstance(tasks, list):
            faults.append(f"phases[{number}].tasks: is missing, or not a list")
        else:
            bad = [place for place, task in enumerate(tasks) if not isinstance(task, dict)]
            faults += [f"phases[{number}].tasks[{place}]: is not a map" for place in bad]
    return faults


def _task_faults(place: str, task: Mapping[str, Any]) -> list[str]:
    faults = _not_text(place, task, "task_id", "description", "agent")
    if (status := task.get("status")) not in rules.TASK_STATUSES:
        faults.append(f"{place}.status: {status!r} is not one of {', '.join(rules.TASK_STATUSES)}")
    faults += [
        f"{place}.{name}: {task[name]!r} is neither an ISO 8601 timestamp nor null"
        for name in ("started_at", "completed_at")
        if task.get(name) is not None and parse(task[name]) is None
    ]
    artifacts = task.get("artifacts")
    if not isinstance(artifacts, list) or not all(isinstance(item, str) for item in artifacts):
        faults.append(f"{place}.artifacts: is not a list of files")
    if task.get("status") == rules.COMPLETED and parse(task.get("started_at")) is None:
        faults.append(f"{place}.started_at: required for a completed task")
    return faults


def new_plan(feature_id: str, name: str, description: str, created: datetime) -> dict[str, Any]:
    """A plan without phases."""
    head = {"id": feature_id, "name": name, "description": description, "created_at": stamp(created)}
    return {"feature": head, "phases": []}


def replanned(
    old: PlanFile, phases: Sequence[dict[str, Any]], blank: Mapping[str, Any], head: Mapping[str, Any]
) -> dict[str, Any]:
    """The old plan with new phases and some fields of its head; `blank` completes the head. Raises as `planned`."""
    feature = {**old.head, **head}
    feature |= {name: value for name, value in blank.items() if name not in feature}
    return {"feature": feature, **old.document} | {"feature": feature, "phases": planned(old, phases)}


def renamed(old: PlanFile, name: str, blank: Mapping[str, Any]) -> dict[str, Any]:
    """The old plan under another name; a plan that is missing or empty becomes `blank`."""
    return {**blank, **old.document, "feature": {**blank["feature"], **old.head, "name": name}}


def planned(old: PlanFile, phases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """New phases in the form of the contract: missing progress of a task is taken from the old plan.

    Raises:
        SchemaError: with all faults at once.
    """
    filled = copy.deepcopy(list(phases))
    blank: dict[str, Any] = {
        "description": "",
        "agent": "",
        "status": rules.PENDING,
        "started_at": None,
        "completed_at": None,
        "artifacts": [],
    }
    for _, task in walk({"phases": filled}):
        stored = old.tasks.get(str(task.get("task_id")), {})
        for name, value in blank.items():
            task.setdefault(name, copy.copy(stored.get(name, value)))
    faults = [fault for fault in faults_of({"phases": filled}) if not fault.startswith("feature")]
    for place, task in walk({"phases": filled}):
        stored = old.tasks.get(str(task.get("task_id")), task)
        if stored.get("status") != task.get("status"):
            faults.append(f"{place}.status: the task is {stored.get('status')}; only `task` changes that")
    if faults:
        raise rules.broken("the plan", faults, hint="correct the phases; nothing was written")
    return filled


def with_task(document: Mapping[str, Any], task_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with some fields of one task changed."""
    changed = copy.deepcopy(dict(document))
    tasks_of(changed)[task_id].update(changes)
    return changed


def _bad(path: str, message: str, line: int | None) -> Problem:
    feature_id = os.path.basename(os.path.dirname(path))
    remedy = (
        f"edit the file, or replace it: `sessionary feature plan {feature_id} --from FILE` keeps the old one"
    )
    return Problem("bad_plan", Severity.stops_resume, path, line, None, message, remedy)


def _fault(path: str, fault: str, line: int | None) -> Problem:
    remedy = (
        "`sessionary feature repair` adds missing parts, and sets a known status; "
        "correct anything else by hand"
    )
    return Problem("plan_schema", Severity.cosmetic, path, line, None, fault, remedy)
