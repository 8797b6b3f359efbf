"""Undo, restore, and how an operation over several files is bound to a session that others have open too."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS, OsFs
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Corrupt, Invalid, Locked, NotFound
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.rewinding import rewind
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.transactions import forget_undo, restore_backup, undo, undo_entries
from sessionary.model import Problem, Severity
from tests.support.faults import Fault, FaultFs, Killed
from tests.unit.layouts.surgery_samples import EVENTS, ID, MESSAGES, METADATA, lines, read, write_session

SINCE: dict[str, Any] = {"role": "user", "content": "since", "timestamp": "2026-03-01T10:00:00Z"}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "sessions" / ID)


@pytest.fixture
def clock() -> Iterator[datetime]:
    """A second passes with each look."""
    return (datetime(2026, 3, 2, tzinfo=UTC) + timedelta(seconds=n) for n in range(1000))


def check(session: Path) -> list[Problem]:
    layout = AmplifierLayout(session.parent)
    ref = layout.ref_for_path(session)
    assert ref is not None
    return list(layout.check(ref))


def killed(session: Path, call: Any, n: int) -> None:
    """A rewind whose process dies at its n-th call of a kind."""
    fs = FaultFs(OsFs(), Fault(call, n, "kill"))
    with pytest.raises(Killed):
        rewind(session, 1, fs=fs)
    fs.bury()


# What was added since


def test_what_was_added_since_is_reported_and_kept(session: Path) -> None:
    before = read(session)
    rewind(session, 1)
    store = SessionStore(session.parent)
    store.append(ID, [SINCE], {"name": "renamed"})
    with (session / "events.jsonl").open("ab") as log:
        log.write(lines([{"event": "since"}]) + b'{"torn')
    after = read(session)
    undone = undo(session)
    assert (undone.messages_since, undone.events_since, undone.metadata_since) == (1, 1, True)
    assert read(session) == (before[0], before[1], before[2] + b'{"torn')
    undo(session)
    assert read(session) == after


def test_a_log_that_was_replaced_since_is_left_alone(session: Path) -> None:
    before = read(session)
    rewind(session, 1)
    (session / "events.jsonl").write_bytes(b'{"event": "new"}\n')
    undone = undo(session)
    assert undone.events_left
    assert read(session) == (before[0], before[1], b'{"event": "new"}\n')


def test_a_log_that_is_gone_is_left_alone(session: Path) -> None:
    rewind(session, 1)
    (session / "events.jsonl").unlink()
    assert undo(session).events_left
    assert not (session / "events.jsonl").exists()


def test_nothing_to_undo(session: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Nothing to undo"):
        undo(session)
    with pytest.raises(NotFound, match="not found"):
        undo(tmp_path / "nowhere")


# Restoring


def test_the_backup_is_put_in_place_and_back(session: Path) -> None:
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:4]))
    done = restore_backup(session)
    assert (done.changed, done.messages_before, done.messages_after) == (True, 12, 4)
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES[:4])
    assert not restore_backup(session).changed
    assert undo(session).operation == "restore-backup"
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES)


def test_undo_restores_a_missing_transcript_and_undoes_that(session: Path) -> None:
    (session / "transcript.jsonl").rename(session / "transcript.jsonl.backup")
    assert restore_backup(session).messages_after == 12
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES)
    undo(session)
    assert not (session / "transcript.jsonl").exists()
    undo(session)
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES)


def test_appending_after_a_restore_leaves_the_backup_and_the_kept_bytes_alone(session: Path) -> None:
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:4]))
    kept_in = restore_backup(session).kept_in
    assert kept_in is not None
    SessionStore(session.parent).append(ID, [SINCE])
    assert Path(kept_in, "transcript.jsonl.old").read_bytes() == lines(MESSAGES)
    assert (session / "transcript.jsonl.backup").read_bytes() == lines(MESSAGES[:4])
    undo(session)
    SessionStore(session.parent).append(ID, [SINCE])
    assert Path(kept_in, "transcript.jsonl.old").read_bytes() == lines(MESSAGES)


def test_metadata_is_restored(session: Path) -> None:
    (session / "metadata.json.backup").write_text(json.dumps({"session_id": ID}))
    assert restore_backup(session, "metadata").changed
    assert json.loads((session / "metadata.json").read_bytes()) == {"session_id": ID}
    undo(session)
    assert json.loads((session / "metadata.json").read_bytes()) == METADATA


def test_what_cannot_be_restored(session: Path) -> None:
    with pytest.raises(NotFound, match=r"has no transcript\.jsonl\.backup"):
        restore_backup(session)
    with pytest.raises(Invalid, match="no backup of 'events'"):
        restore_backup(session, "events")
    for name, which in (("transcript.jsonl.backup", "transcript"), ("metadata.json.backup", "metadata")):
        (session / name).write_bytes(b"garbage\n")
        with pytest.raises(Corrupt):
            restore_backup(session, which)
    assert read(session)[0] == lines(MESSAGES)


def test_a_displaced_version_swaps_and_can_be_undone(session: Path) -> None:
    displaced = session / "transcript.jsonl.conflict-20260301T000000.000000Z"
    displaced.write_bytes(lines(MESSAGES[:4]))
    store = SessionStore(session.parent)
    assert store.restore_conflict(ID) == str(displaced)
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES[:4])
    assert not displaced.exists()
    (aside,) = store.last_report.conflicts
    assert Path(aside).read_bytes() == lines(MESSAGES)
    assert store.undo(ID) == ID
    assert displaced.read_bytes() == lines(MESSAGES[:4])
    assert not Path(aside).exists()
    assert (session / "transcript.jsonl").read_bytes() == lines(MESSAGES)


# What is kept


def test_what_is_kept_is_deleted_only_on_demand(session: Path) -> None:
    for _ in range(4):
        rewind(session, 1) if len(undo_entries(session)) % 2 == 0 else undo(session)
    assert [entry.operation for entry in undo_entries(session)] == ["rewind", "undo", "rewind", "undo"]
    sizes = [entry.size for entry in undo_entries(session)]
    assert min(sizes) > len(lines(MESSAGES[:4]))
    assert forget_undo(session, keep=1) == sum(sizes[:3])
    assert [entry.operation for entry in undo_entries(session)] == ["undo"]
    assert forget_undo(session) == sizes[3]
    with pytest.raises(NotFound):
        undo(session)
    with pytest.raises(Invalid):
        forget_undo(session, keep=-1)


# Others who have the session open


def test_another_process_that_has_it_open_finishes_what_a_killed_one_began(session: Path) -> None:
    other = SessionStore.with_fs(OsFs(), session.parent)
    other.append(ID, [])
    killed(session, "rename", 2)
    assert read(session)[2] == lines(EVENTS)
    other.append(ID, [])
    assert read(session)[2] == lines(EVENTS[:8])
    assert [problem.code for problem in other.last_report.problems] == ["operation_recovered"]
    assert "rewind" in other.last_report.problems[0].message
    other.append(ID, [])
    assert other.last_report.problems == []


def test_a_save_of_a_process_that_knew_the_longer_session_loses_nothing(session: Path) -> None:
    other = SessionStore.with_fs(OsFs(), session.parent)
    messages, metadata = other.load(ID)
    other.save(ID, messages, metadata)
    rewind(session, 1)
    other.save(ID, [*messages, SINCE], metadata)
    assert other.load(ID)[0] == [*MESSAGES, SINCE]


def test_the_same_process_continues_appending_after_a_rewind(session: Path) -> None:
    store = SessionStore(session.parent)
    store.append(ID, [SINCE])
    store.rewind(ID, 1)
    store.append(ID, [SINCE])
    assert store.load(ID)[0] == [*MESSAGES[:4], SINCE]
    store.save(ID, [*MESSAGES[:4], SINCE, SINCE], METADATA)
    assert len(store.load(ID)[0]) == 6


def test_an_open_operation_is_named_by_check(session: Path) -> None:
    killed(session, "rename", 2)
    (found,) = [problem for problem in check(session) if problem.code == "open_intent"]
    assert found.severity == Severity.hides_data
    assert "rewind" in found.message
    SessionStore(session.parent).append(ID, [])
    assert "open_intent" not in [problem.code for problem in check(session)]


def test_one_that_has_changed_nothing_is_a_note(session: Path) -> None:
    before = read(session)
    killed(session, "rename", 1)
    (found,) = [problem for problem in check(session) if problem.code == "open_intent"]
    assert found.severity == Severity.note
    SessionStore.with_fs(OsFs(), session.parent).append(ID, [])
    assert read(session) == before
    assert not (session / ".undo" / "open").exists()


def test_it_waits_for_the_lock(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionary.disk.lock.FileLock.acquire.__defaults__", (0.05,))
    lock = FileLock(str(session / ".lock"), OS_FS)
    before = read(session)
    with lock.held(), pytest.raises(Locked):
        rewind(session, 1)
    lock.close()
    assert read(session) == before


# Through the store


def test_the_store_has_all_of_it(session: Path) -> None:
    store = SessionStore(session.parent)
    assert store.rewind(ID, 2, dry_run=True).messages_dropped == 4
    assert store.rewind(ID, 2).messages_dropped == 4
    assert store.undo(ID) == ID
    assert store.last_report.undone is not None
    assert store.last_report.undone.operation == "rewind"
    assert not store.repair(ID).changed
    assert store.fork(ID, 1, "new").message_count == 4
    assert store.load("new")[0] == MESSAGES[:4]
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:4]))
    assert store.restore_backup(ID).messages_after == 4
    for call in (lambda: store.rewind("no", 1), lambda: store.repair("no"), lambda: store.fork("no")):
        with pytest.raises(NotFound, match="Session 'no' not found"):
            call()


def test_undo_takes_back_whatever_came_last(tmp_path: Path, clock: Iterator[datetime]) -> None:
    root = tmp_path / "sessions"
    write_session(root / "a")
    write_session(root / "b")
    store = SessionStore.with_fs(OsFs(), root, now=lambda: next(clock))
    store.rewind("a", 1)
    store.delete("b")
    store.rewind("a", 0)
    assert store.undo() == "a"
    assert store.undo("b") == "b"
    assert store.last_report.undone is None
    store.delete("b")
    assert store.undo() == "b"
    with pytest.raises(NotFound):
        store.undo("c")


def test_a_restored_session_keeps_its_undo_history(tmp_path: Path, clock: Iterator[datetime]) -> None:
    session = write_session(tmp_path / "sessions" / ID)
    store = SessionStore.with_fs(OsFs(), session.parent, now=lambda: next(clock))
    store.rewind(ID, 1)
    store.delete(ID)
    assert store.undo(ID) == ID
    assert store.undo(ID) == ID
    assert store.load(ID)[0] == MESSAGES
    store.delete(ID)
    write_session(session)
    with pytest.raises(AlreadyExists):
        store.undo(ID)
