"""session.json: read it, and write to it what a caller changed.

Every write happens under the lock of the session's folder, begins by reading what lies there now, and replaces the
file as a whole. So a reader, who takes no lock, finds the old document or the new one, and of two writers neither
undoes what the other did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any

from sessionary.codec import Undecodable, decode, encode_document, encode_line, sanitize
from sessionary.codec.conflicts import REMEDY
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, not_found, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, NotFound, SchemaError, StorageFailed
from sessionary.layouts.fields import same
from sessionary.layouts.maestro.merging import merge
from sessionary.layouts.maestro.names import LARGEST, LOCK, SESSION
from sessionary.layouts.maestro.records import CLOSED, WorkSession, document_of, session_of, state_of
from sessionary.layouts.maestro.statuses import FINAL, check_status, refusal
from sessionary.layouts.maestro.times import session_time, session_zone, utc_now

PATIENCE = 30.0
"""Seconds to wait for another writer of a session; each holds the lock for the length of one flush."""

Clock = Callable[[], datetime]
Completing = Callable[[str], object]


@contextmanager
def locked(fs: Fs, folder: str) -> Iterator[None]:
    """The lock on a session's folder for the length of a ``with`` block. What dead writers left is swept away.

    Raises:
        NotFound: there is no such folder.
        Locked: another process held it all the time.
    """
    lock = FileLock(f"{folder}/{LOCK}", fs)
    try:
        lock.acquire(PATIENCE)
        try:
            atomic.sweep(folder, fs=fs)
            yield
        finally:
            lock.release()
    finally:
        lock.close()


def read_session(path: str, *, fs: Fs = OS_FS) -> WorkSession:
    """The work session that a session.json holds.

    Raises:
        NotFound: there is no such file.
        Corrupt: it is not JSON.
        SchemaError: it is no work session, but for example one of Maestro's older kind.
        StorageFailed: it cannot be read.
    """
    data = read_bytes(fs, path, operation="load", limit=LARGEST)
    if data is None:
        raise not_found(path, f"there is no work session in {path}")
    return parse_session(data, path)


def zone_in(fs: Fs, folder: str) -> tzinfo:
    """The zone of the breadcrumb times of the session in a folder; UTC where its document does not say."""
    try:
        return session_zone(read_session(f"{folder}/{SESSION}", fs=fs).created)
    except (NotFound, Corrupt, SchemaError, StorageFailed):
        return UTC


def parse_session(data: bytes, path: str) -> WorkSession:
    """The work session that the bytes of a session.json hold. Raises Corrupt and SchemaError as `read_session`."""
    try:
        session = session_of(decode(data))
    except Undecodable as error:
        raise Corrupt(
            f"{path} cannot be read: {error}",
            operation="load",
            path=path,
            hint=REMEDY
            if error.code == "conflict_marker"
            else "the next save puts the file aside and writes a new one",
        ) from error
    except SchemaError as error:
        error.operation, error.path = "load", path
        error.message = f"{path}: {error.message}"
        raise
    session.baseline = data
    return session


def save_session(
    session: WorkSession,
    path: str,
    *,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
    completing: Completing = lambda session_id: None,
) -> bool:
    """Store what was changed in a session since it was loaded; returns False if that is nothing.

    The file is read again under the lock, and the changes are put into what lies there (see `merging`). `modified`
    becomes the present time, also in `session`; what others changed is not brought into it: load it again for that.
    A file that cannot be read is kept as ``session.json.corrupt-<time>`` before a new one takes its place.

    A session that has ended stays so. Any other status may follow any other, because a caller may have gone through
    several of them in memory: an interrupted session that is saved as completed may have been resumed in between.

    Args:
        session: the session.
        path: its file.
        fs: the file system.
        now: the time.
        completing: called, under the lock, with the id of a session that this save completes; refuses that.

    Durability: when this returns, the document survives a power cut. Cut off, a reader finds the old document or
    the new one.

    Raises:
        NotFound: the folder of `path` is not there.
        SchemaError: another kind of file lies there, or another session, or the session breaks the format.
        Invalid: its status is none.
        TransitionError: the stored session has ended since, and its status was changed to something else; or what
            `completing` raises.
        Locked: another process holds the session.
        StorageFailed: the disk refused; `outcome` says what became of the write.
    """
    mine = checked(session)
    with locked(fs, os.path.dirname(path) or "."):
        theirs = _stored(fs, path)
        merged = dict(mine) if theirs is None else merge(_base(session), mine, theirs)
        if theirs is not None and same(merged, theirs):
            return False
        if theirs is not None:
            _check_change(theirs, merged, path)
        if merged["status"] == "completed" and (theirs is None or theirs["status"] != "completed"):
            completing(merged["session_id"])
        _finish(merged, theirs, mine, now)
        atomic.replace(path, (encode_document(merged),), fs=fs)
    session.modified = mine["modified"] = merged["modified"]
    session.state, session.created_at = mine["state"], mine["created_at"]
    session.closed_at = mine["closed_at"]
    session.baseline = encode_line(mine)
    return True


def edit_session(
    path: str, change: Callable[[WorkSession], object], *, fs: Fs = OS_FS, now: Clock = utc_now
) -> WorkSession:
    """Change the stored session itself. The lock of its folder must be held: nobody comes between reading and writing.

    `change` gets the session and changes it; what it raises is raised, and nothing is written then.

    Durability: as `save_session`.

    Raises:
        NotFound, Corrupt, SchemaError: as `read_session`.
        SchemaError, Invalid, TransitionError: what the session was changed to is refused, as by `save_session`.
        StorageFailed: the disk refused.
    """
    session = read_session(path, fs=fs)
    before = sanitize(document_of(session))
    change(session)
    after = checked(session)
    if not same(before, after):
        _check_change(before, after, path)
        _finish(after, before, after, now)
        session.modified, session.state, session.closed_at = (
            after["modified"],
            after["state"],
            after["closed_at"],
        )
        data = encode_document(after)
        atomic.replace(path, (data,), fs=fs)
        session.baseline = data
    return session


def create_document(session: WorkSession, path: str, *, fs: Fs = OS_FS) -> None:
    """Write the session.json of a session that is new. Durability: it survives a power cut when this returns.

    Raises:
        AlreadyExists: there is one.
        SchemaError, Invalid: as `checked`.
        StorageFailed: the disk refused.
    """
    data = encode_document(checked(session))
    atomic.create(path, data, fs=fs)
    session.baseline = data


def checked(session: WorkSession) -> dict[str, Any]:
    """The document to write: one that no reader takes would hide the session from every list.

    Raises:
        Invalid: its status is none.
        SchemaError: it breaks the format otherwise.
    """
    check_status(session.status)
    document: dict[str, Any] = sanitize(document_of(session))
    session_of(document)
    return document


def _base(session: WorkSession) -> dict[str, Any]:
    """The document as the caller loaded it; empty if the session was made by hand."""
    return document_of(session_of(decode(session.baseline))) if session.baseline else {}


def _stored(fs: Fs, path: str) -> dict[str, Any] | None:
    """The document that lies there, its derived keys put right; None where there is none that can be read."""
    data = read_bytes(fs, path, operation="save", limit=LARGEST)
    if data is None:
        return None
    try:
        return document_of(session_of(decode(data)))
    except Undecodable:
        atomic.quarantine(path, "corrupt", fs=fs)
        return None
    except SchemaError as error:
        error.operation, error.path = "save", path
        error.message = f"{path}: {error.message}"
        error.hint = "it was left as it is; save under another name"
        raise


def _check_change(theirs: dict[str, Any], merged: dict[str, Any], path: str) -> None:
    """Refuse to reopen what has ended, and to put one session into the file of another.

    Other ways from status to status may have led through several of them in memory.
    """
    stored, wanted = theirs["session_id"], merged["session_id"]
    if stored != wanted:
        words = f"{path} is the file of the session {stored}, not of {wanted}"
        raise SchemaError(
            words, operation="save", path=path, hint="it was left as it is; save under another name"
        )
    if theirs["status"] in FINAL and merged["status"] != theirs["status"]:
        raise refusal(session_of(theirs), merged["status"])


def _finish(merged: dict[str, Any], theirs: dict[str, Any] | None, mine: dict[str, Any], now: Clock) -> None:
    """Put in what follows from the rest."""
    moment = session_time(now(), merged["created"])
    merged["modified"] = moment
    merged["state"] = state_of(merged["status"])
    if theirs is None or theirs["status"] != merged["status"]:
        closed = merged["status"] in CLOSED
        merged["closed_at"] = (merged.get("closed_at") or moment) if closed else None
        mine["closed_at"] = merged["closed_at"]
