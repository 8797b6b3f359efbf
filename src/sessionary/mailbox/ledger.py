"""The ledger of a consumer: the log of the work session, in which one line is both effect and acknowledgment.

There is no moment between "applied" and "acknowledged", because there is no second write. After a crash the
ids and names on the lines show which messages were applied, and the rest is delivered. There is no other
state: no position, no time of the last message, no mark on the message itself. So a late message, with an
older stamp or in another folder, is as new as any other.

Lines are appended under the lock of the session. The holder first reads what others have appended meanwhile,
and skips what is already there. That, and not the lock of the consumer, prevents a message from being applied
twice in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from sessionary.codec import Undecodable, decode, encode_line, reencode_line
from sessionary.codec.damage import replaced
from sessionary.codec.decode import REFUSED
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.journal import Journal, Tail, lines_of
from sessionary.disk.lock import FileLock
from sessionary.mailbox.tail import NOTHING, Follower, Line, State
from sessionary.model import Problem, Severity


class _Applied(msgspec.Struct):
    """The fields of a log line that identify a message; the rest of the line is not decoded."""

    breadcrumb_id: str | None = None
    file: str | None = None


_read_line = msgspec.json.Decoder(_Applied).decode


class Entry(NamedTuple):
    """A handled message, to be logged.

    Attributes:
        file: ``<depth>/<name>``.
    """

    breadcrumb_id: str
    file: str
    line: bytes


def entry(breadcrumb_id: str, file: str, result: Any, applied_at: datetime) -> Entry:
    """The entry for a message. `result` is a sanitised dict, or None."""
    record = {"breadcrumb_id": breadcrumb_id, "file": file, "applied_at": stamp(applied_at), "result": result}
    return Entry(breadcrumb_id, file, encode_line(record) + b"\n")


def stamp(moment: datetime) -> str:
    """A time in the format of our files: ISO 8601, UTC, microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


class Ledger:
    """The messages that one consumer has applied.

    Args:
        lock: the lock of the session, under which lines are appended.
        now: the clock, for the names of truncated bytes.
        applied: called with the names, and the label, of messages found in the ledger.
        named: the session and the consumer, as on a command line.

    Attributes:
        names: their file names, by the label of their folder.
        restarts: incremented when the file was replaced, so that names may be gone.
        problems: the unreadable lines, as long as they exist.
        written: called with the entries that this process has appended, once they are durable.
    """

    def __init__(
        self,
        path: str,
        lock: FileLock,
        fs: Fs = OS_FS,
        now: Callable[[], datetime] | None = None,
        applied: Callable[[str, Sequence[str]], object] = lambda label, names: None,
        named: str = "ID",
    ) -> None:
        self.path = path
        self.ids: set[str] = set()
        self.names: dict[str, set[str]] = {}
        self.problems: list[Problem] = []
        self._applied = applied
        self.written: Callable[[Sequence[Entry]], object] = lambda entries: None
        self._named = named
        self._fs = fs
        self._lock = lock
        self._followed = Follower(path, fs, unended=True)
        self._journal = Journal(path, Tail.CUT, fs=fs, now=now)
        self._durable: State = NOTHING

    @property
    def restarts(self) -> int:
        """Number of times that the file was replaced."""
        return self._followed.restarts

    @property
    def is_there(self) -> bool:
        """True if the log existed at the last refresh."""
        return self._followed.found is not None

    def refresh(self) -> None:
        """Read new lines. Takes no lock."""
        before = self.restarts
        changed = self._followed.changed()
        if self.restarts != before:
            self.ids.clear()
            self.names.clear()
            self.problems.clear()
        if changed:
            self._add_all([self._take(line) for line in self._followed.lines()])

    def append(self, entries: Sequence[Entry]) -> int:
        """Log handled messages; return how many were not logged yet.

        Durability: when this returns, all of them survive a power cut. If it does not return, a reader finds
        none of them, or the first few; the others are delivered again.

        Raises:
            StorageFailed: the disk refused; with ``outcome="unknown"`` they may be logged or not.
        """
        self._lock.acquire()
        try:
            self.refresh()
            fresh = [new for new in entries if new.breadcrumb_id not in self.ids]
            self._journal.append(b"".join(new.line for new in fresh), self._followed.found)
            self.refresh()
            # A message that another process logged under another name is done under this one too.
            self._add_all(entries)
            state = self._followed.state
        finally:
            self._lock.release()
        self._journal.flush()
        self._durable = state
        self.written(fresh)
        return len(fresh)

    def drop_damage(self, now: datetime) -> int:
        """Remove the unreadable lines from the ledger; return their number.

        A line that can be read with U+FFFD in place of invalid UTF-8 is kept so, unless another line
        acknowledges the same message. The old file is kept as ``<name>.corrupt-<time>``.

        Durability: as `atomic.replace`: if interrupted, the ledger is the old one or the new one.
        """
        self.append(())  # ends a last line without newline, or sets half a line aside
        self._lock.acquire()
        try:
            self.refresh()
            damaged = {problem.line for problem in self.problems}
            if damaged:
                atomic.quarantine(self.path, "corrupt", fs=self._fs, now=now)
                lines = enumerate(lines_of(self._fs, self.path), 1)
                kept = [
                    good + b"\n"
                    for number, line in lines
                    if (good := self._readable(line) if number in damaged else line) is not None
                ]
                atomic.replace(self.path, kept, fs=self._fs)
                self._journal.reopened()
                self.refresh()
        finally:
            self._lock.release()
        return len(damaged)

    def _readable(self, line: bytes) -> bytes | None:
        """A damaged line with U+FFFD in place of its bad bytes; None if that is not a record, or already known."""
        record = replaced(line)
        return None if record is None or record.get("breadcrumb_id") in self.ids else reencode_line(record)

    def settle(self) -> None:
        """Flush lines of other processes, which may have died before their flush.

        A message reported as applied must be durable, whichever process wrote the line.
        """
        if self._followed.state not in (self._durable, NOTHING):
            self.append(())

    def close(self) -> None:
        """Close the file; the next append opens it again."""
        self._journal.close()

    def _add_all(self, applied: Sequence[_Applied | Entry]) -> None:
        names: dict[str, list[str]] = {}
        for one in applied:
            if one.breadcrumb_id is None:
                continue  # another line in the log of the session
            self.ids.add(one.breadcrumb_id)
            if one.file is not None:
                label, _, name = one.file.rpartition("/")
                names.setdefault(label, []).append(name)
        for label, some in names.items():
            self.names.setdefault(label, set()).update(some)
            self._applied(label, some)

    def _take(self, line: Line) -> _Applied:
        """The message that a line acknowledges. Damage is reported."""
        try:
            return _read_line(line.raw)
        except REFUSED:
            pass  # unusual JSON, or damage
        try:
            record = decode(line.raw)
        except Undecodable as error:
            self.problems.append(_damaged(self.path, line, str(error), self._named))
            return _Applied()
        if not isinstance(record, dict):
            return _Applied()
        known, file = record.get("breadcrumb_id"), record.get("file")
        return _Applied(known if isinstance(known, str) else None, file if isinstance(file, str) else None)


def _damaged(path: str, line: Line, why: str, named: str) -> Problem:
    words = f"a line of the log cannot be read ({why}); if it acknowledged a message, that is delivered again"
    remedy = (
        f"`sessionary work ledger restore {named}` sets it aside,"
        " and restores it from the copy of the log if possible"
    )
    place = path, line.number, line.byte
    return Problem("bad_ledger_line", Severity.lost_data, *place, words, remedy, len(line.raw))
