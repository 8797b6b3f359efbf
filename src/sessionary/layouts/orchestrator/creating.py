"""Create a feature: all six steps of the contract, or nothing.

The folder is built under a hidden name and renamed after everything in it is flushed; the row of the list
comes last. All of this happens under the lock of the list, so that ids are unique, and a list that must not
be overwritten is refused before a folder is created.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, stat_or_none, sync_dir
from sessionary.errors import AlreadyExists, SessionaryError, StorageFailed
from sessionary.layouts.orchestrator import names, planfile, rules, statefile
from sessionary.layouts.orchestrator.index import Index, IndexFile
from sessionary.layouts.orchestrator.times import stamp

README = b"""# Agent sessions

Each folder here is a feature that agents work on:

- `implementation-plan.yaml`: its phases and tasks
- `history.jsonl`: every command, one a line; never changed, only added to
- `state.yaml`: the task and the model of the moment
- `artifacts/`: what was generated

`active-features.yaml` lists the features. The folders are the truth: if a merge leaves a conflict in the list, resolve
it by hand. `.archive/` holds completed and archived features.
"""


class New(NamedTuple):
    """The initial values of a feature. With `feature_id` None an id is made from the name and the date."""

    feature_id: str | None
    name: str
    description: str
    now: datetime


def create(fs: Fs, index: Index, new: New) -> str:
    """Create a feature and return its id. See `FeatureStore.create` for the state after a failure."""
    with index.held(make=True):
        found = index.load()
        if found.error is not None:
            raise found.error
        feature_id = _free(fs, index.home, found, new)
        folder = f"{index.home}/{feature_id}"
        _remove_abandoned(fs, index.home)
        place = f"{index.home}/{names.BUILDING}{secrets.token_hex(8)}"
        with atomic.building(place, "create a feature in", fs=fs):
            _build(fs, place, feature_id, new)
            atomic.move_folder(place, folder, fs=fs)
        try:
            make_readme(fs, index.home)
            index.put_locked(found, feature_id, {}, stamp(new.now))
        except StorageFailed as error:
            if error.outcome == "not_committed":
                _put_away(fs, index.home, feature_id, error, new.now)
            raise
    return feature_id


def exists(fs: Fs, home: str, found: IndexFile, feature_id: str) -> bool:
    """True if an id is taken: by a folder, a row of the list, or a feature in the archive."""
    return (
        feature_id in found.rows
        or stat_or_none(fs, f"{home}/{feature_id}") is not None
        or stat_or_none(fs, f"{home}/{names.ARCHIVE}/{feature_id}") is not None
    )


def _free(fs: Fs, home: str, found: IndexFile, new: New) -> str:
    if new.feature_id is None:
        return names.free_id(new.name, new.now.date(), partial(exists, fs, home, found))
    if exists(fs, home, found, new.feature_id):
        raise _taken(fs, home, new.feature_id)
    return new.feature_id


def _taken(fs: Fs, home: str, feature_id: str) -> AlreadyExists:
    """The error for an id that is taken, naming what has it."""
    path, archived = f"{home}/{feature_id}", f"{home}/{names.ARCHIVE}/{feature_id}"
    message = f"Feature {feature_id} already exists"
    hint = "choose another id, or give none: then a free one is made from the name"
    if stat_or_none(fs, path) is not None:
        pass
    elif stat_or_none(fs, archived) is not None:
        path, message = archived, f"{message}, in the archive"
        hint += f"; `sessionary feature unarchive {feature_id}` restores that one"
    else:
        path = f"{home}/{names.INDEX}"
        message = f"{feature_id} is in the list of features, but its folder is missing"
        hint = "restore the folder; or `sessionary feature repair --rebuild-index` removes the row"
    return AlreadyExists(message, path=path, session=feature_id, hint=hint)


def _build(fs: Fs, place: str, feature_id: str, new: New) -> None:
    """Steps two to five: plan, empty history, state, folder of artifacts. Raises OSError."""
    plan = planfile.new_plan(feature_id, new.name, new.description, new.now)
    state = statefile.new_state(feature_id, rules.DEFAULT_MODEL, None, new.now, new.now)
    atomic.write_new(fs, f"{place}/{names.PLAN}", (dump_yaml(plan),), None)
    atomic.write_new(fs, f"{place}/{names.HISTORY}", (), None)
    atomic.write_new(fs, f"{place}/{names.STATE}", (state,), None)
    fs.mkdir(f"{place}/{names.ARTIFACTS}")
    sync_dir(fs, place)


def make_readme(fs: Fs, home: str) -> bool:
    """Write `.ai-session/README.md` if it is missing; True if it was written."""
    path = f"{home}/{names.README}"
    if stat_or_none(fs, path) is not None:
        return False
    with suppress(AlreadyExists):
        atomic.create(path, README, fs=fs)
    return True


def _remove_abandoned(fs: Fs, home: str) -> None:
    """Remove the hidden folders of killed creators: they are made under the lock that we hold."""
    for name in fs.listdir(home):
        if name.startswith(names.BUILDING):
            with suppress(OSError):
                atomic.erase_tree(f"{home}/{name}", fs=fs)


def _put_away(fs: Fs, home: str, feature_id: str, error: StorageFailed, now: datetime) -> None:
    """Move a feature that could not be listed to the archive, and add its path to the error."""
    target = f"{home}/{names.ARCHIVE}/{names.FAILED}{feature_id}"
    if stat_or_none(fs, target) is not None:
        target = atomic.free_name(target, "again", fs=fs, now=now)
    try:
        atomic.move_folder(f"{home}/{feature_id}", target, fs=fs)
    except SessionaryError:
        error.outcome = "unknown"
        error.details["kept"] = f"{home}/{feature_id}"
        error.hint = (
            f"the feature exists but is not listed: `sessionary feature repair {feature_id}` lists it"
        )
        return
    error.details["moved_to"] = target
    error.message += f"; the new folder was moved to {os.path.relpath(target, home)}"
    error.hint = f"{error.hint}; then create the feature again" if error.hint else "create the feature again"
