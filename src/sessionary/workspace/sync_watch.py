"""Synchronise sessions as they change: alternating pushes and pulls, until stopped."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from sessionary.disk.fs import OS_FS, stat_or_none
from sessionary.errors import Locked, RemoteError, SessionaryError, StorageFailed
from sessionary.sync.remote import HeadRecord, OpenRemote
from sessionary.sync.report import Hold, Report, SyncStatus
from sessionary.workspace.syncing import Connection, Local, finish_removal

_MOVED = (SyncStatus.PUSHED, SyncStatus.PULLED, SyncStatus.TRASHED, SyncStatus.DIVERGED, SyncStatus.FAILED)


class Advances(Protocol):
    """A progress bar."""

    def advance(self) -> None:
        """One more request."""


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
        on_failure: called with a text for each failure; the next pass tries again.
        progress: the bar of one push or pull; its `advance` is called with each request.
        clock: seconds.
    """

    def __init__(
        self,
        here: Local,
        remote: OpenRemote,
        on_report: Callable[[Report], None],
        on_failure: Callable[[str], None],
        progress: Callable[[], AbstractContextManager[Advances]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._here = here
        self._remote = remote
        self._on_report = on_report
        self._on_failure = on_failure
        self._progress = progress
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
            with self._progress() as progress:
                remote = Connection(self._here, self._remote, progress.advance)
                rest = partial(_rest, stop)
                for failure in finish_removal(self._here.settings, remote.remote, rest):
                    self._on_failure(failure)
                if stop.is_set():
                    return
                if pull:
                    report = remote.report(map(remote.pull, remote.engines()))
                    self._heads = remote.heads  # the next push uses the same list
                else:
                    report = remote.report(engine.push(heads=heads) for engine in remote.engines())
        except (RemoteError, Locked, StorageFailed) as error:
            self._on_failure(f"{error.message}; trying again")
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
                        if (stat := stat_or_none(OS_FS, part.path)) is not None:
                            found.add((part.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
                except SessionaryError:
                    continue  # it is being renamed; the next pass finds it
        return frozenset(found)


def _rest(stop: Stop, seconds: float) -> None:
    """Wait; if the flag is set meanwhile, raise, and leave the work to the next command."""
    stop.wait(seconds)
    if stop.is_set():
        raise Locked("this watch was interrupted", operation="gc")
