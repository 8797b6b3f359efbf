"""Whole files: exclusive creation, replacement with backup, keeping aside, sweeping, erasing."""

import errno
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import atomic, mounts
from sessionary.disk.fs import FILE_MODE, O_TMPFILE, OsFs
from sessionary.errors import AlreadyExists, NotFound, StorageFailed
from tests.support.faults import Fault, FaultFs

NOW = datetime(2025, 1, 31, 12, 0, 0, 5, tzinfo=UTC)


class Named(OsFs):
    """A file system on which every file has a name from the beginning, like NFS."""

    @staticmethod
    def open(path: str, flags: int, mode: int = FILE_MODE) -> int:
        if O_TMPFILE and flags & O_TMPFILE == O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return OsFs.open(path, flags, mode)


class NoProc(OsFs):
    """A system that makes files without names, and then has no way to name them."""

    @staticmethod
    def link_fd(fd: int, target: str) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


class NoLinks(Named):
    """A file system without hard links, like FAT."""

    @staticmethod
    def link(source: Any, target: Any) -> None:  # type: ignore[override]
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.fixture(params=[OsFs, Named, NoProc, NoLinks])
def fs(request: Any) -> Any:
    return request.param()


def leftovers(folder: Any) -> Any:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_create_makes_a_private_file_and_refuses_a_second(tmp_path: Any, fs: Any) -> None:
    path = str(tmp_path / "a.json")
    atomic.create(path, b"one", fs=fs)
    with pytest.raises(AlreadyExists) as caught:
        atomic.create(path, b"two", fs=fs)
    assert (tmp_path / "a.json").read_bytes() == b"one"
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert caught.value.path == path
    assert not leftovers(tmp_path)


def test_replace_keeps_the_old_file_as_backup(tmp_path: Any, fs: Any) -> None:
    path, backup = tmp_path / "a.json", tmp_path / "a.json.backup"
    path.write_bytes(b"old")
    for new, old in ((b"new", b"old"), (b"newer", b"new")):
        found = atomic.replace(str(path), [new], fs=fs, backup=str(backup))
        assert path.read_bytes() == new
        assert backup.read_bytes() == old
        assert found.st_ino == path.stat().st_ino
    assert not leftovers(tmp_path)


def test_replace_of_a_file_that_shares_its_inode_with_the_backup_leaves_no_temp(tmp_path: Any) -> None:
    path, backup = tmp_path / "a.json", tmp_path / "a.json.backup"
    path.write_bytes(b"old")
    os.link(path, backup)
    atomic.replace(str(path), [b"new"], backup=str(backup))
    assert (path.read_bytes(), backup.read_bytes()) == (b"new", b"old")
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.json.backup"]


def test_replace_keeps_the_mode_and_follows_a_link(tmp_path: Any) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    atomic.replace(str(link), [b"new"])
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_refused_replace_leaves_the_old_file_and_says_so(tmp_path: Any) -> None:
    class Full(OsFs):
        @staticmethod
        def write(fd: Any, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with pytest.raises(StorageFailed) as caught:
        atomic.replace(str(path), [b"new"], fs=Full(), backup=str(path) + ".backup")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
    error = caught.value
    assert (error.errno, error.outcome, error.path) == (errno.ENOSPC, "not_committed", str(path))
    assert "full" in str(error.hint)


def test_without_links_a_copy_that_fails_leaves_no_part_of_a_file(tmp_path: Any) -> None:
    class Full(NoLinks):
        """A full disk: a file system that takes so many writes."""

        room = 0

        @staticmethod
        def clone(source: int, target: int) -> None:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        def write(self, fd: Any, data: Any) -> int:
            self.room -= 1
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.write(fd, data)

    (tmp_path / "old").write_bytes(b"old")
    full, new = Full(), str(tmp_path / "new")
    for room, attempt in (
        (1, lambda: atomic.create(new, b"new", fs=full)),
        (1, lambda: atomic.create_streamed(new, [b"new"], fs=full)),
        (0, lambda: atomic.move_file(str(tmp_path / "old"), new, fs=full)),
        (0, lambda: atomic.quarantine(str(tmp_path / "old"), "corrupt", fs=full)),
    ):
        full.room = room
        with pytest.raises(StorageFailed) as caught:
            attempt()
        assert (caught.value.errno, caught.value.outcome) == (errno.ENOSPC, "not_committed")
        assert os.listdir(tmp_path) == ["old"]


def test_a_failed_folder_flush_is_an_unknown_outcome(tmp_path: Any) -> None:
    class NoDirSync(OsFs):
        calls = 0

        def fsync(self, fd: Any) -> None:
            NoDirSync.calls += 1
            if NoDirSync.calls == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(StorageFailed) as caught:
        atomic.replace(str(tmp_path / "a.json"), [b"new"], fs=NoDirSync())
    assert caught.value.outcome == "unknown"


def test_keep_aside_gives_a_dated_second_name_and_never_overwrites(tmp_path: Any, fs: Any) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"bytes")
    first = atomic.quarantine(str(path), "corrupt", fs=fs, now=NOW)
    second = atomic.quarantine(str(path), "corrupt", fs=fs, now=NOW)
    assert os.path.basename(first) == "a.jsonl.corrupt-20250131T120000.000005Z"
    assert second == first + "-1"
    assert Path(first).read_bytes() == Path(second).read_bytes() == b"bytes"


def test_save_aside_never_overwrites(tmp_path: Any) -> None:
    path = str(tmp_path / "a.jsonl")
    names = [atomic.save_aside(path, "torn", data, now=NOW) for data in (b"1", b"2")]
    assert [Path(name).read_bytes() for name in names] == [b"1", b"2"]


def test_move_folder_refuses_an_existing_target_and_a_missing_source(tmp_path: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(AlreadyExists):
        atomic.move_folder(str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(NotFound):
        atomic.move_folder(str(tmp_path / "none"), str(tmp_path / "new" / "c"))
    atomic.move_folder(str(tmp_path / "a"), str(tmp_path / "deep" / "er" / "a"))
    assert (tmp_path / "deep" / "er" / "a").is_dir()


def test_erase_tree_removes_links_without_following_them(tmp_path: Any) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "link").symlink_to(outside)
    atomic.erase_tree(str(inside))
    assert not inside.exists()
    assert (outside / "precious").read_text() == "x"


def test_sweep_takes_our_temp_files_and_leaves_those_of_others(tmp_path: Any) -> None:
    ours = os.path.basename(atomic.temp_name(str(tmp_path / "transcript.jsonl")))
    fresh, old = ".transcript_9v_81fm9.tmp", ".metadata_abcd1234.tmp"
    for name in (ours, fresh, old, ".other.tmp", "a.tmp"):
        (tmp_path / name).write_text("x")
    os.utime(tmp_path / old, (0, 0))
    assert atomic.sweep(str(tmp_path)) == [ours]
    assert sorted(os.listdir(tmp_path)) == sorted([fresh, old, ".other.tmp", "a.tmp"])


def test_temp_names_fit_and_match_no_other_file() -> None:
    name = os.path.basename(atomic.temp_name("/x/" + "語" * 80 + ".jsonl"))
    assert re.fullmatch(r"\..+\.tmp", name)
    assert len(name.encode()) <= 255


# the order in which a file without a name gets one


def calls(fs: FaultFs) -> list[str]:
    return [
        word for word in (line.split()[0] for line in fs.log) if word in ("write", "fsync", "link_fd", "link")
    ]


def as_the_system(monkeypatch: pytest.MonkeyPatch, lasts: bool | None, *plan: Fault) -> FaultFs:
    """A file system that counts as the one of the machine, which says what the flush of a folder makes durable."""
    fs = FaultFs(OsFs(), plan)
    monkeypatch.setattr(atomic, "OS_FS", fs)
    monkeypatch.setattr(mounts, "flushes_links", lambda folder, device: lasts)
    return fs


@pytest.mark.skipif(not O_TMPFILE, reason="no files without names here")
@pytest.mark.parametrize(
    ("lasts", "order"),
    [
        (True, ["write", "fsync", "link_fd", "fsync"]),
        (False, ["write", "link_fd", "fsync"]),
        (None, ["write", "fsync", "link", "fsync"]),
    ],
)
def test_a_file_is_flushed_when_it_has_its_name_unless_the_folder_brings_it_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasts: bool | None, order: list[str]
) -> None:
    (tmp_path / "s").mkdir()
    fs = as_the_system(monkeypatch, lasts)
    atomic.create(
        str(tmp_path / "s" / "first"), b"one", fs=fs
    )  # the names of the folders above are flushed, once
    fs.log.clear()
    atomic.create(str(tmp_path / "s" / "second"), b"two", fs=fs)
    assert calls(fs) == order
    fs.log.clear()
    atomic.create(str(tmp_path / "s" / "third"), b"three", fs=fs, durable=False)
    assert calls(fs) == ["write", "link_fd"]
    assert sorted(os.listdir(tmp_path / "s")) == ["first", "second", "third"]


@pytest.mark.skipif(not O_TMPFILE, reason="no files without names here")
def test_a_file_that_has_its_name_and_cannot_be_flushed_may_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have read it already, so it stays, and the result does not deny it."""
    fs = as_the_system(monkeypatch, False, Fault("fsync", 1, errno.EIO))
    with pytest.raises(StorageFailed) as caught:
        atomic.create(str(tmp_path / "a"), b"one", fs=fs)
    assert (caught.value.outcome, os.listdir(tmp_path)) == ("unknown", ["a"])
