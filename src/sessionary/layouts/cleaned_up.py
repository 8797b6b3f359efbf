"""Sessions that a clean-up by age took from this device, and from this device only.

A session that a person deletes is deleted on all devices; one that is merely old here may be in use elsewhere. After a
clean-up both look alike: the session is gone. So the clean-up leaves a note, one small file for each session, beside
the sessions: `.cleaned-up/<id>`. It says when the session was active last, by which a synchronisation can tell whether
another device has gone on with it since.

The note comes before the move and outlives the trash. A deletion by a person, an undo and a pull that brings the
session back remove it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from sessionary.codec import Undecodable, decode, encode_line
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_dirs, read_bytes, stat_or_none, storage_failed, sync_dir

NOTES = ".cleaned-up"


def note(fs: Fs, root: str, session_id: str, active: datetime, now: datetime) -> None:
    """Note that a session is about to be cleaned up.

    Args:
        fs: the file system.
        root: the folder in which the session lies.
        session_id: its id.
        active: when it was active last.
        now: the time.

    Durability: on return the note survives a power cut.

    Raises:
        StorageFailed: it could not be written; the session must stay.
    """
    folder = os.path.join(root, NOTES)
    try:
        make_dirs(fs, folder)
    except OSError as error:
        raise storage_failed(error, "make", folder) from error
    forget(fs, root, session_id)  # that of an earlier clean-up, after which the session came back
    document = encode_line({"at": _text(now), "active": _text(active)}) + b"\n"
    atomic.create(os.path.join(folder, session_id), document, fs=fs)


def forget(fs: Fs, root: str, session_id: str) -> None:
    """The session is here again, or was deleted on purpose.

    Durability: on return the note is gone after a power cut, too.

    Raises:
        StorageFailed: it could not be removed.
    """
    path = os.path.join(root, NOTES, session_id)
    if stat_or_none(fs, path) is None:
        return
    atomic.forget_file(path, fs=fs)
    try:
        sync_dir(fs, os.path.dirname(path))
    except OSError as error:
        raise storage_failed(error, "remove", path, outcome="unknown") from error


def noted(fs: Fs, root: str) -> list[str]:
    """The ids of the sessions of a folder that were cleaned up.

    Raises:
        StorageFailed: the notes cannot be looked into.
    """
    folder = os.path.join(root, NOTES)
    try:
        return [name for name in fs.listdir(folder) if not name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_failed(error, "look into", folder) from error


def last_activity(fs: Fs, root: str, session_id: str) -> datetime | None:
    """When a session that was cleaned up here was active last; None if it was not cleaned up.

    A note that cannot be read counts: the session was never active then, so that any news of it brings it back.

    Raises:
        StorageFailed: the system does not tell.
    """
    data = read_bytes(fs, os.path.join(root, NOTES, session_id))
    if data is None:
        return None
    try:
        value = decode(data)
        at = datetime.fromisoformat(value["active"])
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except (Undecodable, TypeError, KeyError, ValueError):
        return datetime.min.replace(tzinfo=UTC)


def move(fs: Fs, source: str, target: str) -> None:
    """Take the notes of one folder of sessions to another, to which its sessions were moved.

    Raises:
        StorageFailed: one could not be moved; the next call moves the rest.
    """
    folder, names = os.path.join(source, NOTES), noted(fs, source)
    for name in names:
        path = os.path.join(target, NOTES, name)
        if stat_or_none(fs, path) is None:
            atomic.move_folder(os.path.join(folder, name), path, fs=fs)
    if names:
        try:
            fs.rmdir(folder)
        except OSError:
            pass  # the target has a note of its own about one of these sessions


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
