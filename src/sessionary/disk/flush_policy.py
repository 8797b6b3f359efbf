"""Flush policy of journals: the three durability levels.

``full`` flushes before it returns. ``batch`` flushes after 64 lines, or 200 ms after the first unflushed line (in a
daemon thread), at close and at exit: a crash of the process loses nothing, a power cut at most those lines. ``none``
leaves flushing to the kernel.
"""

from __future__ import annotations

import atexit
import threading
import time
from typing import Literal, get_args

from sessionary.disk.journal import Journal
from sessionary.disk.lifetime import reset_in_child
from sessionary.errors import Invalid, StorageFailed

Durability = Literal["full", "batch", "none"]


def check_durability(level: str) -> Durability:
    """Return `level` as a `Durability`. Raises Invalid if it is not one of the three."""
    for known in get_args(Durability):
        if level == known:
            return known  # type: ignore[no-any-return]
    raise Invalid(f"unknown durability level {level!r}", hint="use 'full', 'batch' or 'none'")


class Committer:
    """Flushes journals according to their durability level. One instance per process: `COMMITTER`."""

    LINES = 64
    SECONDS = 0.2

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Journal, int, float]] = {}
        self._flushing: set[int] = set()
        self._guard = threading.Lock()
        self._wake = threading.Condition(self._guard)
        self._thread: threading.Thread | None = None

    def commit(self, journal: Journal, level: Durability, lines: int) -> None:
        """Flush, or schedule a flush, after `lines` were appended. Call it without holding the lock.

        Raises:
            StorageFailed: a flush failed: now (`full`, or the 64th line), or in the background since the last call.
        """
        if level == "full":
            journal.flush()
        elif level == "batch":
            self._defer(journal, lines)

    def _defer(self, journal: Journal, lines: int) -> None:
        with self._guard:
            _, waiting, since = self._waiting.get(id(journal), (journal, 0, time.monotonic()))
            waiting += lines
            full = waiting >= self.LINES
            if full:
                self._waiting.pop(id(journal), None)
            else:
                self._waiting[id(journal)] = (journal, waiting, since)
                if self._thread is None:
                    self._start()
                elif waiting == lines:
                    self._wake.notify()
        if full:
            journal.flush()

    def settle(self, journal: Journal) -> None:
        """Run a pending flush of this journal now (at close). Raises StorageFailed as `Journal.flush` does."""
        if self._take(journal):
            journal.flush()
        journal.raise_failure()

    def _take(self, journal: Journal) -> bool:
        """Claim a pending flush for the caller; False if there is none. Waits for a flush in progress."""
        with self._guard:
            while id(journal) in self._flushing:
                self._wake.wait()
            return self._waiting.pop(id(journal), None) is not None

    def settle_all(self) -> None:
        """Run all pending flushes (at exit). A journal whose flush fails is marked suspect."""
        with self._guard:
            while self._flushing:
                self._wake.wait()
            waiting = [journal for journal, _, _ in self._waiting.values()]
            self._waiting.clear()
        for journal in waiting:
            _flush_unheard(journal)

    def forget(self) -> None:
        """Reset in a forked child: threads are not inherited, and the parent flushes its own writes."""
        self.__init__()  # type: ignore[misc]

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sessionary-flush", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            with self._guard:
                while not self._waiting:
                    self._wake.wait()
                now = time.monotonic()
                due = [key for key, (_, _, since) in self._waiting.items() if now - since >= self.SECONDS]
                journals = [self._waiting.pop(key)[0] for key in due]
                if not journals:
                    first = min(since for _, _, since in self._waiting.values())
                    self._wake.wait(max(0.001, first + self.SECONDS - now))
                    continue
                self._flushing.update(map(id, journals))
            for journal in journals:
                _flush_unheard(journal)
            with self._guard:
                self._flushing.difference_update(map(id, journals))
                self._wake.notify_all()


def _flush_unheard(journal: Journal) -> None:
    """Flush in the background: a failure is stored in the journal and raised by its next call."""
    try:
        journal.flush()
    except StorageFailed as error:
        journal.failure = error


COMMITTER = Committer()
atexit.register(COMMITTER.settle_all)
reset_in_child([COMMITTER], Committer.forget)
