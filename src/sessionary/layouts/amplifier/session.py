"""One open session folder: its lock, its transcript, and the baseline of this process.

The *baseline* are the lines that this process last loaded or saved. It has two uses. A save whose older
messages equal the baseline appends only the rest, without reading the file. And a save that would drop a line
that this process has never seen is recognised as a conflict instead of a loss.
"""

from __future__ import annotations

import os
import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sessionary.codec import NotPlain, read_lines, snapshot
from sessionary.disk import atomic, transaction
from sessionary.disk.fs import Fs, descriptor, make_folder, read_at, read_bytes, stat_or_none, storage_errors
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lifetime import reset_in_child
from sessionary.disk.lock import FileLock
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, LOCK, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.header import is_session as holds_session
from sessionary.layouts.amplifier.messages import clean_dict
from sessionary.layouts.amplifier.recovery import StoredTranscript
from sessionary.layouts.fingerprints import Identity, identity_of
from sessionary.model import Problem, Severity

OPEN_SESSIONS = 64
_POOL = "_sessionary_pool"


def is_session(fs: Fs, folder: str) -> bool:
    """True for a folder with a file whose name does not begin with a dot. Never raises."""
    try:
        return holds_session(fs, folder, fs.listdir(folder))
    except (OSError, ValueError):
        return False


def no_session(session_id: str, folder: str) -> NotFound:
    """The error about a session that does not exist."""
    return NotFound(
        f"Session '{session_id}' not found",
        path=folder,
        session=session_id,
        hint="`sessionary list` shows what is there",
    )


def lines_known(raws: Iterable[bytes]) -> array[int]:
    """The hashes of lines, eight bytes each, since a server may hold the baselines of many sessions."""
    return array("q", map(hash, raws))


@dataclass(slots=True)
class Baseline:
    """The content that this process last loaded from or saved to a transcript.

    Attributes:
        seen: structural copies of the caller's messages of the lines, in order; None after a load, when the
        first save compares with the file instead.
        odd: indexes in `seen` of messages with more than plain JSON; these are compared in their cleaned form.
    """

    known: array[int] = field(default_factory=lambda: array("q"))
    seen: list[Any] | None = None
    odd: set[int] = field(default_factory=set)
    identity: Identity | None = None

    def remember(self, messages: Sequence[Any], raws: Iterable[bytes]) -> None:
        """Append messages and their lines to the baseline."""
        self.known.extend(map(hash, raws))
        if self.seen is None:
            return
        for message in messages:
            try:
                self.seen.append(snapshot(message))
            except NotPlain:
                self.odd.add(len(self.seen))
                self.seen.append(snapshot(clean_dict(message)))

    def is_prefix_of(self, messages: Sequence[Any]) -> bool:
        """True if `messages` begins with all seen messages, unchanged."""
        seen = self.seen
        if seen is None or len(messages) < len(seen):
            return False
        head = list(messages[: len(seen)])
        for place in self.odd:
            head[place] = clean_dict(head[place])
        try:
            return bool(seen == head)
        except (ValueError, TypeError):
            return False  # a value that cannot be compared (such as an array) in place of a plain one


class TranscriptFile:
    """transcript.jsonl under the lock of its session: append or replace, with its backup."""

    def __init__(self, folder: str, fs: Fs, now: Callable[[], datetime]) -> None:
        self.path = os.path.join(folder, TRANSCRIPT)
        self.backup = self.path + BACKUP
        self.journal = Journal(self.path, Tail.CUT, fs=fs, now=now)
        self._folder = folder
        self._fs = fs
        self._now = now
        self.trouble: Problem | None = None
        self._backup_due = 0  # the size at which the backup is checked next
        self._inode = (0, 0)

    def stat(self) -> os.stat_result | None:
        """The stat of the file, or None."""
        return stat_or_none(self._fs, self.path)

    def needs_recovery(self, found: os.stat_result | None) -> bool:
        """True if an append here would bury a backup: the file has no content, and the backup does.

        Reads at most 64 KiB. Not needed for a file that is not empty and to which this process has appended.
        """
        backup = stat_or_none(self._fs, self.backup)
        if backup is None or backup.st_size <= 1:
            return False
        if found is None or found.st_size == 0:
            return True
        head = self._head()
        return bool(head.strip()) and not read_lines(head).values

    def _head(self) -> bytes:
        with storage_errors("read", self.path), descriptor(self._fs, self.path) as fd:
            return read_at(self._fs, fd, 1 << 16, 0)

    def append(self, data: bytes, found: os.stat_result | None, *, durable: bool) -> None:
        """Append whole lines after `found`, with a refreshed backup if the file has doubled since the last one.

        Raises:
            StorageFailed: nothing was acknowledged.
        """
        self.trouble = None
        if found is not None and found.st_size == 1 and data and self._head() == b"\n":
            # An empty conversation is one newline, which must not stay as a blank line before the first
            # message.
            self._put(data, backup=None, durable=durable)
            return
        journal = self.journal
        journal.append(data, found)
        if found is not None and (journal.size >= self._backup_due or journal.identity != self._inode):
            self.back_up(journal.identity, journal.size, durable=durable)

    def heal(self) -> str | None:
        """End a truncated tail; return the file with the removed bytes."""
        self.journal.append(b"", self.stat())
        return self.journal.torn

    def replace(self, lines: Sequence[bytes], *, keep: Sequence[str], durable: bool) -> list[str]:
        """Replace all lines. `keep` determines what happens to the current file.

        ``conflict`` and ``corrupt`` keep it under a dated name; ``backup`` keeps it as the backup.
        Returns the dated names.

        Raises:
            StorageFailed: the old content is in place, or the outcome is unknown.
        """
        aside = [
            atomic.quarantine(self.path, kind, fs=self._fs, now=self._now())
            for kind in keep
            if kind != "backup" and self.stat() is not None
        ]
        backup = self.backup if "backup" in keep else None
        self._put(b"\n".join(lines), b"\n", backup=backup, durable=durable)
        return aside

    def conflicts(self) -> list[str]:
        """The versions that saves replaced, oldest first."""
        begin = f"{TRANSCRIPT}.conflict-"
        with storage_errors("read", self._folder):
            names = sorted(name for name in self._fs.listdir(self._folder) if name.startswith(begin))
        return [os.path.join(self._folder, name) for name in names]

    def _put(self, *data: bytes, backup: str | None, durable: bool) -> None:
        try:
            atomic.replace(self.path, data, fs=self._fs, backup=backup, durable=durable)
        except StorageFailed as error:
            if error.outcome == "unknown":
                self.journal.distrust()
            raise
        self.replaced()

    def replaced(self) -> None:
        """The file was replaced by its owner."""
        self.journal.reopened()
        self._inode = (0, 0)

    def back_up(self, inode: tuple[int, int], size: int, *, durable: bool) -> None:
        """Refresh the backup if the file has doubled since: at least half of it always exists twice.

        A failure to write a backup is reported (`trouble`) but fails nothing: the messages are stored.
        """
        if inode != self._inode:
            self._inode = inode
            self._backup_due = _doubled(0)
        if size >= self._backup_due:
            self._backup_due = max(
                self._backup_due, _doubled(self._backup_size())
            )  # another process may have refreshed it
            if size >= self._backup_due:
                self._refresh_backup(durable)
                self._backup_due = _doubled(size)

    def _backup_size(self) -> int:
        """The size of the backup; 0 if it is a hard link to the file itself, which protects nothing."""
        backup = stat_or_none(self._fs, self.backup)
        return 0 if backup is None or (backup.st_dev, backup.st_ino) == self._inode else backup.st_size

    def _refresh_backup(self, durable: bool) -> None:
        """Copy the file over its backup, unless the file is damaged: the backup may hold the lost data."""
        data = read_bytes(self._fs, self.path) or b""
        if any(problem.severity > Severity.note for problem in read_lines(data, self.path).problems):
            return  # checked again when the file has doubled once more
        try:
            atomic.refresh_backup(self.path, self.backup, fs=self._fs, durable=durable)
        except OSError as error:
            self.trouble = _not_backed_up(self.backup, error)

    def mark_active(self) -> None:
        """Update the folder's time: lists are sorted by it, and an append does not change it."""
        try:
            self._fs.utime(self._folder)
        except OSError:
            pass  # a folder of another owner: only its place in lists is affected


def _doubled(size: int) -> int:
    """The size at which a file that was backed up with `size` bytes is backed up again: the next power of two.

    Not twice the size, so that many processes, and later runs, agree on the moment.
    """
    return max(2, 1 << size.bit_length())


def _not_backed_up(path: str, error: OSError) -> Problem:
    message = f"the backup of the transcript could not be refreshed ({error.strerror or error}); the older one is kept"
    remedy = "free some space; the backup is refreshed when the session has doubled again"
    return Problem.of_file("backup_not_refreshed", Severity.note, path, message, remedy)


class Session:
    """One open session folder. Use `entered` for every write."""

    def __init__(self, folder: str, fs: Fs, now: Callable[[], datetime]) -> None:
        self.folder = folder
        self.session_id = os.path.basename(folder)
        self.fs = fs
        self.now = now
        self.lock = FileLock(os.path.join(folder, LOCK), fs)
        self.transcript = TranscriptFile(folder, fs, now)
        self.baseline: Baseline | None = None
        self._metadata_suspect = False
        self._metadata_backed_up = False
        self._swept = False
        self.leave = self.lock.release  # releases the session to other writers
        self.recovered: transaction.Recovered | None = None

    def enter(self, *, make: bool) -> os.stat_result | None:
        """Take the session: no other thread or process writes until `leave`. Returns the stat of the transcript.

        Raises:
            FileNotFoundError: the folder does not exist, and `make` is False.
        """
        while True:
            try:
                found = self.transcript.journal.enter(self.lock)
                break
            except FileNotFoundError:
                if not make:
                    raise
                make_folder(self.fs, self.folder)
        try:
            if self.lock.is_abandoned() or not self._swept:
                self._tidy()
                found = self.transcript.stat()
        except BaseException:
            self.lock.keep_note()
            self.lock.release()
            raise
        return found

    def _tidy(self) -> None:
        """Clean up after a killed writer: temporary files, and an operation over several files.

        This is done when this process takes the session for the first time, and if the last holder of the
        lock left its marker, which operations over several files write. So an append does not pay for it.
        """
        with storage_errors("read", self.folder):
            atomic.sweep(self.folder, fs=self.fs)
            self.recovered = transaction.recover(self.fs, self.folder)
        if self.recovered is not None:
            self.transcript.replaced()
        self._swept = True
        if self.lock.is_abandoned():
            self.lock.clear_note()

    def replaced(self) -> None:
        """Drop the baseline after the owner replaced all files."""
        self.transcript.replaced()
        self.baseline = None

    def is_there(self) -> bool:
        """True if the session exists."""
        return is_session(self.fs, self.folder)

    def loaded(self, found: os.stat_result | None, stored: StoredTranscript) -> None:
        """Store what a load returned to the caller. Without the lock: a reader never waits for a writer."""
        baseline = self.baseline
        unchanged = found is not None and baseline is not None and baseline.identity == identity_of(found)
        if not unchanged:
            self.baseline = Baseline(lines_known(stored.raws))

    def metadata_is(self, document: bytes) -> bool:
        """True if metadata.json already has exactly these bytes."""
        if self._metadata_suspect:
            return False
        return read_bytes(self.fs, os.path.join(self.folder, METADATA)) == document

    def write_metadata(self, path: str, document: bytes, *, readable: bool, durable: bool) -> str | None:
        """Replace metadata.json; the old one becomes the backup, or is quarantined if it cannot be read.

        Returns the dated name in the latter case.
        """
        aside = None if readable else atomic.quarantine(path, "corrupt", fs=self.fs, now=self.now())
        backup = path + BACKUP if readable else None
        try:
            atomic.replace(path, (document,), fs=self.fs, backup=backup, durable=durable)
        except StorageFailed as error:
            self._metadata_suspect = error.outcome == "unknown"
            raise
        self._metadata_suspect = False
        return aside

    def back_up_metadata(self, *, durable: bool) -> None:
        """Ensure that an unchanged metadata.json has a backup too, as after every second save."""
        if self._metadata_backed_up:
            return
        path = os.path.join(self.folder, METADATA)
        if stat_or_none(self.fs, path + BACKUP) is None:
            with storage_errors("back up", path):
                atomic.refresh_backup(path, path + BACKUP, fs=self.fs, durable=durable)
        self._metadata_backed_up = True

    def is_suspect(self) -> bool:
        """True if a flush failed, so that the next write has to rewrite a file."""
        return self.transcript.journal.suspect or self._metadata_suspect


class SessionPool:
    """The sessions of one file system that this process used last.

    Others are dropped: their files are closed after their last use, pending flushes are done when due, and of
    their baselines the hashes are kept.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._known: dict[str, Baseline] = {}
        _pools.add(self)

    def get(self, folder: str, fs: Fs, now: Callable[[], datetime]) -> Session:
        """The session in `folder`."""
        with self._guard:
            session = self._open.get(folder)
            if session is None:
                session = self._open[folder] = Session(folder, fs, now)
                session.baseline = self._known.pop(folder, None)
                if len(self._open) > OPEN_SESSIONS:
                    self._forget_oldest()
            else:
                self._open.move_to_end(folder)
        return session

    def drop(self, folder: str) -> None:
        """Drop a session whose folder is gone."""
        with self._guard:
            self._known.pop(folder, None)
            self._open.pop(folder, None)

    def _forget_oldest(self) -> None:
        """Drop the least recently used one, except one with a failed flush."""
        for folder, session in self._open.items():
            if not session.is_suspect():
                del self._open[folder]
                if session.baseline is not None:
                    self._known[folder] = Baseline(session.baseline.known)
                return

    def forget_threads(self) -> None:
        """Reset in a forked child: no thread of the parent continues here to release its locks."""
        self._guard = threading.Lock()


_pools: weakref.WeakSet[SessionPool] = weakref.WeakSet()


def pool_of(fs: Fs) -> SessionPool:
    """The single pool of this process for a file system.

    It is attached to the file system itself and is collected with it: in a table of its own, the sessions,
    which reference their file system, would keep it and their files open for ever.
    """
    pool: SessionPool | None = vars(fs).get(_POOL)
    return pool if pool is not None else vars(fs).setdefault(_POOL, SessionPool())


reset_in_child(_pools, SessionPool.forget_threads)
