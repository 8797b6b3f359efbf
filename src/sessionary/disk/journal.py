"""Journals: line files that grow at the end. Append, torn tail, flush.

An append is one write of whole lines on an O_APPEND descriptor, under the lock of the folder, after the tail has been
repaired. A writer that is killed during a long write leaves half a line. Without the repair, the next append would
join its record to that half line and lose it.

The repair of a torn tail depends on the other writers of the file. With strict readers and no lock-free writers
(`Tail.CUT`), the torn bytes are saved beside the file and cut off. Where other programs append without a lock
(`Tail.SEAL`), cutting could remove a line that they have just written, so a newline ends the torn line instead.

The flush comes after the lock is released: others append meanwhile, and the kernel merges concurrent flushes. A
failed flush is never retried: the kernel marks the pages clean, and a second flush would succeed without writing
anything. The journal is then *suspect*, and its next append rewrites the whole file.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum

from sessionary.disk import atomic
from sessionary.disk.fs import (
    APPEND,
    CREATE,
    FILE_MODE,
    O_NOFOLLOW,
    OS_FS,
    Fs,
    descriptor,
    name_folders,
    read_at,
    refuse_placeholder,
    require_regular,
    stat_or_none,
    storage_failed,
    sync_dir,
    write_all,
)
from sessionary.disk.lifetime import reset_in_child
from sessionary.disk.lock import FileLock
from sessionary.errors import Outcome, StorageFailed

TAIL_BLOCK = 1 << 16
COPY_BLOCK = 1 << 20

_OPEN_NOFOLLOW = APPEND | O_NOFOLLOW
# Inodes whose flush failed in this process. Outlives the Journal object: a new Journal on the same file would append
# behind a hole and flush "successfully".
_suspects: set[tuple[int, int]] = set()
_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


class Tail(Enum):
    """How to repair bytes behind the last newline."""

    CUT = "cut"
    SEAL = "seal"


def is_json_text(data: bytes) -> bool:
    """True if every non-blank line is strict JSON text; a byte order mark is accepted."""
    try:
        text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        for line in text.split("\n"):
            if record := line.strip():
                json.loads(record)
    except (ValueError, RecursionError):
        return False
    return True


class _OpenFile:
    """A descriptor that is closed with its last reference.

    Several threads may be flushing it while another thread drops it. Closing it during a flush would let the kernel
    reuse the number, and the flush would then acknowledge another file. So each thread holds a reference.
    """

    __slots__ = ("fd", "fs")

    def __init__(self, fs: Fs, fd: int) -> None:
        self.fs = fs
        self.fd = fd

    def close(self) -> None:
        """Close it in a forked child, although a thread that does not exist there may hold a reference."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self.fs.close(fd)

    def __del__(self) -> None:
        with suppress(BaseException):  # modules may be gone at interpreter exit
            self.close()


class Journal:
    """A line file whose descriptor stays open between appends.

    The caller holds the lock of the folder during `append`, and calls `flush` after releasing it.

    Attributes:
        identity: (device, inode) of the open file.
        size: its size in bytes after our last append.
        suspect: a flush failed; the next append replaces the file.
        failure: error of a background flush that has not been raised yet.
        torn: path where the last append saved torn bytes; None if there were none.
    """

    def __init__(
        self, path: str, tail: Tail, *, fs: Fs = OS_FS, now: Callable[[], datetime] | None = None
    ) -> None:
        self.path = path
        self.tail = tail
        self.identity = (0, 0)
        self.size = -1
        self.suspect = False
        self.failure: StorageFailed | None = None
        self.torn: str | None = None
        self._fs = fs
        self._now = now or (lambda: datetime.now(UTC))
        self._open_file: _OpenFile | None = None
        self._names_synced = False
        _journals.add(self)

    def look(self) -> os.stat_result | None:
        """Return the stat of the file at `path`; None if it does not exist."""
        return stat_or_none(self._fs, self.path)

    def enter(self, lock: FileLock) -> os.stat_result | None:
        """Take the lock of the journal's folder; return the stat of the file, or None.

        Raises:
            Locked: another holder kept the lock until the timeout.
            NotFound: the folder does not exist (FileNotFoundError).
        """
        lock.acquire()
        try:
            return self.look()
        except BaseException:
            lock.release()
            raise

    def append(self, data: bytes, found: os.stat_result | None) -> None:
        """Append whole lines, each ending in a newline. `found` is the result of a fresh `look`.

        Durability: none until `flush` returns. If this raises, a later reader finds none of the lines, or some of the
        first ones; a torn last line is skipped by readers and repaired by the next append.

        Raises:
            StorageFailed: the write failed, nothing was acknowledged; or a background flush failed since the last
                call (``outcome="unknown"``), and nothing was appended.
        """
        self.torn = None
        if self.failure is not None:
            self.raise_failure()
        try:
            if self.suspect:
                self._write_anew(data)
                return
            if found is None:
                if self._begin(data):
                    return
                found = self._fs.stat(self.path)
            file = self._open_file
            if file is None or (found.st_dev, found.st_ino) != self.identity:
                # Another process has replaced the file: an append to the old inode would put acknowledged lines into
                # what is now the backup.
                self.close()
                file, found = self._open()
                if self.identity in _suspects:
                    self._write_anew(data)
                    return
            size = found.st_size
            if size != self.size and size:
                size, data = self._whole_tail(file.fd, size, data)
            self._write(file.fd, size, data)
        except OSError as error:
            if isinstance(error, StorageFailed):
                raise
            raise storage_failed(error, "append to", self.path) from error

    def flush(self) -> None:
        """Make everything appended so far durable, including the name of the file.

        Safe to call from several threads and without the lock.

        Raises:
            StorageFailed: with ``outcome="unknown"``; the journal is suspect from then on, also for threads whose
                flush comes later.
        """
        if self.suspect:
            raise self._unknown("an earlier flush failed")
        file = self._open_file
        if file is None:
            return
        try:
            self._fs.fdatasync(file.fd)
            if not self._names_synced:
                self._sync_names()
        except OSError as error:
            self.suspect = True
            _suspects.add(self.identity)
            if self._open_file is file:
                self.close()
            file = None  # otherwise the traceback keeps it open
            raise storage_failed(error, "flush", self.path, outcome="unknown") from error

    def close(self) -> None:
        """Close the descriptor without flushing; the next append opens the file again."""
        self._open_file = None
        self.size = -1

    def raise_failure(self) -> None:
        """Raise the failure of a background flush, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def stat(self) -> os.stat_result:
        """Return the stat of the open file. Call it only after an `append`, under the lock."""
        assert self._open_file is not None
        return self._fs.fstat(self._open_file.fd)

    def forget(self) -> None:
        """Drop the inherited descriptor in a forked child; the parent flushes its own writes."""
        file, self._open_file = self._open_file, None
        self.size = -1
        if file is not None:
            file.close()

    def distrust(self) -> None:
        """Mark the journal suspect: the file was replaced with an unknown outcome, so the next append rewrites it."""
        self.close()
        self.suspect = True

    def reopened(self) -> None:
        """Accept a file that its owner has replaced: close the old descriptor, clear the suspect mark."""
        self.close()
        self.suspect = False

    def _open(self) -> tuple[_OpenFile, os.stat_result]:
        fd = self._fs.open(atomic.resolve(self._fs, self.path), _OPEN_NOFOLLOW, FILE_MODE)
        return self._adopt(fd)

    def _adopt(self, fd: int) -> tuple[_OpenFile, os.stat_result]:
        file = _OpenFile(self._fs, fd)
        found = require_regular(self._fs.fstat(fd))
        self._open_file = file
        self._names_synced = False
        self.identity = (found.st_dev, found.st_ino)
        self.suspect = self.suspect or self.identity in _suspects
        return file, found

    def _unknown(self, reason: str) -> StorageFailed:
        message = f"Failed to flush {self.path}: {reason}"
        return StorageFailed(message, outcome="unknown", operation="flush", path=self.path)

    def _begin(self, data: bytes) -> bool:
        """Create the file with its first lines; False if another writer created it first."""
        refuse_placeholder(self._fs, self.path, "append to")
        try:
            fd = self._fs.open(atomic.resolve(self._fs, self.path), CREATE | os.O_APPEND, FILE_MODE)
        except FileExistsError:
            return False
        found = self._fs.fstat(fd)
        _suspects.discard((found.st_dev, found.st_ino))  # a reused inode number
        self._adopt(fd)
        self._write(fd, 0, data)
        return True

    def _write(self, fd: int, size: int, data: bytes) -> None:
        try:
            written = self._fs.write(fd, data)
            if written != len(data):
                write_all(self._fs, fd, memoryview(data)[written:])
        except OSError as error:
            self.size = -1
            outcome: Outcome = "not_committed" if self._take_back(fd, size, data) else "unknown"
            raise storage_failed(error, "append to", self.path, outcome=outcome) from error
        self.size = size + len(data)

    def _take_back(self, fd: int, size: int, data: bytes) -> bool:
        """After a short write on a full disk: remove the written part, unless another writer appended behind it.

        Return False if whole lines of it may remain. Half a line may remain: readers skip it, and the next append
        repairs it.
        """
        try:
            half = self._fs.fstat(fd).st_size - size
            if half == 0:
                return True
            if half <= len(data) and read_at(self._fs, fd, half, size) == data[:half]:
                self._fs.truncate(fd, size)
                return True
        except OSError:
            pass
        return b"\n" not in data[:-1]

    def _whole_tail(self, fd: int, size: int, data: bytes) -> tuple[int, bytes]:
        """Repair the tail. Return the size of the file and the data to append."""
        if self._fs.pread(fd, 1, size - 1) == b"\n":
            return size, data
        if self.tail is Tail.SEAL:
            return size, b"\n" + data
        start = self._line_start(fd, size)
        torn = read_at(self._fs, fd, size - start, start)
        if is_json_text(torn):
            return size, b"\n" + data  # a complete record without its newline
        self.torn = atomic.save_aside(self.path, "torn", torn, fs=self._fs, now=self._now())
        self._fs.truncate(fd, start)
        return start, data

    def _line_start(self, fd: int, size: int) -> int:
        """Return the offset behind the last newline, searched backwards in blocks."""
        end = size
        while end > 0:
            begin = max(0, end - TAIL_BLOCK)
            at = read_at(self._fs, fd, end - begin, begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
        return 0

    def _sync_names(self) -> None:
        # The process that made the file may have been killed before it flushed the name.
        folder = os.path.dirname(self.path)
        with suppress(
            FileNotFoundError
        ):  # it was moved since our write; `atomic.move_folder` flushed the names
            sync_dir(self._fs, folder)
            name_folders(self._fs, folder)
        self._names_synced = True

    def _write_anew(self, data: bytes) -> None:
        """Rewrite a suspect file: every line is checked, damaged lines are saved aside, `data` is appended.

        Raises:
            StorageFailed: the rewrite failed; the file is still suspect.
        """
        self.close()
        suspect = self.identity
        damaged: list[bytes] = []
        found = self.look()
        if found is not None:
            for line in lines_of(self._fs, self.path):
                damaged += [] if is_json_text(line) else [line]
            if damaged:
                kept = b"\n".join(damaged) + b"\n"
                self.torn = atomic.save_aside(self.path, "corrupt", kept, fs=self._fs, now=self._now())
        new = atomic.replace(self.path, self._checked_lines(found is not None, data), fs=self._fs)
        self.suspect = False
        _suspects.discard(suspect)
        _suspects.discard((new.st_dev, new.st_ino))  # as in `_begin`
        self._open()
        self._names_synced = True

    def _checked_lines(self, exists: bool, data: bytes) -> Iterator[bytes]:
        if exists:
            for line in lines_of(self._fs, self.path):
                if is_json_text(line):
                    yield line + b"\n"
        yield data


def lines_of(fs: Fs, path: str) -> Generator[bytes, None, None]:
    """Yield the lines of a file without their newlines, including a torn last line."""
    with descriptor(fs, path) as fd:
        require_regular(fs.fstat(fd))
        rest: list[bytes] = []
        offset = 0
        while block := fs.pread(fd, COPY_BLOCK, offset):
            offset += len(block)
            first, *more = block.split(b"\n")
            rest.append(first)
            if more:
                yield b"".join(rest)
                yield from more[:-1]
                rest = [more[-1]]
        last = b"".join(rest)
        if last:
            yield last


reset_in_child(_journals, Journal.forget)
