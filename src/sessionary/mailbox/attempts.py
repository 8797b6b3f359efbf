"""What did not go well for a consumer: attempts that failed, messages given up, files that are no messages.

It lies in a file of its own, ``attempts.<consumer>.jsonl``, because only what was applied may be in the log. Each
line is an event and says `what` it is:

started   a handler is about to be called, and this must never be done again (``at_most_once`` only)
failed    a handler raised
dead      the message is given up: it failed too often, or nobody knows how its only attempt ended
revived   somebody wants it tried again; its attempts count from zero
bad       the file is no message and will not become one
bad_line  a line of the log cannot be read

Losing the last of these lines costs an attempt too many, never a message; only `started` has to be on the disk
before anything else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode, encode_line, sanitize
from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lock import FileLock
from sessionary.mailbox.ledger import stamp
from sessionary.mailbox.tail import Follower

LONGEST_ERROR = 2000


class Mark(NamedTuple):
    """A version of a file: whoever repairs it changes one of these. Earlier versions noted no ctime (0)."""

    size: int
    mtime_ns: int
    ctime_ns: int = 0

    def is_of(self, other: Mark | None) -> bool:
        """True if this, as it was noted, is the version `other` of the file."""
        if other is None or (self.size, self.mtime_ns) != (other.size, other.mtime_ns):
            return False
        return self.ctime_ns in (0, other.ctime_ns)


class DeadLetter(NamedTuple):
    """A message that was given up.

    Attributes:
        breadcrumb_id: its id.
        file: ``<depth>/<name>``, where it still lies.
        attempts: how often a handler was called for it.
        error: what the last one raised, in words.
        at: when it was given up, ISO 8601.
    """

    breadcrumb_id: str
    file: str
    attempts: int
    error: str
    at: str


class Attempts:
    """What is known of the messages that one consumer could not apply.

    Attributes:
        path: the file.
        failed: how often a handler has failed, by id.
        started: ids whose only attempt has begun.
        dead: the dead letters by id.
        dead_files: where they lie, as ``<depth>/<name>``.
        bad: the version of each file that is no message, by ``<depth>/<name>``.
        bad_lines: the lines of the log that cannot be read and were told, by number and offset.
        revivals: how many dead letters were revived: each is to be looked for again.
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

    def refresh(self) -> bool:
        """Read what has been appended since the last time; True if there was anything.

        Raises:
            StorageFailed: the file cannot be read.
        """
        before = self._followed.restarts
        changed = self._followed.changed()
        if before != self._followed.restarts:
            for known in (self.failed, self.started, self.dead, self.dead_files, self.bad, self.bad_lines):
                known.clear()
            self.revivals += 1
        if changed:
            for line in self._followed.lines():
                self._take(line.raw)
        return changed or before != self._followed.restarts

    def fail(self, breadcrumb_id: str, file: str, error: BaseException) -> int:
        """A handler has raised; returns how often that was the case now. Not flushed; see `flush`."""
        count = self.failed.get(breadcrumb_id, 0) + 1
        self._add("failed", id=breadcrumb_id, file=file, attempt=count, error=in_words(error))
        return self.failed.get(breadcrumb_id, count)

    def give_up(self, breadcrumb_id: str, file: str, attempts: int, error: str) -> None:
        """The message becomes a dead letter. Not flushed; see `flush`."""
        self._add("dead", id=breadcrumb_id, file=file, attempts=attempts, error=error)

    def start(self, breadcrumb_id: str, file: str) -> None:
        """The only attempt begins.

        Durability: when this returns, no later consumer that delivers at most once calls a handler for this message.

        Raises:
            Locked, StorageFailed: it may not be called now either.
        """
        self._add("started", id=breadcrumb_id, file=file)
        self.flush()

    def revive(self, breadcrumb_id: str) -> None:
        """A dead letter is to be tried again. Not flushed; see `flush`."""
        self._add("revived", id=breadcrumb_id)

    def mark_bad(self, file: str, mark: Mark, error: str) -> None:
        """The file is no message. Not flushed; see `flush`."""
        self._add("bad", file=file, **mark._asdict(), error=error)

    def mark_line(self, line: int, byte: int) -> None:
        """A line of the log cannot be read, and that is told now. Not flushed; see `flush`."""
        self._add("bad_line", line=line, byte=byte)

    def flush(self) -> None:
        """Make all of it durable.

        Raises:
            StorageFailed: as `Journal.flush`.
        """
        if self._unflushed:
            self._journal.flush()
            self._unflushed = False

    def close(self) -> None:
        """Give the descriptor back; the next line opens the file again."""
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
        try:
            event = decode(raw)
        except Undecodable:
            return  # at worst an attempt too many
        if not isinstance(event, dict):
            return
        if event.get("what") == "bad":
            self._take_bad(event)
        elif event.get("what") == "bad_line":
            line, byte = event.get("line"), event.get("byte")
            if isinstance(line, int) and isinstance(byte, int):
                self.bad_lines.add((line, byte))
        elif isinstance(event.get("id"), str):
            self._take_event(event["id"], event)

    def _take_bad(self, event: dict[str, Any]) -> None:
        file, size, mtime_ns = event.get("file"), event.get("size"), event.get("mtime_ns")
        if isinstance(file, str) and isinstance(size, int) and isinstance(mtime_ns, int):
            ctime_ns = event.get("ctime_ns")
            self.bad[file] = Mark(size, mtime_ns, ctime_ns if isinstance(ctime_ns, int) else 0)

    def _take_event(self, known: str, event: dict[str, Any]) -> None:
        match event.get("what"):
            case "failed":
                # Counted, not read: two processes may have failed at the same time and both written "attempt 1".
                self.failed[known] = self.failed.get(known, 0) + 1
            case "started":
                self.started.add(known)
            case "dead":
                texts = {name: str(event.get(name, "")) for name in ("file", "error", "at")}
                attempts = event.get("attempts")
                count = attempts if isinstance(attempts, int) else 0
                self.dead[known] = DeadLetter(known, texts["file"], count, texts["error"], texts["at"])
                self.dead_files.add(texts["file"])
            case "revived":
                self.failed.pop(known, None)
                self.started.discard(known)
                if known in self.dead:
                    self.dead_files.discard(self.dead.pop(known).file)
                self.revivals += 1


def in_words(error: BaseException) -> str:
    """An exception in a line, not longer than anybody reads."""
    return f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
