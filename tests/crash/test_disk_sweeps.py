"""Every public write of `disk`, and every two of them in a row, against power cuts and against failing calls.

All operations work in one session folder, and one `check` holds them to all their promises together: whatever
was acknowledged is there, nothing is ever half, no bytes that somebody wrote are gone, and the folder can be
opened and written again. So pairs need no checks of their own.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import atomic
from sessionary.disk.flush_policy import Committer
from sessionary.disk.fs import CREATE, FILE_MODE, make_dirs
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, NotFound, StorageFailed
from sessionary.testing.wrapper import UNSYNCED
from tests.support.faults import Call, Effect, Fault, FaultFs, sweep
from tests.support.mailbox_proof import NamedFs
from tests.support.recorder import RecordingFs
from tests.support.survivors import MODELS
from tests.support.sweeps import Operation, crash_sweep, pairs

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TORN = b'{"line": 1, "te'
ASIDE = b'{"cut": "out"}'
Acked = tuple[tuple[Any, ...], ...]
Marking = RecordingFs | FaultFs


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: what survives is decided by a model, so no disk is needed."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


def setup(root: str) -> None:
    """A session that was killed in the middle of an append, with metadata and a sub-session."""
    session = Path(root, "s")
    (session / "sub").mkdir(parents=True)
    (session / "sub" / "file").write_bytes(b"of the sub-session")
    (session / "transcript.jsonl").write_bytes(line(0) + TORN)
    (session / "metadata.json").write_bytes(version(0))
    (session / "events.jsonl").write_bytes(line(0) + TORN)


def line(number: int) -> bytes:
    return json.dumps({"line": number, "text": "x" * 20}).encode() + b"\n"


def version(number: int) -> bytes:
    return json.dumps({"version": number, "text": "y" * 20}).encode()


def whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def numbers(lines: list[bytes], *, strict: bool) -> list[int]:
    """The numbers of the lines; a line that cannot be read is an error to a strict reader, and skipped by others."""
    found: list[int] = []
    for data in lines:
        try:
            found.append(json.loads(data.decode())["line"])
        except ValueError:
            assert not strict, f"a strict reader refuses {data!r}"
    return found


# The operations


def create(fs: Marking, root: str) -> None:
    try:
        atomic.create(f"{root}/s/created", b"all of it", fs=fs)
    except AlreadyExists:
        fs.mark(("created",))  # it says that the file is there
    else:
        fs.mark(("created",))


def create_streamed(fs: Marking, root: str) -> None:
    try:
        atomic.create_streamed(f"{root}/s/created", [b"all ", b"of it"], fs=fs)
    except AlreadyExists:
        fs.mark(("created",))
    else:
        fs.mark(("created",))


def replace(fs: Marking, root: str) -> None:
    path = f"{root}/s/metadata.json"
    number = json.loads(Path(path).read_bytes())["version"] + 1
    data = version(number)
    atomic.replace(path, [data[:10], data[10:]], fs=fs, backup=f"{path}.backup")
    fs.mark(("version", number))
    fs.mark(("backup", number - 1))


def append(name: str, tail: Tail) -> Callable[[Marking, str], None]:
    def append_lines(fs: Marking, root: str) -> None:
        path = Path(root, "s", name)
        journal = Journal(str(path), tail, fs=fs, now=lambda: NOW)
        for _ in range(2):
            number = _next_line(path)
            journal.append(line(number) + line(number + 1), journal.look())
            journal.flush()
            fs.mark((name, number + 1))
        journal.close()

    return append_lines


def _next_line(path: Path) -> int:
    """The last line counts if all that it lacks is its newline: the next append will give it one."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return max(numbers(lines, strict=False), default=-1) + 1


def refresh_backup(fs: Marking, root: str) -> None:
    path = f"{root}/s/transcript.jsonl"
    atomic.refresh_backup(path, f"{path}.backup", fs=fs)


def quarantine(fs: Marking, root: str) -> None:
    path = f"{root}/s/metadata.json"
    data = Path(path).read_bytes()
    fs.mark(("aside", Path(atomic.quarantine(path, "conflict", fs=fs, now=NOW)).name, data))


def save_aside(fs: Marking, root: str) -> None:
    # As where a file must have a name from the beginning; `create` does without.
    aside = atomic.save_aside(f"{root}/s/metadata.json", "corrupt", ASIDE, fs=NamedFs(fs), now=NOW)
    fs.mark(("aside", Path(aside).name, ASIDE))


def move(fs: Marking, root: str) -> None:
    try:
        atomic.move_folder(f"{root}/s/sub", f"{root}/s/.trash/new/sub", fs=fs)
    except (NotFound, AlreadyExists):
        return
    fs.mark(("moved",))


def erase(fs: Marking, root: str) -> None:
    fs.mark(("erasing",))
    trash = f"{root}/s/.trash"
    make_dirs(fs, f"{trash}/old")
    fd = fs.open(f"{trash}/old/file", CREATE, FILE_MODE)
    fs.close(fd)
    atomic.erase_tree(f"{trash}/old", fs=fs)
    fs.mark(("erased",))


def lock_and_sweep(fs: Marking, root: str) -> None:
    lock = FileLock(f"{root}/s/.lock", fs)
    with lock.held(0, note="test"):
        swept = atomic.sweep(f"{root}/s", fs=fs)
    lock.close()
    fs.mark(("swept", *swept))


STEPS: dict[str, Callable[[Marking, str], None]] = {
    "create": create,
    "create streamed": create_streamed,
    "replace": replace,
    "append": append("transcript.jsonl", Tail.CUT),
    "append sealing": append("events.jsonl", Tail.SEAL),
    "append to a new file": append("new.jsonl", Tail.CUT),
    "refresh backup": refresh_backup,
    "keep aside": quarantine,
    "save aside": save_aside,
    "move": move,
    "erase": erase,
    "lock and sweep": lock_and_sweep,
}


# What they promise


def check(root: str, acked: Acked) -> None:
    session = Path(root, "s")
    check_files(session, acked)
    check_journals(session, acked)
    check_folders(session, acked)
    go_on(session)
    check_files(session, acked)
    check_journals(session, acked)


def check_files(session: Path, acked: Acked) -> None:
    created = session / "created"
    if ("created",) in acked or created.exists():
        assert created.read_bytes() == b"all of it"
    number = json.loads((session / "metadata.json").read_bytes())["version"]
    assert number >= _last(acked, "version", 0), "an older version than the acknowledged one"
    backup = session / "metadata.json.backup"
    if backup.exists() or _last(acked, "backup", -1) >= 0:
        kept = json.loads(backup.read_bytes())["version"]
        assert _last(acked, "backup", -1) <= kept <= number, f"version {number} has a backup of {kept}"
    for _, name, data in (mark for mark in acked if mark[0] == "aside"):
        assert (session / name).read_bytes() == data


def check_journals(session: Path, acked: Acked) -> None:
    for name in ("transcript.jsonl", "events.jsonl", "new.jsonl"):
        found = numbers(whole_lines(session / name), strict=name != "events.jsonl")
        assert found == list(range(len(found))), f"{name} holds lines {found}"
        assert len(found) > _last(acked, name, -1 if name == "new.jsonl" else 0), f"a line of {name} is lost"
    for name in ("transcript.jsonl", "events.jsonl"):
        kept = [path.read_bytes() for path in session.glob(f"{name}*") if ".backup" not in path.name]
        assert any(TORN in data for data in kept), f"the torn bytes of {name} are gone"
    backup = session / "transcript.jsonl.backup"
    if backup.exists():
        copied = numbers(whole_lines(backup), strict=True)
        assert copied == list(range(len(copied)))
        assert copied, "an empty backup"


def check_folders(session: Path, acked: Acked) -> None:
    here, there = session / "sub" / "file", session / ".trash" / "new" / "sub" / "file"
    assert here.exists() != there.exists(), "the folder is in two places, or in none"
    assert (here if here.exists() else there).read_bytes() == b"of the sub-session"
    if ("moved",) in acked:
        assert there.exists()
    marks = [mark for mark in acked if mark[0] in ("erasing", "erased")]
    if marks and marks[-1] == ("erased",):
        assert not (session / ".trash" / "old").exists()


def _last(acked: Acked, kind: str, default: int) -> int:
    return max((mark[1] for mark in acked if mark[0] == kind), default=default)


def go_on(session: Path) -> None:
    """The next process: it locks, sweeps, and writes to everything."""
    with FileLock(f"{session}/.lock", UNSYNCED).held(0, note="next"):
        atomic.sweep(str(session), fs=UNSYNCED)
        assert not [path.name for path in session.iterdir() if path.name.endswith(".tmp")]
        for name, tail in (
            ("transcript.jsonl", Tail.CUT),
            ("events.jsonl", Tail.SEAL),
            ("new.jsonl", Tail.CUT),
        ):
            _append_one(session / name, tail)
        number = json.loads((session / "metadata.json").read_bytes())["version"]
        path = f"{session}/metadata.json"
        atomic.replace(path, [version(number + 1)], fs=UNSYNCED, backup=f"{path}.backup")


def _append_one(path: Path, tail: Tail) -> None:
    journal = Journal(str(path), tail, fs=UNSYNCED)
    number = _next_line(path)
    journal.append(line(number), journal.look())
    journal.close()
    assert whole_lines(path)[-1] + b"\n" == line(number)
    assert path.read_bytes().endswith(b"\n")


# The sweeps


def recorded(name: str, step: Callable[[Marking, str], None]) -> Operation:
    def operation(fs: RecordingFs) -> None:
        step(fs, fs.root)
        fs.mark(("end of", name))

    return operation


OPERATIONS = {name: recorded(name, step) for name, step in STEPS.items()}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_power_cut_during_an_operation(name: str, scratch: Path) -> None:
    report = crash_sweep(setup, OPERATIONS[name], check, scratch)
    assert report.violations == [], report.describe()
    assert set(report.places) == set(MODELS)


@pytest.mark.parametrize("first", OPERATIONS)
def test_a_power_cut_during_two_operations_in_a_row(first: str, scratch: Path) -> None:
    for name, operation in pairs(OPERATIONS).items():
        if name.startswith(f"{first}, then"):
            report = crash_sweep(setup, operation, check, scratch, limit=10, since=("end of", first))
            assert report.violations == [], f"{name}: {report.describe()}"
            assert report.states >= len(MODELS)


@pytest.mark.parametrize("name", STEPS)
def test_every_call_of_an_operation_fails(name: str, scratch: Path) -> None:
    report = sweep(setup, STEPS[name], check, scratch)
    assert report.violations == [], report.describe()


def test_a_power_cut_during_the_recovery_from_a_power_cut(scratch: Path) -> None:
    swept: list[int] = []

    def check_and_cut_again(root: str, acked: Acked) -> None:
        def restore(folder: str) -> None:
            shutil.copytree(root, folder, dirs_exist_ok=True, symlinks=True)

        def recover(fs: RecordingFs) -> None:
            STEPS["lock and sweep"](fs, fs.root)
            STEPS["append"](fs, fs.root)

        again = Path(f"{root}-again")
        again.mkdir()
        report = crash_sweep(restore, recover, check, again, models=["relaxed"], limit=3)
        again.rmdir()
        assert report.violations == [], report.describe()
        swept.append(report.states)

    report = crash_sweep(
        setup, OPERATIONS["append"], check_and_cut_again, scratch, models=["relaxed"], limit=4
    )
    assert report.violations == [], report.describe(1)
    assert sum(swept) > 10 * len(swept)


# What an error says must be true

EFFECTS_OF: dict[str, Callable[[Path], bool]] = {
    "create": lambda session: (session / "created").exists(),
    "replace": lambda session: json.loads((session / "metadata.json").read_bytes())["version"] > 0,
    "save aside": lambda session: any(session.glob("metadata.json.corrupt-*")),
    "keep aside": lambda session: any(session.glob("metadata.json.conflict-*")),
    "move": lambda session: (session / ".trash" / "new" / "sub").exists(),
}


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("name", EFFECTS_OF)
def test_what_was_not_committed_is_never_read(name: str, lasting: bool, scratch: Path) -> None:
    outcomes: set[tuple[str, int | None]] = set()

    def workload(fs: FaultFs, root: str) -> None:
        try:
            STEPS[name](fs, root)
        except StorageFailed as error:
            outcomes.add((error.outcome, error.errno))
            fs.mark(("outcome", error.outcome))

    def look(root: str, acked: Acked) -> None:
        if ("outcome", "not_committed") in acked:  # first, for `check` goes on writing
            assert not EFFECTS_OF[name](Path(root, "s")), "an error said not_committed, and it is there"
        check(root, acked)

    effects: list[Effect] = [errno.EIO, errno.ENOSPC, "short"]
    report = sweep(setup, workload, look, scratch, effects=effects, lasting=lasting)
    assert report.violations == [], report.describe(9)
    assert {("not_committed", errno.EIO), ("not_committed", errno.ENOSPC)} <= outcomes


# One journal that is used on after its disk failed it


def use_on(journal: Journal, fs: Marking, lines: Iterable[int] = range(4)) -> None:
    """Append line after line with one journal, and remember which of them it promised, refused or left open."""
    for number in lines:
        try:
            journal.append(line(number), journal.look())
            journal.flush()
        except StorageFailed as error:
            fs.mark((error.outcome, number))
        else:
            fs.mark(("line", number))


def check_journal(root: str, acked: Acked) -> None:
    path = Path(root, "log.jsonl")
    found = numbers(whole_lines(path), strict=False)
    assert found == sorted(set(found)), f"the log holds {found}"
    promised = [number for kind, number in acked if kind == "line"]
    assert set(promised) <= set(found), f"{promised} were promised, {found} are there"
    refused = [number for kind, number in acked if kind == "not_committed"]
    assert not set(refused) & set(found), f"{refused} were refused, {found} are there"


CALLS: list[Call] = ["open", "write", "truncate", "fsync", "fdatasync", "rename"]
BROKEN: list[tuple[Call, Effect]] = [
    *((call, errno.EIO) for call in CALLS),
    ("open", errno.ENOSPC),
    ("write", errno.ENOSPC),
    ("write", "short"),
]


@pytest.mark.parametrize("tail", Tail)
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize(("call", "effect"), BROKEN, ids=str)
def test_a_journal_keeps_its_word_after_a_failure_and_a_power_cut(
    call: Call, effect: Effect, lasting: bool, tail: Tail, scratch: Path
) -> None:
    def operation(fs: RecordingFs) -> None:
        journal = Journal(f"{fs.root}/log.jsonl", tail, fs=fs, now=lambda: NOW)
        use_on(journal, fs)
        journal.close()

    for n in range(1, 50):
        disk = FaultFs(UNSYNCED, Fault(call, n, effect, lasting and isinstance(effect, int)))
        report = crash_sweep(
            lambda root: None, operation, check_journal, scratch, inner=disk, models=["relaxed"], limit=20
        )
        assert report.violations == [], f"{disk.fired} {report.describe(1)}"
        if not disk.fired:
            return
    raise AssertionError("the journal never came through")


@pytest.mark.parametrize("n", [1, 2])
def test_a_flush_that_failed_for_one_thread_promises_nothing_to_another(n: int, scratch: Path) -> None:
    """Two threads have appended; the flush of the first fails, then the second comes to flush its own line."""

    def operation(fs: RecordingFs) -> None:
        journal = Journal(f"{fs.root}/log.jsonl", Tail.CUT, fs=fs, now=lambda: NOW)
        for number in range(0, 2 * n, 2):
            for mine in (number, number + 1):
                journal.append(line(mine), journal.look())
            for mine in (number, number + 1):
                try:
                    journal.flush()
                except StorageFailed:
                    continue
                fs.mark(("line", mine))
        journal.close()

    disk = FaultFs(UNSYNCED, Fault("fdatasync", 2 * n - 1, errno.EIO))
    report = crash_sweep(lambda root: None, operation, check_journal, scratch, inner=disk)
    assert disk.fired
    assert report.violations == [], report.describe()


def test_a_failed_flush_is_remembered_by_the_next_journal_of_the_file(scratch: Path) -> None:
    """What it appends would lie behind a hole that the page cache does not show."""

    def operation(fs: RecordingFs) -> None:
        for numbers_ in ((0, 1), (2, 3)):
            journal = Journal(f"{fs.root}/log.jsonl", Tail.CUT, fs=fs, now=lambda: NOW)
            use_on(journal, fs, numbers_)
            journal.close()

    disk = FaultFs(UNSYNCED, Fault("fdatasync", 2, errno.EIO))
    report = crash_sweep(lambda root: None, operation, check_journal, scratch, inner=disk)
    assert report.violations == [], report.describe()


def test_a_batch_loses_at_most_what_it_may(scratch: Path) -> None:
    """The 64th line flushes the batch, and closing flushes the rest."""

    def operation(fs: RecordingFs) -> None:
        committer = Committer()
        journal = Journal(f"{fs.root}/log.jsonl", Tail.SEAL, fs=fs)
        for number in range(Committer.LINES + 3):
            journal.append(line(number), journal.look())
            committer.commit(journal, "batch", 1)
            if number == Committer.LINES - 1:
                fs.mark(("line", number))
        committer.settle(journal)
        fs.mark(("line", Committer.LINES + 2))
        journal.close()

    report = crash_sweep(lambda root: None, operation, check_journal, scratch, limit=8)
    assert report.violations == [], report.describe()
    assert report.states > 3 * Committer.LINES


def test_a_killed_holder_leaves_no_stale_lock(scratch: Path) -> None:
    def workload(fs: FaultFs, root: str) -> None:
        with FileLock(f"{root}/s/.lock", fs).held(0, note="test"):
            fs.stat(root)
        with FileLock(f"{root}/s/.lock", fs).once(0, exclusive=False):
            fs.stat(root)

    def look(root: str, acked: Acked) -> None:
        with FileLock(f"{root}/s/.lock", UNSYNCED).once(0, exclusive=False):
            pass
        with FileLock(f"{root}/s/.lock", UNSYNCED).held(0):
            pass

    report = sweep(setup, workload, look, scratch)
    assert report.violations == [], report.describe()
    assert report.places["kill"] > len(CALLS)
