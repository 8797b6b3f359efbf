"""The state of one consumer of one session: locks, ledger, attempts, folders.

There are two locks. The lock of the consumer (`.mailbox.<consumer>.lock`) is held while handlers run, which
may take minutes: exclusively by one process, or shared by several that lock message by message. The lock of
the session (`.lock`) is held for the microseconds of an append, as by every other writer of the session.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sessionary.disk.fs import Fs, not_found, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import InvalidId
from sessionary.layouts.maestro.breadcrumbs import Crumb, CrumbFile, read_crumb
from sessionary.layouts.maestro.names import BREADCRUMBS, LOCK, LOG, depth_of, is_crumb_name
from sessionary.layouts.maestro.paths import top_of
from sessionary.mailbox.attempts import Attempts, Mark
from sessionary.mailbox.folders import Folders, Place, roots_of
from sessionary.mailbox.ledger import Ledger
from sessionary.mailbox.ledger_copy import LedgerCopy
from sessionary.mailbox.problems import WORK, ledger_went_back, words_for
from sessionary.mailbox.tail import beside
from sessionary.model import Problem

_CONSUMER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_consumer(name: str) -> str:
    """Return the name, if it can be part of a file name. Raises InvalidId if it cannot be."""
    if not _CONSUMER.fullmatch(name):
        raise InvalidId(
            f"{name!r} cannot name a consumer",
            operation="open mailbox",
            hint="1 to 64 letters, digits, '-' and '_', a letter or digit first",
        )
    return name


class Box:
    """The state of one consumer of one session.

    Attributes:
        named: the session and the consumer, as on a command line.

    Raises:
        InvalidId: the consumer's name is not valid.
        NotFound: the folder does not exist.
    """

    def __init__(
        self,
        fs: Fs,
        folder: str,
        consumer: str,
        *,
        shared: bool,
        now: Callable[[], datetime] | None = None,
        state: str | None = None,
    ) -> None:
        self.fs = fs
        self.folder = folder
        self.consumer = check_consumer(consumer)
        self.shared = shared
        self.now = now or (lambda: datetime.now(UTC))
        self._clock = now
        seconds = time.time if now is None else lambda: now().timestamp()
        self._check_folder()
        self.lock = FileLock(os.path.join(folder, f".mailbox.{consumer}.lock"), fs)
        self.session_lock = FileLock(os.path.join(folder, LOCK), fs)
        root = top_of(fs, folder)
        self.named = words_for(folder, consumer, root)
        self.folders = Folders(roots_of(folder, root), fs, seconds)
        log = os.path.join(folder, LOG) if consumer == WORK else beside(folder, "log", consumer)
        self.ledger = Ledger(log, self.session_lock, fs, self.now, self.folders.done, self.named)
        self.copy: LedgerCopy | None = None
        if state is not None:
            self.copy = LedgerCopy(state, self.ledger, self.session_lock, fs)
            self.ledger.written = self.copy.add
        self.attempts = Attempts(beside(folder, "attempts", consumer), self.session_lock, fs, self.now)
        self._known = (0, 0)

    def refresh(self) -> None:
        """Read new messages, and what other processes have done with them. Raises as `learn`."""
        self.learn()
        known = (self.ledger.restarts, self.attempts.revivals)
        if known != self._known:  # earlier results may be void
            self._known = known
            self.folders.forget()
        self.folders.refresh(self.ledger.names)

    def learn(self) -> None:
        """Read what other processes have written about known messages.

        Raises:
            NotFound: the session has been moved or removed since the mailbox was opened.
        """
        self.ledger.refresh()
        self.attempts.refresh()
        if not self.ledger.is_there:  # rare: else a removed session would look like an empty mailbox
            self._check_folder()

    def ledger_problems(self) -> list[Problem]:
        """The problems of the ledger."""
        missing = self.copy.missing() if self.copy is not None else ()
        if not missing:
            return self.ledger.problems
        return [*self.ledger.problems, ledger_went_back(self.ledger.path, len(missing), self.named)]

    def new_damage(self) -> list[Problem]:
        """The unreadable lines of the ledger that were not yet reported to this consumer."""
        fresh = []
        for problem in self.ledger.problems:
            place = (problem.line or 0, problem.byte or 0)
            if place not in self.attempts.bad_lines:
                self.attempts.mark_line(*place)
                fresh.append(problem)
        return fresh

    def wants(self, place: Place) -> bool:
        """False if the message is a dead letter, or the file is known as invalid and has not changed since."""
        attempts = self.attempts
        if not (attempts.dead_files or attempts.bad):  # the usual case
            return True
        if place.file in attempts.dead_files and not self.folders.is_contested(place):
            self.folders.ignore(place)
            return False
        # A file that is completed in place does not change its folder, so each pass checks its own size and
        # time.
        return not (place.file in attempts.bad and self._is_still_bad(place))

    def waiting(self) -> int:
        """Number of pending files, without those known as invalid."""
        known = filter(None, map(self.folders.queued, self.attempts.bad))
        return self.folders.waiting - sum(map(self._is_still_bad, known))

    def read(self, place: Place, fd: int | None = None) -> Crumb | None:
        """Read the file in a place; None if nothing has to be done with it.

        That is the case for a removed file, and for a message that was applied or given up under another
        name. `fd` is the open file, if there is one.
        """
        file = CrumbFile(place.name, place.depth, place.path)
        clock = self._clock  # the default clock is read on demand
        crumb = read_crumb(self.fs, file, now=clock and clock().timestamp(), fd=fd)
        if crumb.missing:
            self.folders.leave(place)
            return None
        if crumb.breadcrumb is not None:
            known = crumb.breadcrumb.breadcrumb_id
            if known in self.ledger.ids or known in self.attempts.dead:
                self.folders.ignore(place)
                return None
        return crumb

    def close(self) -> None:
        """Close all files; the next use opens them again."""
        self.ledger.close()
        if self.copy is not None:
            self.copy.close()
        self.attempts.close()
        self.lock.close()
        self.session_lock.close()

    def _check_folder(self) -> None:
        if stat_or_none(self.fs, self.folder) is None:
            raise not_found(self.folder, f"No session in {self.folder}")

    def _is_still_bad(self, place: Place) -> bool:
        return self.attempts.bad[place.file].is_of(mark_of(self.fs, place))


def concerns(name: str) -> bool:
    """True if a new name in one of the folders may be, or lead to, a message."""
    return is_crumb_name(name) or depth_of(name) is not None or name == BREADCRUMBS


def mark_of(fs: Fs, place: Place) -> Mark | None:
    """The version of a file; None if it does not exist."""
    found = stat_or_none(fs, place.path)
    return None if found is None else Mark(found.st_size, found.st_mtime_ns, found.st_ctime_ns)
