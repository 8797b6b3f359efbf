"""`sync watch`: synchronise sessions as they change, until interrupted."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from sessionary.cli import collect_garbage, options, output
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import cost_line, document, lines
from sessionary.cli.text import harmless
from sessionary.errors import Locked, RemoteError, SessionaryError, StorageFailed
from sessionary.sync.remote import HeadRecord, OpenRemote
from sessionary.sync.report import Hold, Report, SyncStatus
from sessionary.workspace.syncing import Connection

_MOVED = (SyncStatus.PUSHED, SyncStatus.PULLED, SyncStatus.TRASHED, SyncStatus.DIVERGED, SyncStatus.FAILED)


@command("watch", "sessionary sync watch", "sessionary sync watch --interval 300 --settle 10")
@places.local(quiet=True)
@options.seconds("--interval", default=60.0, least=1, help="How often to look for changes on the remote.")
@options.seconds(
    "--settle", default=3.0, least=0.1, help="Push once local files have not changed for this long."
)
@options.json_flag("--json", "--jsonl", "json_", help="Print JSON Lines: one push or pull per line.")
def watch_command(select: Callable[[], places.Here], interval: float, settle: float) -> int:
    """Push and pull changes as they happen, until Ctrl-C.

    If the remote does not answer, the command retries after the next interval. Nothing is queued in memory, so
    nothing is lost if the command is killed. On an interrupt or SIGTERM it finishes the current session and ends
    with exit code 0.

    There is no undo; see `sync push` and `sync pull`.
    """
    collect_garbage()
    here = select()
    remote = here.chosen.connect(here.state)
    try:
        with Stop() as stop, _ending(stop):
            Watch(here, remote, partial(_print, here)).run(stop, interval, settle)
    finally:
        remote.close()
    return 0


class Stop:
    """A stop flag that a signal handler may set at any moment of a wait.

    `threading.Event` is not usable: its `set` takes a lock that its `wait` takes in the same thread, so that
    a signal at the wrong moment would deadlock.
    """

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._is_set = False

    def __enter__(self) -> Stop:
        return self

    def __exit__(self, *_: object) -> None:
        self._receiver.close()
        self._sender.close()

    def set(self) -> None:
        """Set the flag."""
        if not self._is_set:
            self._is_set = True
            self._sender.send(b".")

    def is_set(self) -> bool:
        """True if the flag is set."""
        return self._is_set

    def wait(self, seconds: float) -> None:
        """Wait until the flag is set, at most this many seconds."""
        select.select([self._receiver], [], [], seconds)


class Watch:
    """Alternates pushes and pulls.

    Args:
        on_report: called with each result that has something to report.
        clock: seconds.
    """

    def __init__(
        self,
        here: places.Here,
        remote: OpenRemote,
        on_report: Callable[[Report], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._here = here
        self._remote = remote
        self._on_report = on_report
        self._clock = clock
        self._heads: dict[str, HeadRecord] | None = None
        self._held: set[tuple[str, str, Hold]] = set()

    def run(self, stop: Stop, interval: float, settle: float) -> None:
        """Run until the flag is set."""
        due = self._clock()
        sent: frozenset[tuple[str, int, int, int]] | None = None
        seen = None
        while not stop.is_set():
            if self._clock() >= due:
                self._carry(stop, pull=True)
                due, sent = self._clock() + interval, None  # a failed push may succeed now
            mark = self._mark()
            if mark != sent and mark == seen and not stop.is_set():
                self._carry(stop, pull=False)
                sent = mark
            seen = mark
            stop.wait(min(settle, max(0.0, due - self._clock())) if mark == sent else settle)

    def _carry(self, stop: Stop, *, pull: bool) -> None:
        heads, self._heads = self._heads, None
        try:
            with Progress("carrying", None) as progress:
                remote = Connection(self._here, self._remote, progress.advance)
                places.finish_removal(self._here.settings, remote.remote, partial(_rest, stop))
                if stop.is_set():
                    return
                if pull:
                    report = remote.report(map(remote.pull, remote.engines()))
                    self._heads = remote.heads  # the next push uses the same list
                else:
                    report = remote.report(engine.push(heads=heads) for engine in remote.engines())
        except (RemoteError, Locked, StorageFailed) as error:
            output.aside(harmless(f"sessionary: {error.message}; trying again"))
            return
        held = {(one.kind, one.session_id, hold) for one in report.outcomes for hold in one.held}
        if held - self._held or report.of(*_MOVED):
            self._on_report(report)
        self._held = held

    def _mark(self) -> frozenset[tuple[str, int, int, int]]:
        """All files with their sizes and both of their times; a different set means a change."""
        found = set()
        for layout in self._here.layouts():
            for ref in layout.discover():
                try:
                    for part in layout.parts(ref):
                        stat = os.stat(part.path)
                        found.add((part.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
                except (OSError, SessionaryError):
                    continue  # it is being renamed; the next pass finds it
        return frozenset(found)


def _rest(stop: Stop, seconds: float) -> None:
    """Wait; if the flag is set meanwhile, raise, and leave the work to the next command."""
    stop.wait(seconds)
    if stop.is_set():
        raise Locked("this watch was interrupted", operation="gc")


@contextmanager
def _ending(stop: Stop) -> Iterator[None]:
    """A block in which a first request to end is deferred; a second one ends at once."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def handler(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.default_int_handler(number, frame)
        stop.set()

    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


def _print(here: places.Here, report: Report) -> None:
    if output.is_json():
        output.values([document(report, here)])
        output.flush()
        return
    output.lines(lines(report, here))
    output.flush()
    output.aside(cost_line(report.cost))
