"""Failures of a consumer: failed attempts, dead letters, invalid message files.

They are stored in a file of their own, ``attempts.<consumer>.jsonl``, because the log holds only what was
applied. Each line is an event, named by `what`:

started   a handler is about to be called, and must never be called again (``at_most_once`` only)
failed    a handler raised
dead      the message was given up: it failed too often, or the outcome of its only attempt is unknown
revived   a user wants it retried; its attempts count from zero
bad       the file is not a message and will not become one
bad_line  a line of the log cannot be read

Losing the last of these lines costs an extra attempt, never a message; only `started` must be on disk before
anything else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sessionary.codec import decode_object, encode_line, sanitize
from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lock import FileLock
from sessionary.mailbox.ledger import stamp
from sessionary.mailbox.tail import Follower

LONGEST_ERROR = 2000


class Mark(NamedTuple):
    """The version of a file: a repair changes one of these. Earlier versions stored no ctime (0)."""

    size: int
    mtime_ns: int
    ctime_ns: int = 0

    def is_of(self, other: Mark | None) -> bool:
        """True if this stored version equals the version `other` of the file."""
        if other is None or (self.size, self.mtime_ns) != (other.size, other.mtime_ns):
            return False
        return self.ctime_ns in (0, other.ctime_ns)


class DeadLetter(NamedTuple):
    """A message that was given up.

    Attributes:
        breadcrumb_id: its id.
        file: ``<depth>/<name>``, its current path.
        attempts: number of calls of a handler for it.
        error: the error of the last one, as text.
        at: when it was given up, ISO 8601.
    """

    breadcrumb_id: str
    file: str
    attempts: int
    error: str
    at: str


class Attempts:
    """The messages that one consumer could not apply.

    Attributes:
        path: the file.
        failed: number of failures of a handler, by id.
        started: ids whose only attempt has begun.
        dead: the dead letters by id.
        dead_files: their paths, as ``<depth>/<name>``.
        bad: the version of each invalid message file, by ``<depth>/<name>``.
        bad_lines: the unreadable lines of the log that were reported, by number and offset.
        revivals: number of revived dead letters: each has to be found again.
    """

    def __init__(
        self, path: str, lock: FileLock, fs: Fs = OS_FS, now: Callable[[], datetime] | None = None
    ) -> None:
        self.path = path
        self.failed: dict[str, int] = {}
        self.started: set[str] = set()
        self.dead: dict[str, DeadLetter] = {}
        self.dead_files: set[str] = set()
        self.bad: dict[str, Mark] = {}
        self.bad_lines: set[tuple[int, int]] = set()
        self.revivals = 0
        self._now = now or (lambda: datetime.now(UTC))
        self._lock = lock
        self._followed = Follower(path, fs)
        self._journal = Journal(path, Tail.CUT, fs=fs, now=now)
        self._unflushed = False

    def refresh(self) -> None:
        """Read new lines."""
        before = self._followed.restarts
        changed = self._followed.changed()
        if before != self._followed.restarts:
            for known in (self.failed, self.started, self.dead, self.dead_files, self.bad, self.bad_lines):
                known.clear()
            self.revivals += 1
        if changed:
            for line in self._followed.lines():
                self._take(line.raw)

    def fail(self, breadcrumb_id: str, file: str, error: BaseException) -> int:
        """Record a failure of a handler; return the number of failures. Not flushed; see `flush`."""
        count = self.failed.get(breadcrumb_id, 0) + 1
        self._add("failed", id=breadcrumb_id, file=file, attempt=count, error=in_words(error))
        return self.failed.get(breadcrumb_id, count)

    def give_up(self, breadcrumb_id: str, file: str, attempts: int, error: str) -> None:
        """Record a dead letter. Not flushed; see `flush`."""
        self._add("dead", id=breadcrumb_id, file=file, attempts=attempts, error=error)

    def start(self, breadcrumb_id: str, file: str) -> None:
        """Record the start of the only attempt.

        Durability: when this returns, no later consumer that delivers at most once calls a handler for this message.

        Raises:
            Locked, StorageFailed: the handler must not be called now.
        """
        self._add("started", id=breadcrumb_id, file=file)
        self.flush()

    def revive(self, breadcrumb_id: str) -> None:
        """Record that a dead letter is to be retried. Not flushed; see `flush`."""
        self._add("revived", id=breadcrumb_id)

    def mark_bad(self, file: str, mark: Mark, error: str) -> None:
        """Record an invalid message file. Not flushed; see `flush`."""
        self._add("bad", file=file, **mark._asdict(), error=error)

    def mark_line(self, line: int, byte: int) -> None:
        """Record that an unreadable line of the log is reported now. Not flushed; see `flush`."""
        self._add("bad_line", line=line, byte=byte)

    def flush(self) -> None:
        """Flush all records."""
        if self._unflushed:
            self._journal.flush()
            self._unflushed = False

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._journal.close()

    def _add(self, what: str, **fields: Any) -> None:
        record = sanitize({"at": stamp(self._now()), "what": what, **fields})
        self._lock.acquire()
        try:
            self._journal.append(encode_line(record) + b"\n", self._journal.look())
        finally:
            self._lock.release()
        self._unflushed = True
        self.refresh()

    def _take(self, raw: bytes) -> None:
        event = decode_object(raw) or {}  # a damaged line costs at worst one extra attempt
        match event:
            case {"what": "bad", "file": str(file), "size": int(size), "mtime_ns": int(mtime_ns)}:
                ctime_ns = event.get("ctime_ns")
                self.bad[file] = Mark(size, mtime_ns, ctime_ns if isinstance(ctime_ns, int) else 0)
            case {"what": "bad_line", "line": int(line), "byte": int(byte)}:
                self.bad_lines.add((line, byte))
            case {"what": "failed", "id": str(known)}:
                # Counted, not read: two processes may have failed at the same time and both have written
                # "attempt 1".
                self.failed[known] = self.failed.get(known, 0) + 1
            case {"what": "started", "id": str(known)}:
                self.started.add(known)
            case {"what": "dead", "id": str(known)}:
                file, error, at = (str(event.get(name, "")) for name in ("file", "error", "at"))
                attempts = event.get("attempts")
                count = attempts if isinstance(attempts, int) else 0
                self.dead[known] = DeadLetter(known, file, count, error, at)
                self.dead_files.add(file)
            case {"what": "revived", "id": str(known)}:
                self.failed.pop(known, None)
                self.started.discard(known)
                if known in self.dead:
                    self.dead_files.discard(self.dead.pop(known).file)
                self.revivals += 1


def in_words(error: BaseException) -> str:
    """An exception as one line of limited length."""
    return f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
