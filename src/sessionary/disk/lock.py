"""Kernel locks on side files.

The lock is on a file that is never replaced or deleted (`<session>/.lock`), not on the data: a lock on a file that is
itself replaced protects nothing. The kernel releases it with the process, so no lock is ever stale and no process id
must be checked.

Two hazards are handled. The folder may be moved to the trash during the wait: after locking, the file at the path is
compared with the locked one, and the wait starts again if they differ. A forked child shares its parent's locks:
children close every inherited descriptor first.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from sessionary.disk.fs import (
    EXCLUSIVE,
    FILE_MODE,
    O_BINARY,
    O_CLOEXEC,
    O_NOFOLLOW,
    O_NONBLOCK,
    OS_FS,
    SHARED,
    UNLOCK,
    Fs,
    descriptor,
    not_found,
    storage_failed,
    write_all,
)
from sessionary.disk.lifetime import reset_in_child
from sessionary.errors import Locked

# A generator of our own: a seed that the program set on the shared one stays effective. A forked child seeds anew.
_chance = random.Random()

TIMEOUT = 10.0
TURNS = 10
"""Number of times a waiter yields to other processes before it sleeps: the holder is usually about to finish, and the
shortest sleep takes longer.
"""
FIRST_PAUSE = 50e-6
LONGEST_PAUSE = 2e-3

_OPEN = os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_BINARY
_OPEN_NOTE = os.O_WRONLY | os.O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_BINARY
_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """Lock on one side file; the descriptor stays open between uses.

    It also excludes other threads of this process. It is not re-entrant: taking it twice in a thread ends in
    `Locked`.
    """

    def __init__(self, path: str, fs: Fs = OS_FS) -> None:
        self.path = path
        self._fs = fs
        self._fd = -1
        self._inode = (0, 0)
        self._thread = threading.Lock()
        self._noted = False
        _locks.add(self)

    def acquire(self, timeout: float = TIMEOUT, *, note: str | None = None, exclusive: bool = True) -> None:
        """Take the lock, waiting at most `timeout` seconds.

        With `note` (the name of an operation that may take long) the holder writes its identity and the start time
        into the file, for waiters to report; appends, which hold the lock for microseconds, omit it.

        Raises:
            Locked: another holder kept it until the timeout; `details` names it, as far as the system knows.
            NotFound: the folder does not exist (FileNotFoundError).
        """
        if not self._thread.acquire(False) and not self._thread.acquire(timeout=max(timeout, 0)):
            raise self._locked(timeout, {"pid": os.getpid(), "thread": True})
        how = EXCLUSIVE if exclusive else SHARED
        try:
            if self._fd < 0:
                self._open()
            try:
                self._fs.lock(self._fd, how)
            except OSError:
                self._wait(timeout, how)
            while not self.is_named():
                self._open()  # the folder was moved during the wait: our lock protects nothing
                self._wait(timeout, how)
        except BaseException:
            self.close()  # it may hold the lock
            self._thread.release()
            raise
        if note is not None:
            self.note(note)

    def release(self) -> None:
        """Release the lock. Never raises: a closed descriptor holds no lock."""
        if self._noted:  # otherwise a later holder without a note would be reported with this start time
            self._noted = False
            with suppress(OSError):
                self._fs.truncate(self._fd, 0)
        if self._fd >= 0:
            try:  # contextlib.suppress would double the cost
                self._fs.lock(self._fd, UNLOCK)
            except OSError:
                pass
        self._thread.release()

    @contextmanager
    def held(self, timeout: float = TIMEOUT, *, note: str | None = None) -> Iterator[None]:
        """Hold the lock for a ``with`` block."""
        self.acquire(timeout, note=note)
        try:
            yield
        finally:
            self.release()

    @contextmanager
    def once(
        self, timeout: float = TIMEOUT, *, note: str | None = None, exclusive: bool = True
    ) -> Iterator[None]:
        """Hold the lock for a ``with`` block, and close the file. Shared: many readers, no writer."""
        self.acquire(timeout, note=note, exclusive=exclusive)
        try:
            yield
        finally:
            self.release()
            self.close()

    def close(self) -> None:
        """Close the descriptor; the next `acquire` opens the file again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                self._fs.close(fd)

    def __del__(self) -> None:
        with suppress(BaseException):  # modules may be gone at interpreter exit
            if not self._thread.locked():  # a held lock stays held until the process ends
                self.close()

    def is_named(self) -> bool:
        """True if the path still leads to the locked file; otherwise the lock is useless and the descriptor is closed.

        The inode behind an open descriptor cannot change or be reused, so fstat runs once, at open.
        """
        try:
            named = self._fs.stat(self.path)
        except FileNotFoundError:
            named = None
        except OSError as error:
            raise storage_failed(error, "look at the lock", self.path) from error
        if named is not None and named.st_ino == self._inode[1] and named.st_dev == self._inode[0]:
            return True
        self.close()
        return False

    def is_abandoned(self) -> bool:
        """True if an earlier holder left its note: it died, or kept the note on purpose (`keep_note`).

        Its operation may be incomplete. Call it only while holding the lock.
        """
        try:
            return not self._noted and self._fs.fstat(self._fd).st_size > 0
        except OSError as error:
            raise storage_failed(error, "look at the lock", self.path) from error

    def _wait(self, timeout: float, how: int) -> None:
        deadline = time.monotonic() + timeout
        turns = TURNS if hasattr(os, "sched_yield") else 0
        pause = FIRST_PAUSE
        while True:
            try:
                return self._fs.lock(self._fd, how)
            except BlockingIOError:
                now = time.monotonic()
                if now >= deadline:
                    raise self._locked(timeout, holder(self.path, self._fs)) from None
                if turns:
                    turns -= 1
                    os.sched_yield()
                    continue
                time.sleep(min(pause * _chance.uniform(0.5, 1.0), deadline - now))
                pause = min(pause * 2, LONGEST_PAUSE)
            except OSError as error:
                raise storage_failed(error, "lock", self.path) from error

    def _open(self) -> None:
        try:
            self._fd = self._fs.open(self.path, _OPEN, FILE_MODE)
        except FileNotFoundError:
            folder = os.path.dirname(self.path)
            raise not_found(folder, f"Folder not found: {folder}") from None
        except OSError as error:
            raise storage_failed(error, "open the lock", self.path) from error
        found = self._fs.fstat(self._fd)
        self._inode = (found.st_dev, found.st_ino)

    def note(self, operation: str) -> None:
        """Write holder, start time and operation into the held lock file. Never raises."""
        facts = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "operation": operation,
        }
        self._noted = True
        with suppress(OSError):  # the note is optional; a full disk must not stop the operation
            fd = self._fs.open(self.path, _OPEN_NOTE, FILE_MODE)
            try:
                write_all(self._fs, fd, json.dumps(facts).encode() + b"\n")
            finally:
                self._fs.close(fd)

    def keep_note(self) -> None:
        """Leave the note in the file on release, so that the next holder knows that work is left."""
        self._noted = False

    def clear_note(self) -> None:
        """Remove the note with the next `release`: no work is left."""
        self._noted = True

    def _locked(self, waited: float, who: dict[str, Any]) -> Locked:
        who = {**who, "waited": waited}
        name = f"process {who['pid']}" if "pid" in who else "another process"
        if "command" in who:
            name += f" ({who['command']})"
        if who.get("thread"):
            name = "another thread of this process"
        since = f" since {who['since']}" if "since" in who else ""
        return Locked(
            f"{os.path.dirname(self.path)} is in use by {name}{since}; waited {waited:g} s",
            operation="lock",
            path=self.path,
            details=who,
            hint="wait for the other process to finish, or end it; the lock is released with its process",
        )

    def _forget(self) -> None:
        # In a forked child: closing our copy keeps the parent's lock, unlocking would release it.
        self.close()
        self._thread = threading.Lock()


def holder(path: str, fs: Fs = OS_FS) -> dict[str, Any]:
    """Return what is known about the holder of the lock on `path`: pid, command, host, since, operation.

    The process comes from the kernel's table (Linux); the start time from the note in the file, if there is one.
    """
    note = _read_note(path, fs)
    pid = _holder_in_kernel_table(path, fs)
    if pid is None:
        return note
    who: dict[str, Any] = note if note.get("pid") == pid else {"pid": pid}
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
        who = {**who, "command": comm.read().strip()}
    return who


def _read_note(path: str, fs: Fs) -> dict[str, Any]:
    try:
        with descriptor(fs, path) as fd:
            note = json.loads(fs.pread(fd, 4096, 0))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _holder_in_kernel_table(path: str, fs: Fs) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        found = fs.stat(path)
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            rows = table.read().splitlines()
    except OSError:
        return None
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for row in rows:
        words = row.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == wanted and words[4].isdigit():
            return int(words[4]) or None
    return None


reset_in_child([_chance], random.Random.seed)
reset_in_child(_locks, FileLock._forget)
