"""Faults strike where they were planned, do what they say, and a killed process does nothing any more."""

import errno
import json
import os
from pathlib import Path

import pytest

from sessionary.disk.fs import APPEND, CREATE, EXCLUSIVE, FILE_MODE, OS_FS, READ, write_all
from tests.support.faults import CALLS, Effect, Fault, FaultFs, Killed, count_calls, sweep
from tests.support.planted import CorrectWriter, RewriteInPlace, check, work


def opened(fs: FaultFs, folder: Path, name: str = "file") -> int:
    return fs.open(f"{folder}/{name}", CREATE, FILE_MODE)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_the_nth_call_fails_with_its_errno_and_does_nothing(tmp_path: Path, number: int) -> None:
    fs = FaultFs(OS_FS, Fault("write", 2, number))
    fd = opened(fs, tmp_path)
    fs.write(fd, b"1")
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        fs.write(fd, b"2")
    fs.write(fd, b"3")
    fs.close(fd)
    assert caught.value.errno == number
    assert (tmp_path / "file").read_bytes() == b"13"
    assert fs.fired == [Fault("write", 2, number)]


def test_a_failed_open_names_the_file_and_is_a_subclass_as_python_has_it(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("open", 1, errno.EACCES))
    with pytest.raises(PermissionError) as caught:
        opened(fs, tmp_path)
    assert caught.value.filename == f"{tmp_path}/file"
    assert not (tmp_path / "file").exists()


def test_a_lasting_fault_strikes_from_then_on(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("write", 2, errno.ENOSPC, lasting=True))
    fd = opened(fs, tmp_path)
    fs.write(fd, b"1")
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            fs.write(fd, b"2")
    fs.close(fd)
    assert str(fs.fired[0]) == "ENOSPC at write 2 and after"


def test_a_short_write_stores_half_and_the_next_finds_no_space(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("write", 1, "short"))
    fd = opened(fs, tmp_path)
    with pytest.raises(OSError, match="No space"):
        write_all(fs, fd, b"123456")
    fs.write(fd, b"!")  # space has come back
    fs.close(fd)
    assert (tmp_path / "file").read_bytes() == b"123!"


def test_a_write_too_small_to_be_short_finds_no_space(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("write", 1, "short"))
    fd = opened(fs, tmp_path)
    with pytest.raises(OSError, match="No space"):
        fs.write(fd, b"1")
    fs.close(fd)
    assert (tmp_path / "file").read_bytes() == b""


def test_after_a_failed_flush_the_bytes_stay_readable_and_the_next_flush_succeeds(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("fsync", 1, errno.EIO))
    fd = opened(fs, tmp_path)
    fs.write(fd, b"in the cache")
    with pytest.raises(OSError, match="Input/output"):
        fs.fsync(fd)
    assert fs.pread(fd, 99, 0) == b"in the cache"
    fs.fsync(fd)
    fs.close(fd)


def test_a_close_that_fails_has_closed_all_the_same(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("close", 1, errno.EIO))
    fd = opened(fs, tmp_path)
    with pytest.raises(OSError, match="Input/output"):
        fs.close(fd)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)
    assert fs.descriptors == {}


def test_a_killed_process_does_nothing_more(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("rename", 1, "kill"))
    fd = opened(fs, tmp_path)
    with pytest.raises(Killed):
        fs.rename(f"{tmp_path}/file", f"{tmp_path}/other")
    for call in (
        lambda: fs.write(fd, b"x"),
        lambda: fs.unlink(f"{tmp_path}/file"),
        lambda: fs.close(fd),
        lambda: fs.stat(f"{tmp_path}/file"),
        lambda: opened(fs, tmp_path, "new"),
    ):
        with pytest.raises(Killed):
            call()
    fs.mark("a dead process acknowledges nothing")
    assert fs.acked == ()
    assert os.listdir(tmp_path) == ["file"]
    fs.bury()
    assert (tmp_path / "file").read_bytes() == b""


def test_no_handler_for_errors_survives_a_kill() -> None:
    assert not issubclass(Killed, Exception)


def test_discarding_a_process_closes_its_files_and_frees_its_locks(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("fsync", 1, "kill"))
    fd = opened(fs, tmp_path)
    fs.lock(fd, EXCLUSIVE)
    with pytest.raises(Killed):
        fs.fsync(fd)
    other = OS_FS.open(f"{tmp_path}/file", APPEND)
    with pytest.raises(BlockingIOError):
        OS_FS.lock(other, EXCLUSIVE)
    fs.bury()
    OS_FS.lock(other, EXCLUSIVE)
    OS_FS.close(other)
    fs.close(fd)  # what is collected after the burial is quiet…
    with pytest.raises(Killed):
        fs.fsync(fd)  # …and still dead


def test_a_kill_in_the_middle_of_a_write_leaves_half_of_it(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("write", 1, "torn"))
    fd = opened(fs, tmp_path)
    with pytest.raises(Killed):
        fs.write(fd, b"123456")
    assert fs.dead
    fs.bury()
    assert (tmp_path / "file").read_bytes() == b"123"


def test_any_counts_all_that_changes_something(tmp_path: Path) -> None:
    fs = FaultFs(OS_FS, Fault("any", 3, errno.EIO))
    fd = opened(fs, tmp_path)
    fs.fstat(fd)
    fs.write(fd, b"1")
    with pytest.raises(OSError, match="Input/output"):
        fs.fsync(fd)
    fs.close(fd)
    assert fs.counts["any"] == 3
    assert fs.log == [f"open {tmp_path}/file", f"write {tmp_path}/file", f"fsync {tmp_path}/file"]


@pytest.mark.parametrize("effect", ["short", "torn"])
def test_only_writes_can_be_short_or_torn(effect: Effect) -> None:
    with pytest.raises(ValueError, match="only a write"):
        Fault("rename", 1, effect)


def test_calls_are_counted(tmp_path: Path) -> None:
    def workload(fs: FaultFs) -> None:
        CorrectWriter(fs, str(tmp_path)).replace(1)

    counts = count_calls(workload)
    assert {name: counts[name] for name in ("open", "write", "fsync", "rename", "close", "unlink")} == {
        "open": 2,  # the temporary file, and the folder to flush it
        "write": 1,
        "fsync": 2,
        "rename": 1,
        "close": 2,
        "unlink": 0,
    }


def nothing(folder: str) -> None: ...


def test_a_sweep_lets_every_call_fail_once_and_ends(tmp_path: Path) -> None:
    struck: list[str] = []

    def workload(fs: FaultFs, folder: str) -> None:
        try:
            CorrectWriter(fs, folder).replace(1)
            fs.mark(("state", 0))
        finally:
            struck.extend(str(fault) for fault in fs.fired)

    report = sweep(nothing, workload, lambda folder, acked: None, tmp_path, effects=["kill", errno.EIO])
    wanted = [("open", 2), ("write", 1), ("fsync", 2), ("rename", 1)]
    assert struck == [
        f"{effect} at {call} {n}"
        for call, count in wanted
        for effect in ("kill", "EIO")
        for n in range(1, count + 1)
    ]
    # And for each kind of call and effect one run that came through.
    assert report.states == len(struck) + 2 * len(CALLS)
    assert os.listdir(tmp_path) == []


def test_a_correct_writer_passes_the_sweep_and_one_in_place_does_not(tmp_path: Path) -> None:
    good = sweep(nothing, lambda fs, folder: work(CorrectWriter(fs, folder), fs), check, tmp_path)
    assert good.violations == [], good.describe()
    assert set(good.places) == {"kill", "torn", "short", str(errno.EIO), str(errno.ENOSPC)}
    bad = sweep(nothing, lambda fs, folder: work(RewriteInPlace(fs, folder), fs), check, tmp_path)
    assert {violation.place.split(" at ")[0] for violation in bad.violations} >= {
        "kill",
        "torn",
        "short",
        "EIO",
    }
    assert "write" in bad.violations[0].story


def test_each_run_begins_anew_and_is_judged_by_the_plain_file_system(tmp_path: Path) -> None:
    seen: list[tuple[bytes, tuple[object, ...]]] = []

    def setup(folder: str) -> None:
        Path(folder, "log").write_bytes(b"0")

    def workload(fs: FaultFs, folder: str) -> None:
        fd = fs.open(f"{folder}/log", APPEND)
        fs.write(fd, b"1")
        fs.mark(1)
        fs.close(fd)

    def look(folder: str, acked: tuple[object, ...]) -> None:
        seen.append((Path(folder, "log").read_bytes(), acked))

    sweep(setup, workload, look, tmp_path, calls=["write"], effects=["kill"])
    assert seen == [(b"0", ()), (b"01", (1,))]


def test_a_bug_in_an_error_path_is_a_violation(tmp_path: Path) -> None:
    def workload(fs: FaultFs, folder: str) -> None:
        try:
            fd = fs.open(f"{folder}/file", CREATE, FILE_MODE)
            fs.close(fd)
        except OSError:
            raise TypeError("while handling it") from None

    report = sweep(
        nothing, workload, lambda folder, acked: None, tmp_path, calls=["open"], effects=[errno.EIO]
    )
    (violation,) = report.violations
    assert violation.trouble == "the workload raised TypeError('while handling it')"
    assert violation.place == "EIO at open 1"


def test_lasting_faults_can_be_swept(tmp_path: Path) -> None:
    def workload(fs: FaultFs, folder: str) -> None:
        for number in range(3):
            try:
                CorrectWriter(fs, folder).append(number)
            except OSError:
                continue
            fs.mark(number)

    def only_before_the_fault(folder: str, acked: tuple[int, ...]) -> None:
        assert acked == tuple(range(len(acked)))

    once = sweep(nothing, workload, only_before_the_fault, tmp_path, calls=["fdatasync"], effects=[errno.EIO])
    stays = sweep(
        nothing,
        workload,
        only_before_the_fault,
        tmp_path,
        calls=["fdatasync"],
        effects=[errno.EIO],
        lasting=True,
    )
    assert len(once.violations) == 2  # the first or the second failed, and a later one did not
    assert stays.violations == []


def test_the_state_a_sweep_leaves_can_be_read_back(tmp_path: Path) -> None:
    def workload(fs: FaultFs, folder: str) -> None:
        CorrectWriter(fs, folder).append({"n": 1})

    def look(folder: str, acked: tuple[object, ...]) -> None:
        path = Path(folder, "log.jsonl")
        for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else []:
            assert json.loads(line) == {"n": 1}
        fd = OS_FS.open(folder, READ)
        OS_FS.close(fd)

    report = sweep(nothing, workload, look, tmp_path)
    assert report.violations == [], report.describe()
