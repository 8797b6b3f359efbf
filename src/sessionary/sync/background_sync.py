"""When changed sessions are carried: by a thread that sleeps while they are being written.

Whoever writes a session says so, and goes on: that costs a look at a clock and an entry in a table. The thread is not
woken by it. It sleeps until the first moment at which something could be due, and looks then whether it is. So a run
of saves, however long, has the processor for itself, and what it has written goes in one piece afterwards.

A session is carried when nothing was written for `QUIET` seconds, or earlier when `BULK` bytes have come together, and
`LATEST` seconds after the first change at most. When the other side does not answer, it is asked again after a pause
that doubles from try to try; until then writing costs what it always costs. Nothing is kept here that could be lost:
the files are the queue, and what was not carried when a program ends is found by the next one.

When the main thread ends, what waits is sent at once, and then what earlier programs have left, in `AT_EXIT` seconds
for all couriers together.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - see `_when_main_ends`
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

# Not the generator of the module: whoever has seeded that one finds it as he left it, and a forked child draws anew.
_CHANCE = random.SystemRandom()

QUIET = 2.0
BULK = 64 << 10
LATEST = 30.0
APART = 1.0
"""Seconds at least between the end of one delivery and the beginning of the next, however much comes together."""

BATCH = 20
"""So many sessions at most go in one delivery, so that the thread looks up in between."""

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0

AT_EXIT = 2.0
"""Seconds that the end of a program may wait for all of its couriers together."""

_log = logging.getLogger("sessionary.sync")


class Delivered(NamedTuple):
    """What became of a delivery.

    Attributes:
        again: the sessions that are to go once more.
        answered: False if the other side did not answer: then it is left alone for a while.
    """

    again: Collection[str] = ()
    answered: bool = True


@dataclass(slots=True)
class _Waiting:
    since: float
    until: float  # when it was changed last


class Courier:
    """Carries sessions behind the back of whoever writes them. Every method may be called by any thread.

    Args:
        carry: sends these sessions, in the thread of the courier; what it raises counts as no answer.
        clock: seconds that never go back.
        thread: makes the thread.

    Attributes:
        given_up: set when nothing more shall be sent; `carry` is to end soon then.
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
        _couriers.add(self)

    def _start_over(self) -> None:
        # Entered by itself: a condition takes several times as long, at every save.
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

    # -- what writers say

    def touched(self, session: str, weight: int = 0) -> None:
        """A session was changed, by about so many bytes. Never waits for anything slow."""
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
                self._news.notify_all()  # it may be asleep for good, or too long

    def look_through(self, find: Callable[[], list[str]]) -> None:
        """Carry these too, when there is nothing better to do: what earlier programs may have left.

        Args:
            find: lists them; called in the thread of the courier.
        """
        with self._guard:
            self._find = find
            if self._thread is None:
                self._start()
            self._news.notify_all()

    def carried(self, since: float) -> None:
        """Somebody else has carried everything as it was at `since`: what was changed later waits still."""
        with self._guard:
            for session in [name for name, one in self._waiting.items() if one.until < since]:
                del self._waiting[session]
            self._answered()

    @property
    def waiting(self) -> list[str]:
        """The sessions that are known to be changed and not known to be carried."""
        with self._guard:
            return sorted({*self._waiting, *self._under_way})

    # -- the end

    @property
    def patience(self) -> float:
        """Seconds that a delivery may wait for another program that synchronises: none, except at the end."""
        deadline = self._deadline
        return 0.0 if deadline is None else max(0.0, deadline - self.clock())

    def hurry(self, seconds: float) -> None:
        """Carry what waits now, then what earlier programs left, for so many seconds. Does not wait for it."""
        with self._guard:
            self._hurry(seconds)

    def wait(self, timeout: float) -> None:
        """Wait until a `hurry` is over, at most so many seconds."""
        self._rested.wait(max(0.0, timeout))

    def finish(self, seconds: float = AT_EXIT) -> None:
        """As `hurry`, and end then."""
        with self._guard:
            self._closing = True
            self._hurry(seconds)

    def close(self, timeout: float) -> None:
        """As `finish`, and wait for it at most so many seconds; what is not carried by then is not carried."""
        self.finish(timeout)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, timeout))
        self.given_up.set()

    def forget_threads(self) -> None:
        """In a forked child: the parent carries what it wrote, and no thread of it is here."""
        self._start_over()

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
            return  # too many threads, or the program is ending: whoever writes has nothing to do with that
        self._thread = thread

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            started = self.clock()
            try:
                told = self._carry(batch) if batch else self._look()
            except Exception as error:  # noqa: BLE001 - a thread that dies of a remote's fault carries nothing ever after
                _log.warning("sessions could not be sent: %s", type(error).__name__)
                told = Delivered(batch, answered=False)
            self._settle(told, started)

    def _look(self) -> Delivered:
        find, self._find = self._find, None
        if find is not None:
            self._backlog = find()
            # Where the time is not enough for all, each exit tries others: one that fails each time blocks none.
            _CHANCE.shuffle(self._backlog)
        return Delivered()

    def _next(self) -> list[str] | None:
        """What is to go now, waited for; None when all is over."""
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
        """True if something is to go without waiting for quiet. A remote that just failed is not asked again."""
        if self._failures:
            return False
        in_time = self.clock() < deadline
        if self._waiting:
            return in_time or self._closing
        return in_time and (bool(self._backlog) or self._find is not None)

    def _due(self) -> float | None:
        """When the next delivery may begin, as far as is known now; None if nothing waits."""
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
        """What goes now; nothing if it must be looked for first."""
        if self._waiting:
            self._under_way = list(self._waiting)[:BATCH]
            for session in self._under_way:
                del self._waiting[session]
            self._weight = 0
        else:
            self._under_way, self._backlog = self._backlog[:BATCH], self._backlog[BATCH:]
        return list(self._under_way)

    def _settle(self, told: Delivered, started: float) -> None:
        with self._guard:
            self._under_way = []
            if self._closing and told.again:
                self.given_up.set()
            for session in told.again:
                known = self._waiting.get(session)
                self._waiting[session] = _Waiting(started, known.until if known else started)
            if told.answered:
                self._answered()
                return
            pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
            self._failures += 1
            self._not_before = self.clock() + pause * _CHANCE.uniform(0.5, 1.0)

    def _answered(self) -> None:
        self._failures = 0
        self._not_before = self.clock() + APART


_couriers: weakref.WeakSet[Courier] = weakref.WeakSet()


def flush_all(timeout: float) -> None:
    """Let all couriers of this process send now what waits, in so many seconds together. They stay usable."""
    deadline = time.monotonic() + timeout
    couriers = list(_couriers)
    for courier in couriers:
        courier.hurry(timeout)
    for courier in couriers:
        courier.wait(deadline - time.monotonic())


def close_all(timeout: float = AT_EXIT) -> None:
    """End all couriers of this process, in so many seconds together."""
    deadline = time.monotonic() + timeout
    couriers = list(_couriers)
    for courier in couriers:
        courier.finish(timeout)
    for courier in couriers:
        courier.close(deadline - time.monotonic())


class _Ending:
    """The end of this process in its two steps, which share `AT_EXIT` seconds."""

    left = AT_EXIT

    def main_ends(self) -> None:
        """Other threads may go on writing for long."""
        began = time.monotonic()
        flush_all(self.left)
        self.left -= time.monotonic() - began

    def all_ends(self) -> None:
        close_all(max(0.0, self.left))


def _when_main_ends(call: Callable[[], None]) -> None:
    """Call this when the main thread ends, while threads and executors can still be started.

    The clients of some remotes start both. `atexit` is too late for them: by then `concurrent.futures` accepts nothing
    and cannot even be imported, and from Python 3.12 on no thread can be started. The only hook that comes earlier is
    the one that `concurrent.futures` uses itself. It is called in reverse order, so our call must be registered behind
    that of `concurrent.futures`. Python does not document it: where it is missing, `atexit` has to do.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        with suppress(RuntimeError):  # the program is ending already
            register(call)


def _after_fork_in_child() -> None:
    for courier in list(_couriers):
        courier.forget_threads()


_ending = _Ending()
_when_main_ends(_ending.main_ends)
atexit.register(_ending.all_ends)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
