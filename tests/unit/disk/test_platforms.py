"""The code paths of other systems, driven over the seam: they cannot be run here, but they can be called."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import atomic, fs
from sessionary.disk.fs import OsFs, patient_rename, storage_failed, sync_dir
from sessionary.errors import StorageFailed


def held_open(times: int, calls: list[str]) -> Any:
    """A rename that a virus scanner stands in the way of, so many times."""

    def replace(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) <= times:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    return replace


def test_a_rename_waits_for_processes_that_hold_the_file_open(monkeypatch: Any) -> None:
    calls: list[str] = []
    monkeypatch.setattr(os, "replace", held_open(3, calls))
    patient_rename("a", "b")
    assert len(calls) == 4


def test_but_not_for_ever(monkeypatch: Any) -> None:
    calls: list[str] = []
    monkeypatch.setattr(os, "replace", held_open(99, calls))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(PermissionError):
        patient_rename("a", "b")
    assert len(calls) == 6


def test_a_full_disk_is_not_waited_for(monkeypatch: Any) -> None:
    calls = []

    def full(source: str, target: str) -> None:
        calls.append(source)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        patient_rename("a", "b")
    assert len(calls) == 1


def test_reading_at_an_offset_without_pread(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    try:
        assert [fs._windows_pread(fd, 3, at) for at in (4, 0, 8)] == [b"456", b"012", b"89"]
    finally:
        os.close(fd)


def test_a_flush_where_the_drive_cannot_be_asked_falls_back_to_fsync(monkeypatch: Any) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    fs._full_fsync(7)
    assert flushed == [7]


def test_a_folder_that_cannot_be_flushed_has_nothing_to_promise(tmp_path: Path) -> None:
    class NoFolders(OsFs):
        def fsync(self, fd: int) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    class Broken(OsFs):
        def fsync(self, fd: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    sync_dir(NoFolders(), str(tmp_path))
    with pytest.raises(OSError, match="Input/output"):
        sync_dir(Broken(), str(tmp_path))


def test_what_the_system_says_becomes_one_kind_of_error() -> None:
    error = storage_failed(OSError(errno.EROFS, "Read-only file system"), "replace", "/x/y")
    assert isinstance(error, StorageFailed)
    assert isinstance(error, OSError)
    assert str(error) == "Failed to write atomically to /x/y: Read-only file system"
    assert (error.errno, error.outcome, error.path) == (errno.EROFS, "not_committed", "/x/y")
    assert "read-only" in str(error.hint)


def test_a_file_system_without_links_and_clones_keeps_backups_as_copies(tmp_path: Path) -> None:
    class Fat(OsFs):
        @staticmethod
        def link(source: Any, target: Any) -> None:  # type: ignore[override]
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    atomic.replace(str(path), [b"new"], fs=Fat(), backup=str(path) + ".backup")
    backup = Path(str(path) + ".backup")
    assert (path.read_bytes(), backup.read_bytes()) == (b"new", b"old")
    assert backup.stat().st_ino != path.stat().st_ino
