"""Create a work session: first its folder, then the document, which makes it a session.

Below a parent this happens under the lock of the parent, so that no child can be added to a parent that has
ended. The parent is checked before anything is created, and lists the child last; nothing depends on that
list.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from sessionary.disk.fs import Fs, make_dirs, storage_failed
from sessionary.layouts.maestro.names import BREADCRUMBS, ROOT, SESSION, check_id
from sessionary.layouts.maestro.paths import find_folder, no_session
from sessionary.layouts.maestro.records import WorkSession, state_of
from sessionary.layouts.maestro.session_file import (
    Clock,
    checked,
    create_document,
    edit_session,
    locked,
    read_session,
)
from sessionary.layouts.maestro.times import session_time


def new_session(
    session_id: str, session_type: str, status: str, at: datetime, created: str = ""
) -> WorkSession:
    """A session that starts at this time, and ends then too if its status says so.

    Its times have the form of `created`, that of its parent, so that a reader of one can read the other.

    Raises:
        InvalidId: the id cannot be the name of a folder.
    """
    moment = session_time(at, created)
    return WorkSession(
        session_id=check_id(session_id),
        session_type=session_type,
        status=status,
        state=state_of(status),
        created=moment,
        modified=moment,
        created_at=moment,
        closed_at=moment if state_of(status) == "closed" else None,
    )


def place(fs: Fs, root: str, session: WorkSession, parent_folder: str) -> None:
    """Create the folder of a new session, and write its document.

    Durability: when this returns, the session survives a power cut. If interrupted, it does not exist, except
    perhaps its folder.

    Raises:
        AlreadyExists: the session exists.
        StorageFailed: the disk refused.
    """
    folder = f"{parent_folder}/{session.session_id}"
    session.breadcrumbs_dir = _told(root, f"{folder}/{BREADCRUMBS}")
    checked(session)  # refused before the folder is created
    try:
        make_dirs(fs, f"{folder}/{BREADCRUMBS}")
    except OSError as error:
        raise storage_failed(error, "create", folder) from error
    create_document(session, f"{folder}/{SESSION}", fs=fs)


def place_below(
    fs: Fs,
    root: str,
    session: WorkSession,
    parent: str,
    *,
    allow_orphan: bool,
    change_parent: Callable[[WorkSession], object] | None,
    now: Clock,
) -> None:
    """Create a new session in the folder of its parent, and change the parent; see `WorkStore.create`.

    Durability: as `place`; the parent may not list the child yet.

    Raises:
        NotFound: the parent does not exist, and `allow_orphan` is False.
        Locked, StorageFailed: as `WorkStore.create`; and whatever `change_parent` raises.
    """
    session.parent_session_id = session.parent_wsession_id = check_id(parent)
    folder = find_folder(fs, root, parent)
    if folder is None:
        if not allow_orphan:
            raise no_session(root, parent)
        place(fs, root, session, f"{root}/{parent}")
        return

    def change(above: WorkSession) -> None:
        above.children_wsession_ids.append(session.session_id)
        if change_parent is not None:
            change_parent(above)

    path = f"{folder}/{SESSION}"
    with locked(fs, folder):
        change(read_session(path, fs=fs))  # a refusal comes before anything is created
        place(fs, root, session, folder)
        edit_session(path, change, fs=fs, now=now)


def _told(root: str, folder: str) -> str:
    """The path of a folder for a session.json: relative to the project, with forward slashes."""
    is_custom = root.replace(os.sep, "/").endswith(f"/{ROOT}")
    project = os.path.dirname(os.path.dirname(root)) if is_custom else os.path.dirname(root)
    return os.path.relpath(folder, project).replace(os.sep, "/")
