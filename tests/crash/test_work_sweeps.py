"""Every public write of work sessions, cut off at every point and failing at every call.

After any of it, all sessions that were there are there and can be read; what was promised holds; and what was not
promised is either as it was or as it should be.
"""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.lost import move_lost
from sessionary.layouts.maestro.sharing import share
from sessionary.layouts.maestro.store import WorkStore
from sessionary.model import SessionRef
from tests.support.faults import Effect, sweep
from tests.support.sweeps import crash_sweep

EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
THERE = {"parent", "child", "alone", "held", "off"}
NEW = "new-1"


def ids(*names: str) -> Callable[[], str]:
    left = iter([*names, *(f"new-{number}" for number in range(1, 50))])
    return lambda: next(left)


def setup(folder: str) -> None:
    """A paused parent with a child, one that runs, one that is paused, one that was interrupted."""
    store = WorkStore.with_fs(
        WorkStore(folder).fs, Path(folder, "s"), new_id=ids("parent", "child", "alone", "held", "off")
    )
    store.create("work_task")
    store.start_subwork("parent", "look")
    for status in ("running", "paused", "interrupted"):
        store.create("fix", status=status)
    for prompt in ("1", "2"):  # a sender that made the folder of a session that is none
        store.write_breadcrumb(note(prompt), "beside", allow_unknown=True)


def note(prompt: str = "p") -> Any:
    return create_breadcrumb(prompt, "r", [], [], None, 0, "m", {})


def status(store: WorkStore, session: str) -> tuple[str, str, bool]:
    found = store.load(session)
    return found.status, found.state, found.closed_at is not None


def added(store: WorkStore, parent: str | None = None) -> bool:
    """The new session is there, and listed by its parent if it has one."""
    known = {session.session_id for session in store.scan().sessions}
    return NEW in known and (parent is None or NEW in store.load(parent).children_wsession_ids)


def save(store: WorkStore) -> None:
    session = store.load("alone")
    session.metadata["new"] = 1
    store.save(session)


def orphan(store: WorkStore) -> None:
    store.create("fix", "nobody", allow_orphan=True)


def close_subwork(store: WorkStore) -> None:
    store.close_subwork("child", "found")


def handed_over(store: WorkStore) -> bool:
    return store.load("parent").status == "running" and store.load("child").status == "completed"


def prompts(store: WorkStore, session: str) -> list[str]:
    return [crumb.prompt for crumb in store.list_breadcrumbs(session)]


def move_the_rest(store: WorkStore) -> None:
    """Nothing was lost on the way; of what is in both places, consumers see one."""
    assert {*prompts(store, "beside"), *prompts(store, "off")} == {"1", "2"}
    while prompts(store, "beside"):
        move_lost(store.fs, str(store.root), "beside", "off")


def share_and_write(store: WorkStore) -> None:
    share(store.fs, store.folder("alone"), 0o1777)
    store.write_breadcrumb(note(), "alone")


class Case(NamedTuple):
    """A write, and whether it is complete. `again` completes what a crash interrupted."""

    call: Callable[[WorkStore], object]
    is_done: Callable[[WorkStore], bool]
    again: Callable[[WorkStore], object] | None = None


def moved(session: str, *wanted: Any) -> Callable[[WorkStore], bool]:
    return lambda store: status(store, session) == wanted


CASES = {
    "create": Case(lambda store: store.create("fix"), added),
    "create below": Case(lambda store: store.create("fix", "alone"), lambda store: added(store, "alone")),
    "create an orphan": Case(orphan, added),
    "save": Case(save, lambda store: store.load("alone").metadata.get("new") == 1, save),
    "update": Case(
        lambda store: store.update("alone", lambda session: session.context.update(kind="file", ref="a.py")),
        lambda store: store.load("alone").context == {"kind": "file", "ref": "a.py"},
    ),
    "rename": Case(
        lambda store: MaestroLayout(store.root, store.fs).set_name(
            SessionRef("work", "alone", str(store.root / "alone")), "The checkout"
        ),
        lambda store: store.load("alone").purpose == "The checkout",
    ),
    "pause": Case(lambda store: store.pause("alone"), moved("alone", "paused", "paused", False)),
    "resume": Case(lambda store: store.resume("held"), moved("held", "running", "running", False)),
    "resume what was interrupted": Case(
        lambda store: store.resume("off"), moved("off", "running", "running", False)
    ),
    "interrupt": Case(
        lambda store: store.interrupt("alone", "power"),
        lambda store: (
            status(store, "alone") == ("interrupted", "closed", True)
            and store.load("alone").metadata["interruption_reason"] == "power"
        ),
    ),
    "fail": Case(lambda store: store.fail("alone"), moved("alone", "failed", "closed", True)),
    "complete": Case(lambda store: store.complete("alone"), moved("alone", "completed", "closed", True)),
    "close": Case(lambda store: store.close("held"), moved("held", "completed", "closed", True)),
    "start sub-work": Case(
        lambda store: store.start_subwork("alone", "look"),
        lambda store: added(store, "alone") and store.load("alone").status == "paused",
    ),
    "close sub-work": Case(close_subwork, handed_over, close_subwork),
    "resume the parent": Case(
        lambda store: (
            store.close_subwork("child", "found", resume_parent=False),
            store.resume_parent("child"),
        ),
        handed_over,
        close_subwork,
    ),
    "write a breadcrumb": Case(
        lambda store: store.write_breadcrumb(note(), "alone"),
        lambda store: [crumb.prompt for crumb in store.list_breadcrumbs("alone")] == ["p"],
    ),
    "move breadcrumbs": Case(
        lambda store: move_lost(store.fs, str(store.root), "beside", "off"),
        lambda store: prompts(store, "off") == ["1", "2"] and not prompts(store, "beside"),
        move_the_rest,
    ),
    "post": Case(
        lambda store: store.post(note(), "alone"),
        lambda store: prompts(store, "alone") == ["p"],
    ),
    # Modes are not promised after a power cut, and no sweep looks at them: the files below them must stay.
    "share, and write a breadcrumb": Case(share_and_write, lambda store: prompts(store, "alone") == ["p"]),
}


def results(store: WorkStore) -> list[str]:
    return [crumb.kind for crumb in store.list_breadcrumbs("parent")]


def check_of(case: Case) -> Callable[[str, tuple[Any, ...]], None]:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        store = WorkStore(Path(folder, "s"))
        scan = store.scan()
        assert not scan.problems
        there = {session.session_id for session in scan.sessions}
        assert THERE <= there <= {*THERE, NEW}
        assert all(
            session.state == ("closed" if session.is_closed else session.status) for session in scan.sessions
        )
        if acked:
            assert case.is_done(store)
        assert results(store) in ([], ["result"])
        if case.again is not None:  # called again it does the rest, and the result is there once
            case.again(store)
            assert case.is_done(store)
            assert results(store) == (["result"] if case.again is close_subwork else [])

    return check


@pytest.mark.parametrize("name", CASES)
def test_a_power_cut_at_every_point(name: str, tmp_path: Path) -> None:
    case = CASES[name]

    def operation(fs: Any) -> None:
        case.call(WorkStore.with_fs(fs, Path(fs.root, "s"), new_id=ids()))
        fs.mark(1)

    report = crash_sweep(setup, operation, check_of(case), tmp_path, limit=25)
    assert report.states > 10
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", CASES)
def test_each_call_of_each_write_fails(name: str, tmp_path: Path) -> None:
    case = CASES[name]

    def workload(fs: Any, folder: Any) -> None:
        case.call(WorkStore.with_fs(fs, Path(folder, "s"), new_id=ids()))
        fs.mark(1)

    report = sweep(setup, workload, check_of(case), tmp_path, effects=EFFECTS)
    assert report.states > 20
    assert not report.violations, report.describe()
