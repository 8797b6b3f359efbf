"""Waking up when something comes: the kernel says so where it can, and a slow poll asks everywhere else.

On Linux a process can sleep until a name appears in a folder, at no cost at all and for a wake-up within a fraction
of a millisecond (see `notices`). Elsewhere the optional package `watchfiles` does it if it is installed, with a timer
of some milliseconds.

A wake-up is only ever a hint. Nothing comes from other hosts, queues overflow, and the number of watches is limited;
so whoever waits also looks by itself, once in an interval, and a mailbox without any of this is late but complete.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from sessionary.mailbox.notices import Notices

Stop = Callable[[], bool] | threading.Event | None
SLICE = 0.1
"""Seconds after which a wait looks whether it is to stop."""


def is_set(stop: Stop) -> bool:
    """Whether it is time to stop."""
    if stop is None:
        return False
    return stop.is_set() if isinstance(stop, threading.Event) else stop()


class Waker(Protocol):
    """Something that wakes up when names appear in folders."""

    def watch(self, folders: Iterable[str]) -> bool:
        """Watch these folders from now on; those that are not there are passed over. True if one is new."""
        ...

    def wait(self, seconds: float) -> None:
        """Sleep until something has come since the last wait, or so long. Waking for nothing is allowed."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Sleeper:
    """Wakes up by the clock alone."""

    def watch(self, folders: Iterable[str]) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        """Nothing to do."""


class Kernel:
    """Wakes up when the kernel says that a name has appeared, or that a new file was closed."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.wait = notices.wait

    def watch(self, folders: Iterable[str]) -> bool:
        return sum(self._notices.watch(folder) for folder in folders) > 0

    def close(self) -> None:
        """The notices are the mailbox's own."""


class Watchfiles:
    """Wakes up as the package `watchfiles` does, within some milliseconds.

    Raises:
        ImportError: it is not installed.
    """

    STEP_MS = 5

    def __init__(self, concerns: Callable[[str], bool]) -> None:
        from watchfiles import watch

        self._make: Any = watch
        self._concerns = concerns
        self._folders: tuple[str, ...] = ()
        self._changes: Any = None
        self._wait_ms = 0

    def watch(self, folders: Iterable[str]) -> bool:
        there = tuple(dict.fromkeys(folder for folder in folders if os.path.isdir(folder)))
        if there == self._folders:
            return False
        self.close()
        self._folders = there
        return True

    def wait(self, seconds: float) -> None:
        if not self._folders:
            time.sleep(seconds)
            return
        wait_ms = max(1, round(seconds * 1000))
        if self._changes is None or wait_ms != self._wait_ms:
            self.close()
            self._wait_ms = wait_ms
            self._changes = self._make(
                *self._folders,
                watch_filter=lambda change, path: self._concerns(os.path.basename(path)),
                step=self.STEP_MS,
                debounce=10 * self.STEP_MS,
                rust_timeout=wait_ms,
                yield_on_timeout=True,
                recursive=False,
                raise_interrupt=True,
            )
        next(self._changes, None)

    def close(self) -> None:
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()


def waker(notices: Notices | None, concerns: Callable[[str], bool]) -> Waker:
    """The best that this machine has."""
    if notices is not None:
        return Kernel(notices)
    if sys.platform != "linux":
        with suppress(ImportError):
            return Watchfiles(concerns)
    return Sleeper()


def wait(waking: Waker, seconds: float, stop: Stop) -> None:
    """Wait on a waker, looking now and then whether it is time to stop."""
    if stop is None:
        waking.wait(seconds)
        return
    deadline = time.monotonic() + seconds
    while not is_set(stop) and (left := deadline - time.monotonic()) > 0:
        began = time.monotonic()
        waking.wait(min(SLICE, left))
        if time.monotonic() - began < min(SLICE, left):
            return  # it woke up before its time
