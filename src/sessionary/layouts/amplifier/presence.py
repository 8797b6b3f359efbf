"""Sessions that are open in a program: needed by synchronisation, and not stored in any session file.

An agent reads a session when it resumes and writes it back turn by turn; between turns, which may be an hour,
it holds no lock. So a program that has a session open holds a *shared* kernel lock on `.in-use` beside it for
that time. The kernel releases it with the process, so a dead process never counts as present. A clean close
also updates the time of the file, which means that nothing is in progress.

Amplifier keeps a lock of its own, elsewhere and by another rule; it is checked too. Of other programs, only a
recent write is known.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress

from sessionary.disk.fs import OS_FS, Fs, read_bytes, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import Locked, SessionaryError
from sessionary.layouts.amplifier.files import EVENTS, IN_USE, METADATA, TRANSCRIPT
from sessionary.layouts.clock import changed_at

MOST = 64
"""Maximum number of sessions held by one program; older ones are released, without a clean close."""

QUIET = 30.0
"""Seconds without a change after which a session counts as closed if its program does not use these locks."""


class Presence:
    """The sessions that this program has open, visible to all others on this machine.

    If that is impossible (a folder without write permission), it is skipped: no work fails for it.
    """

    def __init__(self, fs: Fs = OS_FS) -> None:
        self._fs = fs
        self._held: OrderedDict[str, FileLock] = OrderedDict()
        self._guard = threading.Lock()

    def enter(self, folder: str) -> None:
        """Mark a session as open in this program. Never raises, never waits."""
        with self._guard:
            if folder in self._held:
                self._held.move_to_end(folder)
                return
            lock = FileLock(os.path.join(folder, IN_USE), self._fs)
            with suppress(OSError, SessionaryError):
                place = None if stat_or_none(self._fs, lock.path) is not None else self._fs.stat(folder)
                lock.acquire(0, exclusive=False)
                self._held[folder] = lock
                if place is not None:  # a new name in the folder, but opening a session is not activity
                    self._fs.utime(folder, place.st_mtime_ns)
            if len(self._held) > MOST:
                _let_go(self._held.popitem(last=False)[1])

    def leave(self, folder: str) -> None:
        """Mark it as closed, with nothing in progress. Never raises."""
        with self._guard:
            lock = self._held.pop(folder, None)
            if lock is not None:
                with suppress(OSError):
                    self._fs.utime(lock.path)
                _let_go(lock)

    def leave_all(self) -> None:
        """Mark all of them as closed. Never raises."""
        for folder in list(self._held):
            self.leave(folder)

    def __del__(self) -> None:
        for lock in self._held.values():  # not a clean close: it is only released
            with suppress(BaseException):  # at interpreter exit the functions may be gone
                _let_go(lock)

    def forget(self) -> None:
        """Reset in a forked child, which has opened nothing yet. The locks are closed there."""
        self._held.clear()
        self._guard = threading.Lock()


def why_open(
    folder: str, *, now: float, quiet: float = QUIET, fs: Fs = OS_FS, environ: Mapping[str, str] = os.environ
) -> str | None:
    """Why a session may be open in a program on this machine; None if it is not.

    Args:
        now: seconds since 1970.
        quiet: seconds for which it must be unchanged, unless its last program closed it cleanly.
    """
    if _is_held(fs, os.path.join(folder, IN_USE)):
        return "a program has it open"
    for path in _locks_of_the_original(os.path.basename(folder), fs, environ):
        if _is_held(fs, path):
            return "an agent has it open"
    left = stat_or_none(fs, os.path.join(folder, IN_USE))
    files = [stat_or_none(fs, os.path.join(folder, name)) for name in (TRANSCRIPT, METADATA, EVENTS)]
    there = [found for found in files if found is not None]
    newest = max((changed_at(now, found.st_mtime, found.st_ctime) for found in there), default=0.0)
    if quiet and newest > now - quiet and (left is None or left.st_mtime < newest):
        return "it was changed a moment ago"
    return None


def _is_held(fs: Fs, path: str) -> bool:
    """True if a process holds a lock on this file. Takes the lock for a moment to find out."""
    if stat_or_none(fs, path) is None:
        return False
    try:
        with FileLock(path, fs).once(0):
            return False
    except FileNotFoundError:
        return False
    except Locked:
        return True


def _locks_of_the_original(session_id: str, fs: Fs, environ: Mapping[str, str]) -> Iterator[str]:
    """The locks of agents at work on a session with this id, if one has announced it and not closed it.

    They are stored by workspace, which is unknown for a session, so all are checked. One whose owner has
    ended is skipped: taking it, even for a moment, could block an agent that is just starting.
    """
    root = os.path.join(_state_of_the_original(environ), "v1")
    with suppress(OSError):
        for workspace in fs.listdir(root):
            folder = os.path.join(root, workspace, session_id)
            owner = read_bytes(fs, os.path.join(folder, "owner.json"))
            if owner is not None and _is_active(owner):
                yield os.path.join(folder, "session.lock")


def _state_of_the_original(environ: Mapping[str, str]) -> str:
    if folder := environ.get("AMPLIFIER_SESSION_STATE_HOME"):
        return os.path.expanduser(folder)
    state = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "amplifier", "sessions")


def _is_active(owner: bytes) -> bool:
    try:
        record = json.loads(owner)
    except ValueError:
        return True  # being written
    return not isinstance(record, dict) or record.get("active") is not False


def _let_go(lock: FileLock) -> None:
    lock.release()
    lock.close()
