"""Transactions: changes of several files of one folder that are applied completely or not at all.

Before anything changes, the folder `.undo/open/` gets the old and the new bytes of every file involved and
`intent.json`, which describes the change; all of it is flushed. Then the new content of the *first* file is renamed
into place (or, if the file is removed, it is renamed into the folder): this is the commit. The rest follows, and the
folder is renamed to `.undo/<time>-<operation>/`, where the old bytes stay for undo.

The next holder of the folder's lock that finds `open` recovers: without the commit, the folder is removed; with it,
the rest is done. Each step may be interrupted anywhere and repeated. There is at most one open transaction, because
its name is fixed.

There are two kinds of change. `Whole` gives a file new content, or removes it. `Cut` removes some of the last lines
of a journal. The bytes before them are neither read nor written. Programs that take no lock may append lines at any
time; those lines are kept, except for one that is written in the microseconds between the last check and the cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from stat import S_ISDIR
from typing import Any, NamedTuple

from sessionary.codec import decode_object, encode_document
from sessionary.disk import atomic
from sessionary.disk.fs import (
    READ,
    Fs,
    make_dirs,
    names_in,
    read_bytes,
    refuse_placeholder,
    storage_failed,
    sync_dir,
)
from sessionary.disk.truncate import KEPT, TAIL, blocks, cut_journal, known_by
from sessionary.errors import Outcome, StorageFailed

UNDO = ".undo"
OPEN = "open"
INTENT = "intent.json"
OLD, NEW, GONE = ".old", ".new", ".gone"


@dataclass(frozen=True, slots=True)
class Whole:
    """A file of the folder and its new content; None removes it and keeps it under its old name in the undo folder."""

    name: str
    new: Iterable[bytes] | None


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a journal to be cut, and the lines of it to keep.

    Attributes:
        name: the file.
        offset: offset of the first removed line.
        size: end of the last line that was read; bytes behind it were added by others and are kept.
        kept: the lines between the two that are kept, as bytes.
    """

    name: str
    offset: int
    size: int
    kept: Iterable[bytes]


class Entry(NamedTuple):
    """A finished transaction whose old bytes are kept.

    Attributes:
        path: the folder with the old bytes.
        operation: name of the operation.
        at: time, as sortable text.
        facts: facts that the operation stored about itself.
        record: content of `intent.json`.
        size: size of the folder in bytes, hard links to other folders included.
    """

    path: str
    operation: str
    at: str
    facts: dict[str, Any]
    record: dict[str, Any]
    size: int


class Recovered(NamedTuple):
    """Result of recovering an interrupted transaction: finished, or rolled back."""

    operation: str
    finished: bool


def carry_out(
    fs: Fs,
    folder: str,
    operation: str,
    wholes: list[Whole],
    cut: Cut | None = None,
    *,
    facts: Mapping[str, Any],
    now: datetime,
) -> str:
    """Change several files atomically; return the folder with the old bytes. The caller holds the lock of `folder`.

    Putting the first of `wholes` in place (or away) is the commit.

    Durability: when this returns, the change survives a power cut. If it does not return, the next holder of the lock
    that calls `recover` gets the old state or the new one, never a mixture.

    Raises:
        StorageFailed: ``not_committed``, and nothing was changed; or ``committed`` or ``unknown``: `recover` finishes
            it.
    """
    intent = _prepare(fs, folder, operation, wholes, cut, facts, now)
    try:
        intent.commit()
    except OSError as error:
        raise storage_failed(error, operation, folder, outcome=intent.outcome()) from error
    try:
        return intent.finish()
    except OSError as error:
        raise _failed(error, operation, folder, "committed") from error


def recover(fs: Fs, folder: str) -> Recovered | None:
    """Finish or roll back the transaction of a killed process; None if there is none. The caller holds the lock.

    Raises:
        StorageFailed: recovery failed now; the next call tries again.
    """
    place = os.path.join(folder, UNDO, OPEN)
    try:
        fs.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_failed(error, "look at", place) from error
    try:
        data = read_bytes(fs, os.path.join(place, INTENT))
        if data is None:  # intent.json is written last: nothing has begun
            atomic.erase_tree(place, fs=fs)
            return Recovered("", False)
        return _settle(_Intent(fs, folder, decode_object(data) or {}), place)
    except OSError as error:
        if isinstance(error, StorageFailed):
            raise
        raise storage_failed(error, "finish", folder) from error


def _settle(intent: _Intent, place: str) -> Recovered:
    operation = str(intent.record.get("operation", ""))
    if not intent.record.get("wholes"):  # damaged description: keep everything, renamed
        intent.fs.rename(place, intent.free_name("unreadable"))
        return Recovered(operation, False)
    if not intent.is_committed():
        intent.take_back()
        return Recovered(operation, False)
    intent.finish()
    return Recovered(operation, True)


def open_intent(fs: Fs, folder: str) -> tuple[str, bool] | None:
    """Return name and commit state of the open transaction of `folder`; None if there is none. Takes no lock.

    Raises:
        OSError: it cannot be determined.
    """
    place = os.path.join(folder, UNDO, OPEN)
    try:
        fs.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    data = read_bytes(fs, os.path.join(place, INTENT))
    if data is None:
        return "", False
    intent = _Intent(fs, folder, decode_object(data) or {})
    committed = bool(intent.record.get("wholes")) and intent.is_committed()
    return str(intent.record.get("operation", "")), committed


def entries(fs: Fs, folder: str) -> list[Entry]:
    """Return the transactions whose old bytes are kept, the oldest first. Raises OSError."""
    undo = os.path.join(folder, UNDO)
    found = []
    for name in sorted(names_in(fs, undo) or (), key=_age):
        path = os.path.join(undo, name)
        if name == OPEN or not S_ISDIR(fs.lstat(path).st_mode):
            continue
        data = read_bytes(fs, os.path.join(path, INTENT))
        record = decode_object(data or b"") or {}
        if record.get("wholes"):
            facts = record.get("facts")
            size = sum(fs.lstat(os.path.join(path, file)).st_size for file in fs.listdir(path))
            known = facts if isinstance(facts, dict) else {}
            found.append(Entry(path, str(record["operation"]), str(record["at"]), known, record, size))
    return found


def _age(name: str) -> tuple[str, int]:
    """Sort key of names: those of one microsecond end in ``.2``, ``.3`` and so on."""
    stamp, _, number = name.rpartition(".")
    return (stamp, int(number)) if stamp and number.isdigit() else (name, 1)


def _prepare(
    fs: Fs,
    folder: str,
    operation: str,
    wholes: list[Whole],
    cut: Cut | None,
    facts: Mapping[str, Any],
    now: datetime,
) -> _Intent:
    """Write old and new bytes to the open folder. Raises StorageFailed, after removing them again."""
    place = os.path.join(folder, UNDO, OPEN)
    record: dict[str, Any] = {
        "operation": operation,
        "at": atomic.timestamp_name(now),
        "facts": dict(facts),
        "wholes": [],
    }
    intent = _Intent(fs, folder, record)
    try:
        make_dirs(fs, os.path.dirname(place))
        fs.mkdir(place)  # fails if another transaction is open: `recover` comes first
        sync_dir(fs, os.path.dirname(place))
    except OSError as error:
        raise storage_failed(error, operation, folder) from error
    try:
        for whole in wholes:
            intent.lay_whole(whole)
        if cut is not None:
            intent.lay_cut(cut)
        sync_dir(fs, place)
        atomic.create(intent.at(INTENT), encode_document(record), fs=fs)
    except OSError as error:
        with suppress(OSError):
            intent.take_back()
        raise _failed(error, operation, folder, "not_committed") from error
    return intent


def _failed(error: OSError, operation: str, folder: str, outcome: Outcome) -> StorageFailed:
    """Return the error for a failed step, with the outcome of the whole operation."""
    if not isinstance(error, StorageFailed):
        return storage_failed(error, operation, folder, outcome=outcome)
    return StorageFailed(
        error.message,
        errno=error.errno,
        outcome=outcome,
        operation=operation,
        path=error.path,
        hint=error.hint,
    )


class _Intent:
    """A transaction while its folder is named `open`."""

    def __init__(self, fs: Fs, folder: str, record: dict[str, Any]) -> None:
        self.fs = fs
        self.folder = folder
        self.place = os.path.join(folder, UNDO, OPEN)
        self.record = record

    def at(self, name: str) -> str:
        return os.path.join(self.place, name)

    def target(self, name: str) -> str:
        return atomic.resolve(self.fs, os.path.join(self.folder, name))

    # -- preparing

    def lay_whole(self, whole: Whole) -> None:
        path = self.target(whole.name)
        old = self._stat(path)
        if old is not None:
            atomic.link_or_copy(self.fs, path, self.at(whole.name + OLD))
        described: dict[str, Any] = {"name": whole.name, "new": whole.new is not None}
        if whole.new is not None:
            if old is None:
                refuse_placeholder(self.fs, path, self.record["operation"])
            new = atomic.write_new(self.fs, self.at(whole.name + NEW), whole.new, old)
            described |= {"inode": new.st_ino, "size": new.st_size}
        self.record["wholes"].append(described)

    def lay_cut(self, cut: Cut) -> None:
        reader = self.fs.open(self.target(cut.name), READ)
        try:
            old = self.fs.fstat(reader)
            tail = blocks(self.fs, reader, cut.offset, cut.size)
            atomic.write_new(self.fs, self.at(cut.name + TAIL), tail, old)
            before = known_by(self.fs, reader, cut.offset)
        finally:
            self.fs.close(reader)
        kept = atomic.write_new(self.fs, self.at(cut.name + KEPT), cut.kept, old)
        self.record["cut"] = {
            "name": cut.name,
            "offset": cut.offset,
            "size": cut.size,
            "kept": kept.st_size,
            "before": before,
        }

    def take_back(self) -> None:
        """Roll back: remove all prepared files; nothing was changed. Raises OSError: `recover` removes the rest."""
        # intent.json first: without it, the remaining files show that nothing has begun.
        if self._stat(self.at(INTENT)) is not None:
            self.fs.unlink(self.at(INTENT))
            sync_dir(self.fs, self.place)
        atomic.erase_tree(self.place, fs=self.fs)

    # -- the commit

    def is_committed(self) -> bool:
        """True once the first file was put in place, or away. Raises OSError."""
        first = self.record["wholes"][0]
        if first["new"]:
            return self._stat(self.at(first["name"] + NEW)) is None
        return self._stat(self.at(first["name"] + GONE)) is not None

    def outcome(self) -> Outcome:
        """Return the outcome of a failed commit; without a commit, roll back."""
        with suppress(OSError):
            if not self.is_committed():
                self.take_back()
                return "not_committed"
        return "unknown"

    def commit(self) -> None:
        first = self.record["wholes"][0]
        self._move(first["name"], new=first["new"])
        self._sync()

    def _move(self, name: str, *, new: bool) -> None:
        if new:
            self.fs.rename(self.at(name + NEW), self.target(name))
        else:
            self.fs.rename(self.target(name), self.at(name + GONE))

    # -- the rest

    def finish(self) -> str:
        """Do the steps after the commit, as often as needed; return the folder with the old bytes."""
        self._sync()  # for a commit that was interrupted before its flush
        for whole in self.record["wholes"][1:]:
            self._put(whole["name"], new=whole["new"])
        if "cut" in self.record:
            cut_journal(self.fs, self.target(self.record["cut"]["name"]), self.place, self.record["cut"])
        self._sync()
        done = self.free_name(f"{self.record['at']}-{self.record['operation']}")
        self.fs.rename(self.place, done)
        sync_dir(self.fs, os.path.dirname(done))
        return done

    def free_name(self, wanted: str) -> str:
        """Return an unused name for the finished folder; transactions of one microsecond get a number."""
        return atomic.unused(self.fs, atomic.numbered(os.path.join(self.folder, UNDO, wanted), mark="."))

    def _put(self, name: str, *, new: bool) -> None:
        """Put the new content in place, or the file away; a version stored by another program since is kept."""
        path = self.target(name)
        done = self._stat(self.at(name + NEW)) is None if new else self._stat(path) is None
        if not done and self._is_old(path, self.at(name + OLD)):
            self._move(name, new=new)

    def _is_old(self, path: str, old: str) -> bool:
        """True if the file is the one whose hard link (or copy) we keep."""
        here, kept = self._stat(path), self._stat(old)
        if here is None or kept is None:
            return here is kept
        if (here.st_dev, here.st_ino) == (kept.st_dev, kept.st_ino):
            return True
        return here.st_size == kept.st_size and read_bytes(self.fs, path) == read_bytes(self.fs, old)

    def _sync(self) -> None:
        sync_dir(self.fs, self.folder)
        sync_dir(self.fs, self.place)

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return self.fs.lstat(path)
        except FileNotFoundError:
            return None
