"""The trash: move sessions to it, and restore them.

The trash is `<base_dir>/.trash/<time>/<id>/`. It is never emptied automatically, only by a user (`empty`).
"""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, NotFound, SessionaryError
from sessionary.layouts import cleaned_up
from sessionary.layouts.amplifier.files import LOCK, NO_ACTIVITY
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.session import Session
from sessionary.layouts.trash import ERASING, TRASH, Trashed, newest, remove_empty, trash_name
from sessionary.model import Problem, Severity


def empty(fs: Fs, root: str, doomed: Iterable[Trashed]) -> list[Trashed]:
    """Permanently delete sessions of the trash; return those that existed.

    Each is moved to a hidden place of the trash first: if interrupted, this leaves complete sessions, or
    parts that are hidden from lists and removed by the next call. A session that is being restored at the
    same time is not deleted.

    Durability: when this returns, they stay deleted after a power cut.

    Raises:
        Locked, StorageFailed: one could not be deleted; the following ones still exist.
    """
    erasing = os.path.join(root, TRASH, ERASING)
    gone = []
    for one in doomed:
        with suppress(FileNotFoundError), FileLock(os.path.join(one.path, LOCK), fs).once(note="empty"):
            atomic.move_folder(one.path, os.path.join(erasing, one.at, one.session_id), fs=fs)
            gone.append(one)
        remove_empty(fs, os.path.dirname(one.path))
    if stat_or_none(fs, erasing) is not None:
        atomic.erase_tree(erasing, fs=fs)
    return gone


def discard(session: Session, root: str, *, erase: bool, now: datetime) -> None:
    """Move a session's folder to the trash, or erase it, under its lock."""
    try:
        session.enter(make=False)
    except FileNotFoundError:
        raise NotFound(
            f"Session '{os.path.basename(session.folder)}' not found", path=session.folder
        ) from None
    try:
        session.lock.note("delete")
        target = trash_name(session.fs, root, os.path.basename(session.folder), now)
        atomic.move_folder(session.folder, target, fs=session.fs)
        if erase:
            # Moved first: a crash in the middle leaves a complete session in the trash, or parts that are
            # hidden from lists.
            atomic.erase_tree(target, fs=session.fs)
            session.fs.rmdir(os.path.dirname(target))
    finally:
        session.leave()


def bring_back(fs: Fs, root: str, session_id: str | None) -> str:
    """Restore the newest trashed session (with that id); return its id."""
    found = newest(fs, root, session_id)
    if found is None:
        message = f"Session '{session_id}' is not in the trash" if session_id else "The trash is empty"
        raise NotFound(message, path=os.path.join(root, TRASH), session=session_id)
    time, name = found
    source = os.path.join(root, TRASH, time, name)
    target = os.path.join(root, name)
    with FileLock(os.path.join(source, LOCK), fs).once(note="undo"):
        try:
            atomic.move_folder(source, target, fs=fs)
            cleaned_up.forget(fs, root, name)
        except AlreadyExists as error:
            error.hint = "move or rename the session that has this id now, then undo again"
            raise
    remove_empty(fs, os.path.join(root, TRASH, time))
    return name


def stale(fs: Fs, root: str, ids: Iterable[str], days: int, now: datetime) -> list[str]:
    """Ids of sessions without activity for `days` days, except ancestors of an active one."""
    limit = (now - timedelta(days=days)).timestamp()
    old: set[str] = set()
    living: list[str] = []
    parents: dict[str, str] = {}
    for session_id in ids:
        folder = os.path.join(root, session_id)
        (old.add if _newest(fs, folder) < limit else living.append)(session_id)
        parent = read_metadata(fs, folder, recovery_time="").value.get("parent_id")
        if isinstance(parent, str):
            parents[session_id] = parent
    for session_id in living:
        child: str | None = session_id
        while child is not None and (child := parents.pop(child, None)) is not None:
            old.discard(child)
    return sorted(old)


def clean_up(session: Session, root: str, *, erase: bool, now: datetime) -> None:
    """As `discard`, for a session that is merely old: it stays on other devices, which a marker records first.

    Raises:
        NotFound, Locked, StorageFailed: it stays here, without a marker.
    """
    session_id = os.path.basename(session.folder)
    active = datetime.fromtimestamp(_newest(session.fs, session.folder), UTC)
    cleaned_up.note(session.fs, root, session_id, active, now)
    try:
        discard(session, root, erase=erase, now=now)
    except (OSError, SessionaryError):
        with suppress(SessionaryError):
            cleaned_up.forget(session.fs, root, session_id)
        raise


def not_moved(folder: str, error: BaseException) -> Problem:
    """The problem for a session that could not be cleaned up."""
    return Problem.of_file("not_moved", Severity.note, folder, f"not moved: {error}", "try again later")


def _newest(fs: Fs, folder: str) -> float:
    newest = 0.0
    for path in all_files(fs, folder):
        try:
            newest = max(newest, fs.lstat(path).st_mtime)
        except OSError:
            continue
    return newest


def all_files(fs: Fs, folder: str) -> Iterator[str]:
    """The folder, and every file and folder below it except its locks; links are not followed."""
    yield folder
    try:
        names = fs.listdir(folder)
    except OSError:
        return
    for name in names:
        if name in NO_ACTIVITY:
            continue
        path = os.path.join(folder, name)
        try:
            is_folder = stat_module.S_ISDIR(fs.lstat(path).st_mode)
        except OSError:
            continue
        yield from all_files(fs, path) if is_folder else (path,)
