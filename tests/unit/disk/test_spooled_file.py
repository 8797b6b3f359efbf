"""Bytes come back from a spool as they were laid down, and nothing of them is left when it is gone."""

import errno
import gc
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.disk.fs import FILE_MODE, OS_FS, Fs, OsFs
from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import StorageFailed
from sessionary.testing.wrapper import WrappedFs


class OldFs(WrappedFs):
    """A file system that has no files without a name."""

    def __init__(self) -> None:
        super().__init__(OS_FS)
        self.made: list[str] = []

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        if os.path.isdir(path):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        self.made.append(path)
        return super().open(path, flags, mode)


class StubbornFs(OldFs):
    """One that does not let go of the name of an open file, as that of Windows."""

    fd = -1

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        self.fd = super().open(path, flags, mode)
        return self.fd

    def unlink(self, path: str) -> None:
        if self.fd >= 0:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        super().unlink(path)

    def close(self, fd: int) -> None:
        self.fd = -1
        super().close(fd)


class ShortFs(WrappedFs):
    """Reads and writes little at a time."""

    def __init__(self) -> None:
        super().__init__(OS_FS)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return super().pread(fd, min(length, 7), offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return super().write(fd, data[:5])


SYSTEMS: dict[str, Callable[[], Fs]] = {
    "this one": OsFs,
    "without nameless files": OldFs,
    "stubborn": StubbornFs,
    "short": ShortFs,
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("in_memory", [0, 100, 1 << 20])
def test_bytes_come_back_in_any_order(tmp_path: Path, system: str, in_memory: int) -> None:
    fate = random.Random(1)
    spool = Spool(str(tmp_path), in_memory=in_memory, fs=SYSTEMS[system]())
    laid = [fate.randbytes(fate.choice((0, 1, 30, 200))) for _ in range(20)]
    slots = [spool.put(data) for data in laid]
    for at in [*fate.sample(range(20), 20), 0, 0]:
        assert spool.get(slots[at]) == laid[at]
    late = spool.put(b"late")
    assert spool.get(late) == b"late"
    assert spool.get(slots[3]) == laid[3]


def test_few_bytes_need_no_file(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "no such folder"), in_memory=10)
    slot = spool.put(b"0123456789")
    assert spool.get(slot) == b"0123456789"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_an_error_that_is_kept_keeps_no_file_open(tmp_path: Path) -> None:
    def fails() -> None:
        with Spool(str(tmp_path), in_memory=0) as spool:
            spool.put(b"x")
            raise KeyError

    kept, before = [], descriptors()
    for _ in range(20):
        with pytest.raises(KeyError) as caught:
            fails()
        kept.append(caught.value)
    assert len(kept) == 20
    assert descriptors() < before + 20


@pytest.mark.parametrize("in_memory", [0, 100])
def test_of_a_closed_spool_nothing_is_read_and_nothing_wrong(tmp_path: Path, in_memory: int) -> None:
    spool = Spool(str(tmp_path), in_memory=in_memory)
    slot = spool.put(b"x")
    spool.close()
    spool.close()
    with pytest.raises(StorageFailed):
        spool.get(slot)
    with pytest.raises(StorageFailed):
        spool.put(b"y")


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_file_has_no_name_and_is_gone_with_the_spool(tmp_path: Path, system: str) -> None:
    fs = SYSTEMS[system]()
    gc.collect()
    before = descriptors()
    for _ in range(20):
        spool = Spool(str(tmp_path), in_memory=0, fs=fs)
        spool.put(b"secret")
        if system != "stubborn":
            assert os.listdir(tmp_path) == []
        del spool
    gc.collect()
    assert os.listdir(tmp_path) == []
    assert descriptors() < before + 20


def test_the_file_is_for_the_owner_of_the_account_only(tmp_path: Path) -> None:
    fs = StubbornFs()
    spool = Spool(str(tmp_path), in_memory=0, fs=fs)
    spool.put(b"secret")
    (path,) = fs.made
    assert os.stat(path).st_mode & 0o077 == 0
    assert os.path.basename(path).startswith(".")


def test_a_folder_that_is_missing_is_reported(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "gone"), in_memory=0)
    with pytest.raises(StorageFailed, match="gone") as caught:
        spool.put(b"x")
    assert caught.value.errno == errno.ENOENT


class FullFs(WrappedFs):
    def write(self, fd: int, data: bytes | memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), in_memory=0, fs=FullFs(OS_FS))
    with pytest.raises(StorageFailed) as caught:
        spool.put(b"x")
    assert caught.value.errno == errno.ENOSPC


def test_bytes_that_are_missing_are_reported(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), in_memory=0)
    spool.put(b"x")
    with pytest.raises(StorageFailed, match="missing"):
        spool.get(Slot(0, 2))


def test_without_a_folder_it_is_that_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fs = OldFs()
    slot = (spool := Spool(in_memory=0, fs=fs)).put(b"x")
    assert spool.get(slot) == b"x"
    assert [os.path.dirname(path) for path in fs.made] == [str(tmp_path)]


def test_a_folder_is_made_once_a_file_is_needed_and_not_before(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with Spool(str(folder), make=True, in_memory=4) as spool:
        first = spool.put(b"1234")
        assert not folder.exists()
        second = spool.put(b"5")
        assert folder.is_dir()
        assert (spool.get(first), spool.get(second)) == (b"1234", b"5")
