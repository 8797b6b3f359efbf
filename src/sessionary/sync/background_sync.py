"""Background sync: a thread that sends changed sessions, and sleeps while they are written.

A writer only records that a session changed: a clock read and a table entry. The thread is not woken; it sleeps until
the first moment at which a session could be due, and checks then. So a run of saves has the processor for itself, and
its changes are sent together afterwards.

A session is sent when nothing was written for `QUIET` seconds, or earlier when `BULK` bytes have come together, and
at most `LATEST` seconds after the first change. If the remote does not answer, the pause before the next attempt
doubles each time; writing is not affected. Nothing is queued here that could be lost: the files are the
queue, and the next program finds what was not sent.

When the main thread ends, pending sessions are sent at once, then those that earlier programs left, in `AT_EXIT`
seconds for all instances together.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - see `_when_main_ends`
import logging
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sessionary.disk.lifetime import reset_in_child

# A generator of our own: a seed that the program set on the shared one stays effective. A forked child seeds anew.
_CHANCE = random.SystemRandom()

QUIET = 2.0
BULK = 64 << 10
LATEST = 30.0
APART = 1.0
"""Least seconds between the end of a delivery and the beginning of the next."""

BATCH = 20
"""Most sessions in one delivery, so that the thread checks for news in between."""

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0

AT_EXIT = 2.0
"""Seconds that the end of a program waits for all instances together."""

_log = logging.getLogger("sessionary.sync")


class Delivered(NamedTuple):
    """Result of a delivery.

    Attributes:
        answered: False if the remote did not answer: it is then left alone for a while.
    """

    again: Collection[str] = ()
    answered: bool = True


@dataclass(slots=True)
class _Waiting:
    since: float
    until: float  # time of the last change


class BackgroundSync:
    """Sends sessions in the background. Every method may be called by any thread.

    Args:
        carry: sends sessions, in the background thread; an exception counts as no answer.
        clock: monotonic seconds.

    Attributes:
        given_up: set when nothing may be sent any more; `carry` must then end soon.
    """

    def __init__(
        self,
        carry: Callable[[list[str]], Delivered],
        *,
        clock: Callable[[], float] = time.monotonic,
        thread: Callable[..., threading.Thread] = threading.Thread,
    ) -> None:
        self.given_up = threading.Event()
        self.clock = clock
        self._carry = carry
        self._new_thread = thread
        self._closing = False
        self._start_over()
        _running.add(self)

    def _start_over(self) -> None:
        # A plain lock: a condition costs several times as much, at every save.
        self._guard = threading.Lock()
        self._news = threading.Condition(self._guard)
        self._thread: threading.Thread | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._under_way: list[str] = []
        self._find: Callable[[], list[str]] | None = None
        self._backlog: list[str] = []
        self._touched = self.clock()
        self._weight = 0
        self._not_before = self.clock()
        self._failures = 0
        self._deadline: float | None = None
        self._rested = threading.Event()

    # -- notifications from writers

    def touched(self, session: str, weight: int = 0) -> None:
        """Record a change of a session, of about `weight` bytes. Never blocks for long."""
        with self._guard:
            now = self._touched = self.clock()
            known = self._waiting.get(session)
            if known is None:
                self._waiting[session] = _Waiting(now, now)
            else:
                known.until = now
            before, self._weight = self._weight, self._weight + weight
            if self._thread is None:
                self._start()
            elif (known is None and len(self._waiting) == 1) or before < BULK <= self._weight:
                self._news.notify_all()  # it may sleep without a timeout, or too long

    def look_through(self, find: Callable[[], list[str]]) -> None:
        """Also send sessions that earlier programs may have left, at low priority.

        Args:
            find: lists them; called in the background thread.
        """
        with self._guard:
            self._find = find
            if self._thread is None:
                self._start()
            self._news.notify_all()

    def carried(self, since: float) -> None:
        """Record that another caller sent everything as of `since`; later changes stay pending."""
        with self._guard:
            for session in [name for name, one in self._waiting.items() if one.until < since]:
                del self._waiting[session]
            self._answered()

    @property
    def waiting(self) -> list[str]:
        """Sessions that are known to be changed and not known to be sent."""
        with self._guard:
            return sorted({*self._waiting, *self._under_way})

    # -- the end

    @property
    def patience(self) -> float:
        """Seconds that a delivery may wait for another synchronising program: none, except at the end."""
        deadline = self._deadline
        return 0.0 if deadline is None else max(0.0, deadline - self.clock())

    def hurry(self, seconds: float) -> None:
        """Send pending sessions now, then those that earlier programs left, for `seconds`. Does not wait."""
        with self._guard:
            self._hurry(seconds)

    def wait(self, timeout: float) -> None:
        """Wait until a `hurry` is finished, at most `timeout` seconds."""
        self._rested.wait(max(0.0, timeout))

    def finish(self, seconds: float = AT_EXIT) -> None:
        """As `hurry`, then stop."""
        with self._guard:
            self._closing = True
            self._hurry(seconds)

    def close(self, timeout: float) -> None:
        """As `finish`, and wait at most `timeout` seconds; unsent sessions stay unsent."""
        self.finish(timeout)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, timeout))
        self.given_up.set()

    def _hurry(self, seconds: float) -> None:
        self._deadline = self.clock() + seconds
        self._rested.clear()
        if self._thread is None and self._waiting:
            self._start()
        if self._thread is None or not self._thread.is_alive():
            self._rested.set()
        self._news.notify_all()

    # -- the thread

    def _start(self) -> None:
        if self._closing:
            return
        thread = self._new_thread(target=self._run, name="sessionary-sync", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # no thread can be started: too many, or the program is ending. The writer must not fail.
        self._thread = thread

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            started = self.clock()
            try:
                result = self._carry(batch) if batch else self._look()
            except Exception as error:  # noqa: BLE001 - an error of a remote must not end the thread
                _log.warning("sessions could not be sent: %s", type(error).__name__)
                result = Delivered(batch, answered=False)
            self._settle(result, started)

    def _look(self) -> Delivered:
        find, self._find = self._find, None
        if find is not None:
            self._backlog = find()
            # Random order: with too little time for all, a session that always fails blocks no other.
            _CHANCE.shuffle(self._backlog)
        return Delivered()

    def _next(self) -> list[str] | None:
        """Wait for sessions to send; None at the end."""
        with self._guard:
            while True:
                if self.given_up.is_set():
                    self._rested.set()
                    return None
                if self._deadline is not None:
                    if self._is_urgent(self._deadline):
                        return self._take()
                    self._deadline = None
                    self._rested.set()
                if self._closing:
                    return None
                due = self._due()
                now = self.clock()
                if due is not None and due <= now:
                    return self._take()
                self._news.wait(None if due is None else due - now)

    def _is_urgent(self, deadline: float) -> bool:
        """True if sessions must be sent without waiting for quiet. A remote that just failed is not asked again."""
        if self._failures:
            return False
        in_time = self.clock() < deadline
        if self._waiting:
            return in_time or self._closing
        return in_time and (bool(self._backlog) or self._find is not None)

    def _due(self) -> float | None:
        """Return the time of the next possible delivery; None if nothing is pending."""
        if self._waiting:
            due = min(self._touched + QUIET, min(one.since for one in self._waiting.values()) + LATEST)
            if self._weight >= BULK:
                due = self._touched
        elif self._backlog or self._find is not None:
            due = self._touched + QUIET
        else:
            return None
        return max(due, self._not_before)

    def _take(self) -> list[str]:
        """Return the sessions to send now; [] if they must be listed first."""
        if self._waiting:
            self._under_way = list(self._waiting)[:BATCH]
            for session in self._under_way:
                del self._waiting[session]
            self._weight = 0
        else:
            self._under_way, self._backlog = self._backlog[:BATCH], self._backlog[BATCH:]
        return list(self._under_way)

    def _settle(self, result: Delivered, started: float) -> None:
        with self._guard:
            self._under_way = []
            if self._closing and result.again:
                self.given_up.set()
            for session in result.again:
                known = self._waiting.get(session)
                self._waiting[session] = _Waiting(started, known.until if known else started)
            if result.answered:
                self._answered()
                return
            pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
            self._failures += 1
            self._not_before = self.clock() + pause * _CHANCE.uniform(0.5, 1.0)

    def _answered(self) -> None:
        self._failures = 0
        self._not_before = self.clock() + APART


_running: weakref.WeakSet[BackgroundSync] = weakref.WeakSet()


def flush_all(timeout: float) -> None:
    """Send pending sessions of all instances in this process, within `timeout` seconds. They stay usable."""
    deadline = time.monotonic() + timeout
    running = list(_running)
    for background in running:
        background.hurry(timeout)
    for background in running:
        background.wait(deadline - time.monotonic())


def close_all(timeout: float = AT_EXIT) -> None:
    """Stop all instances in this process, within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    running = list(_running)
    for background in running:
        background.finish(timeout)
    for background in running:
        background.close(deadline - time.monotonic())


class _Ending:
    """The two steps of the end of this process, which share `AT_EXIT` seconds."""

    left = AT_EXIT

    def main_ends(self) -> None:
        """Send pending sessions when the main thread ends; other threads may continue to write."""
        began = time.monotonic()
        flush_all(self.left)
        self.left -= time.monotonic() - began

    def all_ends(self) -> None:
        close_all(max(0.0, self.left))


def _when_main_ends(call: Callable[[], None]) -> None:
    """Register a call for the end of the main thread, while threads and executors can still be started.

    Clients of some remotes start both. `atexit` is too late: by then `concurrent.futures` accepts nothing and cannot
    be imported, and from Python 3.12 on no thread can be started. The only earlier hook is the one that
    `concurrent.futures` uses. Hooks run in reverse order, so ours must be registered after that of
    `concurrent.futures`. Python does not document it: where it is missing, `atexit` is used.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        with suppress(RuntimeError):  # the program is ending already
            register(call)


_ending = _Ending()
_when_main_ends(_ending.main_ends)
atexit.register(_ending.all_ends)
# The parent sends its own changes, and its threads do not exist in a child.
reset_in_child(_running, BackgroundSync._start_over)
