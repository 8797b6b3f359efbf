"""A write into a folder whose creator was killed before flushing its name flushes that name too.

A folder of which the name was not flushed goes at a power cut with all its content, however well that was flushed.
Its maker made no promise; a process that finds it and writes into it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sessionary import BrainstormStore, EventsLog, FeatureStore, SessionStore
from sessionary.disk.atomic import create
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.testing.wrapper import UNSYNCED
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep

MESSAGE = {"role": "user", "content": "hello", "timestamp": "2026-03-01T09:00:00Z"}


def save(fs: Any, home: str) -> None:
    SessionStore.with_fs(fs, home).save("one", [MESSAGE], {})


def saved(home: str) -> bool:
    return len(SessionStore(home).load("one")[0]) == 1


def log(fs: Any, home: str) -> None:
    EventsLog.with_fs(fs, f"{home}/one", durability="full").append({"event": "session:start"})


def logged(home: str) -> bool:
    return Path(home, "one", "events.jsonl").stat().st_size > 0


def work(fs: Any, home: str) -> None:
    WorkStore.with_fs(fs, home, new_id=lambda: "one").create("work_task")


def worked(home: str) -> bool:
    return WorkStore(home).load("one").session_id == "one"


def note(fs: Any, home: str) -> None:
    crumb = create_breadcrumb("p", "r", [], [], "one", 3, "m", {})
    WorkStore.with_fs(fs, home).write_breadcrumb(crumb, "one")


def noted(home: str) -> bool:
    return [crumb.prompt for crumb in WorkStore(home).breadcrumbs("one").breadcrumbs] == ["p"]


def think(fs: Any, home: str) -> None:
    BrainstormStore.with_fs(fs, home).create("one", questions=["Who?"])


def thought(home: str) -> bool:
    return BrainstormStore(home).load("one").slug == "one"


def plan(fs: Any, home: str) -> None:
    FeatureStore.with_fs(fs, home).create("one-2025-01-09", name="One")


def planned(home: str) -> bool:
    return FeatureStore(home).load("one-2025-01-09").feature_id == "one-2025-01-09"


class Case(NamedTuple):
    """The folders that existed before the write, outermost first, and whether the written data exists."""

    made: tuple[str, ...]
    write: Callable[[Any, str], None]
    is_there: Callable[[str], bool]
    before: Callable[[Any, str], None] = lambda fs, home: None


CASES = {
    "SessionStore.save": Case(("one",), save, saved),
    "EventsLog.append": Case(("one",), log, logged),
    "WorkStore.create": Case(("one", "one/breadcrumbs"), work, worked),
    "write_breadcrumb": Case(("one/breadcrumbs/3",), note, noted, work),
    "BrainstormStore.create": Case(
        (".project-memory", ".project-memory/brainstorm-sessions"), think, thought
    ),
    "FeatureStore.create": Case((".ai-session",), plan, planned),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_acknowledged_is_in_a_folder_whose_name_is_safe(name: str, tmp_path: Path) -> None:
    case = CASES[name]

    def operation(fs: RecordingFs) -> None:
        for folder in case.made:  # by somebody who is killed then
            fs.mkdir(os.path.join(fs.root, folder), 0o700)
        case.write(fs, fs.root)
        fs.mark("acknowledged")

    def check(home: str, acked: tuple[Any, ...]) -> None:
        assert not acked or case.is_there(home)

    report = crash_sweep(lambda home: case.before(UNSYNCED, home), operation, check, tmp_path, limit=40)
    assert report.states > 3
    assert not report.violations, report.describe()


def test_a_folder_that_takes_the_place_of_another_is_named_anew(tmp_path: Path) -> None:
    """Its name was flushed once; that was the other's."""

    def operation(fs: RecordingFs) -> None:
        folder = os.path.join(fs.root, "one")
        save(fs, fs.root)
        SessionStore.with_fs(fs, fs.root).delete("one")
        fs.mkdir(folder, 0o700)
        save(fs, fs.root)
        fs.mark("acknowledged")

    def check(home: str, acked: tuple[Any, ...]) -> None:
        assert not acked or saved(home)

    report = crash_sweep(lambda home: None, operation, check, tmp_path, limit=40, models=["relaxed"])
    assert not report.violations, report.describe()


def test_a_folder_that_another_process_has_made_anew_is_named_when_that_shows(tmp_path: Path) -> None:
    """Our content is gone, so another process has removed it, or one of its parents."""

    def operation(fs: RecordingFs) -> None:
        store = WorkStore.with_fs(fs, fs.root)
        crumb = create_breadcrumb("p", "r", [], [], None, 3, "m", {})
        store.write_breadcrumb(crumb, "one", allow_unknown=True)
        fs.rename(os.path.join(fs.root, "one"), os.path.join(fs.root, "gone"))
        fs.mkdir(os.path.join(fs.root, "one"), 0o700)
        store.write_breadcrumb(crumb, "one", allow_unknown=True)
        fs.mark("acknowledged")

    def check(home: str, acked: tuple[Any, ...]) -> None:
        assert not acked or noted(home)

    report = crash_sweep(lambda home: None, operation, check, tmp_path, limit=40, models=["relaxed"])
    assert not report.violations, report.describe()


def test_no_folder_is_too_deep(tmp_path: Path) -> None:
    """Work sessions lie in one another as deep as one likes."""
    deep = "/".join(["a"] * 12)

    def operation(fs: RecordingFs) -> None:
        for depth in range(12):
            fs.mkdir(os.path.join(fs.root, *["a"] * (depth + 1)), 0o700)
        create(os.path.join(fs.root, deep, "file"), b"1", fs=fs)
        fs.mark("acknowledged")

    def check(home: str, acked: tuple[Any, ...]) -> None:
        assert not acked or Path(home, deep, "file").read_bytes() == b"1"

    report = crash_sweep(lambda home: None, operation, check, tmp_path, limit=40, models=["relaxed"])
    assert not report.violations, report.describe()
