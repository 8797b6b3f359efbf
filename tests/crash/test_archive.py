"""A run of the archive that is cut off anywhere: by a kill, or by a power cut."""

from pathlib import Path
from typing import Any

import pytest

from sessionary import Workspace
from sessionary.disk.fs import OS_FS, Fs
from sessionary.workspace.archive import Archive, ArchiveReport
from tests.support import agent_stores
from tests.support.agent_stores import CLAUDE
from tests.support.faults import FaultFs, sweep
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep

LINE = b'{"type":"user","uuid":"u%d","cwd":"/home/u/app","message":{"role":"user","content":"Turn %d"}}\n'
NEW = "3f0c81d2-0000-4000-8000-000000000002"
FIRST, SECOND = LINE % (1, 1) * 3, LINE % (2, 2) * 2


def run(fs: Fs = OS_FS) -> ArchiveReport:
    return Workspace(fs=fs).archive().run()


def archive() -> Archive:
    return Workspace().archive()


def claude(home: Path) -> Path:
    path = home / ".claude" / "projects" / "-home-u-app" / f"{CLAUDE}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def restored(word: str, to: Path, version: int) -> bytes:
    """The only file of a version."""
    found = archive()
    [path] = found.restore(found.find(word), to, version=version).paths
    return Path(path).read_bytes()


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Archives a session, rewrites it, and adds another one."""

    def prepare(folder: str) -> None:
        agent_stores.enter(Path(folder), monkeypatch)
        claude(Path(folder)).write_bytes(FIRST)
        run()
        claude(Path(folder)).write_bytes(SECOND)
        claude(Path(folder)).with_name(f"{NEW}.jsonl").write_bytes(FIRST)

    return prepare


def test_a_run_that_is_killed_anywhere_leaves_a_valid_archive(tmp_path: Path, prepare: Any) -> None:
    def work(fs: FaultFs, folder: str) -> None:
        run(fs)
        fs.mark("archived")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        assert [one.faults for one in archive().verify() if one.faults] == []
        entries = {one.session_id: one for one in archive().entries()}
        assert restored(CLAUDE, Path(folder, "1"), 1) == FIRST
        if acked:
            assert entries[CLAUDE].sizes == {1: len(FIRST), 2: len(SECOND)}
        assert run().failed == []
        entries = {one.session_id: one for one in archive().entries()}
        assert {key: one.sizes for key, one in entries.items()} == {
            CLAUDE: {1: len(FIRST), 2: len(SECOND)},
            NEW: {1: len(FIRST)},
        }
        assert restored(CLAUDE, Path(folder, "2"), 2) == SECOND
        assert claude(Path(folder)).read_bytes() == SECOND

    report = sweep(
        prepare,
        work,
        check,
        tmp_path,
        calls=("write", "rename", "link_fd", "unlink"),
        effects=("kill", "torn"),
    )
    assert report.states > 40
    assert not report.violations, report.describe()


def test_what_a_run_reports_survives_a_power_cut(
    tmp_path: Path, prepare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(fs: RecordingFs) -> None:
        run(fs)
        fs.mark("archived")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        agent_stores.enter(Path(folder), monkeypatch)
        assert [one.faults for one in archive().verify() if one.faults] == []
        assert run().failed == []  # another home: its sessions are other ones, and a lost index is made again
        old = {one.session_id: one for one in archive().entries() if not one.home.startswith(folder)}
        wanted = {CLAUDE: [FIRST, SECOND], NEW: [FIRST]} if acked else {CLAUDE: [FIRST]}
        for session, contents in wanted.items():
            for number, content in enumerate(contents, 1):
                done = archive().restore(old[session], Path(folder, session, str(number)), version=number)
                assert Path(done.paths[0]).read_bytes() == content

    report = crash_sweep(prepare, work, check, tmp_path, limit=2)
    assert report.states > 30
    assert not report.violations, report.describe()
