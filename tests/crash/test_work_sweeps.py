"""Public writes of work sessions, cut off at every point and failing at every call."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.maestro import WorkStore, create_breadcrumb
from sessionary.testing.faults import Effect, sweep
from sessionary.testing.sweeps import crash_sweep

EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
Call = Callable[[WorkStore], object]


def ids(*names: str) -> Callable[[], str]:
    left = iter([*names, *(f"more-{number}" for number in range(50))])
    return lambda: next(left)


def setup(folder: str) -> None:
    store = WorkStore.over(WorkStore(folder).fs, Path(folder, "s"), new_id=ids("parent", "child"))
    store.create("work_task")
    store.start_subwork("parent", "look")


def save(store: WorkStore) -> None:
    session = store.load("parent")
    session.metadata["new"] = 1
    store.save(session)


def put(store: WorkStore) -> None:
    store.write_breadcrumb(create_breadcrumb("p", "r", [], [], None, 0, "m", {}), "parent")


def begin(store: WorkStore) -> None:
    store.create("fix", "parent")


def close(store: WorkStore) -> None:
    store.close_subwork("child", "found")


def has(store: WorkStore, name: str) -> bool:
    if name == "save":
        return store.load("parent").metadata.get("new") == 1
    if name == "put":
        return len(store.list_breadcrumbs("parent")) == 1
    if name == "begin":
        return len(store.children("parent")) == 2
    return store.load("parent").status == "running" and store.load("child").status == "completed"


CALLS: dict[str, Call] = {call.__name__: call for call in (save, put, begin, close)}


def check_of(name: str) -> Callable[[str, tuple[Any, ...]], None]:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        store = WorkStore(Path(folder, "s"))
        scan = store.scan()
        assert not scan.problems
        assert {"parent", "child"} <= {session.session_id for session in scan.sessions}
        if acked:
            assert has(store, name)
        if name == "close":  # called again it does the rest, and the result is there once
            store.close_subwork("child", "found")
            assert has(store, name)
            assert [crumb.kind for crumb in store.list_breadcrumbs("parent")] == ["result"]

    return check


@pytest.mark.parametrize("name", CALLS)
def test_a_power_cut_at_every_point(name: str, tmp_path: Path) -> None:
    def operation(fs: Any) -> None:
        CALLS[name](WorkStore.over(fs, Path(fs.root, "s")))
        fs.mark(1)

    report = crash_sweep(setup, operation, check_of(name), tmp_path, limit=40)
    assert report.states > 10
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", CALLS)
def test_each_call_of_each_write_fails(name: str, tmp_path: Path) -> None:
    def workload(fs: Any, folder: Any) -> None:
        CALLS[name](WorkStore.over(fs, Path(folder, "s")))
        fs.mark(1)

    report = sweep(setup, workload, check_of(name), tmp_path, effects=EFFECTS)
    assert report.states > 20
    assert not report.violations, report.describe()
