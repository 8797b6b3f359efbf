"""A copy of the ledger in the user's state folder, which reveals when the ledger itself has lost lines.

A session is part of a project, and so is its ledger: a switch of branches, `git stash -u` or a restored
backup removes lines from it, and all their messages would be applied a second time. The copy is not affected.
It is written after the ledger is durable, so it never has more than was applied here, and it is not flushed:
after a power cut it may lack lines, and is completed again. Without a copy, nothing is checked.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from datetime import datetime

from sessionary.codec import decode_object, encode_line, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, descriptor, make_dirs, require_regular
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lock import FileLock
from sessionary.errors import Conflict, StorageFailed
from sessionary.mailbox.ledger import Entry, Ledger
from sessionary.mailbox.problems import ledger_went_back
from sessionary.mailbox.tail import Follower

FOLDER = "ledgers"
_FIRST_LINE = 1 << 15
_log = logging.getLogger(__name__)


def copied(state: str, fs: Fs = OS_FS) -> list[str]:
    """The paths of the ledgers with a copy here. An unreadable copy names none."""
    folder = os.path.join(state, FOLDER)
    try:
        names = fs.listdir(folder)
    except OSError:
        return []
    found = (_ledger_of(os.path.join(folder, name), fs) for name in names if name.endswith(".jsonl"))
    return [path for path in found if path is not None]


def _ledger_of(path: str, fs: Fs) -> str | None:
    """The ledger of a copy, from its first line."""
    try:
        with descriptor(fs, path) as fd:
            require_regular(fs.fstat(fd))
            record = decode_object(fs.pread(fd, _FIRST_LINE, 0).partition(b"\n")[0]) or {}
    except OSError:
        return None
    ledger = record.get("ledger")
    return ledger if isinstance(ledger, str) else None


class LedgerCopy:
    """The copy of one ledger.

    Args:
        ledger: the ledger.
        lock: the lock of the session: two processes may append to the copy.
    """

    def __init__(self, state: str, ledger: Ledger, lock: FileLock, fs: Fs) -> None:
        key = hashlib.sha256(os.fsencode(ledger.path)).hexdigest()[:32]  # its name has that of the consumer
        self.path = os.path.join(state, FOLDER, f"{key}.jsonl")
        self._ledger = ledger
        self._lock = lock
        self._fs = fs
        self._known = Ledger(self.path, lock, fs)
        self._journal = Journal(self.path, Tail.CUT, fs=fs)
        self._checked = -1

    def add(self, entries: Iterable[Entry]) -> None:
        """Copy the durable lines of the ledger. A failure is ignored."""
        lines = b"".join(new.line for new in entries if new.breadcrumb_id not in self._known.ids)
        if not lines:
            return
        try:
            self._lock.acquire()
            try:
                found = self._journal.look()
                if found is None:
                    make_dirs(self._fs, os.path.dirname(self.path), durable=False)
                    lines = encode_line(sanitize({"ledger": self._ledger.path})) + b"\n" + lines
                self._journal.append(lines, found)
            finally:
                self._lock.release()
        except (StorageFailed, OSError) as error:
            _log.debug("no copy of the ledger is kept: %s", error)

    def missing(self) -> set[str]:
        """The ids of messages that were applied here and are missing in the ledger."""
        try:
            self._known.refresh()
        except StorageFailed as error:
            _log.debug("the copy of the ledger cannot be read: %s", error)
            return set()
        if missing := self._known.ids - self._ledger.ids:
            self._ledger.refresh()  # after the copy was read: another process may have applied them since
            missing = self._known.ids - self._ledger.ids
        return missing

    def check(self, named: str) -> None:
        """Refuse a ledger that has less than its copy. One that has more is copied; once for each version of it.

        Raises:
            Conflict: it has lost lines.
        """
        if self._checked == self._ledger.restarts:
            return
        missing = self.missing()
        if missing:
            problem = ledger_went_back(self._ledger.path, len(missing), named)
            raise Conflict(
                f"{self._ledger.path}: {problem.message}",
                operation="consume",
                session=os.path.basename(os.path.dirname(self._ledger.path)),
                path=self._ledger.path,
                details={"missing": len(missing), "copy": self.path},
                hint=problem.repair,
            )
        self._bring_up()
        self._checked = self._ledger.restarts

    def lost(self) -> list[Entry]:
        """The entries that are missing in the ledger, to be appended to it."""
        self._known.refresh()
        return list(_entries_without(self._fs, self.path, self._ledger.ids))

    def accept(self, now: datetime) -> None:
        """Start a new copy with the content of the ledger. The old one is kept beside it."""
        if self._journal.look() is not None:
            self._journal.close()
            atomic.quarantine(self.path, "accepted", fs=self._fs, now=now)
            atomic.forget_file(self.path, fs=self._fs)
        self._known.refresh()
        self._bring_up()

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._journal.close()

    def _bring_up(self) -> None:
        """Copy lines that reached the ledger otherwise: from another device, or before a crash."""
        if self._ledger.ids - self._known.ids:
            self.add(_entries_without(self._fs, self._ledger.path, self._known.ids))


def _entries_without(fs: Fs, path: str, known: set[str]) -> Iterator[Entry]:
    """The lines of a ledger that acknowledge unknown messages."""
    follower = Follower(path, fs, unended=True)
    if not follower.changed():
        return
    for line in follower.lines():
        record = decode_object(line.raw) or {}
        found = record.get("breadcrumb_id")
        if isinstance(found, str) and found not in known:
            file = record.get("file")
            yield Entry(found, file if isinstance(file, str) else "", line.raw + b"\n")
