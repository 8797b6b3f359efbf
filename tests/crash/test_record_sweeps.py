"""Every write of a journal of records, cut off by power at every point, and with each of its calls failing.

What must hold in each state: the session is as it was before a call or as it is after it, as a whole; what was
acknowledged is there; torn bytes are in the file or beside it; and the session goes on.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.state import State
from sessionary.layouts.records.sync_adapter import RecordsSyncLayout
from tests.support.faults import Effect, Fault, FaultFs, sweep
from tests.support.recorder import RecordingFs
from tests.support.survivors import materialise, survivors
from tests.support.sweeps import crash_sweep

NAME = "openai-agents"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
LONG = [letter * 700 for letter in "abcd"]
TORN = b'{"n":3,"at":"x","op":"chan'

Call = Callable[[RecordJournal], object]
World = tuple[list[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _snapshots_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionary.layouts.records.journal.SNAPSHOT_AFTER", 600)


def journal(folder: str | Path, fs: Fs | None = None, durability: str = "full") -> RecordJournal:
    arguments = (Path(folder, "f"), NAME, "one")
    if fs is None:
        return RecordJournal(*arguments, durability="none")
    return RecordJournal.with_fs(fs, *arguments, durability=durability)


def setup(folder: str) -> None:
    one = journal(folder)
    one.change(lambda state: Change(add=["a", "b"], keys=["k", None], set={"t": {"x": 1}}))
    one.change(lambda state: Change(add=["c"], drop=[(1, 1)]))


def torn(folder: str) -> None:
    setup(folder)
    with open(journal(folder).path, "ab") as file:
        file.write(TORN)


def put(one: RecordJournal, x: Any, y: Any = None) -> None:
    one.change(lambda state: Change(set={"t": {"x": x} if y is None else {"x": x, "y": y}}))


def append(one: RecordJournal) -> None:
    one.change(lambda state: Change(add=["d", "e"], set={"t": {"x": 2}}))


def pop(one: RecordJournal) -> None:
    one.change(lambda state: Change(drop=[(state.next_item - 1, state.next_item - 1)], unset={"t": ["x"]}))


def snapshot(one: RecordJournal) -> None:
    """Enough of what no longer stands that a snapshot follows."""
    for value in (*LONG, 3):
        put(one, value)


def clear(one: RecordJournal) -> None:
    one.change(lambda state: Change(drop=[(0, state.next_item)]))


def delete(one: RecordJournal) -> None:
    one.delete()


CALLS: dict[str, Call] = {call.__name__: call for call in (append, pop, snapshot, clear, delete)}


def world_of(one: RecordJournal) -> World:
    return one.read(lambda state: (state.values(), state.table("t")))


def worlds_of(begin: Callable[[str], object], *calls: Call) -> list[list[World]]:
    """The states that each call leads to, one after the other; the last of them is acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        begin(folder)
        one = journal(folder)
        worlds = [[world_of(one)]]
        for call in calls:
            seen = [world_of(one)]
            if call is snapshot:
                seen += [(seen[0][0], {"x": value}) for value in LONG]
            call(one)
            worlds.append([*seen, world_of(one)])
        return worlds


def check_of(worlds: list[list[World]], tail: bytes = b"") -> Callable[[str, tuple[Any, ...]], None]:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        at = len(acked)
        allowed = [worlds[at][-1], *(worlds[at + 1] if at + 1 < len(worlds) else [])]
        one = journal(folder)
        found = world_of(one)
        assert found in allowed, f"{found} is none of {allowed}"
        kept = [path.read_bytes() for path in Path(folder, "f").glob("*.torn-*")]
        data = Path(one.path).read_bytes() if Path(one.path).exists() else b""
        assert tail in data or tail in kept or found == ([], {})
        one.change(lambda state: Change(add=["after"]))
        assert world_of(journal(folder)) == ([*found[0], "after"], found[1])
        assert not journal(folder).skipped

    return check


def operation(*calls: Call) -> Callable[[RecordingFs], object]:
    def run(fs: RecordingFs) -> None:
        one = journal(fs.root, fs)
        for number, call in enumerate(calls, 1):
            call(one)
            fs.mark(number)

    return run


def workload(*calls: Call) -> Callable[[FaultFs, str], object]:
    def run(fs: FaultFs, folder: str) -> None:
        one = journal(folder, fs)
        for number, call in enumerate(calls, 1):
            call(one)
            fs.mark(number)

    return run


@pytest.mark.parametrize("begin", [setup, torn])
@pytest.mark.parametrize("name", CALLS)
def test_one_call(name: str, begin: Callable[[str], object], tmp_path: Path) -> None:
    check = check_of(worlds_of(begin, CALLS[name]), TORN if begin is torn else b"")
    report = crash_sweep(begin, operation(CALLS[name]), check, tmp_path)
    assert report.states > 5
    assert not report.violations, report.describe()


@pytest.mark.parametrize("first", CALLS)
def test_pairs_of_calls(first: str, tmp_path: Path) -> None:
    for second, call in CALLS.items():
        calls = (CALLS[first], call)
        report = crash_sweep(
            setup, operation(*calls), check_of(worlds_of(setup, *calls)), tmp_path / second,
            models=("relaxed",), limit=24,
        )  # fmt: skip
        assert not report.violations, f"{first}, then {second}: {report.describe()}"


def test_the_first_change_of_a_session(tmp_path: Path) -> None:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        found = journal(folder).read(lambda state: (state.exists, state.values()))
        assert found in ([(True, ["d", "e"])] if acked else [(True, ["d", "e"]), (False, [])])

    report = crash_sweep(lambda folder: None, operation(append), check, tmp_path)
    assert report.states > 5
    assert not report.violations, report.describe()


def test_a_new_process_flushes_what_a_killed_one_wrote(tmp_path: Path) -> None:
    def run(fs: RecordingFs) -> None:
        append(journal(fs.root, fs, "none"))
        append(journal(fs.root, fs))
        fs.mark("appended")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        if acked:
            assert journal(folder).state().values() == ["d", "e", "d", "e"]

    report = crash_sweep(lambda folder: None, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_a_repeated_change_that_is_there_already_is_flushed(tmp_path: Path) -> None:
    def once(state: State) -> Change | None:
        return None if "k" in state.keys else Change(add=["d"], keys=["k"])

    def run(fs: RecordingFs) -> None:
        journal(fs.root, fs, "none").change(once)
        journal(fs.root, fs).change(once)
        fs.mark("stored")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        if acked:
            assert journal(folder).state().values() == ["d"]

    report = crash_sweep(lambda folder: None, run, check, tmp_path)
    assert not report.violations, report.describe()


@pytest.mark.parametrize("begin", [setup, torn])
@pytest.mark.parametrize("name", CALLS)
def test_each_call_of_each_write_fails(name: str, begin: Callable[[str], object], tmp_path: Path) -> None:
    check = check_of(worlds_of(begin, CALLS[name]), TORN if begin is torn else b"")
    report = sweep(begin, workload(CALLS[name]), check, tmp_path, effects=EFFECTS)
    assert report.states > 10
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", ["append", "snapshot", "clear"])
def test_a_disk_that_stays_full_loses_nothing(name: str, tmp_path: Path) -> None:
    check = check_of(worlds_of(setup, CALLS[name]))
    report = sweep(
        setup, workload(CALLS[name]), check, tmp_path, calls=("write",), effects=(errno.ENOSPC,), lasting=True
    )
    assert not report.violations, report.describe()


def test_a_not_committed_record_is_not_stored(tmp_path: Path) -> None:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        found = journal(folder).state().values()
        assert found == {"not_committed": ["a", "c"], "stored": ["a", "c", "d", "e"]}.get(acked[0], found)

    def run(fs: FaultFs, folder: str) -> None:
        try:
            append(journal(folder, fs))
            fs.mark("stored")
        except StorageFailed as error:
            fs.mark(error.outcome)

    report = sweep(setup, run, check, tmp_path, effects=("short", errno.EIO, errno.ENOSPC))
    assert not report.violations, report.describe()


def test_a_snapshot_that_fails_does_not_fail_the_change(tmp_path: Path) -> None:
    setup(str(tmp_path))
    counting = RecordingFs(tmp_path)
    data, fails = b"", 0
    while b"snapshot" not in data:  # the write of the snapshot is the last one
        one = journal(tmp_path, counting)
        put(one, fails, LONG[fails % 4])
        data, fails = Path(one.path).read_bytes(), fails + 1
    Path(one.path).unlink()
    setup(str(tmp_path))
    fs = FaultFs(plan=Fault("write", fails + 1, errno.ENOSPC))
    one = journal(tmp_path, fs)
    for number in range(fails):
        put(one, number, LONG[number % 4])
    assert fs.fired
    assert b"snapshot" not in Path(one.path).read_bytes()
    assert journal(tmp_path).state().value("t", "x") == fails - 1


def test_after_a_failed_flush_the_file_is_written_anew(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    setup(str(work))
    fs = RecordingFs(work, FaultFs(plan=Fault("fdatasync", 1, errno.EIO)))
    one, outcomes = journal(work, fs), []
    for text in ("d", "e"):
        try:
            one.change(lambda state, text=text: Change(add=[text]))  # type: ignore[misc]
            fs.mark(text)
            outcomes.append("stored")
        except StorageFailed as error:
            outcomes.append(error.outcome)
    assert outcomes == ["unknown", "stored"]
    for number, survivor in enumerate(survivors(fs.recording, "relaxed")):
        if survivor.acked:
            materialise(survivor, tmp_path / f"state-{number}")
            found = journal(tmp_path / f"state-{number}").state().values()
            assert found == ["a", "c", "d", "e"], survivor.describe()


def test_the_call_for_a_snapshot_makes_one(tmp_path: Path) -> None:
    setup(str(tmp_path))
    one = journal(tmp_path)
    snapshot(one)
    assert b'"op":"snapshot"' in Path(one.path).read_bytes()


def test_the_label_of_a_moved_session_is_old_or_new(tmp_path: Path) -> None:
    def moved(folder: str) -> None:
        setup(folder)
        one = Path(journal(folder).path)
        one.rename(one.with_name("two.records"))

    def run(fs: RecordingFs) -> None:
        layout = RecordsSyncLayout(Path(fs.root, "f"), fs)
        layout.set_parent(layout.place(".", "two"), "one", NOW)
        fs.mark("labelled")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        layout = RecordsSyncLayout(Path(folder, "f"))
        (ref,) = layout.discover()
        assert layout.parent(ref) in (("one",) if acked else (None, "one"))
        layout.set_parent(ref, "one", NOW)
        two = RecordJournal(Path(folder, "f"), NAME, "two", durability="none")
        assert world_of(two) == (["a", "c"], {"x": 1})

    report = crash_sweep(moved, run, check, tmp_path)
    assert report.states > 3
    assert not report.violations, report.describe()


def test_a_repair_loses_no_byte(tmp_path: Path) -> None:
    damaged = b'{"n":1,"at":"x","op'

    def broken(folder: str) -> None:
        setup(folder)
        path = Path(journal(folder).path)
        begin, rest = path.read_bytes().split(b"\n", 1)
        path.write_bytes(b"\n".join([begin, damaged, rest]))

    def run(fs: RecordingFs) -> None:
        layout = RecordsSyncLayout(Path(fs.root, "f"), fs)
        layout.repair(next(layout.discover()), dry_run=False)
        fs.mark("repaired")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        one = journal(folder)
        assert world_of(one) == (["a", "c"], {"x": 1})
        asides = [path.read_bytes() for path in Path(folder, "f").glob("*.corrupt-*")]
        assert damaged + b"\n" in asides or (not acked and damaged in Path(one.path).read_bytes())
        assert not acked or not one.skipped

    report = crash_sweep(broken, run, check, tmp_path)
    assert report.states > 5
    assert not report.violations, report.describe()


SIDE = "one.records.corrupt-20260301T090000.000000Z"


def spoken(folder: str) -> None:
    """Two turns, and what a repair set aside."""
    one = journal(folder)
    one.change(lambda state: Change(add=[{"role": "user", "content": "a"}], set={"t": {"x": "a"}}))
    one.change(lambda state: Change(add=[{"role": "user", "content": "b"}], set={"t": {"x": "b"}}))
    Path(folder, "f", SIDE).write_bytes(b"damaged")


def rewound(folder: str) -> None:
    spoken(folder)
    layout = RecordsSyncLayout(Path(folder, "f"))
    layout.rewind(next(layout.discover()), 1, dry_run=False)


def in_trash(folder: str) -> None:
    spoken(folder)
    layout = RecordsSyncLayout(Path(folder, "f"))
    layout.move_to_trash(next(layout.discover()), NOW)


def undo(layout: RecordsSyncLayout) -> None:
    layout.undo(next(layout.discover()))


def trash(layout: RecordsSyncLayout) -> None:
    layout.move_to_trash(next(layout.discover()), NOW)


def restore(layout: RecordsSyncLayout) -> None:
    layout.restore(layout.place(".", "one"))


def empty(layout: RecordsSyncLayout) -> None:
    for row in list(layout.trashed([])):
        layout.delete_trashed(row.stored)


WHOLE = ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], {"x": "b"})
FIRST = ([{"role": "user", "content": "a"}], {"x": "a"})


def _places(folder: str) -> tuple[World | None, list[World], list[bytes]]:
    """The session in its place, those in the trash, and the bytes that were set aside, wherever they are."""
    path = Path(folder, "f", "one.records")
    here = world_of(journal(folder)) if path.exists() else None
    gone = [
        world_of(RecordJournal(found.parent, NAME, "one", durability="none"))
        for found in Path(folder, "f").glob(".trash/2*/one.records")
    ]
    return here, gone, [found.read_bytes() for found in Path(folder, "f").rglob(SIDE)]


CHANGES: dict[str, Any] = {
    "undo": (rewound, undo, (FIRST, []), (WHOLE, [])),
    "trash": (spoken, trash, (WHOLE, []), (None, [WHOLE])),
    "restore": (in_trash, restore, (None, [WHOLE]), (WHOLE, [])),
    "empty": (in_trash, empty, (None, [WHOLE]), (None, [])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_undo_and_the_trash_lose_nothing(name: str, tmp_path: Path) -> None:
    begin, call, before, after = CHANGES[name]

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        here, gone, aside = _places(folder)
        assert (here, gone) in ([after] if acked else [before, after])
        assert aside == [b"damaged"] or (name == "empty" and not gone)

    def run(fs: RecordingFs) -> None:
        call(RecordsSyncLayout(Path(fs.root, "f"), fs))
        fs.mark(name)

    def failing(fs: FaultFs, folder: str) -> None:
        call(RecordsSyncLayout(Path(folder, "f"), fs))
        fs.mark(name)

    report = crash_sweep(begin, run, check, tmp_path / "crash")
    assert report.states > 3
    assert not report.violations, report.describe()
    (tmp_path / "fault").mkdir()
    report = sweep(begin, failing, check, tmp_path / "fault", effects=("kill", "short", errno.EIO))
    assert not report.violations, report.describe()
