"""Waking up when a message comes: by the events of the file system where there are any, by a slow poll everywhere.

A wake-up is only a hint. Other hosts cause no events, event queues overflow and the number of watches is limited. So
the caller also looks once per interval; without any event a message is late but not lost.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.mounts import is_remote

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

Stop = Callable[[], bool] | threading.Event | None
SLICE = 0.1
"""Seconds between two looks at `stop` during a wait."""
STEP_MS = 2
"""How often `watchfiles` looks at its queue of events. A wake-up takes between one and two steps."""
DEBOUNCE_MS = 20


def is_set(stop: Stop) -> bool:
    """Whether it is time to stop."""
    if stop is None:
        return False
    return stop.is_set() if isinstance(stop, threading.Event) else stop()


class Waker:
    """Wakes up when names appear in folders: this one by the clock alone."""

    def watch(self, folders: Iterable[str]) -> bool:
        """Watch exactly these folders from now on; missing ones are skipped. True if that changed anything."""
        return False

    def wait(self, seconds: float) -> bool:
        """Sleep until an event has come since the last wait, or for `seconds`. True if there was an event."""
        time.sleep(seconds)
        return False

    def close(self) -> None:
        """Stop watching."""


class Watchfiles(Waker):
    """Wakes up by the events that the package `watchfiles` reports.

    A thread of its own waits for them: inside `watchfiles` every exception of a signal handler becomes
    KeyboardInterrupt, but the main thread must raise what the handler of the caller raises.

    Args:
        concerns: whether a name matters; the temporary files of producers do not.
    """

    def __init__(self, concerns: Callable[[str], bool]) -> None:
        self._concerns = concerns
        self._watched: list[tuple[str, int, int]] = []
        self._came = threading.Event()
        self._end: Callable[[], object] | None = None

    def watch(self, folders: Iterable[str]) -> bool:
        there = _identities(folders)
        if there == self._watched:
            return False
        self.close()
        self._watched = there
        self._begin([folder for folder, _, _ in there])
        return True

    def wait(self, seconds: float) -> bool:
        woken = self._came.wait(seconds)
        self._came.clear()
        return woken

    def close(self) -> None:
        self._watched = []
        if self._end is not None:
            self._end()
            self._end = None

    def _begin(self, folders: list[str]) -> None:
        from watchfiles._rust_notify import RustNotify  # watchfiles documents it for direct use

        try:
            notify = RustNotify(folders, False, False, 0, False, True)
        except (OSError, RuntimeError):
            return  # a folder has just gone, or the limit of watches is reached: the poll remains
        stop = threading.Event()
        listener = threading.Thread(
            target=_listen,
            args=(notify, self._concerns, self._came, stop),
            name="sessionary-watch",
            daemon=True,
        )
        listener.start()
        # Also called when this object is collected and at exit: a thread inside Rust must not outlive the interpreter.
        self._end = weakref.finalize(self, _end, listener, stop)


def _listen(
    notify: RustNotify, concerns: Callable[[str], bool], came: threading.Event, stop: threading.Event
) -> None:
    """Set `came` for each event that matters, until `stop` is set."""
    try:
        while not isinstance(changes := notify.watch(DEBOUNCE_MS, STEP_MS, 0, stop), str):
            if any(concerns(os.path.basename(path)) for _, path in changes):
                came.set()
    except RuntimeError:  # watchfiles cannot go on: the poll remains
        came.set()
    finally:
        notify.close()


def _end(listener: threading.Thread, stop: threading.Event) -> None:
    stop.set()
    if listener is not threading.current_thread():  # the collector runs in any thread
        listener.join()


def _identities(folders: Iterable[str]) -> list[tuple[str, int, int]]:
    """The folders that exist, with device and inode: a folder that was replaced has to be watched again."""
    found = []
    for folder in dict.fromkeys(folders):
        try:
            place = OS_FS.stat(folder)
        except OSError:
            continue
        found.append((folder, place.st_dev, place.st_ino))
    return found


def waker(fs: Fs, folder: str, concerns: Callable[[str], bool]) -> Waker:
    """The waker for folders below this one: by events on a local file system, by the clock on every other."""
    if fs is not OS_FS or is_remote(folder):
        return Waker()
    return Watchfiles(concerns)


def wait(waking: Waker, seconds: float, stop: Stop) -> None:
    """Wait for an event, and check every `SLICE` seconds whether it is time to stop."""
    if stop is None:
        waking.wait(seconds)
        return
    deadline = time.monotonic() + seconds
    while not is_set(stop) and (left := deadline - time.monotonic()) > 0:
        if waking.wait(min(SLICE, left)):
            return
