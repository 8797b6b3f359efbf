"""Locks by the existence of a file: whose they are, how long they are waited for, and what removes them."""

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessionary.disk.fs import EXCLUSIVE, OS_FS, SHARED, UNLOCK
from sessionary.disk.pid_file import PidFile, in_words, read_holder
from sessionary.errors import Locked, StorageFailed
from sessionary.testing.wrapper import UNSYNCED
from tests.support.faults import Fault, FaultFs


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".state.lock"


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_it_holds_our_process_id_while_it_is_held_and_is_gone_afterwards(path: Path) -> None:
    lock = PidFile(str(path))
    lock.acquire(0, now)
    assert int(path.read_text()) == os.getpid()
    with pytest.raises(FileExistsError):
        path.touch(exist_ok=False)
    lock.release()
    assert not path.exists()


@pytest.mark.parametrize("left", [b"", b" ", b" 12", b" 4194300\n", b"\0\0\0\0"])
def test_what_a_killed_process_of_ours_has_left_is_removed(path: Path, left: bytes) -> None:
    """A process may be killed, or the power may fail, before all of its id is in the file."""
    path.write_bytes(left)
    lock = PidFile(str(path))
    lock.acquire(5, now)
    assert int(path.read_text()) == os.getpid()
    lock.release()


def test_it_is_said_whether_one_was_removed(path: Path) -> None:
    lock = PidFile(str(path))
    path.write_bytes(b" 4194300\n")
    found = []
    for _ in range(2):
        lock.acquire(0, now)
        found.append(lock.removed)
        lock.release()
    assert found == [True, False]


def test_a_lock_that_a_script_made_in_the_place_of_ours_stays(path: Path) -> None:
    lock = PidFile(str(path))
    lock.acquire(0, now)
    os.rename(path, path.with_name("ours"))
    path.write_bytes(b"123\n")
    lock.release()
    assert path.read_bytes() == b"123\n"


def test_one_of_ours_is_removed_though_its_process_id_is_in_use_again(path: Path) -> None:
    path.write_text(f" {os.getppid()}\n")
    PidFile(str(path)).acquire(0, now)
    assert int(path.read_text()) == os.getpid()


def test_a_script_that_has_ended_is_named_with_age_and_remedy_and_its_file_stays(
    path: Path, dead: int
) -> None:
    path.write_text(f"{dead}\n")
    os.utime(path, (time.time() - 7300, time.time() - 7300))
    with pytest.raises(Locked) as caught:
        PidFile(str(path)).acquire(30, now)
    error = caught.value
    assert f"process {dead}, which has ended, for 2 h" in error.message
    assert error.hint == f"if no script works on it, remove {path}"
    assert (error.details["pid"], error.details["running"]) == (dead, False)
    assert 7300 <= error.details["age"] < 7400
    assert error.details["waited"] < 5, "it is not waited for what has ended"
    assert path.read_text() == f"{dead}\n"
    path.unlink()  # as the remedy says
    PidFile(str(path)).acquire(0, now)


def test_a_script_that_runs_is_waited_for_until_the_time_is_over(path: Path) -> None:
    path.write_text(f"{os.getppid()}\n")
    with pytest.raises(Locked) as caught:
        PidFile(str(path)).acquire(0.3, now)
    assert caught.value.details["waited"] >= 0.3
    assert f"process {os.getppid()} for" in caught.value.message
    assert path.read_text() == f"{os.getppid()}\n"


def test_a_script_that_lets_go_gives_way(path: Path) -> None:
    path.write_text(f"{os.getppid()}\n")
    timer = threading.Timer(0.05, path.unlink)
    timer.start()
    PidFile(str(path)).acquire(30, now)
    timer.join()
    assert int(path.read_text()) == os.getpid()


@pytest.mark.parametrize("content", [b"by hand\n", b"99999999999999999999\n", b"0\n"])
def test_a_file_that_names_no_process_is_never_removed(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Locked):
        PidFile(str(path)).acquire(0.2, now)
    assert path.read_bytes() == content


def test_a_folder_of_that_name_is_never_removed(path: Path) -> None:
    path.mkdir()
    with pytest.raises(Locked, match="an unnamed process"):
        PidFile(str(path)).acquire(0.2, now)
    assert path.is_dir()


def test_an_empty_file_that_is_being_written_is_not_taken_away(path: Path) -> None:
    """A script creates the file and then writes to it."""
    path.write_bytes(b"")
    timer = threading.Timer(0.03, path.write_text, [f"{os.getppid()}\n"])
    timer.start()
    with pytest.raises(Locked, match=str(os.getppid())):
        PidFile(str(path)).acquire(0.5, now)
    timer.join()
    assert path.exists()


def test_an_earlier_version_that_has_locked_the_empty_file_is_waited_for(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    OS_FS.lock(fd, EXCLUSIVE)
    with pytest.raises(Locked):
        PidFile(str(path)).acquire(0.3, now)
    OS_FS.lock(fd, UNLOCK)
    PidFile(str(path)).acquire(5, now)
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)


def test_an_earlier_version_waits_for_ours(path: Path) -> None:
    lock = PidFile(str(path))
    lock.acquire(0, now)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    with pytest.raises(BlockingIOError):
        OS_FS.lock(fd, SHARED)
    lock.release()
    OS_FS.lock(fd, SHARED)
    os.close(fd)


@pytest.mark.parametrize(
    ("call", "effect"), [("open", errno.EACCES), ("write", errno.ENOSPC), ("lock", errno.EIO)]
)
def test_a_disk_that_refuses_is_reported_and_nothing_stays(path: Path, call: str, effect: int) -> None:
    fs = FaultFs(UNSYNCED, Fault(call, 1, effect))  # type: ignore[arg-type]
    with pytest.raises(StorageFailed) as caught:
        PidFile(str(path), fs).acquire(0, now)
    assert (caught.value.errno, caught.value.outcome) == (effect, "not_committed")
    assert not path.exists()


def test_the_holder_can_be_read(path: Path, dead: int) -> None:
    assert read_holder(str(path)) is None
    path.write_text(f" {os.getpid()}\n")
    found = read_holder(str(path))
    assert found is not None
    assert (found.pid, found.ours, found.empty, found.running) == (os.getpid(), True, False, True)
    path.write_text(f"{dead}\n")
    found = read_holder(str(path))
    assert found is not None
    assert (found.pid, found.ours, found.running) == (dead, False, False)


@pytest.mark.parametrize(
    ("length", "words"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 days"), (90_000, "25 h")],
)
def test_ages_in_words(length: float, words: str) -> None:
    assert in_words(length) == words


def test_a_clock_that_is_behind_gives_no_negative_age(path: Path, dead: int) -> None:
    path.write_text(f"{dead}\n")
    past: Callable[[], datetime] = lambda: now() - timedelta(days=1)  # noqa: E731
    with pytest.raises(Locked) as caught:
        PidFile(str(path)).acquire(0, past)
    assert caught.value.details["age"] == 0
