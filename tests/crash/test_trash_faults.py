"""Emptying the trash, cut off or refused at every call: what is listed there is whole, and nothing else is touched."""

import errno
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.layouts.amplifier import trash
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.trash import trashed
from tests.support.faults import FaultFs, sweep

TALK = [{"role": "user", "content": "Keep me", "timestamp": "2026-03-01T09:00:00.000+00:00"}]
FILES = {"transcript.jsonl", "metadata.json"}


def setup(folder: str) -> None:
    store = SessionStore(Path(folder, "sessions"))
    for name in ("living", "old", "older"):
        store.save(name, TALK, {"session_id": name})
    store.delete("older")
    store.delete("old")


def workload(fs: FaultFs, folder: str) -> None:
    root = str(Path(folder, "sessions"))
    trash.empty(fs, root, trashed(fs, root))
    fs.mark("empty")


def check(folder: str, acked: tuple[Any, ...]) -> None:
    root = Path(folder, "sessions")
    assert SessionStore(root).load("living")[0] == TALK
    left = trashed(OS_FS, str(root))
    assert not acked or left == []
    for one in left:
        assert one.session_id in ("old", "older")
        assert {path.name for path in Path(one.path).iterdir()} >= FILES
    # Whatever was left half destroyed goes with the next call; an empty folder may stay.
    trash.empty(OS_FS, str(root), left)
    assert [path for path in (root / ".trash").rglob("*") if path.is_file()] == []
    assert not (root / ".trash" / ".erasing").exists()


def test_an_emptying_that_is_cut_off_leaves_whole_sessions_or_nothing(tmp_path: Path) -> None:
    report = sweep(setup, workload, check, tmp_path, effects=("kill", errno.EIO))
    assert report.states > 20
    assert not report.violations, report.describe()


def test_a_session_restored_during_the_emptying_is_kept(tmp_path: Path) -> None:
    setup(str(tmp_path))
    root = tmp_path / "sessions"
    doomed = trashed(OS_FS, str(root))
    SessionStore(root).undo("old")
    assert [one.session_id for one in trash.empty(OS_FS, str(root), doomed)] == ["older"]
    assert SessionStore(root).load("old")[0] == TALK


@pytest.mark.parametrize("name", ["strange", "20260301T090000.000000Z-2"])
def test_a_folder_that_another_program_moved_to_the_trash(tmp_path: Path, name: str) -> None:
    place = tmp_path / ".trash" / name / "x"
    place.mkdir(parents=True)
    (place / "transcript.jsonl").write_text("{}\n")
    (found,) = trashed(OS_FS, str(tmp_path))
    assert (found.session_id, found.when is None) == ("x", name == "strange")
