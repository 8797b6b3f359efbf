"""Line files: whole lines, torn tails, replaced files, failed flushes."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import atomic
from sessionary.disk.flush_policy import COMMITTER, Committer, check_durability
from sessionary.disk.fs import OsFs
from sessionary.disk.journal import Journal, Tail, is_json_text, lines_of
from sessionary.disk.lock import FileLock
from sessionary.errors import Invalid, Locked, StorageFailed


def append(journal: Any, data: Any) -> None:
    journal.append(data, journal.look())


@pytest.fixture
def path(tmp_path: Any) -> Any:
    return tmp_path / "transcript.jsonl"


def test_append_makes_a_private_file_and_adds_lines(path: Any) -> None:
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"a":1}\n')
    append(journal, b'{"b":2}\n')
    journal.flush()
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_torn_tail_is_stored_and_cut(path: Any) -> None:
    path.write_bytes(b'{"a":1}\n{"tor')
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"b":2}\n')
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'
    assert Path(str(journal.torn)).read_bytes() == b'{"tor'
    assert ".torn-" in str(journal.torn)
    append(journal, b'{"c":3}\n')
    assert journal.torn is None


def test_a_torn_tail_longer_than_a_block_is_found(path: Any) -> None:
    path.write_bytes(b'{"a":1}\n"' + b"x" * 200_000)
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"b":2}\n')
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'
    assert os.path.getsize(str(journal.torn)) == 200_001


def test_a_whole_last_record_only_gets_its_newline(path: Any) -> None:
    path.write_bytes(b'{"a":1}\n{"b":2}')
    append(Journal(str(path), Tail.CUT), b'{"c":3}\n')
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n{"c":3}\n'
    assert len(os.listdir(path.parent)) == 1


def test_where_others_append_without_a_lock_the_tail_is_sealed(path: Any) -> None:
    path.write_bytes(b'{"a":1}\n{"tor')
    append(Journal(str(path), Tail.SEAL), b'{"b":2}\n')
    assert path.read_bytes() == b'{"a":1}\n{"tor\n{"b":2}\n'


def test_a_tail_torn_between_our_appends_is_seen(path: Any) -> None:
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"a":1}\n')
    with open(path, "ab") as other:
        other.write(b'{"half')
    append(journal, b'{"b":2}\n')
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_a_replaced_file_is_reopened(path: Any) -> None:
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"a":1}\n')
    os.link(path, str(path) + ".backup")
    other = path.with_name("new")
    other.write_bytes(b'{"n":1}\n')
    os.replace(other, path)
    append(journal, b'{"b":2}\n')
    assert path.read_bytes() == b'{"n":1}\n{"b":2}\n'
    assert Path(str(path) + ".backup").read_bytes() == b'{"a":1}\n'


def test_a_linked_file_is_appended_to_where_it_is(tmp_path: Any) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_bytes(b'{"a":1}\n')
    link.symlink_to(real)
    append(Journal(str(link), Tail.CUT), b'{"b":2}\n')
    assert link.is_symlink()
    assert real.read_bytes() == b'{"a":1}\n{"b":2}\n'


class ShortThenFull(OsFs):
    """Takes a few bytes of a write, then the disk is full."""

    def __init__(self) -> None:
        self.full = False

    def write(self, fd: Any, data: Any) -> Any:
        if not self.full:
            return os.write(fd, data)
        if len(data) > 5:
            return os.write(fd, data[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("tail", Tail)
def test_a_full_disk_takes_back_the_half_line(path: Any, tail: Any) -> None:
    fs = ShortThenFull()
    journal = Journal(str(path), tail, fs=fs)
    append(journal, b'{"a":1}\n')
    fs.full = True
    with pytest.raises(StorageFailed) as caught:
        append(journal, b'{"b":22}\n')
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.outcome == "not_committed"
    fs.full = False
    append(journal, b'{"c":3}\n')
    assert path.read_bytes() == b'{"a":1}\n{"c":3}\n'


class BadFlush(OsFs):
    def __init__(self) -> None:
        self.failing = False
        self.flushes = 0

    def fdatasync(self, fd: Any) -> None:
        self.flushes += 1
        if self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fdatasync(fd)


def test_a_failed_flush_is_unknown_never_retried_and_the_next_append_replaces(path: Any) -> None:
    fs = BadFlush()
    journal = Journal(str(path), Tail.CUT, fs=fs)
    append(journal, b'{"a":1}\n')
    fs.failing = True
    with pytest.raises(StorageFailed) as caught:
        journal.flush()
    assert caught.value.outcome == "unknown"
    assert journal.suspect
    assert fs.flushes == 1
    inode = path.stat().st_ino
    with open(path, "ab") as hole:  # what a failed flush may leave: NUL bytes where a line was
        hole.write(b"\0" * 30 + b"\n")
    fs.failing = False
    append(journal, b'{"b":2}\n')
    journal.flush()
    assert path.stat().st_ino != inode
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'
    assert Path(str(journal.torn)).read_bytes() == b"\0" * 30 + b"\n"
    assert not journal.suspect


def test_a_failed_flush_in_the_background_is_reported_once(path: Any) -> None:
    fs = BadFlush()
    journal = Journal(str(path), Tail.CUT, fs=fs)
    committer = Committer()
    append(journal, b'{"a":1}\n')
    committer.commit(journal, "batch", 1)
    fs.failing = True
    committer.settle_all()
    fs.failing = False
    with pytest.raises(StorageFailed):
        append(journal, b'{"b":2}\n')
    append(journal, b'{"c":3}\n')
    assert path.read_bytes() == b'{"a":1}\n{"c":3}\n'


def test_levels(path: Any) -> None:
    fs = BadFlush()
    journal = Journal(str(path), Tail.CUT, fs=fs)
    append(journal, b"{}\n")
    COMMITTER.commit(journal, "none", 1)
    assert fs.flushes == 0
    COMMITTER.commit(journal, "full", 1)
    assert fs.flushes == 1
    for _ in range(Committer.LINES - 1):
        COMMITTER.commit(journal, "batch", 1)
    COMMITTER.commit(journal, "batch", 1)
    assert fs.flushes == 2
    with pytest.raises(Invalid):
        check_durability("sometimes")


def test_batch_is_flushed_by_the_timer(path: Any) -> None:
    flushed = threading.Event()

    class Telling(OsFs):
        def fdatasync(self, fd: Any) -> None:
            os.fdatasync(fd)
            flushed.set()

    journal = Journal(str(path), Tail.CUT, fs=Telling())
    append(journal, b"{}\n")
    COMMITTER.commit(journal, "batch", 1)
    assert flushed.wait(30)


def test_settle_flushes_what_waits(path: Any) -> None:
    fs = BadFlush()
    journal = Journal(str(path), Tail.CUT, fs=fs)
    committer = Committer()
    append(journal, b"{}\n")
    committer.commit(journal, "batch", 1)
    committer.settle(journal)
    committer.settle(journal)
    assert fs.flushes == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_can_append_and_batch_on_its_own(path: Any) -> None:
    journal = Journal(str(path), Tail.CUT)
    append(journal, b'{"parent":1}\n')
    COMMITTER.commit(journal, "batch", 1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            append(journal, b'{"child":1}\n')
            COMMITTER.commit(journal, "batch", 1)
            COMMITTER.settle(journal)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    append(journal, b'{"parent":2}\n')
    COMMITTER.settle(journal)
    assert path.read_bytes() == b'{"parent":1}\n{"child":1}\n{"parent":2}\n'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}', True),
        (b"5", True),
        (b"  ", True),
        (b'{"a": NaN}', True),
        (b'{"a": 1}\r{"b": 2}', True),
        ('{"a": "\u2028"}'.encode(), True),
        (b"\xef\xbb\xbf{}", True),
        (b'\x0b{"a": 1}\xc2\xa0', True),
        (b'{"a"', False),
        (b"\0\0\0", False),
        (b'{"a": "\xe6\x87"}', False),
        (b"[" * 100_000, False),
    ],
)
def test_is_json_text(data: Any, expected: Any) -> None:
    assert is_json_text(data) is expected


def test_lines_of_joins_blocks(tmp_path: Any, monkeypatch: Any) -> None:
    from sessionary.disk import journal as module

    monkeypatch.setattr(module, "COPY_BLOCK", 3)
    path = tmp_path / "x"
    path.write_bytes(b"ab\n\ncdefghij\nk")
    assert list(lines_of(OsFs(), str(path))) == [b"ab", b"", b"cdefghij", b"k"]


# Entering: the lock, and what the journal is then


def entered(path: Path) -> tuple[Journal, FileLock]:
    """A journal with one line, open, and the lock of its folder."""
    journal, lock = Journal(str(path), Tail.CUT), FileLock(str(path.parent / ".lock"))
    journal.append(b"1\n", journal.enter(lock))
    lock.release()
    return journal, lock


def test_a_folder_that_was_replaced_is_locked_by_its_own_lock_file(tmp_path: Path) -> None:
    folder, gone = tmp_path / "session", tmp_path / "gone"
    folder.mkdir()
    journal, lock = entered(folder / "log")
    folder.rename(gone)
    with pytest.raises(FileNotFoundError):
        journal.enter(lock)
    folder.mkdir()
    assert journal.enter(lock) is None
    other, old = FileLock(str(folder / ".lock")), FileLock(str(gone / ".lock"))
    with pytest.raises(Locked):
        other.acquire(0)
    old.acquire(0)  # the one of the folder that was moved is free
    old.release()
    lock.release()


def test_what_was_flushed_counts_though_the_folder_has_moved_since(tmp_path: Path) -> None:
    folder, moved = tmp_path / "session", tmp_path / "moved"
    folder.mkdir()
    journal, _ = entered(folder / "log")
    synced: list[int] = []

    class NotingFs(OsFs):
        def fsync(self, fd: int) -> None:
            synced.append(os.fstat(fd).st_ino)
            os.fsync(fd)

        def rename(self, source: str, target: str) -> None:
            assert (
                synced[-1] == os.stat(source).st_ino
            )  # its names are safe, before it cannot be found any more
            os.rename(source, target)

    atomic.move_folder(str(folder), str(moved), fs=NotingFs())
    journal.flush()
    assert not journal.suspect
    assert (moved / "log").read_bytes() == b"1\n"


def test_a_descriptor_is_closed_when_the_last_thread_has_flushed(path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()
    flushed, closed = list[int](), list[int]()

    class SlowFs(OsFs):
        def fdatasync(self, fd: int) -> None:
            flushed.append(fd)
            started.set()
            assert go_on.wait(30)
            os.fdatasync(fd)

        def close(self, fd: int) -> None:
            closed.append(fd)
            os.close(fd)

    journal = Journal(str(path), Tail.CUT, fs=SlowFs())
    append(journal, b"1\n")
    thread = threading.Thread(target=journal.flush)
    thread.start()
    assert started.wait(30)
    journal.close()
    assert closed == []
    go_on.set()
    thread.join()
    (file,) = flushed
    assert closed.count(file) == 1
    assert closed[-1] == file  # behind the folders whose names were flushed
