"""A watch wakes up at once where the file system reports events, and a little later everywhere else."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary import Locked, Mailbox, NotFound, run_inbox
from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.names import is_crumb_name
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox import Report, watching
from sessionary.mailbox.watching import Waker, Watchfiles, wait, waker
from tests.messages import echo, prompts, put
from tests.support.faults import FaultFs

LONG = 80.0


@pytest.fixture
def together() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Starts threads that must have ended with the test."""
    threads: list[threading.Thread] = []

    def begin(work: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return threads[-1]

    yield begin
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def waits(thread: int) -> bool:
    """Whether a thread waits in a mailbox just now."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_name == "wait" and "sessionary" in frame.f_globals["__name__"]:
            return True
        frame = frame.f_back
    return False


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + LONG / 2
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


def later(work: Callable[[], object]) -> Callable[[], None]:
    """The work, as soon as the caller of this function waits in a mailbox."""
    sleeper = threading.get_ident()

    def wait_and_work() -> None:
        until(lambda: waits(sleeper))
        work()

    return wait_and_work


# -- watch


def test_what_waits_comes_first_and_then_each_new_message_once(tmp_path: Path, together: Any) -> None:
    put(tmp_path, "old", number=1)
    watching = Mailbox(tmp_path).watch(interval=LONG)
    assert next(watching).prompt == "old"
    began = time.monotonic()
    together(later(lambda: (put(tmp_path, "new", number=2), put(tmp_path, "newer", number=3, depth=7))))
    assert [next(watching).prompt, next(watching).prompt] == ["new", "newer"]
    assert time.monotonic() - began < LONG / 4  # it was woken: the poll comes later
    watching.close()


def test_a_session_without_breadcrumbs_is_watched_too(tmp_path: Path, together: Any) -> None:
    watching = Mailbox(tmp_path).watch(interval=LONG)
    together(later(lambda: put(tmp_path, "first", depth=3)))
    began = time.monotonic()
    assert next(watching).prompt == "first"
    assert time.monotonic() - began < LONG / 4


def test_a_message_that_the_body_of_the_loop_came_across_is_still_shown_at_once(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    mailbox = Mailbox(tmp_path)
    watching = mailbox.watch(interval=LONG)
    began = time.monotonic()
    assert next(watching).prompt == "a"
    for number in (2, 3):
        put(tmp_path, str(number), number=number)
        assert len(mailbox.pending()) == number  # takes what the kernel has reported
        assert next(watching).prompt == str(number)
    assert time.monotonic() - began < LONG / 4


def test_a_message_that_is_written_in_place_comes_when_it_is_whole(tmp_path: Path, together: Any) -> None:
    put(tmp_path / "elsewhere", "slow", number=1)
    (whole,) = (tmp_path / "elsewhere").rglob("*.json")
    target = tmp_path / "breadcrumbs" / "0" / whole.name
    target.parent.mkdir(parents=True)
    data = whole.read_bytes()
    target.write_bytes(data[:50])

    def finish() -> None:
        with target.open("ab") as file:
            file.write(data[50:])

    together(later(finish))  # the watcher has read the half, and waits
    began = time.monotonic()
    assert next(Mailbox(tmp_path).watch(interval=LONG)).prompt == "slow"
    assert time.monotonic() - began < LONG / 4


def test_what_is_applied_while_it_is_watched_is_not_shown_again(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    put(tmp_path, "b", number=2)
    mailbox = Mailbox(tmp_path)
    stop = threading.Event()
    seen = []
    for crumb in mailbox.watch(interval=0.01, stop=stop):
        seen.append(crumb.prompt)
        mailbox.consume(echo)
        if len(seen) == 2:
            stop.set()
        put(tmp_path, "c", number=3)
    assert seen == ["a", "c"]


def test_a_copy_with_an_older_name_is_not_shown_again(tmp_path: Path) -> None:
    message = put(tmp_path, "a", number=2)
    watching = Mailbox(tmp_path).watch(interval=0.01)
    assert next(watching).prompt == "a"
    put(tmp_path, "a", number=1, known=message.breadcrumb_id)
    put(tmp_path, "b", number=3)
    assert next(watching).prompt == "b"


def test_an_event_or_a_function_ends_it(tmp_path: Path, together: Any) -> None:
    stop = threading.Event()
    together(later(stop.set))
    assert list(Mailbox(tmp_path).watch(interval=LONG, stop=stop)) == []
    asked: list[bool] = []

    def enough() -> bool:
        asked.append(True)
        return len(asked) > 3

    assert list(Mailbox(tmp_path).watch(interval=0.001, stop=enough)) == []


# -- wakers


def wakers() -> list[Waker]:
    return [Watchfiles(is_crumb_name), Waker()]


def woken(waking: Waker, work: Callable[[], object]) -> bool:
    """Whether `work`, done once before the wait, wakes the waker long before its time."""
    work()
    began = time.monotonic()
    return waking.wait(LONG) and time.monotonic() - began < LONG / 4


def test_a_waker_wakes_up_for_names_that_matter(tmp_path: Path) -> None:
    waking = Watchfiles(is_crumb_name)
    assert waking.watch([str(tmp_path), str(tmp_path / "gone")])
    assert not waking.watch([str(tmp_path)])
    assert woken(waking, (tmp_path / "a.json").touch)
    (tmp_path / "b.tmp").touch()
    assert not waking.wait(0.1)
    assert woken(waking, lambda: (tmp_path / "b.tmp").rename(tmp_path / "b.json"))
    waking.close()
    waking.close()


def test_a_waker_wakes_up_when_a_file_is_finished_in_place(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"{")
    waking = Watchfiles(is_crumb_name)
    waking.watch([str(tmp_path)])
    assert woken(waking, lambda: file.write_bytes(b"{}"))
    waking.close()


def test_a_folder_that_was_replaced_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    folder.mkdir()
    waking = Watchfiles(is_crumb_name)
    waking.watch([str(folder)])
    folder.rename(tmp_path / "away")
    folder.mkdir()
    assert waking.watch([str(folder)])
    assert woken(waking, (folder / "a.json").touch)
    waking.close()


@pytest.mark.parametrize("which", [0, 1])
def test_a_waker_sleeps_no_longer_than_its_limit(which: int, tmp_path: Path) -> None:
    waking = wakers()[which]
    waking.watch([str(tmp_path)])
    (tmp_path / "no message.tmp").touch()
    began = time.monotonic()
    assert not waking.wait(0.05)
    assert 0.04 < time.monotonic() - began < LONG / 4
    waking.close()


def test_without_folders_a_waker_sleeps(tmp_path: Path) -> None:
    waking = Watchfiles(is_crumb_name)
    assert not waking.watch([str(tmp_path / "gone")])
    began = time.monotonic()
    assert not waking.wait(0.02)
    assert time.monotonic() - began >= 0.015


def test_at_the_limit_of_watches_the_poll_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", refused)
    waking = Watchfiles(is_crumb_name)
    assert waking.watch([str(tmp_path)])
    assert not waking.watch([str(tmp_path)])
    began = time.monotonic()
    assert not waking.wait(0.02)
    assert time.monotonic() - began >= 0.015
    waking.close()


def test_doubles_and_file_systems_of_other_hosts_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(tmp_path)
    assert isinstance(waker(OS_FS, here, is_crumb_name), Watchfiles)
    assert type(waker(FaultFs(OS_FS), here, is_crumb_name)) is Waker
    monkeypatch.setattr(watching, "is_remote", lambda folder: folder == here)
    assert type(waker(OS_FS, here, is_crumb_name)) is Waker


def test_a_waker_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    def listeners() -> int:
        return sum(thread.name == "sessionary-watch" for thread in threading.enumerate())

    before = listeners()
    waking = Watchfiles(is_crumb_name)
    waking.watch([str(tmp_path)])
    assert listeners() == before + 1
    del waking
    assert listeners() == before


def test_what_a_signal_handler_raises_ends_a_watch_at_once(tmp_path: Path, together: Any) -> None:
    class Ended(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Ended

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        together(later(lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)))
        began = time.monotonic()
        with pytest.raises(Ended):
            next(Mailbox(tmp_path).watch(interval=LONG))
        assert time.monotonic() - began < LONG / 4
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_process_that_ends_in_the_middle_of_a_watch_ends_well(tmp_path: Path) -> None:
    put(tmp_path, "a")
    code = f"import sessionary; watching = sessionary.Mailbox({str(tmp_path)!r}).watch(); print(next(watching).prompt)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ended.stdout, ended.stderr) == ("a\n", "")


def test_nothing_of_watchfiles_is_imported_before_a_watch_begins(tmp_path: Path) -> None:
    code = (
        f"import sys, sessionary; mailbox = sessionary.Mailbox({str(tmp_path)!r}); mailbox.consume(print);"
        "print('watchfiles' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "False\n"


def test_a_wait_ends_soon_after_it_is_to_stop() -> None:
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    wait(Waker(), LONG, stop)
    assert time.monotonic() - began < LONG / 4
    wait(Waker(), 0.01, None)
    assert time.monotonic() - began >= 0.01


def test_a_mailbox_misses_no_message_of_many_that_come_one_by_one(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    put(tmp_path, "0")
    mailbox.consume(echo)
    for number in range(1, 30):
        put(tmp_path, str(number), depth=number % 3)
        assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == [str(number) for number in range(30)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_lists_for_itself_and_steals_nothing(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    for number in range(3):
        put(tmp_path, str(number), number=number)
        mailbox.consume(echo)
    put(tmp_path, "after", number=9)
    child = os.fork()
    if not child:
        os._exit(0 if len(mailbox.pending()) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert mailbox.consume(echo).applied == 1


# -- the loop


def test_the_loop_applies_pending_and_new_messages_until_stopped(tmp_path: Path, together: Any) -> None:
    session = WorkStore(tmp_path).create("work_task")
    folder = tmp_path / session.session_id
    put(folder, "old", number=1)
    stop = threading.Event()

    def apply(crumb: Breadcrumb) -> dict[str, Any]:
        if crumb.prompt == "last":
            stop.set()
        return echo(crumb)

    together(later(lambda: (put(folder, "new", number=2), put(folder, "last", number=3))))
    assert run_inbox(session.session_id[:8], apply, LONG, stop, base_path=tmp_path) == 3
    assert prompts(folder) == ["old", "new", "last"]


def test_the_loop_reports_what_went_wrong_and_tries_again(tmp_path: Path) -> None:
    session = WorkStore(tmp_path).create("work_task")
    put(tmp_path / session.session_id, "a")
    reports: list[Report] = []

    def apply(crumb: Breadcrumb) -> None:
        if len(reports) < 2:
            raise RuntimeError("not yet")

    run_inbox("latest", apply, 0, lambda: len(reports) == 3, base_path=tmp_path, on_report=reports.append)
    assert [report.applied for report in reports] == [0, 0, 1]


def test_the_loop_wants_a_session_and_to_be_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound):
        run_inbox("0f0f0f0f-gone", echo)
    session = WorkStore(tmp_path / "docs" / "sessions").create("work_task")
    mailbox = Mailbox(tmp_path / "docs" / "sessions" / session.session_id)
    put(tmp_path / "docs" / "sessions" / session.session_id, "a")

    def meddle(crumb: Breadcrumb) -> None:
        other = Mailbox(tmp_path / "docs" / "sessions" / session.session_id)
        with pytest.raises(Locked):
            other.consume(echo, timeout=0)

    assert mailbox.consume(meddle).failures == []
    assert run_inbox(session.session_id, echo, stop=lambda: True) == 0


def test_an_idle_mailbox_lists_nothing_and_opens_nothing(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    for number in range(5):
        put(tmp_path, str(number), depth=number % 2)
    fs = FaultFs(OS_FS)
    mailbox = Mailbox.with_fs(fs, tmp_path, now=lambda: datetime.now(UTC) + timedelta(seconds=3))
    mailbox.consume(echo)
    mailbox.pending()
    before = fs.counts.copy()
    for _ in range(10):
        assert mailbox.pending() == []
    made = fs.counts - before
    assert made == {"stat": 10 * (2 + 1 + 2)}  # two depths, their folder, ledger and attempts
