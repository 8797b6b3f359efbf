"""Which sessions are unread: one file, whatever interrupts its change."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import Corrupt
from sessionary.model import SessionRef, Summary
from sessionary.workspace.seen import FILE, Seen
from tests.support.faults import sweep
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


def session(name: str, updated: datetime | None, *, nested: bool = False, kind: str = "codex") -> Summary:
    ref = SessionRef(kind, name, f"/x/{name}.jsonl")
    return Summary(ref, "a", None, None, 1, 1, None, None, updated, 1, "ok", nested=nested)


def mark(folder: str, one: Summary, when: datetime, fs: Fs = OS_FS) -> None:
    Seen(fs, folder).mark(one, when)


def unread(folder: str, *some: Summary) -> list[str]:
    is_unread = Seen(folder=folder).unread()
    return [one.ref.session_id for one in some if is_unread(one)]


def test_before_a_session_was_opened_all_are_read(tmp_path: Path) -> None:
    assert unread(str(tmp_path), session("a", at(0)), session("b", None)) == []
    mark(str(tmp_path), session("a", at(0)), at(1))
    assert unread(str(tmp_path), session("a", at(0)), session("b", at(1))) == []


def test_a_session_that_changed_since_it_was_open_is_unread(tmp_path: Path) -> None:
    mark(str(tmp_path), session("a", at(0)), at(1))
    some = session("a", at(2)), session("b", at(3)), session("a", at(2), kind="pi")
    assert unread(str(tmp_path), *some) == ["a", "b", "a"]
    mark(str(tmp_path), some[0], at(4))
    assert unread(str(tmp_path), *some) == ["b", "a"]
    assert unread(str(tmp_path), session("a", at(4)), session("a", at(5))) == ["a"]


def test_sessions_of_sub_agents_and_without_a_time_count_as_read(tmp_path: Path) -> None:
    mark(str(tmp_path), session("a", at(0)), at(1))
    assert unread(str(tmp_path), session("n", at(9), nested=True), session("t", None)) == []


def test_a_session_that_is_read_is_not_written_down(tmp_path: Path) -> None:
    mark(str(tmp_path), session("a", at(0)), at(1))
    before = (tmp_path / FILE).read_bytes()
    mark(str(tmp_path), session("b", at(1)), at(7))
    assert (tmp_path / FILE).read_bytes() == before


def test_all_can_be_read_at_once(tmp_path: Path) -> None:
    mark(str(tmp_path), session("a", at(0)), at(1))
    mark(str(tmp_path), session("a", at(2)), at(3))
    mark(str(tmp_path), session("b", at(8)), at(9))
    Seen(folder=str(tmp_path)).mark_all(at(5))
    stored = json.loads((tmp_path / FILE).read_bytes())
    assert stored == {
        "version": 1,
        "since": "2026-11-01T12:05:00Z",
        "seen": {"codex": {"b": "2026-11-01T12:09:00Z"}},
    }
    assert unread(str(tmp_path), session("a", at(5)), session("b", at(8)), session("c", at(6))) == ["c"]


@pytest.mark.parametrize(
    "content", ["{", '{"version": 2}', '{"version": 1, "since": "2026-11-01T12:00:00"}', '{"seen": []}']
)
def test_a_damaged_file_is_reported_and_stays(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(Corrupt, match=FILE):
        Seen(folder=str(tmp_path)).unread()
    with pytest.raises(Corrupt):
        mark(str(tmp_path), session("a", at(0)), at(1))
    assert (tmp_path / FILE).read_text() == content


def _setup(folder: str) -> None:
    mark(folder, session("a", at(0)), at(1))


def _work(fs: Any, folder: str) -> None:
    mark(folder, session("b", at(2)), at(3), fs)
    fs.mark("marked")


def _check(folder: str, acked: tuple[Any, ...]) -> None:
    found = unread(folder, session("a", at(0)), session("b", at(2)))
    assert found in ([[]] if acked else [[], ["b"]])
    mark(folder, session("c", at(4)), at(5))
    assert unread(folder, session("c", at(4))) == []


def test_a_change_that_is_killed_anywhere_leaves_the_old_times_or_the_new(tmp_path: Path) -> None:
    report = sweep(
        _setup,
        _work,
        _check,
        tmp_path,
        calls=("write", "rename", "fsync", "open"),
        effects=("kill", "torn"),
    )
    assert report.states > 5
    assert not report.violations, report.describe()


def test_times_survive_a_power_cut(tmp_path: Path) -> None:
    def work(fs: RecordingFs) -> None:
        _work(fs, str(fs.root))

    report = crash_sweep(_setup, work, _check, tmp_path, limit=2)
    assert report.states > 2
    assert not report.violations, report.describe()
