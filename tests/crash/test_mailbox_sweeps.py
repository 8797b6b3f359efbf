"""`consume`, cut off by power at every point: alone, in its recovery, and with another consumer at its heels."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox
from sessionary.disk.fs import UNLOCK, Fs
from sessionary.errors import Locked
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.mailbox.delivery import Handler
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.messages import echo
from tests.support.faults import Fault, FaultFs, Killed, sweep
from tests.support.mailbox_proof import FIRST, IDS, applied, ours, promise_of, setup, twice
from tests.support.recorder import RecordingFs
from tests.support.survivors import Model
from tests.support.sweeps import Check, crash_sweep

MODES = [pytest.param(False, id="exclusive"), pytest.param(True, id="shared")]


@pytest.mark.parametrize("shared", MODES)
def test_every_power_cut_leaves_each_acknowledged_message_once_and_loses_none(
    shared: bool, tmp_path: Path
) -> None:
    consume = ours(shared=shared)
    report = crash_sweep(setup, twice(consume), promise_of(consume), tmp_path, limit=60)
    assert report.violations == [], report.describe()
    assert report.states > 100


@pytest.mark.parametrize("model", ["prefix", "relaxed"])
def test_a_power_cut_inside_recovery_changes_nothing(model: Model, tmp_path: Path) -> None:
    """Every state that a first cut leaves is recovered from, with a cut at every point of that."""
    consume = ours()
    inner = tmp_path / "inner"
    states = 0

    def recover_with_cuts(folder: str, acked: tuple[Any, ...]) -> None:
        nonlocal states
        inner.mkdir()

        def recovery(fs: RecordingFs) -> None:
            for known in acked:
                fs.mark(known)
            for known in consume(fs, fs.root):
                fs.mark(known)

        report = crash_sweep(
            lambda work: shutil.copytree(folder, work, dirs_exist_ok=True),
            recovery,
            promise_of(consume),
            inner,
            models=[model],
            limit=12,
        )
        states += report.states
        shutil.rmtree(inner)
        assert report.violations == [], report.describe(1)

    report = crash_sweep(setup, twice(consume), recover_with_cuts, tmp_path, models=[model], limit=12)
    assert report.violations == [], report.describe()
    assert states > 150


def test_every_call_that_fails_or_dies_leaves_the_promise_whole(tmp_path: Path) -> None:
    consume = ours()

    def workload(fs: FaultFs, folder: str) -> None:
        for known in consume(fs, folder):
            fs.mark(known)

    report = sweep(setup, workload, promise_of(consume), tmp_path)
    assert report.violations == [], report.describe()
    assert report.states > 30


def test_a_flush_that_fails_acknowledges_nothing_and_the_next_call_makes_it_good(tmp_path: Path) -> None:
    setup(str(tmp_path))
    fs = FaultFs(UNSYNCED, Fault("fdatasync", 1, 5))
    mailbox = Mailbox.with_fs(fs, tmp_path)
    with pytest.raises(OSError, match="Failed to flush"):
        mailbox.consume(echo)
    report = mailbox.consume(echo)
    assert (report.applied, report.pending) == (0, 0)
    assert (
        fs.counts["rename"] == 1
    )  # the log was written anew: the flush of the old file proves nothing any more
    assert applied(str(tmp_path)) == dict.fromkeys((f"id-{number}" for number in FIRST), 1)


def test_at_most_once_calls_no_handler_twice_whatever_a_power_cut_leaves(tmp_path: Path) -> None:
    def operation(fs: RecordingFs) -> None:
        mailbox = Mailbox.with_fs(fs, fs.root)
        mailbox.consume(lambda crumb: fs.mark(crumb.breadcrumb_id), delivery="at_most_once")
        mailbox.close()

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        again: list[str] = []
        mailbox = Mailbox.with_fs(UNSYNCED, folder)
        mailbox.consume(lambda crumb: again.append(crumb.breadcrumb_id), delivery="at_most_once")
        assert not set(again) & set(acked), "a handler was called a second time"
        assert set(again) | set(acked) | {dead.breadcrumb_id for dead in mailbox.status().dead} == {
            f"id-{number}" for number in FIRST
        }
        assert mailbox.pending() == []

    report = crash_sweep(setup, operation, check, tmp_path, limit=30)
    assert report.violations == [], report.describe()
    assert report.states > 60


# -- the other writes of a mailbox

BAD = ("20260301_080000_000000.json", "20260301_080000_000001.json")


def later() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=10)


def fail(crumb: Breadcrumb) -> None:
    raise RuntimeError("no")


def with_trouble(folder: str) -> None:
    """Two dead letters and two files that are not messages; all of it is known."""
    setup(folder)
    for name in BAD:
        Path(folder, "breadcrumbs", "0", name).write_bytes(name.encode())
    mailbox = Mailbox.with_fs(UNSYNCED, folder, now=later)
    mailbox.consume(fail, max_attempts=1)
    mailbox.close()


def quarantine(fs: Fs, folder: str) -> None:
    mailbox = Mailbox.with_fs(fs, folder, now=later)
    mailbox.quarantine()
    mailbox.close()


def revive(fs: Fs, folder: str) -> None:
    mailbox = Mailbox.with_fs(fs, folder, now=later)
    mailbox.revive()
    mailbox.close()


def check_quarantine(folder: str, acked: tuple[Any, ...]) -> None:
    places = {Path(folder, "breadcrumbs", "0", name): name for name in BAD}
    places |= {Path(folder, "breadcrumbs", "error", f"0-{name}"): name for name in BAD}
    found = [path.read_bytes() for path in places if path.exists()]
    assert set(found) == {name.encode() for name in BAD}, "a file is gone"
    if acked:
        assert not any(Path(folder, "breadcrumbs", "0", name).exists() for name in BAD)
    Mailbox.with_fs(UNSYNCED, folder, now=later).consume(
        echo
    )  # what a power cut left has other times: it is reported again
    quarantine(UNSYNCED, folder)
    moved = Path(folder, "breadcrumbs", "error")
    assert {path.name.partition("-")[2][:27] for path in moved.iterdir()} == set(BAD)


def check_revive(folder: str, acked: tuple[Any, ...]) -> None:
    if not acked:
        revive(UNSYNCED, folder)
    Mailbox.with_fs(UNSYNCED, folder, now=later).consume(echo)
    once_each(folder)


OTHERS: dict[str, tuple[Callable[[Fs, str], None], Check]] = {
    "quarantine": (quarantine, check_quarantine),
    "revive": (revive, check_revive),
}


@pytest.mark.parametrize("name", OTHERS)
def test_dead_letters_and_bad_files_survive_a_power_cut_while_they_are_dealt_with(
    name: str, tmp_path: Path
) -> None:
    call, check = OTHERS[name]

    def operation(fs: RecordingFs) -> None:
        call(fs, fs.root)
        fs.mark(name)

    report = crash_sweep(with_trouble, operation, check, tmp_path, limit=30)
    assert report.violations == [], report.describe()
    assert report.states > 10


@pytest.mark.parametrize("name", OTHERS)
def test_dead_letters_and_bad_files_survive_every_call_that_fails(name: str, tmp_path: Path) -> None:
    call, check = OTHERS[name]

    def workload(fs: FaultFs, folder: str) -> None:
        call(fs, folder)
        fs.mark(name)

    report = sweep(with_trouble, workload, check, tmp_path)
    assert report.violations == [], report.describe()
    assert report.states > 20


# -- the copy of the ledger


def with_copy(fs: Fs, folder: str) -> Mailbox:
    """A mailbox that keeps a copy in the folder; one that a crash has left under another path is ours."""
    state = Path(folder, "state")
    mailbox = Mailbox.with_fs(fs, folder, state=str(state))
    copy = mailbox._box.copy
    assert copy is not None
    for left in state.glob("ledgers/*.jsonl"):
        left.rename(copy.path)
    return mailbox


def gone_back(folder: str) -> None:
    """All messages were applied, and the ledger has none of them any more."""
    setup(folder)
    with_copy(UNSYNCED, folder).consume(echo)
    Path(folder, "log.jsonl").unlink()


def consume_with_copy(fs: Fs, folder: str) -> None:
    mailbox = with_copy(fs, folder)
    mailbox.consume(echo)
    mailbox.close()


def restore_ledger(fs: Fs, folder: str) -> None:
    mailbox = with_copy(fs, folder)
    mailbox.restore_ledger()
    mailbox.close()


def damaged(folder: str) -> None:
    """All messages were applied, and the line of the first one cannot be read any more."""
    setup(folder)
    with_copy(UNSYNCED, folder).consume(echo)
    log = Path(folder, "log.jsonl")
    log.write_bytes(b"\0" + log.read_bytes()[1:])


def mend_ledger(fs: Fs, folder: str) -> None:
    mailbox = with_copy(fs, folder)
    mailbox.restore_ledger()
    mailbox.set_damage_aside()
    mailbox.close()


def check_mended(folder: str, acked: tuple[Any, ...]) -> None:
    kept = [path.read_bytes()[:1] for path in Path(folder).glob("log.jsonl*")]
    assert b"\0" in kept, "the damaged line is gone"
    mend_ledger(UNSYNCED, folder)
    mailbox = with_copy(UNSYNCED, folder)
    mailbox.consume(fail)
    assert mailbox.status().problems == []
    once_each(folder)


def accept_ledger(fs: Fs, folder: str) -> None:
    mailbox = with_copy(fs, folder)
    mailbox.accept_ledger()
    mailbox.close()


def check_consumed(folder: str, acked: tuple[Any, ...]) -> None:
    """The copy never knows of more than the ledger, so no consumer is stopped by a power cut."""
    consume_with_copy(UNSYNCED, folder)
    once_each(folder)


def check_restored(folder: str, acked: tuple[Any, ...]) -> None:
    if not acked:
        restore_ledger(UNSYNCED, folder)
    with_copy(UNSYNCED, folder).consume(fail)
    once_each(folder)


def check_accepted(folder: str, acked: tuple[Any, ...]) -> None:
    accept_ledger(UNSYNCED, folder)
    with_copy(UNSYNCED, folder).consume(echo)
    once_each(folder)


COPIES: dict[str, tuple[Callable[[str], None], Callable[[Fs, str], None], Check]] = {
    "consume": (setup, consume_with_copy, check_consumed),
    "restore": (gone_back, restore_ledger, check_restored),
    "mend": (damaged, mend_ledger, check_mended),
    "accept": (gone_back, accept_ledger, check_accepted),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_ledger_and_its_copy_agree_after_any_power_cut(name: str, tmp_path: Path) -> None:
    before, call, check = COPIES[name]

    def operation(fs: RecordingFs) -> None:
        call(fs, fs.root)
        fs.mark(name)

    report = crash_sweep(before, operation, check, tmp_path, limit=40)
    assert report.violations == [], report.describe()
    assert report.states > 3


@pytest.mark.parametrize("name", COPIES)
def test_a_ledger_and_its_copy_agree_after_any_call_that_fails(name: str, tmp_path: Path) -> None:
    before, call, check = COPIES[name]

    def workload(fs: FaultFs, folder: str) -> None:
        call(fs, folder)
        fs.mark(name)

    report = sweep(before, workload, check, tmp_path)
    assert report.violations == [], report.describe()
    assert report.states > 5


# -- two at once


class Interrupted(WrappedFs):
    """Lets `other` do its work before the n-th call, or as soon as the lock of the session is free after that.

    While it is held, the other one could only wait.
    """

    def __init__(self, inner: Fs, n: int, other: Callable[[], object]) -> None:
        super().__init__(inner)
        self.left = n
        self.other = other
        self.done = False
        self.lock_fd = -1
        self.held = False

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left <= 0 and not self.held and not self.done:
            self.done = True
            self.other()
        result = super().call(name, *arguments, **options)
        if name == "open" and arguments[0].endswith("/.lock"):
            self.lock_fd = result
        elif name == "lock" and arguments[0] == self.lock_fd:
            self.held = arguments[1] != UNLOCK
        return result


def other_consumer(fs: Fs, folder: str, shared: bool, handler: Handler = echo) -> Callable[[], object]:
    def work() -> None:
        mailbox = Mailbox.with_fs(fs, folder, shared=shared)
        try:
            mailbox.consume(handler, timeout=0)
        except Locked:
            pass  # the first one works alone, and is not done yet
        finally:
            mailbox.close()

    return work


def consume_and_close(fs: Fs, folder: Path, shared: bool) -> None:
    mailbox = Mailbox.with_fs(fs, folder, shared=shared)
    mailbox.consume(echo)
    mailbox.close()


def calls_of_a_consumer(folder: Path, shared: bool) -> int:
    """How many calls one consumer makes without an interruption."""
    folder.mkdir()
    setup(str(folder))
    fs = FaultFs(UNSYNCED)
    consume_and_close(fs, folder, shared)
    return sum(count for name, count in fs.counts.items() if name != "any")


def race(fs: Fs, folder: str, n: int, shared: bool, handler: Handler = echo) -> Mailbox:
    other = other_consumer(fs, folder, shared, handler)
    first = Mailbox.with_fs(Interrupted(fs, n, other), folder, shared=shared)
    first.consume(handler, timeout=0)
    return first


def noting(called: list[str]) -> Handler:
    """A handler that notes for which messages it was called."""

    def note(crumb: Breadcrumb) -> None:
        called.append(crumb.breadcrumb_id)

    return note


def once_each(folder: str) -> None:
    assert applied(folder) == dict.fromkeys((f"id-{number}" for number in FIRST), 1)


@pytest.mark.parametrize("shared", MODES)
def test_a_second_consumer_at_any_moment_doubles_nothing(shared: bool, tmp_path: Path) -> None:
    calls = calls_of_a_consumer(tmp_path / "count", shared)
    assert calls > 30
    for n in range(1, calls + 1):
        folder = tmp_path / str(n)
        folder.mkdir()
        setup(str(folder))
        called: list[str] = []
        race(UNSYNCED, str(folder), n, shared, noting(called)).close()
        Mailbox.with_fs(UNSYNCED, folder, shared=shared).consume(noting(called))
        once_each(str(folder))
        assert sorted(called) == sorted(f"id-{number}" for number in FIRST)


@pytest.mark.parametrize("shared", MODES)
def test_a_second_consumer_takes_over_from_one_that_died_at_any_moment(shared: bool, tmp_path: Path) -> None:
    calls = calls_of_a_consumer(tmp_path / "count", shared)
    for n in range(1, calls + 1):
        folder = tmp_path / str(n)
        folder.mkdir()
        setup(str(folder))
        fs = FaultFs(UNSYNCED)

        def die(fs: FaultFs = fs) -> None:
            fs.dead = True

        with pytest.raises(Killed):
            consume_and_close(Interrupted(fs, n, die), folder, shared)
        fs.bury()
        Mailbox.with_fs(UNSYNCED, folder, shared=shared).consume(echo)
        once_each(str(folder))


def promise_of_a_race(shared: bool) -> Check:
    consume = ours(shared=shared)

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        if acked:
            once_each(folder)
        consume(UNSYNCED, folder)
        once_each(folder)

    return check


@pytest.mark.parametrize("shared", MODES)
def test_a_power_cut_during_a_race_leaves_each_message_once(shared: bool, tmp_path: Path) -> None:
    calls = calls_of_a_consumer(tmp_path / "count", shared)
    states = 0
    for n in range(1, calls + 1, 2):

        def racing(fs: RecordingFs, n: int = n) -> None:
            mailbox = race(fs, fs.root, n, shared)
            mailbox.close()
            if not mailbox.pending():
                fs.mark("all")

        report = crash_sweep(
            setup, racing, promise_of_a_race(shared), tmp_path / str(n), models=["prefix", "ordered"], limit=3
        )
        assert report.violations == [], report.describe()
        states += report.states
    assert states > 100


def test_the_ids_of_the_proof_are_those_of_its_messages() -> None:
    assert {"id-1", "id-4", "id-5", "id-6"} == IDS
