"""Every public write of the brainstorm store, cut off by power at every point, and with each of its calls failing.

What must hold in each state: every file is as it was before the call or as it is after it; what was acknowledged is
there; nothing that was ever answered is gone; and the sessions go on.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore
from sessionary.codec.yaml_read import load_yaml
from tests.support.faults import Effect, FaultFs, sweep
from tests.support.sweeps import crash_sweep
from tests.unit.layouts.brainstorm.samples import FOLDER, document, old_document, put

NOW = datetime(2026, 1, 9, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=60)
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO)


def setup(root: str) -> None:
    put(Path(root), "sign-in", document())
    commented = Path(put(Path(root), "noted", document("noted", ideas=[{"id": 1, "content": "Links"}])))
    commented.write_bytes(b"# a note\n" + commented.read_bytes())
    put(Path(root), "old", old_document("old"))
    put(Path(root), "over", document("over", status="completed"))
    put(Path(root), "archive/kept-2026-01-02", document("kept"))
    put(Path(root), "archive/sign-in-2026-01-01", document("sign-in", status="abandoned", ems=12))
    gone = put(Path(root), ".trash/20260101T000000.000000Z/gone", document("gone"))
    assert gone.exists()


def save(store: BrainstormStore) -> None:
    found = store.load("noted")
    found.session["persona"] = "sparring"
    store.save(found, now=NOW)


def forward(store: BrainstormStore) -> None:
    store.back("sign-in", 2, now=NOW)
    store.forward("sign-in", now=NOW)


def branch(store: BrainstormStore) -> None:
    store.back("sign-in", 2, now=NOW)
    store.answer("sign-in", ["Another way"], now=NOW)


CALLS: dict[str, Callable[[BrainstormStore], object]] = {
    "create": lambda store: store.create("another", questions=["Who?"], now=NOW),
    "create_over_one_in_progress": lambda store: store.create("sign-in", new=True, now=NOW),
    "create_over_one_that_is_done": lambda store: store.create("over", new=True, now=NOW),
    "save": save,
    "answer": lambda store: store.answer("noted", ["Yes"], now=NOW),
    "continue": lambda store: store.continue_("sign-in", ["Next?"], ems=60, now=NOW),
    "back": lambda store: store.back("sign-in", 2, now=NOW),
    "forward": forward,
    "branch": branch,
    "update": lambda store: store.update("sign-in", mode="party", ems=70, now=NOW),
    "technique": lambda store: store.technique("sign-in", "six-hats", applied=True, now=NOW),
    "party": lambda store: store.party("sign-in", "Storage", [{"persona": "QA"}], now=NOW),
    "panel": lambda store: store.panel("sign-in", "Storage", [{"expert": "Beck"}], now=NOW),
    "idea": lambda store: store.idea("sign-in", "Links by mail", score=3, now=NOW),
    "score_idea": lambda store: store.score_idea("noted", 1, 9, now=NOW),
    "finish": lambda store: store.finish("sign-in", now=NOW),
    "abandon": lambda store: store.abandon("sign-in", now=NOW),
    "checkpoint": lambda store: store.checkpoint("sign-in", now=NOW - timedelta(minutes=40)),
    "reopen": lambda store: store.reopen("over", now=NOW),
    "restore_archived": lambda store: store.restore_archived("kept", now=NOW),
    "restore_archived_over_another": lambda store: store.restore_archived("sign-in", replace=True, now=NOW),
    "load_an_older_file": lambda store: store.load("old"),
    "change_an_older_file": lambda store: store.idea("old", "Links", now=NOW),
    "migrate": lambda store: store.migrate(),
    "cleanup": lambda store: store.cleanup(30, now=LATER),
    "erase": lambda store: store.cleanup(30, now=LATER, erase=True),
    "launch": lambda store: store.launch("sign-in", now=LATER),
    "trash": lambda store: store.trash("over", now=NOW),
    "restore": lambda store: store.restore("gone"),
}


class Noting:
    """A store that notes which of its calls were made."""

    def __init__(self, store: BrainstormStore) -> None:
        self._store = store
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._store, name)


def test_every_public_write_is_among_them(tmp_path: Path) -> None:
    """Whatever says that it is durable writes; a new one has to be swept, too."""
    promises = {
        name
        for kind in BrainstormStore.__mro__
        for name, member in vars(kind).items()
        if name[0] != "_" and "Durability:" in (getattr(member, "__doc__", None) or "")
    }
    called: set[str] = set()
    for name, call in CALLS.items():
        setup(str(tmp_path / name))
        noting = Noting(BrainstormStore(tmp_path / name))
        call(noting)  # type: ignore[arg-type]
        called |= noting.called
    assert len(promises) > 15
    assert promises <= called


def world(root: str | Path) -> dict[str, Any]:
    """The value of every file of sessions, in any folder."""
    base = Path(root, FOLDER)
    names = [path for path in base.rglob("*.yaml*") if not path.name.endswith((".tmp", ".lock"))]
    return {str(path.relative_to(base)): load_yaml(path.read_bytes()) for path in names}


def answers(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (value["session"]["slug"], text)
        for value in found.values()
        for entry in value["session"]["history"]
        for text in entry["responses"]
    }


def worlds_of(call: Callable[[BrainstormStore], object]) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        setup(folder)
        before = world(folder)
        call(BrainstormStore(folder))
        return before, world(folder)


def check_of(name: str) -> Callable[[str, tuple[Any, ...]], None]:
    before, after = worlds_of(CALLS[name])
    assert before != after
    states = [before, after]
    if name in ("branch", "forward"):  # both go back first, which is a call of its own
        states.append(worlds_of(CALLS["back"])[1])

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        found = world(folder)
        if acked:
            assert found == after
        for path in before.keys() | after.keys() | found.keys():
            if not (name == "erase" and path.startswith(".trash/20260310")):
                assert found.get(path) in [state.get(path) for state in states], (
                    f"{path} is neither old nor new"
                )
        if name != "erase":
            assert answers(found) >= answers(before), "an answer is gone"
            assert _slugs(found) >= _slugs(before), "a session is gone"
        cleaned = {path.stem for path in Path(folder, FOLDER).glob(".trash/20260310*/*.yaml")}
        assert cleaned <= {path.name for path in Path(folder, FOLDER, ".cleaned-up").glob("*")}, "no note"
        store = BrainstormStore(folder)
        assert all(row.readable for row in store.list())
        for row in store.detect().sessions[:1]:
            store.answer(row.slug, ["It goes on"], now=LATER)
            assert store.load(row.slug).history[-1]["responses"][-1] == "It goes on"
        if list(Path(folder, FOLDER).rglob("*.tmp")):
            store.cleanup(10_000, now=LATER)
            assert not list(Path(folder, FOLDER).rglob("*.tmp"))

    return check


def _slugs(found: dict[str, Any]) -> set[str]:
    return {value["session"]["slug"] for value in found.values()}


@pytest.mark.parametrize("name", CALLS)
def test_power_goes_at_any_point_of_a_call(name: str, tmp_path: Path) -> None:
    """Section "Save Session", whatever happens meanwhile."""

    def operation(fs: Any) -> None:
        CALLS[name](BrainstormStore.with_fs(fs, fs.root))
        fs.mark(name)

    report = crash_sweep(setup, operation, check_of(name), tmp_path, limit=10)
    assert report.states > 5
    assert not report.violations, report.describe()


# Those that are left out write the same calls as `answer`.
MECHANISMS = (
    "create create_over_one_in_progress save answer change_an_older_file cleanup erase restore"
    " restore_archived restore_archived_over_another".split()
)


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_system_call_of_a_call_fails(name: str, tmp_path: Path) -> None:
    """Section "Save Session", whatever happens meanwhile."""

    def workload(fs: FaultFs, folder: str) -> None:
        CALLS[name](BrainstormStore.with_fs(fs, folder))
        if name not in ("cleanup", "erase"):  # these report failures in what they return
            fs.mark(name)

    report = sweep(setup, workload, check_of(name), tmp_path, effects=EFFECTS)
    assert report.states > 10
    assert not report.violations, report.describe()


def test_the_very_first_session_of_a_project(tmp_path: Path) -> None:
    """Section "Storage Rules", 3: the folder is made."""

    def operation(fs: Any) -> None:
        BrainstormStore.with_fs(fs, os.path.join(fs.root, "project")).create(
            "sign-in", questions=["Who?"], now=NOW
        )
        fs.mark("created")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        rows = list(BrainstormStore(os.path.join(folder, "project")).list())
        assert [(row.slug, row.health) for row in rows] in ([("sign-in", "ok")], [] if not acked else None)

    report = crash_sweep(lambda folder: None, operation, check, tmp_path)
    assert not report.violations, report.describe()
