"""Sessions removed by an age-based clean-up, on this device only.

A session that a user deletes is deleted on all devices; one that is merely old here may be in use elsewhere.
Both look alike after a clean-up: the session is missing. So the clean-up leaves a marker, one small file for
each session, beside the sessions: `.cleaned-up/<id>`. It holds the time of the last activity, so that a
synchronisation can determine whether another device has continued the session since.

The marker is written before the move and outlives the trash. A deletion by the user, an undo, and a pull that
restores the session remove it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from sessionary.codec import Undecodable, decode, encode_line
from sessionary.codec.times import parse_iso
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, names_in, read_bytes, stat_or_none, storage_errors, sync_dir

NOTES = ".cleaned-up"


def note(fs: Fs, root: str, session_id: str, active: datetime, now: datetime) -> None:
    """Record that a session is about to be cleaned up.

    Args:
        active: the time of its last activity.

    Durability: on return the marker survives a power cut.

    Raises:
        StorageFailed: it could not be written; the session must stay.
    """
    folder = os.path.join(root, NOTES)
    make_folder(fs, folder)
    forget(fs, root, session_id)  # the marker of an earlier clean-up, after which the session was restored
    document = encode_line({"at": _text(now), "active": _text(active)}) + b"\n"
    atomic.create(os.path.join(folder, session_id), document, fs=fs)


def forget(fs: Fs, root: str, session_id: str) -> None:
    """Remove the marker: the session exists again, or was deleted on purpose.

    Durability: on return the marker is gone after a power cut, too.
    """
    path = os.path.join(root, NOTES, session_id)
    if stat_or_none(fs, path) is None:
        return
    atomic.forget_file(path, fs=fs)
    with storage_errors("remove", path, outcome="unknown"):
        sync_dir(fs, os.path.dirname(path))


def noted(fs: Fs, root: str) -> list[str]:
    """The ids of the sessions of a folder that were cleaned up."""
    return [name for name in names_in(fs, os.path.join(root, NOTES)) or () if not name.startswith(".")]


def last_activity(fs: Fs, root: str, session_id: str) -> datetime | None:
    """The last activity of a session that was cleaned up here; None if it was not.

    A marker that cannot be read counts as activity in the distant past, so that any change elsewhere restores
    the session.
    """
    data = read_bytes(fs, os.path.join(root, NOTES, session_id))
    if data is None:
        return None
    try:
        active = parse_iso(decode(data)["active"])
    except (Undecodable, TypeError, KeyError):
        active = None
    return active or datetime.min.replace(tzinfo=UTC)


def move(fs: Fs, source: str, target: str) -> None:
    """Move the markers of one folder of sessions to another, to which its sessions were moved.

    Raises:
        StorageFailed: a marker could not be moved; the next call moves the rest.
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
            pass  # the target has a marker of its own for one of these sessions


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
