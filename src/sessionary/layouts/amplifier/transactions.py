"""Operations that change several files of one session at once, and the way back from each.

`disk.intent` makes such a change safe from crashes and keeps the old bytes in `<session>/.undo/`; here it is bound
to a session: its lock, what this process knows of its files, and `undo`. The operations themselves are in `rewinding`
and `repairing`; putting back a backup and a displaced version are short enough to be here.

The Python face, which the package exports; every function takes the folder of a session:

    undo(session_dir) -> Undone                        the last operation, taken back; again: done again
    restore_backup(session_dir, which, dry_run=) -> Restored   which: "transcript" or "metadata"
    undo_entries(session_dir) -> list[Entry]           what `undo` could go back to, and the bytes that it takes
    forget_undo(session_dir, keep=N) -> int            the only thing that ever deletes there; returns the bytes
    rewind(session_dir, to_turn) -> Rewound            see `rewinding`
    repair(session_dir, orphans=, dry_run=) -> Repaired        see `repairing`

`undo` is itself such an operation. So undoing twice leads back to where one was, and what was added since the
operation is in the kept bytes of the `undo`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from sessionary.codec import Undecodable, decode, read_lines
from sessionary.disk import atomic, transaction, truncate
from sessionary.disk.fs import OS_FS, Fs, expanded, read_bytes, storage_failed
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
    """What an `undo` did.

    Attributes:
        session_id: the session.
        operation: what was taken back: ``rewind``, ``repair``, ``restore-backup``, ``restore-conflict``, ``undo``.
        at: when that had been done.
        messages_since: messages that were added after it, which are now in `kept_in` alone.
        events_since: the same of events.
        metadata_since: metadata.json was changed after it; that version is in `kept_in`.
        events_left: the event log was replaced since, and was left as it is.
        kept_in: the folder with the bytes that the undo displaced.
    """

    session_id: str
    operation: str
    at: str
    messages_since: int
    events_since: int
    metadata_since: bool
    events_left: bool
    kept_in: str


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore_backup` did.

    Attributes:
        session_id: the session.
        which: the document that was restored.
        changed: False if it was the same as its backup already; then nothing was written.
        dry_run: nothing was written.
        messages_before: readable messages of the transcript before (0 for metadata).
        messages_after: those of the backup.
        kept_in: the folder with the bytes that were displaced; None if nothing changed.
    """

    session_id: str
    which: str
    changed: bool
    dry_run: bool
    messages_before: int
    messages_after: int
    kept_in: str | None


def utc_now() -> datetime:
    """The clock of operations that are given none."""
    return datetime.now(UTC)


@contextmanager
def operating(
    session_dir: str | os.PathLike[str], operation: str, fs: Fs, now: Clock, *, dry_run: bool = False
) -> Iterator[Session]:
    """The session in a folder, under its lock, with nothing left open by others.

    A dry run takes no lock and tidies nothing up: both would write, and it must work where one may only read.

    Raises:
        NotFound: there is no session.
        Locked, StorageFailed: as of every write.
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
            session.lock.keep_note()  # the next to hold the lock looks whether something is left to do
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
    """Do it, and let the session forget what it knew of its files; returns the folder with the old bytes.

    Durability: as `transaction.carry_out`.

    Raises:
        StorageFailed: as `transaction.carry_out`.
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
    """Put the backup of a document in its place; the document is kept, and `undo` brings it back.

    With `dry_run`, tell what would be done, and write nothing.

    Durability: when this returns, the change survives a power cut; if it does not return, the next writer finds
    the old document or its backup in place.

    Raises:
        NotFound: no such session, or no backup.
        Invalid: `which` is neither ``transcript`` nor ``metadata``.
        Corrupt: the backup cannot be read either.
        Locked, StorageFailed: as every write.
    """
    if which not in _FILES:
        raise Invalid(f"there is no backup of {which!r}", hint="use 'transcript' or 'metadata'")
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
    """How many messages a backup holds; 0 for metadata. Raises Corrupt if it says nothing."""
    if which == "transcript":
        count = len(read_lines(backup, path).values)
        if count:
            return count
    else:
        with suppress(Undecodable):
            if isinstance(decode(backup), dict):
                return 0
    raise Corrupt(
        f"{path} holds nothing that can be read",
        operation=RESTORE_BACKUP,
        path=path,
        hint="the document was left as it is",
    )


def restore_conflict(
    session_dir: str | os.PathLike[str], *, fs: Fs = OS_FS, now: Clock = utc_now
) -> tuple[str, list[str]]:
    """Swap the transcript with the version that a save displaced last.

    Returns the file that held it, and the files that hold what stood in its place.

    Durability: as `restore_backup`.

    Raises:
        NotFound: no such session, or nothing was displaced.
        Locked, StorageFailed: as every write.
    """
    with operating(session_dir, RESTORE_CONFLICT, fs, now) as session:
        return _swap(session, now())


def _swap(session: Session, now: datetime) -> tuple[str, list[str]]:
    kept = session.transcript.conflicts()
    if not kept:
        message = f"Session '{session.session_id}' has no displaced version"
        raise NotFound(message, path=session.folder, session=session.session_id)
    displaced = read_bytes(session.fs, kept[-1]) or b""
    wholes = [Whole(TRANSCRIPT, (displaced,)), Whole(os.path.basename(kept[-1]), None)]
    aside: list[str] = []
    present = read_bytes(session.fs, session.transcript.path)
    if present is not None:
        aside = [session.transcript.conflict_name(now)]
        wholes.append(Whole(os.path.basename(aside[0]), (present,)))
    carry_out(session, RESTORE_CONFLICT, wholes, facts={"file": os.path.basename(kept[-1])}, now=now)
    return kept[-1], aside


def undo_entries(session_dir: str | os.PathLike[str], *, fs: Fs = OS_FS) -> list[Entry]:
    """The operations on a session whose old bytes are kept, the oldest first; `undo` takes back the last one.

    Raises:
        StorageFailed: the folder cannot be read.
    """
    folder = os.path.realpath(expanded(session_dir))
    try:
        return transaction.entries(fs, folder)
    except OSError as error:
        if isinstance(error, StorageFailed):
            raise
        raise storage_failed(error, "look into", folder) from error


def newest_entry(fs: Fs, folders: Iterable[str]) -> tuple[str, str] | None:
    """The time and the folder of the newest operation that can be undone in any of these sessions.

    Raises:
        StorageFailed: a folder cannot be read.
    """
    dated = [(found[-1].at, folder) for folder in folders if (found := undo_entries(folder, fs=fs))]
    return max(dated, default=None)


def forget_undo(
    session_dir: str | os.PathLike[str], keep: int = 0, *, fs: Fs = OS_FS, now: Clock = utc_now
) -> int:
    """Delete for good what was kept of all operations but the last `keep`; returns the bytes that it took.

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
    """Take back the last rewind, repair, restore or undo of a session.

    Each file gets the bytes that it had before. What it holds now is kept in turn, with everything that was added
    since, so that another `undo` leads back here. Event log lines that were added since go as well, and are kept.

    Durability: when this returns, the old state survives a power cut; if it does not return, the next writer
    finds the present state or the old one, never half of each.

    Raises:
        NotFound: no such session, or nothing to undo.
        Locked, StorageFailed: as every write.
    """
    with operating(session_dir, UNDO, fs, now) as session:
        kept = undo_entries(session.folder, fs=fs)
        if not kept:
            message = f"Nothing was done to session '{session.session_id}' that could be undone"
            raise NotFound(message, operation=UNDO, path=session.folder, session=session.session_id)
        return _take_back(session, kept[-1], now())


def _take_back(session: Session, entry: Entry, now: datetime) -> Undone:
    fs = session.fs
    wholes = [_old_whole(fs, entry, told["name"]) for told in entry.record["wholes"]]
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
    """What the file was before the operation: its bytes, or nothing."""
    old = os.path.join(entry.path, name + transaction.OLD)
    try:
        fs.lstat(old)
    except FileNotFoundError:
        return Whole(name, None)
    return Whole(name, truncate.content(fs, old))


def _old_cut(session: Session, entry: Entry) -> tuple[Cut | None, int]:
    """The change that brings the lines of the log back that the operation took, and how many were added since."""
    told = entry.record.get("cut")
    if not isinstance(told, dict):
        return None, 0
    fs = session.fs
    tail, kept, behind = (
        os.path.join(entry.path, EVENTS + end) for end in (truncate.TAIL, truncate.KEPT, truncate.BEHIND)
    )
    try:
        with LineFile(os.path.join(session.folder, EVENTS), fs) as log:
            end = told["offset"] + told["kept"]
            if not truncate.continues(log, told, truncate.content(fs, kept)):
                return None, 0
            added = size = 0
            for head in log.heads(start=end, width=1):
                if head.whole:
                    added, size = added + 1, head.byte + head.length + 1
            # What others added while it was done comes back with the rest, but for half a line, which is not cut now.
            theirs = read_bytes(fs, behind) or b""
            back = chain(truncate.content(fs, tail), (theirs[: theirs.rfind(b"\n") + 1],))
            return Cut(EVENTS, told["offset"], max(size, end), back), added
    except NotFound:
        return None, 0


def _messages_since(session: Session, entry: Entry) -> int:
    """How many lines the transcript has grown by since the operation had written it."""
    told = next((whole for whole in entry.record["wholes"] if whole["name"] == TRANSCRIPT), None)
    if told is None or not _changed_since(session, entry, TRANSCRIPT):
        return 0
    data = read_bytes(session.fs, session.transcript.path) or b""
    return len(read_lines(data[told.get("size", 0) :]).values)


def _changed_since(session: Session, entry: Entry, name: str) -> bool:
    """True if a file is no longer what the operation made of it."""
    told = next((whole for whole in entry.record["wholes"] if whole["name"] == name), None)
    if told is None or not told["new"]:
        return False
    try:
        found = session.fs.stat(os.path.join(session.folder, name))
    except FileNotFoundError:
        return True
    return (found.st_ino, found.st_size) != (told.get("inode"), told.get("size"))
