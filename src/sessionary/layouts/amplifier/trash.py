"""Taking sessions away, and bringing them back.

The trash is `<base_dir>/.trash/<time>/<id>/`: on the same file system, so that moving there is one rename, and
behind a dot, so that no list shows it.  Nothing in it is ever deleted by us, unless a person empties it (`empty`).
"""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, stat_or_none, storage_failed
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, NotFound, SessionaryError, StorageFailed
from sessionary.layouts import cleaned_up
from sessionary.layouts.amplifier.files import LOCK, NO_ACTIVITY
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.session import Session
from sessionary.model import Problem, Severity

TRASH = ".trash"
ERASING = ".erasing"
_STAMP = "%Y%m%dT%H%M%S.%fZ"


class Trashed(NamedTuple):
    """A session in the trash.

    Attributes:
        session_id: its id.
        at: when it was trashed, in words that sort.
        path: its folder there.
    """

    session_id: str
    at: str
    path: str

    @property
    def when(self) -> datetime | None:
        """When it was trashed; None for a folder that was not named by us."""
        return moment(self.at)


def moment(at: str) -> datetime | None:
    """The time that a name begins with (`atomic.timestamp_name`); None if it begins with none."""
    try:
        return datetime.strptime(at[: at.index("Z") + 1], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def trashed(fs: Fs, root: str, closed: list[StorageFailed] | None = None) -> list[Trashed]:
    """What is in the trash of a folder of sessions, the newest first.

    Args:
        fs: the file system.
        root: the folder of sessions.
        closed: where it is given, a trash that cannot be looked into is put there, and told as empty.

    Raises:
        StorageFailed: it cannot be looked into.
    """
    try:
        return [Trashed(name, at, os.path.join(root, TRASH, at, name)) for at, name in _trashed(fs, root)]
    except OSError as error:
        failure = storage_failed(error, "look into", os.path.join(root, TRASH))
        if closed is None:
            raise failure from error
        closed.append(failure)
        return []


def empty(fs: Fs, root: str, doomed: Iterable[Trashed]) -> list[Trashed]:
    """Destroy sessions of the trash for good; returns those that were there.

    Each is moved to a hidden place of the trash first: cut off, this leaves whole sessions, or parts that nobody lists
    and the next call removes. What is being brought back in the same moment is not destroyed.

    Durability: when this returns, they are gone after a power cut, too.

    Raises:
        Locked, StorageFailed: one could not be destroyed; those behind it are still there.
    """
    erasing = os.path.join(root, TRASH, ERASING)
    gone = []
    for one in doomed:
        lock = FileLock(os.path.join(one.path, LOCK), fs)
        with suppress(FileNotFoundError), lock.held(note="empty"):
            atomic.move_folder(one.path, os.path.join(erasing, one.at, one.session_id), fs=fs)
            gone.append(one)
        lock.close()
        _remove_empty(fs, os.path.dirname(one.path))
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
            # Moved first: a crash in the middle leaves a whole session in the trash, or parts that nobody lists.
            atomic.erase_tree(target, fs=session.fs)
            session.fs.rmdir(os.path.dirname(target))
    finally:
        session.leave()


def newest(fs: Fs, root: str, session_id: str | None) -> tuple[str, str] | None:
    """When the session that was trashed last (of that id) was, and its id; None if the trash has none."""
    return next((pair for pair in _trashed(fs, root) if session_id in (None, pair[1])), None)


def bring_back(fs: Fs, root: str, session_id: str | None) -> str:
    """Move the newest trashed session (of that id) back to its place; returns its id."""
    found = newest(fs, root, session_id)
    if found is None:
        message = f"Session '{session_id}' is not in the trash" if session_id else "The trash is empty"
        raise NotFound(message, path=os.path.join(root, TRASH), session=session_id)
    time, name = found
    source = os.path.join(root, TRASH, time, name)
    target = os.path.join(root, name)
    lock = FileLock(os.path.join(source, LOCK), fs)
    with lock.held(note="undo"):
        try:
            atomic.move_folder(source, target, fs=fs)
            cleaned_up.forget(fs, root, name)
        except AlreadyExists as error:
            error.hint = "move or rename the session that has this id now, then undo again"
            raise
    lock.close()
    _remove_empty(fs, os.path.join(root, TRASH, time))
    return name


def stale(fs: Fs, root: str, ids: Iterable[str], days: int, now: datetime) -> list[str]:
    """Ids of sessions without activity since `days` days, but for those that a living one descends from."""
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
    """As `discard`, of a session that is merely old: it stays on other devices, which a note says first.

    Raises:
        NotFound, Locked, StorageFailed: it stays here, without a note.
    """
    session_id = os.path.basename(session.folder)
    cleaned_up.note(session.fs, root, session_id, _active(session.fs, session.folder), now)
    try:
        discard(session, root, erase=erase, now=now)
    except (OSError, SessionaryError):
        with suppress(SessionaryError):
            cleaned_up.forget(session.fs, root, session_id)
        raise


def _active(fs: Fs, folder: str) -> datetime:
    return datetime.fromtimestamp(_newest(fs, folder), UTC)


def not_moved(folder: str, error: BaseException) -> Problem:
    """What to tell of a session that could not be cleaned up."""
    return Problem(
        "not_moved", Severity.note, folder, None, None, f"left where it is: {error}", "try again later"
    )


def _newest(fs: Fs, folder: str) -> float:
    newest = 0.0
    for path in all_files(fs, folder):
        try:
            newest = max(newest, fs.lstat(path).st_mtime)
        except OSError:
            continue
    return newest


def all_files(fs: Fs, folder: str) -> Iterator[str]:
    """The folder, and every file and folder below it but its locks; links are not followed."""
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


def trash_name(fs: Fs, root: str, name: str, now: datetime) -> str:
    """A free place in the trash; two discards in one microsecond get neighbouring times."""
    stamp = atomic.timestamp_name(now)
    number = 0
    while True:
        time = stamp if not number else f"{stamp}-{number}"
        target = os.path.join(root, TRASH, time, name)
        try:
            fs.lstat(target)
        except (FileNotFoundError, NotADirectoryError):
            return target  # where a stranger's file is in the way, the move will tell
        number += 1


def _trashed(fs: Fs, root: str) -> list[tuple[str, str]]:
    """(time, id) of what is in the trash, newest first."""
    trash = os.path.join(root, TRASH)
    try:
        times = sorted((name for name in fs.listdir(trash) if not name.startswith(".")), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for time in times:
        try:
            found += [(time, name) for name in sorted(fs.listdir(os.path.join(trash, time)))]
        except NotADirectoryError:
            continue  # a stranger's file
    return found


def _remove_empty(fs: Fs, folder: str) -> None:
    try:
        fs.rmdir(folder)
    except OSError:
        pass  # other sessions were discarded in the same moment
