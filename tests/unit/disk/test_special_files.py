"""Pipes, sockets, devices and folders in the place of a file: no reader waits for them, and each is reported."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.disk import line_reader
from sessionary.disk.atomic import copy_file
from sessionary.disk.fs import OS_FS, READ, read_all, read_bytes
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lock import FileLock, holder
from sessionary.errors import StorageFailed

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names"),
    pytest.mark.timeout(20),
]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    place = os.open(path.parent, os.O_RDONLY)
    try:  # a socket's path has 108 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{place}/{path.name}")
    finally:
        os.close(place)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "words"),
    [(pipe, "a pipe or a device"), (bound_socket, "a socket or a device"), (endless, "a pipe or a device")],
)
@pytest.mark.parametrize(
    "read", [lambda path: read_bytes(OS_FS, path), lambda path: line_reader.count_lines(OS_FS, path)]
)
def test_what_is_not_a_file_is_refused_in_words(
    make: Callable[[Path], None], words: str, read: Callable[[str], object], tmp_path: Path
) -> None:
    make(tmp_path / "x")
    with pytest.raises(StorageFailed, match=f"not a regular file but {words}") as caught:
        read(str(tmp_path / "x"))
    assert caught.value.path == str(tmp_path / "x")


def test_a_folder_keeps_the_words_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="Is a directory"):
        read_bytes(OS_FS, str(tmp_path))


def test_a_device_without_end_is_not_copied(tmp_path: Path) -> None:
    endless(tmp_path / "x")
    with pytest.raises(OSError, match="Illegal seek"):
        copy_file(str(tmp_path / "x"), str(tmp_path / "y"))
    assert not (tmp_path / "y").exists()


def test_a_journal_that_is_a_pipe_takes_nothing(tmp_path: Path) -> None:
    pipe(tmp_path / "log")
    journal = Journal(str(tmp_path / "log"), Tail.CUT)
    with pytest.raises(StorageFailed):
        journal.append(b"{}\n", journal.look())


def test_a_lock_that_is_a_pipe_locks_and_takes_no_note(tmp_path: Path) -> None:
    """However many notes go into it: a full pipe would stop the writer of the next one."""
    pipe(tmp_path / ".lock")
    for _ in range(3):
        with FileLock(str(tmp_path / ".lock")).held(note="n" * 60_000):
            assert "operation" not in holder(str(tmp_path / ".lock"))


def test_a_regular_file_is_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"as ever")
    fd = OS_FS.open(str(tmp_path / "x"), READ)
    assert stat.S_ISREG(OS_FS.fstat(fd).st_mode)
    assert read_all(OS_FS, fd) == b"as ever"
    OS_FS.close(fd)
