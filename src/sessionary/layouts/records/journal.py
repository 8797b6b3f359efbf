"""RecordJournal: the records of one session, written and read by any number of processes.

A session is one JSON Lines file that only grows. Each record is one line and one transaction: it is there as a whole
or not at all. A writer takes the lock of the session, reads what others have added, decides on that state, appends one
record and releases the lock; the flush follows. So a decision is never made on a state that is not the newest.

Replaying a long session would cost more than reading its current items. Then a snapshot is appended: the tables, and
the offsets of the lines with current items. Every later record names the offset of the last snapshot, so a reader
starts there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import UNSET

from sessionary.disk import atomic
from sessionary.disk.flush_policy import COMMITTER, Durability, check_durability
from sessionary.disk.fs import (
    OS_FS,
    READ,
    Fs,
    expanded,
    make_folder,
    names_in,
    read_at,
    storage_failed,
    sync_dir,
)
from sessionary.disk.journal import COPY_BLOCK, Journal, Tail
from sessionary.disk.lock import FileLock
from sessionary.errors import (
    AlreadyExists,
    Corrupt,
    Invalid,
    InvalidId,
    SessionaryError,
    StorageFailed,
    Unsupported,
)
from sessionary.escaping import is_utf8
from sessionary.layouts.records.names import file_name, parts_of
from sessionary.layouts.records.state import BEGIN, CHANGE, FORMAT, SNAPSHOT, Begin, Line, State
from sessionary.layouts.records.values import encode_value
from sessionary.transcript.ranges import spans_of

Result = TypeVar("Result")

SNAPSHOT_AFTER = 1 << 22
"""Bytes that a replay reads beyond twice the current items, before a snapshot is written."""
LOCK_SUFFIX = ".lock"
_TAIL = 1 << 16
_SEAM = 1 << 9
"""Bytes before the place where the last replay ended, by which the next one knows that the file is still the same."""
_journals: weakref.WeakSet[RecordJournal] = weakref.WeakSet()

_decode_line = msgspec.json.Decoder(Line).decode
_decode_begin = msgspec.json.Decoder(Begin).decode
_encode = msgspec.json.Encoder().encode


class Change(NamedTuple):
    """The changes of one record. All of them take effect, or none.

    Attributes:
        add: items to add at the end: values that `encode_value` accepts, or what it returned as `msgspec.Raw`.
        keys: a key for each of them, to find it by; empty if none has one.
        drop: ranges of the numbers of items that no longer stand.
        set: values by table and key.
        unset: keys to remove, by table.
        cause: the operation that it is the result of, if a command can undo it; see `undoing.Cause`.
    """

    add: Sequence[Any] = ()
    keys: Sequence[str | None] = ()
    drop: Sequence[tuple[int, int]] = ()
    set: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    unset: Mapping[str, Sequence[str]] = MappingProxyType({})
    cause: Mapping[str, Any] = MappingProxyType({})


class RecordJournal:
    """The records of one session. Safe for threads and processes; safe to keep open after a fork.

    Args:
        folder: the folder of the sessions of a framework; made by the first change.
        framework: the name of the framework, as ``openai-agents``.
        session_id: the id; any text.
        scope: what else names the session, as the application and the user.
        durability: ``full`` (default: what was acknowledged survives a power cut), ``batch`` or ``none``.
        chain: whether each record of a new session holds the hash of the record before it.
        parent: the session that a new one is forked from.

    Raises:
        InvalidId: an id or a scope with a lone surrogate.

    Attributes:
        path: the file.
        session_id: the id.
        skipped: lines that could not be read, as (byte, length); they are kept in the file and change nothing.
        guard: held during each call; hold it to make several calls that no other thread comes between.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        framework: str,
        session_id: str,
        scope: Sequence[str] = (),
        *,
        durability: str = "full",
        chain: bool = False,
        parent: str | None = None,
    ) -> None:
        if not all(map(is_utf8, (session_id, *scope))):
            raise InvalidId(f"the id {session_id!r} contains a lone surrogate", session=session_id)
        root = os.path.realpath(expanded(folder))
        self.path: str = os.path.join(root, file_name(scope, session_id))
        self.skipped: list[tuple[int, int]] = []
        self._durability: Durability = check_durability(durability)
        self._begin = Begin(FORMAT, framework, session_id, list(scope), chain, parent or UNSET)
        self.session_id: str = session_id
        self.guard = threading.RLock()
        self._bind(OS_FS, partial(datetime.now, UTC))
        self._restart()
        _journals.add(self)

    @classmethod
    def with_fs(cls, fs: Fs, *args: Any, now: Callable[[], datetime] | None = None, **options: Any) -> Self:
        """A journal over another file system or clock, for tests."""
        journal = cls(*args, **options)
        journal._bind(fs, now or journal._now)
        return journal

    def _bind(self, fs: Fs, now: Callable[[], datetime]) -> None:
        self._fs = fs
        self._now = now
        self._journal = Journal(self.path, Tail.CUT, fs=fs, now=now)
        self._lock = FileLock(self.path + LOCK_SUFFIX, fs)

    def _restart(self) -> None:
        self._state = State()
        self._chain = self._begin.chain
        self._stamp = (0, 0, 0, 0)
        self._end = 0
        self._seam = b""
        self._snapshot = -1
        self._look_at = SNAPSHOT_AFTER
        self._added: list[tuple[int, int, int, int]] = []
        self._last = ""
        self.skipped = []

    def state(self) -> State:
        """The current state, including records of other processes. Do not change it.

        Raises:
            Unsupported: it has a newer format.
            AlreadyExists: it belongs to another session.
        """
        with self.guard:
            self._refresh()
            return self._state

    def read(self, select: Callable[[State], Result]) -> Result:
        """The result of a function over the newest state, which no other thread changes meanwhile.

        Raises: as `state`.
        """
        with self.guard, self._locating():
            self._refresh()
            return select(self._state)

    def change(self, decide: Callable[[State], Change | None]) -> State:
        """Decide on the newest state, and append one record.

        Args:
            decide: called while the session is locked; returns the change, or None for none. What it raises is
                raised here, and nothing is written.

        Returns:
            the state with the change.

        Durability: that of the level, also where nothing is changed; see the class.

        Raises:
            Invalid: a value cannot be stored.
            StorageFailed: the system denied the write; `outcome` states whether it may be stored.
        """
        with self.guard:
            self._acquire()
            try:
                found = self._refresh()
                if found is not None and found.st_size > self._end:
                    # A killed writer left its last line: a complete one gets its newline, a torn one is quarantined.
                    self._journal.append(b"", found)
                    found = self._refresh()
                with self._locating():
                    change = decide(self._state)
                if change is not None:
                    self._append(change, found)
                elif (
                    self._end
                ):  # what the decision rests on may be of a writer that was killed before its flush
                    self._journal.append(b"", found)
            finally:
                self._lock.release()
            if self._durability != "none":
                COMMITTER.commit(self._journal, self._durability, 1)
            return self._state

    def delete(self, check: Callable[[State], object] | None = None) -> bool:
        """Delete the session; False if there is none.

        Args:
            check: called with the newest state while the session is locked. What it raises is raised here, and
                nothing is deleted.

        Durability: when this returns, the deletion survives a power cut.
        """
        with self.guard:
            self._acquire()
            try:
                if check is not None:
                    self._refresh()
                    check(self._state)
                self._journal.close()
                found = self._journal.look() is not None
                for path in (self.path, self.path + LOCK_SUFFIX):
                    atomic.forget_file(path, fs=self._fs)
                sync_dir(self._fs, os.path.dirname(self.path))
                self._restart()
                return found
            finally:
                self._lock.release()
                self._lock.close()

    def close(self) -> None:
        """Flush what is pending, and close the files. The next call opens them again."""
        try:
            COMMITTER.settle(self._journal)
        finally:
            self._journal.close()
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _locating(self) -> Iterator[None]:
        """Add the file to what a pure function over the state raises."""
        try:
            yield
        except Corrupt as error:
            error.path, error.session = self.path, self.session_id
            raise

    # -- writing

    def _acquire(self) -> None:
        while True:
            with suppress(FileNotFoundError):
                return self._lock.acquire()
            make_folder(self._fs, os.path.dirname(self.path))

    def _append(self, change: Change, found: os.stat_result | None) -> None:
        state, lines = self._state, []
        if state.next_line == 0:
            begun = self._line(0, BEGIN, [_encode(self._begin)[1:-1]])
            lines.append(begun)
            self._last = sha256(begun).hexdigest()
        try:
            lines.append(self._change_line(max(state.next_line, 1), change))
        except UnicodeEncodeError as error:
            raise Invalid(f"a key contains a lone surrogate: {error.object!r}", path=self.path) from None
        data = b"".join(line + b"\n" for line in lines)
        self._journal.append(data, found)
        try:
            found = self._refresh(data)
        except StorageFailed as error:
            error.outcome = "unknown"  # it is written, and not flushed
            raise
        if self._replayed > self._look_at:
            with suppress(StorageFailed):  # the change is stored; a torn snapshot is quarantined later
                self._add_snapshot(found)

    def _change_line(self, number: int, change: Change) -> bytes:
        fields = []
        if change.add:
            values = b",".join(map(_encoded, change.add))
            fields.append(b'"first":%d,"add":[%s]' % (self._state.next_item, values))
        if change.keys:
            fields.append(b'"keys":' + _encode(change.keys))
        if change.drop:
            fields.append(b'"drop":' + _encode(change.drop))
        if change.set:
            fields.append(b'"set":' + _tables(change.set))
        if change.unset:
            fields.append(b'"unset":' + _encode(change.unset))
        if change.cause:
            fields.append(b'"cause":' + _encode(change.cause))
        return self._line(number, CHANGE, fields)

    def _line(self, number: int, operation: str, fields: list[bytes]) -> bytes:
        at = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = b'"n":%d,"at":"%s","op":"%s"' % (number, at.encode(), operation.encode())
        if self._snapshot >= 0:
            fields = [*fields, b'"snap":%d' % self._snapshot]
        if self._chain and number:
            fields = [*fields, b'"prev":"%s"' % self._last.encode()]
        return b"{" + b",".join([head, *fields]) + b"}"

    @property
    def _replayed(self) -> int:
        """The bytes that a replay reads: from the last snapshot on."""
        return self._end - max(self._snapshot, 0)

    def _add_snapshot(self, found: os.stat_result | None) -> None:
        """Append a snapshot, if a replay reads much more than the current items."""
        state = self._state
        standing = [len(bytes(one)) for one in state.items.values()]
        standing += [len(bytes(one)) for table in state.tables.values() for one in table.values()]
        self._look_at = self._replayed + SNAPSHOT_AFTER
        if self._replayed < 2 * sum(standing) + SNAPSHOT_AFTER:
            return
        needed = [
            (begin, end)
            for first, count, begin, end in self._added
            if any(number in state.items for number in range(first, first + count))
        ]
        fields = [
            b'"byte":%d' % self._end,
            b'"first":%d,"items":%s' % (state.next_item, _encode(spans_of(state.items))),
            b'"lines":%s,"named":%s' % (_encode(needed), _encode(state.keys)),
            b'"set":' + _tables(state.tables),
        ]
        line = self._line(state.next_line, SNAPSHOT, fields) + b"\n"
        self._journal.append(line, found)
        self._refresh(line)

    # -- reading

    def _refresh(self, written: bytes = b"") -> os.stat_result | None:
        """Apply what the file has beyond the last replay. If that is what was just written, it is not read."""
        found = self._journal.look()
        if found is None:
            if self._end:
                self._restart()
            return None
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if stamp == self._stamp:
            return found
        if stamp[:3] == (*self._stamp[:2], self._end + len(written)) and written:
            self._replay(written)
            self._stamp = stamp
            return found
        try:
            fd = self._fs.open(self.path, READ)
            try:
                self._catch_up(fd, self._fs.fstat(fd))
            finally:
                self._fs.close(fd)
        except FileNotFoundError:
            self._restart()
        except SessionaryError:
            self._restart()  # another session: the next call has to find out again
            raise
        except OSError as error:
            self._restart()
            raise storage_failed(error, "read", self.path) from error
        return found

    def _catch_up(self, fd: int, found: os.stat_result) -> None:
        """Apply what the open file has beyond the last replay; everything, if it is another file."""
        size = found.st_size
        same = (found.st_dev, found.st_ino) == self._stamp[:2] and size >= self._end
        # A deleted session that was begun anew may have the same inode number.
        if not same or self._seam != read_at(self._fs, fd, len(self._seam), self._end - len(self._seam)):
            self._restart()
        if not self._end and size > SNAPSHOT_AFTER:
            self._start_at_snapshot(fd, size)
        while data := _whole_lines(self._fs, fd, self._end, size):
            self._replay(data)
        tail = read_at(self._fs, fd, size - self._end, self._end)
        if tail and decoded(tail) is not None:  # a whole record; the next writer adds its newline
            self._replay(tail + b"\n")
            self._end, self._seam = size, tail[-_SEAM:]
        self._stamp = (found.st_dev, found.st_ino, size, found.st_mtime_ns)

    def _replay(self, data: bytes) -> None:
        """Apply whole lines that begin where the last read ended."""
        self._seam = data[-_SEAM:]
        for line in data.split(b"\n")[:-1]:
            begin = self._end
            self._end = end = begin + len(line) + 1
            record = self._decoded(line, begin)
            if record is None:
                continue
            self._state.apply(record)
            if record.add:
                self._added.append((record.first, len(record.add), begin, end))
            if record.op == SNAPSHOT and record.byte == begin:
                self._snapshot, self._look_at = begin, SNAPSHOT_AFTER
            if self._chain:
                self._last = sha256(line).hexdigest()

    def _start_at_snapshot(self, fd: int, size: int) -> None:
        """Apply the last snapshot, and the lines whose items stand. Does nothing if it cannot be read."""
        newest = decoded(_last_line(self._fs, fd, size))
        at = -1 if newest is None else newest.snap
        line = _line_at(self._fs, fd, at, size) if at >= 0 else b""
        snapshot = decoded(line)
        if snapshot is None or snapshot.op != SNAPSHOT or snapshot.byte != at:
            return  # also where lines before it were removed: its offsets are those of the old file
        if any(not 0 <= begin < end <= at for begin, end in snapshot.lines):
            return
        self._decoded(_line_at(self._fs, fd, 0, size), 0)
        for begin, end in snapshot.lines:
            self._end = begin
            self._replay(read_at(self._fs, fd, end - begin, begin))
        self._state.restrict(snapshot)
        self._end = at
        self._replay(line + b"\n")

    def _decoded(self, line: bytes, byte: int) -> Line | None:
        record = decoded(line)
        if record is None:
            if line.strip():
                self.skipped.append((byte, len(line)))
        elif record.op == BEGIN:
            self._check_begin(line)
        elif record.op == SNAPSHOT and record.byte != byte:
            record.set = {}  # it is of the file as it was before lines were moved
        return record

    def _check_begin(self, line: bytes) -> None:
        try:
            found = _decode_begin(line)
        except msgspec.MsgspecError:
            self.skipped.append((0, len(line)))
            return
        mine = self._begin
        if found.format > FORMAT:
            raise Unsupported(
                f"{self.path} has format {found.format}; this version reads up to {FORMAT}",
                path=self.path,
                session=mine.session,
                hint="install a newer version of sessionary",
            )
        if (found.framework, found.session, found.scope) != (mine.framework, mine.session, mine.scope):
            raise AlreadyExists(
                f"{self.path} belongs to the session {found.session!r} of {found.framework}",
                path=self.path,
                session=mine.session,
                hint="choose another id or another folder",
            )
        self._chain = found.chain


def _whole_lines(fs: Fs, fd: int, begin: int, size: int) -> bytes:
    """The whole lines of the next block; of a longer line that line. Empty at the end."""
    length = COPY_BLOCK
    while begin < size:
        data = read_at(fs, fd, min(length, size - begin), begin)
        if (newline := data.rfind(b"\n")) >= 0:
            return data[: newline + 1]
        if begin + length >= size:
            break
        length *= 8
    return b""


def decoded(line: bytes) -> Line | None:
    """A line of a journal as a record; None if it is not a record."""
    try:
        return _decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _last_line(fs: Fs, fd: int, size: int) -> bytes:
    """The last whole line."""
    length = _TAIL
    while True:
        data = read_at(fs, fd, min(length, size), max(0, size - length))
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")
        if len(lines) > 2 or length >= size:
            return lines[-2] if len(lines) > 1 else b""
        length *= 8


def _line_at(fs: Fs, fd: int, at: int, size: int) -> bytes:
    """The line that begins at an offset."""
    length = _TAIL
    while True:
        data = read_at(fs, fd, length, at)
        end = data.find(b"\n")
        if end >= 0 or at + length >= size:
            return data[:end] if end >= 0 else b""
        length *= 8


def _tables(tables: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"{%s}" % b",".join(
        b"%s:{%s}" % (_encode(name), b",".join(map(_entry, values.items())))
        for name, values in tables.items()
    )


def _entry(entry: tuple[str, Any]) -> bytes:
    key, value = entry
    return b"%s:%s" % (_encode(key), _encoded(value))


def _encoded(value: Any) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else encode_value(value)


def begins_in(folder: str, fs: Fs = OS_FS) -> Iterator[tuple[str, Begin]]:
    """The sessions in a folder, with their paths. Their names say what they are, unless these were shortened."""
    for name in sorted(names_in(fs, folder) or ()):
        parts, path = parts_of(name), os.path.join(folder, name)
        if parts is None:
            continue
        begin = Begin(FORMAT, "", parts[1], parts[0])
        with suppress(OSError, msgspec.MsgspecError):
            if "~" in name:
                begin = _decode_begin(first_line(fs, path))
        yield path, begin


def newest_change(path: str, fs: Fs = OS_FS) -> Line | None:
    """The last record of a session; None if there is none that can be read."""
    try:
        fd = fs.open(path, READ)
        try:
            return decoded(_last_line(fs, fd, fs.fstat(fd).st_size))
        finally:
            fs.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_failed(error, "read", path) from error


def first_line(fs: Fs, path: str) -> bytes:
    """The first line of a file, without its newline. Raises OSError."""
    fd = fs.open(path, READ)
    try:
        return _line_at(fs, fd, 0, fs.fstat(fd).st_size)
    finally:
        fs.close(fd)


def _after_fork_in_child() -> None:
    for journal in list(_journals):
        # Another thread of the parent may have held it, in the middle of a change of the state.
        journal.guard = threading.RLock()
        journal._restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
