"""The sweeps of brainstorms and features find known mistakes: each is planted in turn, and a sweep must fail.

That the same sweeps find nothing without a mistake is what those files themselves test.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore
from sessionary.disk import atomic
from sessionary.disk.pid_file import PidFile
from sessionary.layouts.brainstorm import navigation, trash
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.testing.wrapper import WrappedFs
from tests.crash import test_brainstorm_sweeps as brainstorms
from tests.crash import test_feature_sweeps as features
from tests.support.sweeps import crash_sweep

Plant = Callable[[pytest.MonkeyPatch], None]


class Without(WrappedFs):
    """A file system that leaves one kind of call out."""

    def __init__(self, inner: Any, name: str) -> None:
        super().__init__(inner)
        self._name = name
        self.root = inner.root

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        return None if name == self._name else super().call(name, *arguments, **options)


def found_in_brainstorms(name: str, folder: Path, without: str = "") -> bool:
    """True if the sweep over a call of the brainstorm store finds something."""
    check = brainstorms.check_of(name)

    def operation(fs: Any) -> None:
        brainstorms.CALLS[name](BrainstormStore.with_fs(Without(fs, without), fs.root))
        fs.mark(name)

    return bool(crash_sweep(brainstorms.setup, operation, check, folder, limit=10).violations)


def found_in_features(name: str, folder: Path, without: str = "") -> bool:
    """True if the sweep over a call of the feature store finds something."""
    call = features.CALLS[name]
    before, after = features.outcome(call, folder)

    def run(fs: Any) -> None:
        call(FeatureStore.with_fs(Without(fs, without), fs.root, now=features.later_clock()))
        fs.mark(name)

    check = features.check_of(before, after)
    return bool(crash_sweep(features.setup, run, check, folder, limit=60).violations)


def archive_after_writing(patch: pytest.MonkeyPatch) -> None:
    """The session that makes room is not kept."""
    patch.setattr(trash, "archive", lambda fs, folder, name, data: "")


def branch_by_cutting(patch: pytest.MonkeyPatch) -> None:
    """A branch throws the later entries away, as the format's first `back` did."""
    begin = navigation._branch

    def cut(session: Any, entries: Any, at: int, now: Any) -> Any:
        entry = begin(session, entries, at, now)
        session["history"] = [one for one in session["history"] if not one.get("superseded")]
        return entry

    patch.setattr(navigation, "_branch", cut)


def erase_instead_of_trash(patch: pytest.MonkeyPatch) -> None:
    """A clean-up deletes."""
    patch.setattr(trash, "discard", lambda fs, path, now, *, erase: fs.unlink(path) or path)


def migrate_without_backup(patch: pytest.MonkeyPatch) -> None:
    """A migration keeps no old bytes."""
    patch.setattr(trash, "keep_backup", lambda fs, path, data: path)


def write_in_place(patch: pytest.MonkeyPatch) -> None:
    """A file is emptied and written again, instead of being replaced."""

    def careless(path: str, chunks: Any, *, fs: Any, **_: Any) -> None:
        fd = fs.open(path, os.O_RDWR | os.O_CREAT)
        fs.truncate(fd, 0)
        for chunk in chunks:
            fs.write(fd, chunk)
        fs.fsync(fd)
        fs.close(fd)

    patch.setattr(atomic, "replace", careless)


BRAINSTORMS: dict[str, tuple[Plant | None, str, str]] = {
    "no flush": (None, "answer", "fsync"),
    "written in place": (write_in_place, "answer", ""),
    "nothing archived": (archive_after_writing, "create_over_one_in_progress", ""),
    "a branch that cuts": (branch_by_cutting, "branch", ""),
    "a clean-up that deletes": (erase_instead_of_trash, "cleanup", ""),
    "a migration without backup": (migrate_without_backup, "load_an_older_file", ""),
}


@pytest.mark.parametrize("name", BRAINSTORMS)
def test_a_mistake_with_brainstorms_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, call, without = BRAINSTORMS[name]
    sound = brainstorms.check_of(call)
    if plant is not None:
        plant(monkeypatch)
    monkeypatch.setattr(
        brainstorms, "check_of", lambda name: sound
    )  # what should be is known from the sound store
    assert found_in_brainstorms(call, tmp_path, without)


def state_before_line(patch: pytest.MonkeyPatch) -> None:
    """The state is changed before the history records it."""
    perform = Feature.perform

    def hasty(self: Feature, entry: dict[str, Any], state: Any) -> None:
        self._apply(entry, state, [])
        perform(self, entry, self.state())

    patch.setattr(Feature, "perform", hasty)


def never_finished(patch: pytest.MonkeyPatch) -> None:
    """What a killed writer left is not finished by the next one."""
    patch.setattr(Feature, "settle", lambda self: None)


def a_lock_that_stays(patch: pytest.MonkeyPatch) -> None:
    """The lock of the scripts is not removed, so they stay locked out."""
    patch.setattr(PidFile, "release", lambda self: self._fs.close(self._fd))


FEATURES: dict[str, tuple[Plant | None, str, str]] = {
    "a line that is not flushed": (None, "update", "fdatasync"),
    "files that are not flushed": (None, "task", "fsync"),
    "the state before the line": (state_before_line, "update", ""),
    "what was cut off is left": (never_finished, "task", ""),
    "written in place": (write_in_place, "task", ""),
    "a lock that stays": (a_lock_that_stays, "append", ""),
}


@pytest.mark.parametrize("name", FEATURES)
def test_a_mistake_with_features_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, call, without = FEATURES[name]
    if plant is not None:
        plant(monkeypatch)
    assert found_in_features(call, tmp_path, without)
