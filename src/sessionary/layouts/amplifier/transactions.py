"""Operations that change several files of one session at once, and their undo.

`disk.transaction` makes such a change crash-safe and keeps the old bytes in `<session>/.undo/`; here it is
bound to a session: its lock, its baseline, and `undo`. The operations themselves are in `rewinding` and
`repairing`; restoring a backup and a replaced version are short and defined here.

`undo` is itself such an operation. So undoing twice redoes the operation, and data that was added since the
operation is in the kept bytes of the `undo`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from sessionary.codec import decode_object, read_lines
from sessionary.disk import atomic, transaction, truncate
from sessionary.disk.fs import OS_FS, Fs, expanded, read_bytes, storage_errors
from sessionary.disk.line_reader import LineFile
from sessionary.disk.transaction import Cut, Entry, Whole
from sessionary.errors import Corrupt, Invalid, NotFound, SessionaryError, StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.session import Session, is_session, pool_of

Clock = Callable[[], datetime]

REWIND, REPAIR, RESTORE_BACKUP, RESTORE_CONFLICT, UNDO = (
    "rewind",
    "repair",
    "restore-backup",
    "restore-conflict",
    "undo",
)
_FILES: Mapping[str, str] = {"transcript": TRANSCRIPT, "metadata": METADATA}


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of an `undo`.

    Attributes:
        session_id: the session.
        operation: the undone one: ``rewind``, ``repair``, ``restore-backup``, ``restore-conflict``, ``undo``.
        at: when it had been done.
        messages_since: number of messages added after it, which are now only in `kept_in`.
        events_since: the same for events.
        metadata_since: metadata.json was changed after it; that version is in `kept_in`.
        events_left: the event log was replaced since, and is unchanged.
        kept_in: the folder or file with the bytes that the undo replaced; None if it replaced none.
    """

    session_id: str
    operation: str
    at: str
    messages_since: int
    events_since: int
    metadata_since: bool
    events_left: bool
    kept_in: str | None


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of `restore_backup`.

    Attributes:
        session_id: the session.
        which: the document that was restored.
        changed: False if it already equalled its backup; then nothing was written.
        dry_run: nothing was written.
        messages_before: readable messages of the transcript before (0 for metadata).
        messages_after: those of the backup.
        kept_in: the folder with the replaced bytes; None if nothing changed.
    """

    session_id: str
    which: str
    changed: bool
    dry_run: bool
    messages_before: int
    messages_after: int
    kept_in: str | None


def utc_now() -> datetime:
    """The default clock of operations."""
    return datetime.now(UTC)


@contextmanager
def operating(
    session_dir: str | os.PathLike[str], operation: str, fs: Fs, now: Clock, *, dry_run: bool = False
) -> Iterator[Session]:
    """Open the session in a folder, under its lock, with unfinished operations of others completed.

    A dry run takes no lock and cleans nothing up: both would write, and it must work with read permission only.

    Raises:
        NotFound: the session does not exist.
    """
    folder = os.path.realpath(expanded(session_dir))
    session_id = os.path.basename(folder)
    missing = NotFound(
        f"Session '{session_id}' not found", operation=operation, path=folder, session=session_id
    )
    if not is_session(fs, folder):
        raise missing
    session = pool_of(fs).get(folder, fs, now)
    if dry_run:
        yield session
        return
    try:
        session.enter(make=False)
    except FileNotFoundError:
        raise missing from None
    try:
        session.lock.note(operation)
        yield session
    except BaseException as error:
        if isinstance(error, StorageFailed) or not isinstance(error, SessionaryError):
            session.lock.keep_note()  # the next holder of the lock checks for unfinished work
        raise
    finally:
        session.leave()


def carry_out(
    session: Session,
    operation: str,
    wholes: Sequence[Whole],
    cut: Cut | None = None,
    *,
    facts: Mapping[str, Any],
    now: datetime,
) -> str:
    """Carry out an operation, and drop the baseline of the session; return the folder with the old bytes.

    Durability: as `transaction.carry_out`.
    """
    try:
        kept_in = transaction.carry_out(
            session.fs, session.folder, operation, list(wholes), cut, facts=facts, now=now
        )
    except StorageFailed as error:
        error.session = session.session_id
        if error.outcome != "not_committed":
            session.replaced()
        raise
    session.replaced()
    session.transcript.mark_active()
    return kept_in


def restore_backup(
    session_dir: str | os.PathLike[str],
    which: str = "transcript",
    *,
    dry_run: bool = False,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
) -> Restored:
    """Replace a document by its backup; the document is kept, and `undo` restores it.

    With `dry_run`, return what would be done, and write nothing.

    Durability: when this returns, the change survives a power cut; if it does not return, the next writer
    finds the old document or its backup in place.

    Raises:
        NotFound: the session or its backup does not exist.
        Invalid: `which` is neither ``transcript`` nor ``metadata``.
        Corrupt: the backup cannot be read.
        Locked, StorageFailed: as every write.
    """
    if which not in _FILES:
        raise Invalid(f"no backup of {which!r}", hint="use 'transcript' or 'metadata'")
    name = _FILES[which]
    with operating(session_dir, RESTORE_BACKUP, fs, now, dry_run=dry_run) as session:
        path = os.path.join(session.folder, name)
        backup = read_bytes(fs, path + BACKUP)
        if backup is None:
            message = f"Session '{session.session_id}' has no {name}{BACKUP}"
            raise NotFound(message, operation=RESTORE_BACKUP, path=path + BACKUP, session=session.session_id)
        old = read_bytes(fs, path)
        after = _readable(backup, path + BACKUP, which)
        before = len(read_lines(old or b"", path).values) if name == TRANSCRIPT else 0
        kept_in = None
        if backup != old and not dry_run:
            facts = {"which": which, "messages_before": before, "messages_after": after}
            kept_in = carry_out(session, RESTORE_BACKUP, [Whole(name, (backup,))], facts=facts, now=now())
        return Restored(session.session_id, which, backup != old, dry_run, before, after, kept_in)


def _readable(backup: bytes, path: str, which: str) -> int:
    """Number of messages in a backup; 0 for metadata. Raises Corrupt if it has no content."""
    if which == "transcript":
        count = len(read_lines(backup, path).values)
        if count:
            return count
    elif decode_object(backup) is not None:
        return 0
    raise Corrupt(
        f"{path} has no readable content",
        operation=RESTORE_BACKUP,
        path=path,
        hint="the document is unchanged",
    )


def restore_conflict(
    session_dir: str | os.PathLike[str], *, fs: Fs = OS_FS, now: Clock = utc_now
) -> tuple[str, list[str]]:
    """Swap the transcript with the version that a save replaced last.

    Returns the file that held it, and the files that hold the version that was in place.

    Durability: as `restore_backup`.

    Raises:
        NotFound: the session does not exist, or no version was replaced.
    """
    with operating(session_dir, RESTORE_CONFLICT, fs, now) as session:
        return _swap(session, now())


def _swap(session: Session, now: datetime) -> tuple[str, list[str]]:
    kept = session.transcript.conflicts()
    if not kept:
        message = f"Session '{session.session_id}' has no replaced version"
        raise NotFound(message, path=session.folder, session=session.session_id)
    displaced = read_bytes(session.fs, kept[-1]) or b""
    wholes = [Whole(TRANSCRIPT, (displaced,)), Whole(os.path.basename(kept[-1]), None)]
    aside: list[str] = []
    present = read_bytes(session.fs, session.transcript.path)
    if present is not None:
        aside = [atomic.free_name(session.transcript.path, "conflict", fs=session.fs, now=now)]
        wholes.append(Whole(os.path.basename(aside[0]), (present,)))
    carry_out(session, RESTORE_CONFLICT, wholes, facts={"file": os.path.basename(kept[-1])}, now=now)
    return kept[-1], aside


def undo_entries(session_dir: str | os.PathLike[str], *, fs: Fs = OS_FS) -> list[Entry]:
    """The operations on a session whose old bytes are kept, oldest first; `undo` undoes the last one.

    Raises:
        StorageFailed: the folder cannot be read.
    """
    folder = os.path.realpath(expanded(session_dir))
    with storage_errors("read", folder):
        return transaction.entries(fs, folder)


def newest_entry(fs: Fs, folders: Iterable[str]) -> tuple[str, str] | None:
    """The time and the folder of the newest operation that can be undone in any of these sessions."""
    dated = [(found[-1].at, folder) for folder in folders if (found := undo_entries(folder, fs=fs))]
    return max(dated, default=None)


def forget_undo(
    session_dir: str | os.PathLike[str], keep: int = 0, *, fs: Fs = OS_FS, now: Clock = utc_now
) -> int:
    """Permanently delete the kept bytes of all operations except the last `keep`; return their size.

    Raises:
        Invalid: `keep` is negative.
        NotFound, Locked, StorageFailed: as `undo`.
    """
    if keep < 0:
        raise Invalid(f"{keep} operations cannot be kept", hint="0 forgets all of them")
    with operating(session_dir, "forget", fs, now) as session:
        kept = undo_entries(session.folder, fs=fs)
        gone = kept[: len(kept) - keep]
        for entry in gone:
            atomic.erase_tree(entry.path, fs=fs)
        return sum(entry.size for entry in gone)


def undo(session_dir: str | os.PathLike[str], *, fs: Fs = OS_FS, now: Clock = utc_now) -> Undone:
    """Undo the last rewind, repair, restore or undo of a session.

    Each file gets its previous bytes. Its current content is kept in turn, with everything added since, so
    that another `undo` redoes the operation. Event log lines that were added since are removed and kept as
    well.

    Durability: when this returns, the old state survives a power cut; if it does not return, the next writer
    finds the current state or the old one, never a mix.

    Raises:
        NotFound: the session does not exist, or there is nothing to undo.
        Locked, StorageFailed: as every write.
    """
    with operating(session_dir, UNDO, fs, now) as session:
        kept = undo_entries(session.folder, fs=fs)
        if not kept:
            message = f"Nothing to undo in session '{session.session_id}'"
            raise NotFound(message, operation=UNDO, path=session.folder, session=session.session_id)
        return _take_back(session, kept[-1], now())


def _take_back(session: Session, entry: Entry, now: datetime) -> Undone:
    fs = session.fs
    wholes = [_old_whole(fs, entry, whole["name"]) for whole in entry.record["wholes"]]
    cut, added = _old_cut(session, entry)
    since: dict[str, Any] = {
        "messages_since": _messages_since(session, entry),
        "events_since": added,
        "metadata_since": _changed_since(session, entry, METADATA),
        "events_left": "cut" in entry.record and cut is None,
    }
    facts = {"undoes": os.path.basename(entry.path), "operation": entry.operation, **since}
    kept_in = carry_out(session, UNDO, wholes, cut, facts=facts, now=now)
    return Undone(
        session_id=session.session_id, at=entry.at, kept_in=kept_in, operation=entry.operation, **since
    )


def _old_whole(fs: Fs, entry: Entry, name: str) -> Whole:
    """The content of the file before the operation: its bytes, or missing."""
    old = os.path.join(entry.path, name + transaction.OLD)
    try:
        fs.lstat(old)
    except FileNotFoundError:
        return Whole(name, None)
    return Whole(name, truncate.content(fs, old))


def _old_cut(session: Session, entry: Entry) -> tuple[Cut | None, int]:
    """The change that restores the log lines that the operation removed, and the number of lines added since."""
    record = entry.record.get("cut")
    if not isinstance(record, dict):
        return None, 0
    fs = session.fs
    tail, kept, behind = (
        os.path.join(entry.path, EVENTS + end) for end in (truncate.TAIL, truncate.KEPT, truncate.BEHIND)
    )
    try:
        with LineFile(os.path.join(session.folder, EVENTS), fs) as log:
            end = record["offset"] + record["kept"]
            if not truncate.continues(log, record, truncate.content(fs, kept)):
                return None, 0
            added = size = 0
            for head in log.heads(start=end, width=1):
                if head.whole:
                    added, size = added + 1, head.byte + head.length + 1
            # Lines that others added during the operation are restored too, except half a line, which is
            # complete by now.
            theirs = read_bytes(fs, behind) or b""
            back = chain(truncate.content(fs, tail), (theirs[: theirs.rfind(b"\n") + 1],))
            return Cut(EVENTS, record["offset"], max(size, end), back), added
    except NotFound:
        return None, 0


def _messages_since(session: Session, entry: Entry) -> int:
    """Number of lines added to the transcript since the operation wrote it."""
    if not _changed_since(session, entry, TRANSCRIPT):
        return 0
    data = read_bytes(session.fs, session.transcript.path) or b""
    return len(read_lines(data[_written(entry, TRANSCRIPT).get("size", 0) :]).values)


def _changed_since(session: Session, entry: Entry, name: str) -> bool:
    """True if a file has changed since the operation wrote it."""
    written = _written(entry, name)
    if not written.get("new"):
        return False
    try:
        found = session.fs.stat(os.path.join(session.folder, name))
    except FileNotFoundError:
        return True
    return (found.st_ino, found.st_size) != (written.get("inode"), written.get("size"))


def _written(entry: Entry, name: str) -> dict[str, Any]:
    """The record of a file that the operation wrote; empty if it did not write it."""
    return next((whole for whole in entry.record["wholes"] if whole["name"] == name), {})
