"""Lock by the existence of a file with a process id, for programs without kernel locks.

The orchestrator's scripts lock in this way: `set -C; echo $$ > FILE` fails while FILE exists, and `rm` unlocks. Such
a file outlives a killed process, and only its content identifies the owner. So it is taken only under a kernel lock
(`disk.lock`), which serialises our own processes: one of our files that is found then belongs to a killed process and
is removed. Files of other programs are waited for and never removed.

Our files begin with a blank, which number parsers ignore. It is the first byte, so a truncated file is still
recognised as ours. An empty file is what earlier versions of this program used as a kernel lock.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from sessionary.disk.fs import (
    CREATE,
    EXCLUSIVE,
    FILE_MODE,
    O_NOFOLLOW,
    OS_FS,
    READ,
    Fs,
    descriptor,
    storage_failed,
    write_all,
)
from sessionary.errors import Locked

_OURS = b" "
_MOST = 64

FIRST_PAUSE = 1e-3
LONGEST_PAUSE = 5e-2
GRACE = 0.1
"""Seconds that a file may be empty, or name an ended process, before that counts: a script opens the file before it
writes to it, and may end between two checks.
"""


class Holder(NamedTuple):
    """Content of a lock file.

    Attributes:
        pid: the process; None if the file names none.
        ours: True if this program made it.
        empty: True if it has no content.
        since: its modification time, in seconds since 1970.
        inode: its inode number.
    """

    pid: int | None
    ours: bool
    empty: bool
    since: float
    inode: int

    @property
    def running(self) -> bool:
        """True if the process may be running on this machine, as far as the system knows."""
        return self.pid is not None and is_running(self.pid)


class PidFile:
    """Lock on one name. Take it only while holding our own kernel lock.

    Attributes:
        path: the file.
        removed: True if the last `acquire` removed the file of a killed process of ours.
    """

    def __init__(self, path: str, fs: Fs = OS_FS) -> None:
        self.path = path
        self._fs = fs
        self.removed = False
        self._fd = -1

    def acquire(self, timeout: float, now: Callable[[], datetime]) -> None:
        """Create the file, waiting at most `timeout` seconds for another program that holds the lock.

        Durability: none needed. After a power cut the file may exist, and is removed as ours.

        Raises:
            Locked: another program holds the lock, or was killed while holding it; `details` has `pid`, `age` and
                `running`.
        """
        self.removed = False
        began = time.monotonic()
        seen: Holder | None = None
        first_seen = began
        pause = FIRST_PAUSE
        while not self._create():
            found = read_holder(self.path, self._fs)
            if found is None:
                continue  # it was removed meanwhile
            if seen is None or seen.inode != found.inode:
                first_seen = time.monotonic()
            seen = found
            past_grace = time.monotonic() - first_seen >= GRACE
            if found.ours or (found.empty and past_grace):
                if self._remove(found):
                    self.removed = True
                    continue
            elif past_grace and not found.running:
                raise self._locked(found, time.monotonic() - began, now())
            if time.monotonic() - began >= timeout and past_grace:
                raise self._locked(found, time.monotonic() - began, now())
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def release(self) -> None:
        """Remove the file. Never raises: the next `acquire` removes a leftover.

        If ours was removed meanwhile and a script has made its own, the script's file is kept.
        """
        fd, self._fd = self._fd, -1
        with suppress(OSError):
            if self._fs.lstat(self.path).st_ino == self._fs.fstat(fd).st_ino:
                self._fs.unlink(self.path)
        with suppress(OSError):
            self._fs.close(fd)

    def _create(self) -> bool:
        """Create the file; False if it exists. Its kernel lock also blocks earlier versions of this program."""
        try:
            fd = self._fs.open(self.path, CREATE, FILE_MODE)
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_failed(error, "create the lock", self.path) from error
        try:
            write_all(self._fs, fd, b"%s%d\n" % (_OURS, os.getpid()))
            self._fs.lock(fd, EXCLUSIVE)
        except BaseException as error:
            self._fd = fd
            self.release()
            if isinstance(error, OSError):
                raise storage_failed(error, "write the lock", self.path) from error
            raise
        self._fd = fd
        return True

    def _remove(self, found: Holder) -> bool:
        """Remove an abandoned file; False if an earlier version of this program holds its kernel lock."""
        try:
            fd = self._fs.open(self.path, READ | O_NOFOLLOW)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise storage_failed(error, "open the lock", self.path) from error
        try:
            self._fs.lock(fd, EXCLUSIVE)
            again = read_holder(self.path, self._fs)
            if again is not None and (again.inode, again.ours, again.empty) == (
                found.inode,
                found.ours,
                found.empty,
            ):
                self._fs.unlink(self.path)
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            raise storage_failed(error, "remove the lock", self.path) from error
        finally:
            self._fs.close(fd)

    def _locked(self, found: Holder, waited: float, now: datetime) -> Locked:
        folder = os.path.dirname(self.path)
        age = max(0.0, now.timestamp() - found.since)
        who = "an unnamed process" if found.pid is None else f"process {found.pid}"
        details = {"pid": found.pid, "age": round(age), "running": found.running, "waited": round(waited, 3)}
        if found.running:
            text = f"{folder} is locked by {who} for {in_words(age)}; waited {waited:.3g} s"
            hint = f"wait for it to end, or end it; if it does not work on {folder}, {way_out(self.path)}"
        else:
            gone = "" if found.pid is None else ", which has ended,"
            text = f"{folder} is locked by {who}{gone} for {in_words(age)}"
            hint = f"if no script works on it, {way_out(self.path)}"
        return Locked(text, operation="lock", path=self.path, details=details, hint=hint)


def read_holder(path: str, fs: Fs = OS_FS) -> Holder | None:
    """Read the lock file at a path; None if it does not exist. An unreadable file has no pid."""
    try:
        found = fs.lstat(path)
    except OSError:
        return None
    try:
        with descriptor(fs, path, READ | O_NOFOLLOW) as fd:
            data = fs.pread(fd, _MOST, 0).rstrip(b"\0")  # a power cut may leave zero bytes
    except FileNotFoundError:
        return None
    except OSError:
        return Holder(None, ours=False, empty=False, since=found.st_mtime, inode=found.st_ino)
    word = data.strip()
    pid = int(word) if word.isdigit() and len(word) <= 10 else None
    return Holder(pid, data.startswith(_OURS), not data, found.st_mtime, found.st_ino)


def way_out(path: str) -> str:
    """The command that removes a lock by hand."""
    return f"remove {path}"


def in_words(seconds: float) -> str:
    """Format a duration in its largest unit: ``45 s``, ``3 min``, ``2 h``, ``5 days``."""
    for size, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {name}"
    return f"{int(seconds)} s"


def is_running(pid: int) -> bool:
    """True if the process exists, or if the system does not say."""
    if sys.platform == "win32":  # pragma: no cover - os.kill(pid, 0) ends the process there
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # of another user
    return pid > 0
