"""Repair the plan of a feature: create a missing one, and add missing required parts.

Only missing parts are added, and only unknown statuses are replaced: the planner's own content is not
changed. A plan that is not valid YAML, or not a map, stays unchanged; `FeatureStore.save_plan` replaces it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sessionary.codec.yaml_edit import same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.layouts.orchestrator import entries, names, planfile, rules
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.reading import read_plan
from sessionary.layouts.orchestrator.repaired import Repaired
from sessionary.layouts.orchestrator.replay import operations_back
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Severity


def repair_plan(
    feature: Feature, history: Sequence[dict[str, Any]], began: datetime, now: datetime, done: Repaired
) -> None:
    """Create a missing or empty plan, or complete an incomplete one. The lock is held."""
    path = f"{feature.folder}/{names.PLAN}"
    found = read_plan(feature.fs, feature.folder)
    blank = planfile.new_plan(feature.feature_id, feature.feature_id, "", began)
    if found.data is None and found.readable:
        atomic.create(path, dump_yaml(blank), fs=feature.fs)
        done.actions.append("made an empty plan")
        return
    if not found.readable:
        done.problems += found.problems  # written by hand or by a planner, so not repairable here
        return
    document, words = completed(found.document, blank, history)
    if not same(document, found.document):
        done.kept.append(atomic.quarantine(path, "original", fs=feature.fs, now=now))
        feature.write_plan(found, document)
        done.actions += words
    left = planfile.parse_plan(dump_yaml(document), path)
    done.problems += [problem for problem in left.problems if problem.severity > Severity.note]


def completed(
    document: Mapping[str, Any], blank: Mapping[str, Any], history: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """The completed plan, and the changes, each as a sentence."""
    if not document:
        return dict(blank), ["wrote a plan without phases in place of an empty one"]
    plan = copy.deepcopy(dict(document))
    words: list[str] = []
    feature = plan.get("feature")
    if feature is None:
        plan = {"feature": dict(blank["feature"]), **plan} | {"feature": dict(blank["feature"])}
        words.append("added the head of the plan")
    elif isinstance(feature, dict) and _fill(feature, blank["feature"]):
        words.append("completed the head of the plan")
    if plan.get("phases") is None:
        plan["phases"] = []
        words.append("added the list of phases")
    logged = _logged_statuses(history)
    filled = [_complete_task(task, logged, words) for _, task in planfile.walk(plan)]
    if any(filled):
        words.append(f"filled in missing fields of {sum(filled)} task" + "s" * (sum(filled) != 1))
    return plan, words


def _fill(holder: dict[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Add missing or null keys; True if any was added."""
    missing = [name for name in defaults if holder.get(name) is None]
    holder.update({name: copy.copy(defaults[name]) for name in missing})
    return bool(missing)


def _complete_task(task: dict[str, Any], logged: Mapping[str, str], words: list[str]) -> bool:
    """Complete a task, and replace an unknown status; True if fields were added."""
    filled = _fill(task, {"description": "", "agent": "", "artifacts": []})
    status = task.get("status")
    if status not in rules.TASK_STATUSES:
        task["status"] = logged.get(str(task.get("task_id"))) or _status_by_times(task)
        if status is None:
            filled = True
        else:
            words.append(f"set task {task.get('task_id')} to {task['status']}; it was {status!r}")
    if (
        task["status"] == rules.COMPLETED
        and task.get("started_at") is None
        and parse(task.get("completed_at"))
    ):
        task["started_at"] = task["completed_at"]
        filled = True
    return filled


def _status_by_times(task: Mapping[str, Any]) -> str:
    if parse(task.get("completed_at")):
        return rules.COMPLETED
    return rules.IN_PROGRESS if parse(task.get("started_at")) else rules.PENDING


def _logged_statuses(history: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The last status of each task in the history."""
    told: dict[str, str] = {}
    for entry in operations_back(reversed(history)):
        status = entry.get(entries.TASK_STATUS)
        if status in rules.TASK_STATUSES:
            told.setdefault(str(entry.get("task_id")), status)
    return told
