"""Whoever watches wakes up at once where the kernel tells, and a little later everywhere else."""

import os
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
from sessionary.mailbox import Report
from sessionary.mailbox.notices import Notices, notices
from sessionary.mailbox.watching import Sleeper, Waker, Watchfiles, wait, waker
from tests.messages import echo, prompts, put

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="inotify is a thing of Linux")
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
        assert len(mailbox.pending()) == number  # takes what the kernel has told
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


def wakers(folder: Path) -> list[Waker]:
    told = notices(str(folder), is_crumb_name)
    return [*([waker(told, is_crumb_name)] if told else []), Watchfiles(is_crumb_name), Sleeper()]


@pytest.mark.parametrize("which", [pytest.param(0, marks=LINUX), 1], ids=["kernel", "watchfiles"])
def test_a_waker_wakes_up_for_names_that_matter(which: int, tmp_path: Path, together: Any) -> None:
    waking = wakers(tmp_path)[which]
    assert waking.watch([str(tmp_path), str(tmp_path / "gone")])
    assert not waking.watch([str(tmp_path)])
    waking.wait(0.05)  # whatever an earlier write has left

    def write() -> None:
        for number in range(150):  # watchfiles begins to look only while somebody waits
            time.sleep(0.1)
            (tmp_path / f"{number}.json").touch()
            if done:
                return

    done: list[bool] = []
    together(write)
    began = time.monotonic()
    waking.wait(LONG)
    done.append(True)
    assert time.monotonic() - began < LONG / 4
    waking.close()
    waking.close()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_waker_sleeps_no_longer_than_it_is_told_to(which: int, tmp_path: Path) -> None:
    waking = wakers(tmp_path)[which]
    waking.watch([str(tmp_path)])
    (tmp_path / "no message.tmp").touch()
    began = time.monotonic()
    waking.wait(0.05)
    assert 0.04 < time.monotonic() - began < LONG / 4
    waking.close()


def test_without_folders_watchfiles_sleeps(tmp_path: Path) -> None:
    waking = Watchfiles(is_crumb_name)
    assert not waking.watch([str(tmp_path / "gone")])
    began = time.monotonic()
    waking.wait(0.02)
    assert time.monotonic() - began >= 0.02


def test_a_wait_ends_soon_after_it_is_to_stop() -> None:
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    wait(Sleeper(), LONG, stop)
    assert time.monotonic() - began < LONG / 4
    wait(Sleeper(), 0.01, None)
    assert time.monotonic() - began >= 0.01


# -- what the kernel tells


@LINUX
def test_the_kernel_tells_names_from_the_first_question_on(tmp_path: Path) -> None:
    told = Notices(is_crumb_name)
    assert told.take(str(tmp_path)) is None
    assert told.watch(str(tmp_path))
    (tmp_path / "early.json").touch()
    assert told.take(str(tmp_path)) is None  # what was there before the watch nobody knows: list
    assert told.take(str(tmp_path)) == set()
    (tmp_path / "a.json").touch()
    (tmp_path / "a.tmp").touch()
    os.link(tmp_path / "a.tmp", tmp_path / "b.json")
    os.rename(tmp_path / "a.tmp", tmp_path / "c.json")
    assert told.take(str(tmp_path)) == {"a.json", "b.json", "c.json"}
    told.close()
    assert told.take(str(tmp_path)) is None
    assert not told.watch(str(tmp_path))


@LINUX
def test_a_folder_that_was_replaced_has_to_be_listed_again(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    told = Notices(is_crumb_name)
    told.watch(str(folder))
    told.take(str(folder))
    folder.rmdir()
    folder.mkdir()
    assert told.take(str(folder)) is None
    assert told.watch(str(folder))


@LINUX
def test_when_events_were_dropped_everything_has_to_be_listed_again(tmp_path: Path) -> None:
    told = Notices(is_crumb_name)
    told.watch(str(tmp_path))
    told.take(str(tmp_path))
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 2):  # each is told as made and as written
        (tmp_path / f"{number}.json").touch()
    assert told.take(str(tmp_path)) is None
    assert told.watch(str(tmp_path))
    told.close()


@LINUX
def test_a_mailbox_learns_names_without_listing_and_misses_none(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    put(tmp_path, "0")
    mailbox.consume(echo)
    for number in range(1, 30):
        put(tmp_path, str(number), depth=number % 3)
        assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == [str(number) for number in range(30)]


@LINUX
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


def test_the_loop_applies_what_waits_and_what_comes_until_it_is_stopped(
    tmp_path: Path, together: Any
) -> None:
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


def test_the_loop_tells_of_what_went_wrong_and_tries_again(tmp_path: Path) -> None:
    session = WorkStore(tmp_path).create("work_task")
    put(tmp_path / session.session_id, "a")
    reports: list[Report] = []

    def apply(crumb: Breadcrumb) -> None:
        if len(reports) < 2:
            raise RuntimeError("not yet")

    run_inbox("latest", apply, 0, lambda: len(reports) == 3, base_path=tmp_path, tell=reports.append)
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

    from tests.support.faults import FaultFs

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
