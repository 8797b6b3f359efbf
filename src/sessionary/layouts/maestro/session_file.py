"""session.json: read it, and write a caller's changes to it.

Every write happens under the lock of the session's folder, first reads the stored document, and replaces the
file as a whole. So a reader, which takes no lock, finds the old document or the new one, and no writer undoes
the change of another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any

from sessionary.codec import Undecodable, decode, decode_object, encode_document, encode_line, sanitize
from sessionary.codec.conflicts import REMEDY
from sessionary.codec.snapshot import same
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, not_found, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, NotFound, SchemaError, SessionaryError, StorageFailed
from sessionary.layouts.maestro.merging import merge
from sessionary.layouts.maestro.names import LARGEST, LOCK, SESSION
from sessionary.layouts.maestro.records import CLOSED, WorkSession, document_of, session_of, state_of
from sessionary.layouts.maestro.statuses import FINAL, check_status, refusal
from sessionary.layouts.maestro.times import session_time, session_zone, utc_now
from sessionary.model import Problem, Severity

PATIENCE = 30.0
"""Seconds to wait for another writer of a session; each holds the lock for one flush."""

Clock = Callable[[], datetime]
Completing = Callable[[str], object]


@contextmanager
def locked(fs: Fs, folder: str) -> Iterator[None]:
    """Hold the lock of a session's folder for a ``with`` block. Remains of dead writers are removed.

    Raises:
        NotFound: the folder does not exist.
    """
    with FileLock(f"{folder}/{LOCK}", fs).once(PATIENCE):
        atomic.sweep(folder, fs=fs)
        yield


def read_session(path: str, *, fs: Fs = OS_FS) -> WorkSession:
    """Return the work session in a session.json.

    Raises:
        NotFound: the file does not exist.
        Corrupt: it is not JSON.
        SchemaError: it is not a work session, but for example one of Maestro's older format.
    """
    data = read_bytes(fs, path, operation="load", limit=LARGEST)
    if data is None:
        raise not_found(path, f"no work session in {path}")
    return parse_session(data, path)


def session_in(fs: Fs, folder: str) -> WorkSession | None:
    """The work session in a folder; None if its document is missing or unreadable."""
    try:
        return read_session(f"{folder}/{SESSION}", fs=fs)
    except (NotFound, Corrupt, SchemaError, StorageFailed):
        return None


def zone_in(fs: Fs, folder: str) -> tzinfo:
    """The zone of the breadcrumb times of the session in a folder; UTC if its document does not say."""
    try:
        data = read_bytes(fs, f"{folder}/{SESSION}", limit=LARGEST)
    except StorageFailed:
        return UTC
    created = (decode_object(data or b"") or {}).get("created")
    return session_zone(created) if isinstance(created, str) else UTC


def parse_session(data: bytes, path: str) -> WorkSession:
    """Return the work session in the bytes of a session.json. Raises Corrupt and SchemaError as `read_session`."""
    try:
        session = session_of(decode(data))
    except Undecodable as error:
        raise Corrupt(
            f"{path} cannot be read: {error}",
            operation="load",
            path=path,
            hint=REMEDY
            if error.code == "conflict_marker"
            else "the next save keeps the file aside and writes a new one",
        ) from error
    except SchemaError as error:
        error.operation, error.path = "load", path
        error.message = f"{path}: {error.message}"
        raise
    session.baseline = data
    return session


def problem_of(path: str, error: SessionaryError) -> Problem:
    """Why a session.json is not a session."""
    if isinstance(error, SchemaError) and error.details.get("legacy"):
        words = "a session of Maestro's older format, not a work session; it is skipped"
        return Problem.of_file("legacy_session", Severity.note, path, words)
    if isinstance(error, SchemaError):
        words = f"not a work session: {'; '.join(error.details.get('faults', []))}"
        return Problem.of_file("no_session", Severity.hides_data, path, words, "correct the keys by hand")
    if isinstance(error, Corrupt):
        remedy = "write a new document; saving the session keeps the damaged file aside"
        return Problem.of_file("bad_session", Severity.lost_data, path, str(error), remedy)
    return Problem.of_file("unreadable_file", Severity.hides_data, path, str(error), error.hint)


def save_session(
    session: WorkSession,
    path: str,
    *,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
    completing: Completing = lambda session_id: None,
) -> bool:
    """Store the changes made to a session since it was loaded; return False if there are none.

    The file is read again under the lock, and the changes are merged into it (see `merging`). `modified`
    becomes the current time, also in `session`; changes of others are not merged into `session`: load it
    again for those. A file that cannot be read is kept as ``session.json.corrupt-<time>`` before it is
    replaced.

    A session that has ended stays ended. Otherwise any status may follow any other, because a caller may have
    passed several of them in memory: an interrupted session that is saved as completed may have been resumed
    in between.

    Args:
        completing: called under the lock with the id of a session that this save completes; may raise to refuse.

    Durability: when this returns, the document survives a power cut. If interrupted, a reader finds the old
    document or the new one.

    Raises:
        NotFound: the folder of `path` does not exist.
        SchemaError: another kind of file is stored there, or another session, or the session breaks the format.
        Invalid: its status is not valid.
        TransitionError: the stored session has ended since, and its status was changed to something else; or
        raised by `completing`.
        StorageFailed: the disk refused; `outcome` is the outcome of the write.
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
    """Change the stored session itself. The caller holds the lock of its folder, so nothing can change in between.

    `change` gets the session and changes it; if it raises, nothing is written.

    Durability: as `save_session`.

    Raises:
        NotFound, Corrupt, SchemaError: as `read_session`.
        SchemaError, Invalid, TransitionError: the changed session is refused, as by `save_session`.
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


def checked(session: WorkSession) -> dict[str, Any]:
    """The document to write. It is checked: one that readers refuse would hide the session from every list.

    Raises:
        Invalid: its status is not valid.
        SchemaError: it breaks the format otherwise.
    """
    check_status(session.status)
    document: dict[str, Any] = sanitize(document_of(session))
    session_of(document)
    return document


def _base(session: WorkSession) -> dict[str, Any]:
    """The document as loaded; empty if the session was created in memory."""
    return _document_in(session.baseline) if session.baseline else {}


def _document_in(data: bytes) -> dict[str, Any]:
    """The document in the bytes of a session.json, sanitised as that of `checked`, so that NaN is not a change."""
    document: dict[str, Any] = sanitize(document_of(session_of(decode(data))))
    return document


def _stored(fs: Fs, path: str) -> dict[str, Any] | None:
    """The stored document with its derived keys recomputed; None if there is none that can be read."""
    data = read_bytes(fs, path, operation="save", limit=LARGEST)
    if data is None:
        return None
    try:
        return _document_in(data)
    except Undecodable:
        atomic.quarantine(path, "corrupt", fs=fs)
        return None
    except SchemaError as error:
        error.operation, error.path = "save", path
        error.message = f"{path}: {error.message}"
        error.hint = "the file is unchanged; save under another name"
        raise


def _check_change(theirs: dict[str, Any], merged: dict[str, Any], path: str) -> None:
    """Refuse to reopen a session that has ended, and to store one session in the file of another.

    Other status changes may have passed several steps in memory.
    """
    stored, wanted = theirs["session_id"], merged["session_id"]
    if stored != wanted:
        words = f"{path} is the file of the session {stored}, not of {wanted}"
        raise SchemaError(
            words, operation="save", path=path, hint="the file is unchanged; save under another name"
        )
    if theirs["status"] in FINAL and merged["status"] != theirs["status"]:
        raise refusal(session_of(theirs), merged["status"])


def _finish(merged: dict[str, Any], theirs: dict[str, Any] | None, mine: dict[str, Any], now: Clock) -> None:
    """Set the derived values."""
    moment = session_time(now(), merged["created"])
    merged["modified"] = moment
    merged["state"] = state_of(merged["status"])
    if theirs is None or theirs["status"] != merged["status"]:
        closed = merged["status"] in CLOSED
        merged["closed_at"] = (merged.get("closed_at") or moment) if closed else None
        mine["closed_at"] = merged["closed_at"]
