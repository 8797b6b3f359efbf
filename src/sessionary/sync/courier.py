"""When changed sessions are carried: by a thread that sleeps while they are being written.

Whoever writes a session says so, and goes on: that costs a look at a clock and an entry in a table. The thread is not
woken by it. It sleeps until the first moment at which something could be due, and looks then whether it is. So a run
of saves, however long, has the processor for itself, and what it has written goes in one piece afterwards.

A session is carried when nothing was written for `QUIET` seconds, or earlier when `BULK` bytes have come together, and
`LATEST` seconds after the first change at most. When the other side does not answer, it is asked again after a pause
that doubles from try to try; until then writing costs what it always costs. Nothing is kept here that could be lost:
the files are the queue, and what was not carried when a program ends is found by the next one.
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection
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
        self._guard = (
            threading.Lock()
        )  # entered by itself: a condition takes several times as long, at every save
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

    def finish(self) -> None:
        """Carry once what waits, and end then. Does not wait for it."""
        with self._guard:
            self._closing = True
            self._news.notify_all()

    def close(self, timeout: float) -> None:
        """As `finish`, and wait for it at most so many seconds; what is not carried by then is not carried."""
        self.finish()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, timeout))
        self.given_up.set()

    def forget_threads(self) -> None:
        """In a forked child: the parent carries what it wrote, and no thread of it is here."""
        self._start_over()

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
        return Delivered()

    def _next(self) -> list[str] | None:
        """What is to go now, waited for; None when all is over."""
        with self._guard:
            while True:
                if self.given_up.is_set():
                    return None
                due = self._due()
                if self._closing:
                    return self._take() if self._waiting and not self._failures else None
                now = self.clock()
                if due is not None and due <= now:
                    return self._take()
                self._news.wait(None if due is None else due - now)

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
AT_EXIT = 2.0
"""Seconds that the end of a program may wait for all of its couriers together."""


def close_all(timeout: float = AT_EXIT) -> None:
    """End all couriers of this process, in so many seconds together."""
    deadline = time.monotonic() + timeout
    couriers = list(_couriers)
    for courier in couriers:
        courier.finish()
    for courier in couriers:
        courier.close(deadline - time.monotonic())


def _after_fork_in_child() -> None:
    for courier in list(_couriers):
        courier.forget_threads()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
