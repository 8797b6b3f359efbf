"""The real file system and its doubles pass one suite: what a double proves holds for the real thing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary.disk.fs import OS_FS, Fs
from sessionary.testing.wrapper import UNSYNCED
from tests.support.conformance import FsTests
from tests.support.faults import FaultFs
from tests.support.recorder import RecordingFs
from tests.support.survivors import intact


class TestOsFs(FsTests):
    @pytest.fixture
    def fs(self) -> Fs:
        return OS_FS


class TestFaultFsWithoutFaults(FsTests):
    @pytest.fixture
    def fs(self) -> Fs:
        return FaultFs()


class TestUnsyncedFs(FsTests):
    @pytest.fixture
    def fs(self) -> Fs:
        return UNSYNCED


class TestRecordingFs(FsTests):
    @pytest.fixture
    def fs(self, tmp_path: Path) -> Fs:
        return RecordingFs(tmp_path)


class TestRecordingFsOfAFolderElsewhere(FsTests):
    """What is outside of its root it leaves alone."""

    @pytest.fixture
    def fs(self, tmp_path_factory: pytest.TempPathFactory) -> Fs:
        return RecordingFs(tmp_path_factory.mktemp("elsewhere"))


class TestRecordingFsAgreesWithTheDisk(FsTests):
    """After each test of the suite, replaying the record gives what is really on the disk."""

    @pytest.fixture
    def fs(self, tmp_path: Path) -> Fs:
        self.recorder = RecordingFs(tmp_path)
        return self.recorder

    @pytest.fixture(autouse=True)
    def _compare(self, fs: Fs, tmp_path: Path) -> Iterator[None]:
        yield
        last = intact(self.recorder.recording)
        real = {str(p.relative_to(tmp_path)): p for p in tmp_path.rglob("*") if not p.is_symlink()}
        assert last.tree == {name: p.read_bytes() for name, p in real.items() if p.is_file()}
        assert set(last.directories) == {name for name, p in real.items() if p.is_dir()}
