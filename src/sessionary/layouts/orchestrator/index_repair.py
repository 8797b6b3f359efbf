"""Repair the list of features: the row of one feature, or the whole list from the folders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.orchestrator import names, reading, statefile
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.indexfile import KEY, IndexFile, Row, faulty_fields
from sessionary.layouts.orchestrator.reading import feature_ids, history_of, is_folder
from sessionary.layouts.orchestrator.repaired import Repaired
from sessionary.layouts.orchestrator.replay import status_of
from sessionary.layouts.orchestrator.rules import ACTIVE, DEFAULT_MODEL, FEATURE_STATUSES
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem, Severity


def repair_row(feature: Feature, state: statefile.FeatureState, now: datetime, done: Repaired) -> None:
    """Add the row of a feature if it is missing, and correct its fields that break the contract."""
    index, feature_id = feature.index, feature.feature_id
    with index.held():
        found = index.load()
        if found.error is not None:
            done.problems += found.problems
            return
        stored = found.rows.get(feature_id)
        sound = _sound_row(feature.fs, index.home, feature_id, found, state, now)
        if stored is None:
            index.put_locked(found, feature_id, sound, sound["started_at"])
            done.actions.append("added the feature to the list")
            return
        changes = {name: sound[name] for name in faulty_fields(stored)}
        if changes:
            done.kept.append(atomic.quarantine(index.path, "original", fs=feature.fs, now=now))
            index.put_locked(found, feature_id, changes, sound["started_at"])
            done.actions += [
                f"set {name} in the list to {value}; it was {stored.get(name)!r}"
                for name, value in changes.items()
            ]


def rebuild_index(fs: Fs, index: Index, now: datetime, done: Repaired) -> None:
    """Rebuild the list from the folders and its readable part. See `FeatureStore.rebuild_index`."""
    with index.held():
        found = index.load()
        rows, changed = _rows(fs, index.home, found, now, done)
        of_scripts = any(problem.code == "index_of_scripts" for problem in found.problems)
        settled = not any(problem.code == "index_conflict" for problem in found.problems)
        if found.error is None:
            if changed or found.data is None:
                if found.data is not None:
                    done.kept.append(atomic.quarantine(index.path, "original", fs=fs, now=now))
                index.write(found, rows)
                done.actions += [*changed, f"wrote the list with {_features(rows)}"]
        elif of_scripts and settled:
            done.kept.append(atomic.quarantine(index.path, "original", fs=fs, now=now))
            index.write(IndexFile(None, {KEY: []}, {}, []), rows)
            done.actions += [*changed, f"wrote the list as YAML with {_features(rows)}"]
        else:
            data = dump_yaml({KEY: rows})
            place = atomic.save_aside(index.path, "candidate", data, fs=fs, now=now)
            done.actions.append(f"wrote a proposal: {place}")
            done.problems += found.problems


def _features(rows: Sequence[Row]) -> str:
    return f"{len(rows):,} feature" + "s" * (len(rows) != 1)


def _rows(fs: Fs, home: str, found: IndexFile, now: datetime, done: Repaired) -> tuple[list[Row], list[str]]:
    """The correct rows, and the differences from the current ones, each as a sentence."""
    ids = feature_ids(fs, home)
    rows: list[Row] = []
    changed: list[str] = []
    for feature_id in ids:
        if not names.is_text(feature_id):
            words = "the name of the folder is not UTF-8: the list cannot hold it"
            path = f"{home}/{feature_id}"
            done.problems.append(
                Problem("missing_row", Severity.hides_data, path, None, None, words, "rename the folder")
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
        state = statefile.read_state(fs, folder, feature_id).state
    except (NotFound, Corrupt, Invalid):
        day = names.day_of(feature_id) or now
        state = statefile.FeatureState(feature_id, None, DEFAULT_MODEL, day, day)
    return _sound_row(fs, home, feature_id, found, state, now)


def _sound_row(
    fs: Fs, home: str, feature_id: str, found: IndexFile, state: statefile.FeatureState, now: datetime
) -> Row:
    """The row of a feature from state and history; its status from the list, if that has one."""
    began = state.started_at or state.last_updated or names.day_of(feature_id) or now
    status = found.rows.get(feature_id, {}).get("status")
    if status not in FEATURE_STATUSES:
        folder = reading.folder_of(fs, home, feature_id) or f"{home}/{feature_id}"
        status = status_of(history_of(fs, folder).values) or ACTIVE
    return {
        "feature_id": feature_id,
        "started_at": stamp(began),
        "last_active": stamp(state.last_updated or began),
        "status": status,
    }
