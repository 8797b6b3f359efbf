"""Every operation over several files of a session, cut off by power, killed and failed at every point.

What must hold in each state, once the next writer has been there: transcript, metadata and events are together the
old session or the new one, never half of each; what was acknowledged is the new one; and the session goes on.
"""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.forks import fork_session
from sessionary.layouts.amplifier.repairing import repair
from sessionary.layouts.amplifier.rewinding import rewind
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.transactions import restore_backup, restore_conflict, undo
from tests.support.faults import Effect, sweep
from tests.support.sweeps import crash_sweep
from tests.unit.layouts.surgery_samples import EVENTS, ID, MESSAGES, lines, write_session

EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
State = dict[str, bytes]
Work = Callable[[Fs, Path], object]


def session_in(folder: str | os.PathLike[str]) -> Path:
    return Path(folder, "sessions", ID)


def setup(folder: str) -> None:
    session = write_session(session_in(folder))
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:5]))
    (session / "metadata.json.backup").write_bytes(b'{"session_id": "older"}')


def setup_out_of_order(folder: str) -> None:
    """A session with an event of the first turn between those of the second: something of the end of the log stays."""
    events = list(EVENTS)
    events.insert(11, events.pop(5))
    write_session(session_in(folder), events=events)


def setup_damaged(folder: str) -> None:
    """Two records on a line, a torn piece, a call without a result, unreadable metadata, a torn event."""
    setup(folder)
    session = session_in(folder)
    said = lines(MESSAGES[:6]).split(b"\n")
    said[1:3] = [said[1] + said[2], b"torn"]
    (session / "transcript.jsonl").write_bytes(b"\n".join(said))
    (session / "metadata.json").write_bytes(b'{"session_id": ')


def setup_rewound(folder: str) -> None:
    """A session that was rewound, and went on since."""
    setup(folder)
    rewind(session_in(folder), 1, now=lambda: NOW)
    session = session_in(folder)
    with (session / "transcript.jsonl").open("ab") as file:
        file.write(lines([{"role": "user", "content": "since", "timestamp": "2026-03-01T10:00:00Z"}]))
    with (session / "events.jsonl").open("ab") as file:
        file.write(lines([{"event": "since", "session_id": ID}]))


def setup_conflict(folder: str) -> None:
    setup(folder)
    (session_in(folder) / "transcript.jsonl.conflict-20260301T000000.000000Z").write_bytes(
        lines(MESSAGES[:3])
    )


def do_rewind(fs: Fs, session: Path) -> object:
    return rewind(session, 1, fs=fs, now=lambda: NOW)


def do_undo(fs: Fs, session: Path) -> object:
    return undo(session, fs=fs, now=lambda: NOW)


def do_repair(fs: Fs, session: Path) -> object:
    return repair(session, fs=fs, now=lambda: NOW)


def do_restore(fs: Fs, session: Path) -> object:
    return restore_backup(session, fs=fs, now=lambda: NOW)


def do_restore_metadata(fs: Fs, session: Path) -> object:
    return restore_backup(session, "metadata", fs=fs, now=lambda: NOW)


def do_restore_conflict(fs: Fs, session: Path) -> object:
    return restore_conflict(session, fs=fs, now=lambda: NOW)


CASES: dict[str, tuple[Callable[[str], None], Work]] = {
    "rewind": (setup, do_rewind),
    "rewind that keeps later events": (setup_out_of_order, do_rewind),
    "repair": (setup_damaged, do_repair),
    "undo of a rewind": (setup_rewound, do_undo),
    "restore-backup": (setup, do_restore),
    "restore-backup of metadata": (setup, do_restore_metadata),
    "restore-conflict": (setup_conflict, do_restore_conflict),
}


def state_of(session: Path) -> State:
    """Everything that a session is: all its files but the lock and what is kept for undoing."""
    return {
        path.name: path.read_bytes() for path in session.iterdir() if path.is_file() and path.name != ".lock"
    }


def states(begin: Callable[[str], None], work: Work, folder: Path) -> tuple[State, State]:
    begin(str(folder))
    old = state_of(session_in(folder))
    work(OS_FS, session_in(folder))
    return old, state_of(session_in(folder))


def check_of(old: State, new: State) -> Callable[[str, tuple[Any, ...]], None]:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        session = session_in(folder)
        pool_of(OS_FS).drop(str(session))  # the next writer is a new process
        store = SessionStore(session.parent, durability="none")
        messages = store.load(ID)[0]
        assert messages, "a reader between commit and finish finds no messages"
        store.append(ID, [])  # a writer that has nothing to write
        found = state_of(session)
        assert found in ([new] if acked else [old, new]), f"neither old nor new: {sorted(found)}"
        assert not (session / ".undo" / "open").exists()
        store.append(ID, [{"role": "user", "content": "after", "timestamp": "t"}])
        assert store.load(ID)[0][-1]["content"] == "after"

    return check


@pytest.mark.parametrize("name", CASES)
def test_cut_off_by_power(name: str, tmp_path: Path) -> None:
    begin, work = CASES[name]
    check = check_of(*states(begin, work, tmp_path / "first"))

    def operation(fs: Any) -> None:
        work(fs, session_in(fs.root))
        fs.mark(name)

    report = crash_sweep(begin, operation, check, tmp_path / "sweep")
    assert report.states > 50
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", CASES)
def test_each_call_fails_in_each_way(name: str, tmp_path: Path) -> None:
    begin, work = CASES[name]
    check = check_of(*states(begin, work, tmp_path / "first"))

    def workload(fs: Any, folder: str) -> None:
        work(fs, session_in(folder))
        fs.mark(name)

    report = sweep(begin, workload, check, tmp_path, effects=EFFECTS)
    assert report.states > 100
    assert not report.violations, report.describe()


def do_fork(fs: Fs, session: Path) -> object:
    return fork_session(session, turn=2, new_session_id="fork", fs=fs, now=lambda: NOW)


def check_fork(whole: State, parent: State) -> Callable[[str, tuple[Any, ...]], None]:
    def check(folder: str, acked: tuple[Any, ...]) -> None:
        sessions = Path(folder, "sessions")
        fork = sessions / "fork"
        assert state_of(sessions / ID) == parent, "the parent has changed"
        store = SessionStore(sessions, durability="none")
        assert set(store.list_sessions()) <= {ID, "fork"}
        assert fork.exists() or not acked
        if fork.exists():
            assert state_of(fork) == whole, "half a fork"
        assert store.fork(ID, new_session_id="another").message_count == 12
        assert not [
            name for name in os.listdir(sessions) if name.startswith(".fork-") and is_locked(sessions / name)
        ]

    return check


def is_locked(place: Path) -> bool:
    """True for a building site that has a lock: the next fork would have removed it."""
    return (place / ".lock").exists()


def fork_states(folder: Path) -> tuple[State, State]:
    setup(str(folder))
    do_fork(OS_FS, session_in(folder))
    return state_of(folder / "sessions" / "fork"), state_of(session_in(folder))


def test_a_fork_cut_off_by_power(tmp_path: Path) -> None:
    def operation(fs: Any) -> None:
        do_fork(fs, session_in(fs.root))
        fs.mark("forked")

    report = crash_sweep(setup, operation, check_fork(*fork_states(tmp_path / "first")), tmp_path / "sweep")
    assert report.states > 50
    assert not report.violations, report.describe()


def test_each_call_of_a_fork_fails_in_each_way(tmp_path: Path) -> None:
    def workload(fs: Any, folder: str) -> None:
        do_fork(fs, session_in(folder))
        fs.mark("forked")

    report = sweep(setup, workload, check_fork(*fork_states(tmp_path / "first")), tmp_path, effects=EFFECTS)
    assert report.states > 100
    assert not report.violations, report.describe()


@pytest.mark.parametrize("name", CASES)
def test_the_same_process_continues_after_an_error(name: str, tmp_path: Path) -> None:
    """Not the next process but the one that got the failure finds the old session or the new one."""
    begin, work = CASES[name]
    old, new = states(begin, work, tmp_path / "first")

    def workload(fs: Any, folder: str) -> None:
        session = session_in(folder)
        store = SessionStore.with_fs(fs, session.parent, durability="none")
        store.append(ID, [])
        try:
            work(fs, session)
        except StorageFailed as error:
            if error.outcome == "not_committed":
                assert state_of(session) == old
        store.append(ID, [])
        found = state_of(session)
        assert found in (old, new), f"neither old nor new: {sorted(found)}"

    report = sweep(begin, workload, lambda folder, acked: None, tmp_path, effects=(errno.EIO, errno.ENOSPC))
    assert report.states > 50
    assert not report.violations, report.describe()
