"""Every public write of the amplifier layout with each of its calls failing in each way, one at a time."""

import errno
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.amplifier.store import SessionStore
from tests.crash.test_store_sweeps import CALLS, META, START, World, check_of, setup, worlds_of
from tests.support.faults import Effect, FaultFs, sweep

EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)


def workload(*calls: Any) -> Any:
    def run(fs: Any, folder: Any) -> None:
        store = SessionStore.with_fs(fs, Path(folder, "sessions"))
        world = World(START, META)
        for number, call in enumerate(calls, 1):
            world = call(store, world)
            fs.mark(number)

    return run


@pytest.mark.parametrize("name", CALLS)
def test_each_call_of_each_write_fails(name: Any, tmp_path: Any) -> None:
    call = CALLS[name]
    check = check_of(worlds_of(call), may_be_gone=name == "trash_and_undo")
    report = sweep(setup, workload(call), check, tmp_path, effects=EFFECTS)
    assert report.states > 20
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", ["grow", "append", "rewrite", "update_metadata"])
def test_a_disk_that_stays_full_loses_nothing_old(name: Any, tmp_path: Any) -> None:
    call = CALLS[name]
    check = check_of(worlds_of(call), may_be_gone=False)
    report = sweep(
        setup, workload(call), check, tmp_path, calls=("write",), effects=(errno.ENOSPC,), lasting=True
    )
    assert not report.violations, report.describe()


def test_after_a_failed_flush_the_same_process_writes_the_file_anew(tmp_path: Any) -> None:
    """The flush that follows a failed one reports success without having stored anything: it must not count."""
    from sessionary.errors import StorageFailed
    from tests.support.faults import Fault
    from tests.support.recorder import RecordingFs
    from tests.support.survivors import materialise, survivors

    work = tmp_path / "work"
    work.mkdir()
    setup(str(work))
    fs = RecordingFs(work, FaultFs(plan=Fault("fdatasync", 1, errno.EIO)))
    store = SessionStore.with_fs(fs, work / "sessions")
    outcomes = []
    for text in ("c", "d"):
        try:
            store.append("s", [{"role": "user", "content": text, "timestamp": "t"}])
            fs.mark(text)
            outcomes.append("stored")
        except StorageFailed as error:
            outcomes.append(error.outcome)
    assert outcomes == ["unknown", "stored"]
    for number, survivor in enumerate(survivors(fs.recording, "relaxed")):
        if survivor.acked:
            materialise(survivor, tmp_path / f"state-{number}")
            contents = [
                m["content"] for m in SessionStore(tmp_path / f"state-{number}" / "sessions").load("s")[0]
            ]
            assert contents[:2] == ["a", "b"], survivor.describe()
            assert contents[-1] == "d", survivor.describe()
