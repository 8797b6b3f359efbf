"""The contract's recovery procedures for one feature: history, plan, state and row; and its migration.

These run only on request, and lose nothing: replaced files are kept beside under dated names.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import make_folder, read_bytes, stat_or_none
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.orchestrator import checking, creating, entries, names, statefile
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.history import History, mended, read_history
from sessionary.layouts.orchestrator.index_repair import repair_row
from sessionary.layouts.orchestrator.plan_repair import repair_plan
from sessionary.layouts.orchestrator.reading import read_plan
from sessionary.layouts.orchestrator.repaired import Repaired
from sessionary.layouts.orchestrator.replay import (
    UNKNOWN,
    Replayed,
    fields_behind,
    last_operation,
    replay,
    started,
)
from sessionary.layouts.orchestrator.rules import DEFAULT_MODEL
from sessionary.layouts.orchestrator.times import later, parse, stamp
from sessionary.model import Problem, Severity


def repair_feature(
    feature: Feature,
    now: datetime,
    done: Repaired,
    *,
    rewrite_history: bool,
    bad_bytes: str,
    agent: str,
) -> None:
    """Repair one feature, under its lock. See `FeatureStore.repair`."""
    fs, folder = feature.fs, feature.folder
    if feature.script_lock.removed:
        done.actions.append("removed the lock of a killed process")
    if feature.finished:
        done.actions.append(f"finished the interrupted {feature.finished}")
    history = _repair_history(feature, now, done, rewrite_history, bad_bytes == "replace")
    told = replay(history.values)
    began = _began(
        feature, told, done
    )  # before a missing plan is created, which has less information than the history
    repair_plan(feature, history.values, began or now, now, done)
    state = _repair_state(feature, told, began or now, now, done)
    state = _bring_together(feature, state, history, now, done, agent)
    if stat_or_none(fs, f"{folder}/{names.ARTIFACTS}") is None:
        make_folder(fs, f"{folder}/{names.ARTIFACTS}")
        done.actions.append("created the folder for artifacts")
    if creating.make_readme(fs, feature.index.home):
        done.actions.append("wrote README.md")
    repair_row(feature, state, now, done)


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
                remedy = "see the kept file for their content"
                done.problems.append(Problem("left_out", Severity.note, kept, None, None, words, remedy))
            done.lost = new.lost
    history = read_history(feature.fs, path)
    remaining = checking.history_problems(history)
    done.problems += [problem for problem in remaining if problem.severity > Severity.note]
    return history


def _entries(count: int) -> str:
    return f"{count:,} entr{'y' if count == 1 else 'ies'}"


def _repair_state(
    feature: Feature, told: Replayed, began: datetime, now: datetime, done: Repaired
) -> statefile.FeatureState:
    path = f"{feature.folder}/{names.STATE}"
    try:
        found = feature.state()
    except NotFound:
        return _rebuild_state(feature, told, began, done)
    except (Corrupt, Invalid) as error:
        done.kept.append(atomic.quarantine(path, "corrupt", fs=feature.fs, now=now))
        done.problems.append(_assumed(path, f"the state could not be read: {error.message}"))
        return _rebuild_state(feature, told, began, done)
    if any(problem.code == "status_line" for problem in found.problems):
        done.kept.append(atomic.quarantine(path, "corrupt", fs=feature.fs, now=now))
        feature.write_state(dump_yaml(found.document))
        done.actions.append("removed the indented status from the state")
    return found.state


def _rebuild_state(
    feature: Feature, told: Replayed, began: datetime, done: Repaired
) -> statefile.FeatureState:
    """Write the state that the history gives."""
    path = f"{feature.folder}/{names.STATE}"
    updated = max(told.last_updated or began, began)
    task = None if told.active_task is UNKNOWN else told.active_task
    if told.model_in_use is None:
        words = f"the history names no model known to the contract; {DEFAULT_MODEL} is assumed"
        done.problems.append(_assumed(path, words))
    model = told.model_in_use or DEFAULT_MODEL
    feature.write_state(statefile.new_state(feature.feature_id, model, task, began, updated))
    done.actions.append(f"restored the state from {_entries(told.entries)} of the history")
    return statefile.FeatureState(feature.feature_id, task, model, began, updated)


def _began(feature: Feature, told: Replayed, done: Repaired) -> datetime | None:
    """The creation time of the feature: from history, list or plan, else the date of its id; None if unknown."""
    row = feature.index.load().rows.get(feature.feature_id, {})
    plan = read_plan(feature.fs, feature.folder).document.get("feature")
    created = plan.get("created_at") if isinstance(plan, dict) else None
    began = started(told, row.get("started_at"), created)
    if began is None and (began := names.day_of(feature.feature_id)) is not None:
        words = "the creation time is unknown; the date of the id is assumed"
        done.problems.append(_assumed(f"{feature.folder}/{names.STATE}", words))
    return began


def _bring_together(
    feature: Feature,
    state: statefile.FeatureState,
    history: History,
    now: datetime,
    done: Repaired,
    agent: str,
) -> statefile.FeatureState:
    """Restore what another program has reverted in the state, and log changes that have no line."""
    behind = fields_behind(state, history.values)
    emptied = checking.is_emptied(statefile.is_by_us(feature.state()), history)
    if not behind and not emptied:
        return state
    restored = {name: field.told for name, field in behind.items() if field.older}
    current = {"active_task": state.active_task, "model_in_use": state.model_in_use, **restored}
    last = last_operation(history.values)
    entry = {
        "timestamp": state.last_updated and stamp(state.last_updated),
        "command": "repair",
        "arguments": " ".join(f"{name}={current[name]}" for name in behind or current),
        "model": current["model_in_use"],
        "agent": agent,
        "task_id": current["active_task"],
        "status": entries.SUCCESS,
        "duration_ms": 0,
        entries.STATE: {**current, "started_at": state.started_at and stamp(state.started_at)},
    }
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
            f"restored {name} to {value.told!r} from the history; it was {value.found!r}"
            if value.older
            else f"logged {name} {value.found!r}, set by another program"
        )
    return feature.state().state


def _assumed(path: str, words: str) -> Problem:
    return Problem("assumed", Severity.note, path, None, None, words, "check whether this is right")


def migrate_state(feature: Feature, now: datetime, done: Repaired, *, switch: bool) -> str | None:
    """Write the state in the newest version beside the old one. See `FeatureStore.migrate`."""
    path = f"{feature.folder}/{names.STATE}"
    found = feature.state()
    new = migrated(found)
    if new == found.document:
        return None
    beside = f"{feature.folder}/state.v{statefile.VERSION}.yaml"
    data = dump_yaml(new)
    atomic.replace(beside, (data,), fs=feature.fs)
    done.actions.append(f"wrote {beside}")
    if switch:
        done.kept.append(atomic.quarantine(path, "before", fs=feature.fs, now=now))
        feature.write_state(data)
        done.actions.append("made it the state")
    return beside


def migrated(found: statefile.StateFile) -> dict[str, Any]:
    """The document in the newest version: its version as text and first, times in UTC with six digits."""
    current = dict(found.document[statefile.CURRENT])
    if found.document.get("version") == statefile.VERSION:
        return found.document
    for name in ("started_at", "last_updated"):
        time = parse(current.get(name))
        if time is not None:
            current[name] = stamp(time)
    rest = {name: value for name, value in found.document.items() if name != "version"}
    return {"version": statefile.VERSION, **rest, statefile.CURRENT: current}
