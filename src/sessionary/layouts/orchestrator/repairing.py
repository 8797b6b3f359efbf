"""The contract's recovery procedures for a feature and for the list of features, and the migration of a state.

These run only on request, and lose nothing: replaced files are kept beside under dated names. Of a plan only missing
parts are added, and only unknown statuses are replaced: the planner's own content is not changed. A plan that is not
valid YAML, or not a map, stays unchanged; `FeatureStore.save_plan` replaces it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_folder, make_folder, read_bytes, stat_or_none
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.escaping import is_utf8
from sessionary.layouts.orchestrator import (
    checking,
    creating,
    entries,
    names,
    planfile,
    reading,
    rules,
    statefile,
)
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.history import History, mended, read_history
from sessionary.layouts.orchestrator.index import KEY, Index, IndexFile, Row, faulty_fields
from sessionary.layouts.orchestrator.replay import (
    UNKNOWN,
    Replayed,
    fields_behind,
    last_operation,
    operations_back,
    replay,
    status_of,
)
from sessionary.layouts.orchestrator.rules import ACTIVE, DEFAULT_MODEL, FEATURE_STATUSES, note
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.times import later, parse, stamp
from sessionary.model import Problem, Severity


@dataclass(slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        actions: what was done, each as a sentence; empty if nothing was needed.
        kept: the paths of the replaced files.
        problems: assumptions, and what could not be repaired.
        lost: of the replaced history, the lines with bytes that could not be recovered, and their number.
    """

    actions: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)

    def assumed(self, path: str, words: str) -> None:
        """Report an assumption."""
        self.problems.append(note("assumed", path, words, "check whether this is right"))

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        problems = [problem.as_dict() for problem in self.problems]
        lost = [{"line": line, "bytes": count} for line, count in self.lost]
        return {"actions": self.actions, "kept": self.kept, "problems": problems, "lost": lost}


def repair_feature(
    feature: Feature, now: datetime, *, rewrite_history: bool, replace_bad: bool, agent: str
) -> Repaired:
    """Repair one feature, under its lock. See `FeatureStore.repair`."""
    done = Repaired()
    fs, artifacts = feature.fs, f"{feature.folder}/{names.ARTIFACTS}"
    if feature.script_lock.removed:
        done.actions.append("removed the lock of a killed process")
    if feature.finished:
        done.actions.append(f"finished the interrupted {feature.finished}")
    history = _repair_history(feature, now, done, rewrite_history, replace_bad)
    replayed = replay(history.values)
    # Before a missing plan is created, which has less information than the history.
    began = _began(feature, replayed, done) or now
    _repair_plan(feature, history.values, began, now, done)
    state = _repair_state(feature, replayed, began, now, done)
    state = _bring_together(feature, state, history, now, done, agent)
    if stat_or_none(fs, artifacts) is None:
        make_folder(fs, artifacts)
        done.actions.append("created the folder for artifacts")
    if creating.make_readme(fs, feature.index.home):
        done.actions.append("wrote README.md")
    repair_row(fs, feature.index, feature.feature_id, state, now, done)
    return done


def _repair_history(
    feature: Feature, now: datetime, done: Repaired, rewrite: bool, replace_bad: bool
) -> History:
    """The repaired history. Unreadable lines are only dropped if `rewrite` is given."""
    path = feature.journal.path
    data = read_bytes(feature.fs, path)
    if data is None:
        atomic.create(path, b"", fs=feature.fs)
        done.actions.append("created an empty history")
    elif rewrite:
        new = mended(data, path, replace_bad=replace_bad)
        if (whole := b"".join(new.lines)) != data:
            kept = atomic.quarantine(path, "original", fs=feature.fs, now=now)
            done.kept.append(kept)
            atomic.replace(path, (whole,), fs=feature.fs)
            feature.journal.reopened()
            done.actions.append("rewrote the history: each entry on one line, durations in milliseconds")
            if new.replaced:
                done.actions.append(
                    f"put U+FFFD in place of invalid UTF-8, in {_entries(new.replaced)}; "
                    "--bad-bytes drop drops such entries"
                )
            if new.left_out:
                are = (
                    "line could not be read and is"
                    if new.left_out == 1
                    else "lines could not be read and are"
                )
                words = f"{new.left_out:,} {are} only in the kept file"
                done.problems.append(note("left_out", kept, words, "see the kept file for their content"))
            done.lost = new.lost
    history = read_history(feature.fs, feature.folder, strict=True)
    remaining = checking.history_faults(history)
    done.problems += [problem for problem in remaining if problem.severity > Severity.note]
    return history


def _entries(count: int) -> str:
    return f"{count:,} entr{'y' if count == 1 else 'ies'}"


def _repair_state(
    feature: Feature, replayed: Replayed, began: datetime, now: datetime, done: Repaired
) -> FeatureState:
    path = f"{feature.folder}/{names.STATE}"
    try:
        found = feature.state()
    except NotFound:
        return _rebuild_state(feature, replayed, began, done)
    except (Corrupt, Invalid) as error:
        done.kept.append(atomic.quarantine(path, "corrupt", fs=feature.fs, now=now))
        done.assumed(path, f"the state could not be read: {error.message}")
        return _rebuild_state(feature, replayed, began, done)
    if any(problem.code == "status_line" for problem in found.problems):
        done.kept.append(atomic.quarantine(path, "corrupt", fs=feature.fs, now=now))
        feature.write_state(dump_yaml(found.document))
        done.actions.append("removed the indented status from the state")
    return found.state


def _rebuild_state(feature: Feature, replayed: Replayed, began: datetime, done: Repaired) -> FeatureState:
    """Write the state that the history gives."""
    updated = max(replayed.last_updated or began, began)
    task = None if replayed.active_task is UNKNOWN else replayed.active_task
    if replayed.model_in_use is None:
        words = f"the history names no model known to the contract; {DEFAULT_MODEL} is assumed"
        done.assumed(f"{feature.folder}/{names.STATE}", words)
    model = replayed.model_in_use or DEFAULT_MODEL
    feature.write_state(statefile.new_state(feature.feature_id, model, task, began, updated))
    done.actions.append(f"restored the state from {_entries(replayed.entries)} of the history")
    return FeatureState(feature.feature_id, task, model, began, updated)


def _began(feature: Feature, replayed: Replayed, done: Repaired) -> datetime | None:
    """The creation time of the feature: from history, list or plan, else the date of its id; None if unknown."""
    row = feature.index.load().rows.get(feature.feature_id, {})
    created = planfile.read_plan(feature.fs, feature.folder).head.get("created_at")
    known = (replayed.started_at, parse(row.get("started_at")), parse(created), replayed.first)
    began = next((time for time in known if time is not None), None)
    if began is None and (began := names.day_of(feature.feature_id)) is not None:
        words = "the creation time is unknown; the date of the id is assumed"
        done.assumed(f"{feature.folder}/{names.STATE}", words)
    return began


def _bring_together(
    feature: Feature, state: FeatureState, history: History, now: datetime, done: Repaired, agent: str
) -> FeatureState:
    """Restore what another program has reverted in the state, and log changes that have no line."""
    behind = fields_behind(state, history.values)
    emptied = checking.is_emptied(feature.state(), history)
    if not behind and not emptied:
        return state
    restored = {name: field.logged for name, field in behind.items() if field.older}
    current = {"active_task": state.active_task, "model_in_use": state.model_in_use, **restored}
    last = last_operation(history.values)
    words = " ".join(f"{name}={current[name]}" for name in behind or current)
    # A state as it was parsed has both times, or it would break the contract.
    entry = entries.operation(state.last_updated or now, "repair", words, agent, current)
    entry[entries.STATE] = {**current, "started_at": stamp(state.started_at or now)}
    if not restored and last is not None and parse(last["timestamp"]) != state.last_updated:
        feature.log(entry)
        feature.journal.flush()
    else:
        if restored:
            path = f"{feature.folder}/{names.STATE}"
            done.kept.append(atomic.quarantine(path, "before", fs=feature.fs, now=now))
        entry["timestamp"] = stamp(later(now, state.last_updated))
        feature.perform(entry, feature.state())
    if emptied:
        done.actions.append("logged the current state in the empty history; its earlier entries are lost")
    for name, value in behind.items():
        done.actions.append(
            f"restored {name} to {value.logged!r} from the history; it was {value.found!r}"
            if value.older
            else f"logged {name} {value.found!r}, set by another program"
        )
    return feature.state().state


def migrate_state(feature: Feature, now: datetime, *, switch: bool) -> Path | None:
    """Write the state in the newest version beside the old one. See `FeatureStore.migrate`.

    In that the version is text and comes first, and times are in UTC with six digits.
    """
    document = feature.state().document
    if document.get("version") == statefile.VERSION:
        return None
    current = dict(document[statefile.CURRENT])
    for name in ("started_at", "last_updated"):
        if (time := parse(current.get(name))) is not None:
            current[name] = stamp(time)
    rest = {name: value for name, value in document.items() if name != "version"}
    data = dump_yaml({"version": statefile.VERSION, **rest, statefile.CURRENT: current})
    beside = f"{feature.folder}/state.v{statefile.VERSION}.yaml"
    atomic.replace(beside, (data,), fs=feature.fs)
    if switch:
        atomic.quarantine(f"{feature.folder}/{names.STATE}", "before", fs=feature.fs, now=now)
        feature.write_state(data)
    return Path(beside)


def _repair_plan(
    feature: Feature, history: Sequence[dict[str, Any]], began: datetime, now: datetime, done: Repaired
) -> None:
    """Create a missing or empty plan, or complete an incomplete one. The lock is held."""
    path = f"{feature.folder}/{names.PLAN}"
    found = planfile.read_plan(feature.fs, feature.folder)
    blank = planfile.new_plan(feature.feature_id, feature.feature_id, "", began)
    if not found.readable:
        done.problems += found.problems  # written by hand or by a planner, so not repairable here
        return
    if found.data is None:
        atomic.create(path, dump_yaml(blank), fs=feature.fs)
        done.actions.append("made an empty plan")
        return
    document, words = _completed(found.document, blank, history)
    if not same(document, found.document):
        done.kept.append(atomic.quarantine(path, "original", fs=feature.fs, now=now))
        feature.write_plan(found, document)
        done.actions += words
    left = planfile.parse_plan(dump_yaml(document), path)
    done.problems += [problem for problem in left.problems if problem.severity > Severity.note]


def _completed(
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
    tasks = [task for _, task in planfile.walk(plan)]
    odd = any(task.get("status") not in rules.TASK_STATUSES for task in tasks)
    logged = _logged_statuses(history) if odd else {}
    filled = [_complete_task(task, logged, words) for task in tasks]
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
    found: dict[str, str] = {}
    for entry in operations_back(reversed(history)):
        status = entry.get(entries.TASK_STATUS)
        if status in rules.TASK_STATUSES:
            found.setdefault(str(entry.get("task_id")), status)
    return found


def repair_row(
    fs: Fs, index: Index, feature_id: str, state: FeatureState, now: datetime, done: Repaired
) -> None:
    """Add the row of a feature if it is missing, and correct its fields that break the contract."""
    with index.held():
        found = index.load()
        if found.error is not None:
            done.problems += found.problems
            return
        stored = found.rows.get(feature_id)
        sound = _sound_row(fs, index.home, feature_id, found, state, now)
        if stored is None:
            index.put_locked(found, feature_id, sound, sound["started_at"])
            done.actions.append("added the feature to the list")
        elif changes := {name: sound[name] for name in faulty_fields(stored)}:
            done.kept.append(atomic.quarantine(index.path, "original", fs=fs, now=now))
            index.put_locked(found, feature_id, changes, sound["started_at"])
            done.actions += [
                f"set {name} in the list to {value}; it was {stored.get(name)!r}"
                for name, value in changes.items()
            ]


def rebuild_index(fs: Fs, index: Index, now: datetime) -> Repaired:
    """Rebuild the list from the folders and its readable part. See `FeatureStore.rebuild_index`."""
    done = Repaired()
    with index.held():
        found = index.load()
        rows, changed = _rows(fs, index.home, found, now, done)
        codes = {problem.code for problem in found.problems}
        number = f"{len(rows):,} feature" + "s" * (len(rows) != 1)
        if found.error is None:
            if not changed and found.data is not None:
                return done
            target, form = found, ""
        elif "index_of_scripts" in codes and "index_conflict" not in codes:
            target, form = IndexFile(None, {KEY: []}, {}, []), " as YAML"
        else:
            data = dump_yaml({KEY: rows})
            place = atomic.save_aside(index.path, "candidate", data, fs=fs, now=now)
            done.actions.append(f"wrote a proposal: {place}")
            done.problems += found.problems
            return done
        if found.data is not None:
            done.kept.append(atomic.quarantine(index.path, "original", fs=fs, now=now))
        index.write(target, rows)
        done.actions += [*changed, f"wrote the list{form} with {number}"]
        return done


def _rows(fs: Fs, home: str, found: IndexFile, now: datetime, done: Repaired) -> tuple[list[Row], list[str]]:
    """The correct rows, and the differences from the current ones, each as a sentence."""
    ids = reading.feature_ids(fs, home)
    rows: list[Row] = []
    changed: list[str] = []
    for feature_id in ids:
        if not is_utf8(feature_id):
            words = "the name of the folder is not UTF-8: the list cannot hold it"
            path = f"{home}/{feature_id}"
            done.problems.append(
                Problem.of_file("missing_row", Severity.hides_data, path, words, "rename the folder")
            )
        elif feature_id not in found.rows:
            rows.insert(0, _read_row(fs, home, feature_id, found, now))
            changed.append(f"added {feature_id} to the list")
    for feature_id, row in found.rows.items():
        archived = is_folder(fs, f"{home}/{names.ARCHIVE}/{feature_id}")
        if feature_id not in ids and not archived:
            changed.append(f"removed {feature_id} from the list: the feature is missing")
            continue
        wrong = faulty_fields(row)
        if wrong:
            sound = _read_row(fs, home, feature_id, found, now)
            rows.append({**row, **{name: sound[name] for name in wrong}})
            changed.append(f"corrected {' and '.join(wrong)} of {feature_id}")
        else:
            rows.append(row)
    return rows, changed


def _read_row(fs: Fs, home: str, feature_id: str, found: IndexFile, now: datetime) -> Row:
    folder = reading.folder_of(fs, home, feature_id) or f"{home}/{feature_id}"
    try:
        state = statefile.read_state(fs, folder).state
    except (NotFound, Corrupt, Invalid):
        day = names.day_of(feature_id) or now
        state = FeatureState(feature_id, None, DEFAULT_MODEL, day, day)
    return _sound_row(fs, home, feature_id, found, state, now)


def _sound_row(
    fs: Fs, home: str, feature_id: str, found: IndexFile, state: FeatureState, now: datetime
) -> Row:
    """The row of a feature from state and history; its status from the list, if that has one."""
    began = state.started_at or state.last_updated or names.day_of(feature_id) or now
    status = found.rows.get(feature_id, {}).get("status")
    if status not in FEATURE_STATUSES:
        folder = reading.folder_of(fs, home, feature_id) or f"{home}/{feature_id}"
        status = status_of(read_history(fs, folder).values) or ACTIVE
    return {
        "feature_id": feature_id,
        "started_at": stamp(began),
        "last_active": stamp(state.last_updated or began),
        "status": status,
    }
