"""A message that its producer finishes in place, however late, is applied by a consumer that runs all the while."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox, run_inbox
from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox import Report
from sessionary.testing.wrapper import WrappedFs
from tests.messages import echo, lines, prompts, put

KINDS = pytest.mark.parametrize("shared", [False, True], ids=["exclusive", "shared"])
LONG = 60.0


class Slow:
    """A message of which half was written a minute ago, in a folder where nothing has happened since."""

    def __init__(self, session: Path) -> None:
        crumb = put(session, "slow", number=1)
        self.path = session / "breadcrumbs" / "0" / f"{crumb.timestamp}.json"
        self.whole = self.path.read_bytes()
        self.path.write_bytes(self.whole[:40])
        minute_ago = time.time() - 60
        for path in (self.path, self.path.parent, self.path.parent.parent):
            os.utime(path, (minute_ago, minute_ago))

    def finish(self) -> None:
        """Write the rest into the file that is there, as its producer does."""
        with open(self.path, "ab") as file:
            file.write(self.whole[40:])


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(tmp_path)


@KINDS
def test_it_is_applied_by_the_next_call_of_the_same_mailbox(shared: bool, slow: Slow, tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, shared=shared)
    report = mailbox.consume(echo)
    assert (report.applied, report.pending, [each.code for each in report.problems]) == (
        0,
        0,
        ["bad_breadcrumb"],
    )
    assert mailbox.consume(echo).problems == []
    slow.finish()
    assert [crumb.prompt for crumb in mailbox.pending()] == ["slow"]
    assert (mailbox.status().pending, mailbox.status().bad) == (1, [])
    report = mailbox.consume(echo)
    assert (report.applied, report.pending, report.problems) == (1, 0, [])
    assert prompts(tmp_path) == ["slow"]
    assert mailbox.consume(echo).applied == 0


def test_a_read_only_mailbox_sees_it_too(slow: Slow, tmp_path: Path) -> None:
    Mailbox(tmp_path).consume(echo)
    mailbox = Mailbox(tmp_path)
    assert mailbox.pending() == []
    slow.finish()
    assert [crumb.prompt for crumb in mailbox.pending()] == ["slow"]


def test_one_that_was_never_reported_is_looked_at_again_as_well(slow: Slow, tmp_path: Path) -> None:
    os.utime(slow.path)  # written just now: it counts as not yet written
    mailbox = Mailbox(tmp_path)
    assert (mailbox.consume(echo).unwritten, mailbox.pending()) == (1, [])
    os.utime(slow.path, (time.time() - 60,) * 2)
    assert [each.code for each in mailbox.consume(echo).problems] == ["bad_breadcrumb"]
    slow.finish()
    assert mailbox.consume(echo).applied == 1


def test_a_file_of_the_same_size_is_looked_at_by_its_time(slow: Slow, tmp_path: Path) -> None:
    slow.path.write_bytes(slow.whole[:40].ljust(len(slow.whole)))
    os.utime(slow.path, (time.time() - 60,) * 2)
    mailbox = Mailbox(tmp_path)
    assert len(mailbox.consume(echo).problems) == 1
    with open(slow.path, "r+b") as file:
        file.write(slow.whole)
    assert mailbox.consume(echo).applied == 1


def test_one_that_is_finished_while_it_is_judged_is_not_remembered_as_bad(slow: Slow, tmp_path: Path) -> None:
    class Finishing(WrappedFs):
        """Finishes the message after it was read, before its size and time are taken."""

        def call(self, name: str, *arguments: Any, **options: Any) -> Any:
            if name == "stat" and arguments[0] == str(slow.path):
                done.append(name)
                if len(done) == 1:
                    slow.finish()
            return super().call(name, *arguments, **options)

    done: list[str] = []
    mailbox = Mailbox.with_fs(Finishing(OS_FS), tmp_path)
    mailbox.consume(echo)
    assert done
    mailbox.consume(echo)
    assert prompts(tmp_path) == ["slow"]
    assert lines(tmp_path / "attempts.work.jsonl") == []


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Callable[..., list[Report]]]:
    """Runs a loop in a thread of its own until the message is applied, and finishes it after the first report."""
    threads: list[threading.Thread] = []
    stop = threading.Event()

    def run(slow: Slow, work: Callable[..., object]) -> list[Report]:
        reports: list[Report] = []
        reported = threading.Event()

        def tell(report: Report) -> None:
            reports.append(report)
            reported.set()

        def apply(crumb: Breadcrumb) -> dict[str, Any]:
            stop.set()
            return echo(crumb)

        threads.append(threading.Thread(target=work, args=(apply, stop, tell)))
        threads[-1].start()
        assert reported.wait(LONG)
        slow.finish()
        threads[-1].join(LONG)
        return reports

    yield run
    stop.set()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_the_loop_of_a_worker_applies_it(loop: Callable[..., list[Report]], tmp_path: Path) -> None:
    session = WorkStore(tmp_path).create("work_task").session_id
    slow = Slow(tmp_path / session)

    def work(apply: Any, stop: threading.Event, tell: Any) -> None:
        run_inbox(session, apply, 0.1, stop, base_path=tmp_path, on_report=tell)

    reports = loop(slow, work)
    assert [report.applied for report in reports] == [0, 1]
    assert prompts(tmp_path / session) == ["slow"]


def test_a_producer_that_never_closes_its_file_is_found_by_the_interval(
    loop: Callable[..., list[Report]], tmp_path: Path
) -> None:
    """The kernel reports files that are closed; this one is not."""
    slow = Slow(tmp_path)
    with open(slow.path, "ab", buffering=0) as file:
        slow.finish = lambda: file.write(slow.whole[40:])  # type: ignore[method-assign, assignment]
        loop(slow, lambda apply, stop, tell: Mailbox(tmp_path).run(apply, 0.1, stop, tell))
    assert prompts(tmp_path) == ["slow"]


def test_one_that_is_finished_while_it_is_moved_away_stays_and_is_applied(slow: Slow, tmp_path: Path) -> None:
    class Finishing(WrappedFs):
        def rename(self, source: str, target: str) -> None:
            slow.finish()
            super().rename(source, target)

    mailbox = Mailbox.with_fs(Finishing(OS_FS), tmp_path)
    mailbox.consume(echo)
    assert mailbox.quarantine() == []
    assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == ["slow"]


def test_a_watching_user_sees_it(slow: Slow, tmp_path: Path) -> None:
    put(tmp_path, "first", number=0)
    mailbox = Mailbox(tmp_path)
    mailbox.consume(echo, limit=0)
    watching = mailbox.watch(interval=0.05)
    assert next(watching).prompt == "first"
    slow.finish()
    assert next(watching).prompt == "slow"
    watching.close()
