"""Move session files away: backup, archive, trash.

Each of them is beside the sessions, on the same file system and hidden from lists. A name is never used
twice; the next free one is taken. All of this happens under the lock of the session.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, read_bytes, stat_or_none
from sessionary.errors import AlreadyExists, NotFound
from sessionary.layouts import cleaned_up
from sessionary.layouts.brainstorm.constants import SUFFIX
from sessionary.layouts.trash import TRASH, newest, remove_empty, trash_name
from sessionary.layouts.trash import trashed as everything_trashed

ARCHIVE = "archive"
BACKUP = ".bak"
_ARCHIVED = re.compile(r"(.+?)-\d{4}-\d\d-\d\d(?:-\d+)?")


def keep_backup(fs: Fs, path: str, data: bytes) -> str:
    """Keep the bytes of a file beside it before a migration changes it; return the name.

    Durability: the backup survives a power cut when this returns.
    """
    return _keep(fs, f"{path}{BACKUP}", "", data)


def archive(fs: Fs, folder: str, name: str, data: bytes) -> str:
    """Store a session that is about to be replaced under `archive/`; return the path. Durable on return."""
    where = os.path.join(folder, ARCHIVE)
    make_folder(fs, where)
    return _keep(fs, os.path.join(where, name), SUFFIX, data)


def _keep(fs: Fs, stem: str, suffix: str, data: bytes) -> str:
    for path in atomic.numbered(stem, suffix):
        if read_bytes(fs, path) == data:
            return path  # an earlier attempt was interrupted after this step
        with suppress(AlreadyExists):
            atomic.create(path, data, fs=fs)
            return path
    raise AssertionError("unreachable: the names never end")


def slug_of(name: str) -> str:
    """The slug of the session in a file of the archive, named by its id; `-2` and up mark repeated ids."""
    found = _ARCHIVED.fullmatch(name)
    return found[1] if found else name


def discard(fs: Fs, path: str, now: datetime, *, erase: bool) -> str:
    """Move a session file, and its backup, to the trash; with `erase` delete them there. Return the new path."""
    folder, name = os.path.split(path)
    target = trash_name(fs, folder, name, now)
    atomic.move_folder(path, target, fs=fs)
    if stat_or_none(fs, f"{path}{BACKUP}") is not None:
        atomic.move_folder(f"{path}{BACKUP}", f"{target}{BACKUP}", fs=fs)
    if erase:
        # Moved first: a crash in the middle leaves complete files in the trash.
        for left in (target, f"{target}{BACKUP}"):
            if stat_or_none(fs, left) is not None:
                atomic.erase_tree(left, fs=fs)
        remove_empty(fs, os.path.dirname(target))
    return target


def bring_back(fs: Fs, folder: str, slug: str) -> str:
    """Restore the session of that name that was trashed last; return the path.

    Raises:
        NotFound: it is not in the trash.
        AlreadyExists: another session now has the name.
    """
    path = os.path.join(folder, f"{slug}{SUFFIX}")
    source = newest_in_trash(fs, folder, slug)
    try:
        atomic.move_folder(source, path, fs=fs)
        cleaned_up.forget(fs, folder, slug)
    except AlreadyExists as error:
        error.hint = "archive or rename the session that has this name now, then try again"
        raise
    if stat_or_none(fs, f"{source}{BACKUP}") is not None and stat_or_none(fs, f"{path}{BACKUP}") is None:
        atomic.move_folder(f"{source}{BACKUP}", f"{path}{BACKUP}", fs=fs)
    remove_empty(fs, os.path.dirname(source))
    return path


def trashed(fs: Fs, folder: str) -> list[str]:
    """The slugs of the sessions in the trash, the most recently trashed first."""
    found = (one.session_id for one in everything_trashed(fs, folder) if one.session_id.endswith(SUFFIX))
    return list(dict.fromkeys(name.removesuffix(SUFFIX) for name in found))


def newest_in_trash(fs: Fs, folder: str, slug: str) -> str:
    """The path of the session of that name that was trashed last. Raises NotFound if it is not in the trash."""
    trash = os.path.join(folder, TRASH)
    found = newest(fs, folder, f"{slug}{SUFFIX}")
    if found is not None:
        return os.path.join(trash, *found)
    raise NotFound(
        f"session {slug} is not in the trash",
        path=trash,
        session=slug,
        hint="see also `sessionary brainstorm list` and `list --archived`",
    )
