"""The contract's recovery procedures: a state from its history, missing files anew, the list from the folders.

Nothing is done unasked, nothing that was there is lost: what is replaced stays beside under a dated name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, look, read_bytes
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.orchestrator import creating, names, planfile, statefile
from sessionary.layouts.orchestrator.feature import Feature, make_folder
from sessionary.layouts.orchestrator.history import mended, read_history
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.indexfile import KEY, IndexFile, Row
from sessionary.layouts.orchestrator.reading import feature_ids, read_plan, status_of_feature
from sessionary.layouts.orchestrator.replaying import UNKNOWN, Replayed, replay, started
from sessionary.layouts.orchestrator.rules import ACTIVE, DEFAULT_MODEL
from sessionary.layouts.orchestrator.times import parse, stamp
from sessionary.model import Problem, Severity


@dataclass(slots=True)
class Repaired:
    """What a repair did.

    Attributes:
        actions: each in one sentence; empty if nothing needed doing.
        kept: where the bytes lie that were replaced.
        problems: what had to be assumed, and what could not be repaired.
    """

    actions: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        problems = [problem.as_dict() for problem in self.problems]
        return {"actions": self.actions, "kept": self.kept, "problems": problems}


def repair_feature(feature: Feature, now: datetime, done: Repaired, *, rewrite_history: bool) -> None:
    """Put one feature right, under its lock. See `FeatureStore.repair`."""
    fs, folder = feature.fs, feature.folder
    _repair_history(feature, now, done, rewrite_history)
    _repair_plan(feature, now, done)
    state = _repair_state(feature, now, done)
    if look(fs, f"{folder}/{names.ARTIFACTS}") is None:
        make_folder(fs, f"{folder}/{names.ARTIFACTS}")
        done.actions.append("made the folder for artifacts")
    if creating.make_readme(fs, feature.index.home):
        done.actions.append("wrote README.md")
    _repair_row(feature, state, done)


def _repair_history(feature: Feature, now: datetime, done: Repaired, rewrite: bool) -> None:
    path = feature.journal.path
    data = read_bytes(feature.fs, path)
    if data is None:
        atomic.create(path, b"", fs=feature.fs)
        done.actions.append("made an empty history")
    elif rewrite and (lines := b"".join(mended(data, path))) != data:
        done.kept.append(atomic.keep_aside(path, "original", fs=feature.fs, now=now))
        atomic.replace(path, (lines,), fs=feature.fs)
        feature.journal.reopened()
        done.actions.append("wrote the history anew: each entry on one line, durations in milliseconds")


def _repair_plan(feature: Feature, now: datetime, done: Repaired) -> None:
    path = f"{feature.folder}/{names.PLAN}"
    if look(feature.fs, path) is None:
        plan = planfile.new_plan(feature.feature_id, feature.feature_id, "", _day(feature.feature_id) or now)
        atomic.create(path, dump_yaml(plan), fs=feature.fs)
        done.actions.append("made an empty plan")
    elif not (found := read_plan(feature.fs, feature.folder)).readable:
        done.problems += (
            found.problems
        )  # it was written by hand or by a planner: nobody else can tell what it was


def _repair_state(feature: Feature, now: datetime, done: Repaired) -> statefile.FeatureState:
    path = f"{feature.folder}/{names.STATE}"
    try:
        found = feature.state()
    except NotFound:
        return _rebuild_state(feature, now, done)
    except (Corrupt, Invalid) as error:
        done.kept.append(atomic.keep_aside(path, "corrupt", fs=feature.fs, now=now))
        done.problems.append(_assumed(path, f"the state could not be read: {error.message}"))
        return _rebuild_state(feature, now, done)
    if any(problem.code == "status_line" for problem in found.problems):
        done.kept.append(atomic.keep_aside(path, "corrupt", fs=feature.fs, now=now))
        feature.write_state(dump_yaml(found.document))
        done.actions.append("took the indented status out of the state")
    return found.state


def _rebuild_state(feature: Feature, now: datetime, done: Repaired) -> statefile.FeatureState:
    """Write the state that the history tells of."""
    history = read_history(feature.fs, feature.journal.path)
    told = replay(history.values)
    path = f"{feature.folder}/{names.STATE}"
    done.problems += history.problems
    began = _started(feature, told) or now
    updated = max(told.last_updated or began, began)
    task = None if told.active_task is UNKNOWN else told.active_task
    if told.model_in_use is None:
        words = f"the history names no model that the contract knows; {DEFAULT_MODEL} is assumed"
        done.problems.append(_assumed(path, words))
    model = told.model_in_use or DEFAULT_MODEL
    feature.write_state(statefile.new_state(feature.feature_id, model, task, began, updated))
    done.actions.append(f"restored the state from {len(history.values):,} entries of the history")
    return statefile.FeatureState(feature.feature_id, task, model, began, updated)


def _started(feature: Feature, told: Replayed) -> datetime | None:
    row = feature.index.load().rows.get(feature.feature_id, {})
    plan = planfile.read_plan(feature.fs, feature.folder).document.get("feature")
    created = plan.get("created_at") if isinstance(plan, dict) else None
    return started(told, row.get("started_at"), created) or _day(feature.feature_id)


def _repair_row(feature: Feature, state: statefile.FeatureState, done: Repaired) -> None:
    index = feature.index
    with index.held():
        found = index.load()
        if found.error is not None:
            done.problems += found.problems
            return
        if feature.feature_id in found.rows:
            return
        row = _row(feature.fs, index.home, feature.feature_id, found, state)
        index.put_locked(found, feature.feature_id, row, row["started_at"])
        done.actions.append("added the feature to the list")


def rebuild_index(fs: Fs, index: Index, now: datetime, done: Repaired) -> None:
    """Write the list from the folders and from what can be read of it. See `FeatureStore.rebuild_index`."""
    with index.held():
        found = index.load()
        rows = list(found.rows.values())
        for feature_id in feature_ids(fs, index.home):
            if feature_id not in found.rows:
                rows.insert(0, _read_row(fs, index.home, feature_id, found, now))
        of_scripts = any(problem.code == "index_of_scripts" for problem in found.problems)
        settled = not any(problem.code == "index_conflict" for problem in found.problems)
        if found.error is None:
            if rows != list(found.rows.values()) or found.data is None:
                index.write(found, rows)
                done.actions.append(f"wrote the list with {len(rows)} features")
        elif of_scripts and settled:
            done.kept.append(atomic.keep_aside(index.path, "original", fs=fs, now=now))
            index.write(IndexFile(None, {KEY: []}, {}, []), rows)
            done.actions.append(f"wrote the list as YAML with {len(rows)} features")
        else:
            data = dump_yaml({KEY: rows})
            place = atomic.save_aside(index.path, "candidate", data, fs=fs, now=now)
            done.actions.append(f"wrote a proposal: {place}")
            done.problems += found.problems


def _read_row(fs: Fs, home: str, feature_id: str, found: IndexFile, now: datetime) -> Row:
    try:
        state = statefile.read_state(fs, f"{home}/{feature_id}", feature_id).state
    except (NotFound, Corrupt, Invalid):
        day = _day(feature_id) or now
        state = statefile.FeatureState(feature_id, None, DEFAULT_MODEL, day, day)
    return _row(fs, home, feature_id, found, state)


def _row(fs: Fs, home: str, feature_id: str, found: IndexFile, state: statefile.FeatureState) -> Row:
    began = state.started_at or state.last_updated or _day(feature_id) or datetime.now(UTC)
    return {
        "feature_id": feature_id,
        "started_at": stamp(began),
        "last_active": stamp(state.last_updated or began),
        "status": status_of_feature(fs, f"{home}/{feature_id}", found) or ACTIVE,
    }


def _day(feature_id: str) -> datetime | None:
    day = names.date_of(feature_id)
    return parse(f"{day.isoformat()}T00:00:00Z") if day else None


def _assumed(path: str, words: str) -> Problem:
    return Problem("assumed", Severity.note, path, None, None, words, "look whether that is right")


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
        done.kept.append(atomic.keep_aside(path, "before", fs=feature.fs, now=now))
        feature.write_state(data)
        done.actions.append("took it for the state")
    return beside


def migrated(found: statefile.StateFile) -> dict[str, Any]:
    """The document in the newest version: its version as text and first, its times in UTC with six digits."""
    current = dict(found.document[statefile.CURRENT])
    if found.document.get("version") == statefile.VERSION:
        return found.document
    for name in ("started_at", "last_updated"):
        time = parse(current.get(name))
        if time is not None:
            current[name] = stamp(time)
    rest = {name: value for name, value in found.document.items() if name != "version"}
    return {"version": statefile.VERSION, **rest, statefile.CURRENT: current}
