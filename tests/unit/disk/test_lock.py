"""Locks: exclusion between descriptors, threads and processes, bounded waits, moved folders, forks."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from sessionary.disk import lock as lock_module
from sessionary.disk.fs import UNLOCK
from sessionary.disk.lock import FIRST_PAUSE, LONGEST_PAUSE, TURNS, FileLock, holder
from sessionary.errors import Locked, StorageFailed
from sessionary.testing.wrapper import WrappedFs


@pytest.fixture
def path(tmp_path: Any) -> Any:
    return str(tmp_path / ".lock")


def test_two_locks_on_one_file_exclude_each_other(path: Any) -> None:
    first, second = FileLock(path), FileLock(path)
    with first.held(), pytest.raises(Locked):
        second.acquire(timeout=0.02)
    with second.held(timeout=0.02):
        pass


def test_the_waiting_one_gets_it_when_the_other_lets_go(path: Any) -> None:
    first, second = FileLock(path), FileLock(path)
    order: list[str] = []

    def let_go() -> None:
        order.append("let go")
        first.release()

    first.acquire()
    threading.Timer(0.05, let_go).start()
    second.acquire(timeout=30)
    order.append("got it")
    second.release()
    assert order == ["let go", "got it"]


def test_threads_sharing_one_object_exclude_each_other(path: Any) -> None:
    guard = FileLock(path)
    inside, worst = 0, 0

    def work() -> None:
        nonlocal inside, worst
        for _ in range(200):
            with guard.held():
                inside += 1
                worst = max(worst, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, worst) == (0, 1)


def test_locked_says_who_and_since_when(path: Any) -> None:
    first = FileLock(path)
    with first.held(note="save"), pytest.raises(Locked) as caught:
        FileLock(path).acquire(timeout=0.01)
    details = caught.value.details
    assert details["pid"] == os.getpid()
    assert details["operation"] == "save"
    assert details["since"].startswith("20")
    assert "waited" in details
    assert str(os.getpid()) in str(caught.value)
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's lock table is Linux's")
def test_a_stale_note_does_not_name_the_wrong_process(path: Any) -> None:
    with open(path, "w") as note:
        json.dump({"pid": 1, "since": "2020-01-01T00:00:00+00:00"}, note)
    guard = FileLock(path)
    with guard.held():
        who = holder(path)
    assert who["pid"] == os.getpid()
    assert "since" not in who


def test_the_lock_file_is_private_and_stays(path: Any) -> None:
    guard = FileLock(path)
    with guard.held():
        pass
    guard.close()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_folder_moved_while_waiting_is_not_locked_by_its_old_file(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, trash = tmp_path / "session", tmp_path / "trash"
    folder.mkdir()
    path = str(folder / ".lock")
    first, second = FileLock(path), FileLock(path)
    second.acquire()
    second.release()  # its descriptor is open on the file that goes away
    first.acquire()
    got = []

    def wait() -> None:
        second.acquire(timeout=30)
        got.append((os.fstat(second._fd).st_ino, os.stat(path).st_ino))
        second.release()

    waits, sleep = threading.Event(), time.sleep

    def tell(seconds: float) -> None:
        waits.set()
        sleep(seconds)

    monkeypatch.setattr("time.sleep", tell)
    waiter = threading.Thread(target=wait)
    waiter.start()
    assert waits.wait(30)
    folder.rename(trash)
    folder.mkdir()
    first.release()
    waiter.join(30)
    assert got
    assert got[0][0] == got[0][1]


def test_a_missing_folder_is_said_and_leaves_the_lock_usable(tmp_path: Any) -> None:
    guard = FileLock(str(tmp_path / "not" / ".lock"))
    with pytest.raises(FileNotFoundError):
        guard.acquire()
    (tmp_path / "not").mkdir()
    with guard.held():
        pass


def test_readers_share_and_writers_wait(path: Any) -> None:
    writer = FileLock(path)
    with FileLock(path).once(exclusive=False), FileLock(path).once(exclusive=False), pytest.raises(Locked):
        writer.acquire(timeout=0.01)
    with writer.held(), pytest.raises(Locked), FileLock(path).once(0.01, exclusive=False):
        pass
    with FileLock(path).once(0.01, exclusive=False):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_neither_holds_nor_frees_its_parents_lock(path: Any) -> None:
    guard = FileLock(path)
    guard.acquire()
    child = os.fork()
    if child == 0:
        # The child can let go of nothing: its copy is closed, and trying to take the lock finds it held.
        try:
            FileLock(path).acquire(timeout=0.05)
        except Locked:
            os._exit(7)
        os._exit(8)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    guard.release()
    with FileLock(path).held(timeout=0.05):
        pass


def test_the_kernel_frees_the_lock_of_a_killed_process(path: Any) -> None:
    code = (
        "import sys; from sessionary.disk.lock import FileLock\n"
        "FileLock(sys.argv[1]).acquire(note='save'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(Locked) as caught:
            FileLock(path).acquire(timeout=0.01)
        assert caught.value.details["pid"] == process.pid
        process.kill()
        FileLock(path).acquire(timeout=30)


def test_a_planted_link_is_not_followed(tmp_path: Any) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, tmp_path / ".lock")
    with pytest.raises(StorageFailed, match="open the lock"):
        FileLock(str(tmp_path / ".lock")).acquire()
    assert victim.read_text() == "precious"


class Busy(WrappedFs):
    """A lock that another process holds for so many tries."""

    def __init__(self, tries: int) -> None:
        super().__init__()
        self.left = tries

    def lock(self, fd: int, how: int) -> None:
        if how != UNLOCK and self.left:
            self.left -= 1
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        super().lock(fd, how)


@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="this system has no sched_yield")
def test_a_waiter_yields_first_and_then_sleeps_longer_and_longer(
    path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    lock = FileLock(path, Busy(1 + TURNS))
    lock.acquire()
    lock.release()
    assert slept == [], "the holder was about to let go"
    lock = FileLock(path, Busy(1 + TURNS + 20))
    lock.acquire()
    lock.release()
    assert len(slept) == 20
    for number, pause in enumerate(slept):
        longest = min(FIRST_PAUSE * 2**number, LONGEST_PAUSE)
        assert longest / 2 <= pause <= longest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_a_forked_child_draws_other_pauses(path: Any) -> None:
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.write(there, repr(lock_module._chance.random()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    drawn = float(os.read(here, 100))
    for fd in (here, there):
        os.close(fd)
    assert drawn != lock_module._chance.random()
