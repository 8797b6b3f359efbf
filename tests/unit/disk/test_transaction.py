"""A change of several files: done whole, taken back whole, and never at the cost of what others add meanwhile."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import transaction
from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.transaction import Cut, Recovered, Whole, carry_out, entries, open_intent, recover
from sessionary.errors import StorageFailed
from sessionary.testing.wrapper import WrappedFs
from tests.support.faults import Fault, FaultFs, Killed

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LOG = b'{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}\n'
KEPT = b'{"n":2}\n{"n":4}\n'
FOREIGN = b'{"foreign":true}\n'
SECOND = b'{"foreign":"too"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin(tmp_path / "s")


def begin(folder: Path) -> Path:
    folder.mkdir()
    (folder / "one").write_bytes(b"old one")
    (folder / "two").write_bytes(b"old two")
    (folder / "gone").write_bytes(b"to go")
    (folder / "log").write_bytes(LOG)
    return folder


def change(folder: Path, fs: Fs = OS_FS) -> str:
    wholes = [
        Whole("one", (b"new ", b"one")),
        Whole("two", (b"new two",)),
        Whole("gone", None),
        Whole("made", (b"m",)),
    ]
    cut = Cut("log", 8, len(LOG), (KEPT[:5], KEPT[5:]))
    return carry_out(fs, str(folder), "change", wholes, cut, facts={"why": "test"}, now=NOW)


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OLD = {"one": b"old one", "two": b"old two", "gone": b"to go", "log": LOG}
NEW = {"one": b"new one", "two": b"new two", "made": b"m", "log": LOG[:8] + KEPT}


def test_all_of_it_is_done_and_the_old_bytes_are_kept(folder: Path) -> None:
    kept_in = Path(change(folder))
    assert state(folder) == NEW
    assert kept_in.name == "20260301T000000.000000Z-change"
    kept = {path.name: path.read_bytes() for path in kept_in.iterdir() if path.name != "intent.json"}
    assert kept == {
        "one.old": b"old one",
        "two.old": b"old two",
        "gone.old": b"to go",
        "gone.gone": b"to go",
        "log.tail": LOG[8:],
        "log.kept": KEPT,
    }
    (entry,) = entries(OS_FS, str(folder))
    assert (entry.path, entry.operation, entry.facts) == (str(kept_in), "change", {"why": "test"})
    assert entry.size == sum(path.stat().st_size for path in kept_in.iterdir())


def test_two_of_one_microsecond_get_neighbouring_names(folder: Path) -> None:
    for number in range(3):
        carry_out(
            OS_FS, str(folder), "change", [Whole("one", (b"%d" % number,))], facts={"n": number}, now=NOW
        )
    found = entries(OS_FS, str(folder))
    assert [entry.facts["n"] for entry in found] == [0, 1, 2]
    assert [Path(entry.path).suffix for entry in found] == [".000000Z-change", ".2", ".3"]


def test_nothing_to_recover(folder: Path) -> None:
    assert recover(OS_FS, str(folder)) is None
    change(folder)
    assert recover(OS_FS, str(folder)) is None
    assert open_intent(OS_FS, str(folder)) is None


def kills() -> int:
    """How many calls a change makes that can be the last of a process."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        fs = FaultFs()
        change(begin(Path(place, "s")), fs)
        return fs.counts["any"]


@pytest.mark.parametrize("line", [FOREIGN, b'{"n":22}\n', b'{"n":3}\n', b'{"torn'])
def test_killed_anywhere_with_lines_of_others_behind(tmp_path: Path, line: bytes) -> None:
    """A writer without a lock adds a line after the kill, and after the recovery was killed too."""
    finished = set()
    for n in range(1, kills() + 1):
        folder = begin(tmp_path / str(n))
        fs = FaultFs(plan=Fault("any", n, "kill"))
        with pytest.raises(Killed):
            change(folder, fs)
        fs.bury()
        with (folder / "log").open("ab") as log:
            log.write(line)
        reported = open_intent(OS_FS, str(folder))
        recovered = recover(OS_FS, str(folder))
        done = state(folder)["one"] == b"new one"
        finished.add(done)
        assert state(folder) == {**(NEW if done else OLD), "log": (NEW if done else OLD)["log"] + line}, n
        assert (reported is None) == (recovered is None)
        if recovered is not None:
            assert recovered.finished == done
        assert recover(OS_FS, str(folder)) is None
    assert finished == {True, False}


def test_torn_anywhere_and_recovery_killed_anywhere(tmp_path: Path) -> None:
    count = 0
    for n in range(1, 12):
        for again in range(1, 40):
            folder = begin(tmp_path / f"{n}-{again}")
            fs = FaultFs(plan=Fault("write", n, "torn"))
            try:
                change(folder, fs)
            except Killed:
                count += 1
            fs.bury()
            with (folder / "log").open("ab") as log:
                log.write(FOREIGN)
            second = FaultFs(plan=Fault("any", again, "kill"))
            try:
                recover(second, str(folder))
            except Killed:
                pass
            killed = second.dead
            second.bury()
            with (folder / "log").open("ab") as log:
                log.write(SECOND)
            recover(OS_FS, str(folder))
            done = state(folder)["one"] == b"new one"
            assert state(folder) == {
                **(NEW if done else OLD),
                "log": (NEW if done else OLD)["log"] + FOREIGN + SECOND,
            }
            if not killed:
                break
    assert count > 8


class Busy(WrappedFs):
    """A file system on which another process appends a line to the log at each rename and each flush."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log
        self.count = 0

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        done = super().call(name, *arguments, **options)
        if name in ("rename", "fsync", "mkdir", "link"):
            self.count += 1
            with self.log.open("ab") as log:
                log.write(b'{"busy":%d}\n' % self.count)
        return done


def test_lines_that_others_add_while_it_is_done_stay(folder: Path) -> None:
    fs = Busy(folder / "log")
    change(folder, fs)
    found = (folder / "log").read_bytes()
    assert found.startswith(LOG[:8])
    assert KEPT in found
    busy = [line for line in found.splitlines() if b"busy" in line]
    assert sorted(busy) == sorted(b'{"busy":%d}' % number for number in range(1, fs.count + 1))
    assert found.count(b"\n") == 1 + 2 + fs.count


def test_a_file_stored_after_the_commit_is_not_overwritten(folder: Path) -> None:
    fs = FaultFs(plan=Fault("rename", 2, "kill"))
    with pytest.raises(Killed):
        change(folder, fs)
    fs.bury()
    (folder / "two.tmp").write_bytes(b"theirs")
    os.replace(folder / "two.tmp", folder / "two")
    assert recover(OS_FS, str(folder)) == Recovered("change", True)
    assert state(folder) == {**NEW, "two": b"theirs"}


@pytest.mark.parametrize("other", [b"", b'{"other":1}\n', b'{"other":1}\n' * 9])
def test_a_log_that_is_another_file_by_now_is_left_alone(folder: Path, other: bytes) -> None:
    fs = FaultFs(plan=Fault("rename", 3, "kill"))
    with pytest.raises(Killed):
        change(folder, fs)
    fs.bury()
    (folder / "log").write_bytes(other)
    assert recover(OS_FS, str(folder)) == Recovered("change", True)
    assert (folder / "log").read_bytes() == other


def test_a_log_that_is_gone(folder: Path) -> None:
    fs = FaultFs(plan=Fault("rename", 3, "kill"))
    with pytest.raises(Killed):
        change(folder, fs)
    fs.bury()
    (folder / "log").unlink()
    assert recover(OS_FS, str(folder)) == Recovered("change", True)
    assert not (folder / "log").exists()


def test_a_description_that_cannot_be_read_is_put_out_of_the_way(folder: Path) -> None:
    fs = FaultFs(plan=Fault("rename", 1, "kill"))
    with pytest.raises(Killed):
        change(folder, fs)
    fs.bury()
    (folder / ".undo" / "open" / "intent.json").write_bytes(b"{")
    assert recover(OS_FS, str(folder)) == Recovered("", False)
    assert (folder / ".undo" / "unreadable" / "one.new").exists()
    assert state(folder) == OLD
    change(folder)
    assert state(folder) == NEW


def test_undo_removes_a_file_that_did_not_exist_before(folder: Path) -> None:
    (folder / "one").unlink()
    carry_out(OS_FS, str(folder), "make", [Whole("one", (b"x",))], facts={}, now=NOW)
    carry_out(OS_FS, str(folder), "take", [Whole("one", None)], facts={}, now=NOW)
    assert not (folder / "one").exists()


def test_one_operation_at_a_time(folder: Path) -> None:
    (folder / ".undo" / "open").mkdir(parents=True)
    with pytest.raises(StorageFailed) as caught:
        change(folder)
    assert caught.value.outcome == "not_committed"
    assert state(folder) == OLD


def test_strangers_in_the_folder_are_not_entries(folder: Path) -> None:
    change(folder)
    (folder / ".undo" / "note.txt").write_text("hello")
    (folder / ".undo" / "empty").mkdir()
    assert [entry.operation for entry in entries(OS_FS, str(folder))] == ["change"]
    assert transaction.entries(OS_FS, str(folder / "nowhere")) == []
