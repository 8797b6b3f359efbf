"""End and restore sessions: finish, abandon, reopen, trash and archive."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from sessionary.disk import atomic
from sessionary.errors import AlreadyExists, NotFound
from sessionary.layouts import cleaned_up
from sessionary.layouts.brainstorm import trash
from sessionary.layouts.brainstorm.constants import SUFFIX, check_slug
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, SessionFiles
from sessionary.layouts.brainstorm.navigation import Session
from sessionary.layouts.brainstorm.reading import Row, bytes_at, names, row_at
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.clock import believed
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem, Severity

LOW_SCORE = 60
"""A lower score at the finish is reported."""


def finish(files: SessionFiles, slug: str, *, now: datetime | None) -> Brainstorm:
    """Complete a session; see `BrainstormStore.finish`."""
    found = _end(files, slug, "finish", COMPLETED, now)
    if found.ems < LOW_SCORE:
        message = f"the session was finished with a score of {found.ems}, below {LOW_SCORE}"
        repair = "`reopen` it, or start another session on the open points"
        found.problems.append(Problem("low_score", Severity.note, found.path, None, None, message, repair))
    return found


def abandon(files: SessionFiles, slug: str, *, now: datetime | None) -> Brainstorm:
    """Abandon a session; see `BrainstormStore.abandon`."""
    return _end(files, slug, "abandon", ABANDONED, now)


def reopen(files: SessionFiles, slug: str, *, now: datetime | None) -> Brainstorm:
    """Reopen a finished session; see `BrainstormStore.reopen`."""

    def step(session: Session, _: datetime) -> None:
        session["status"] = IN_PROGRESS

    ended = COMPLETED, ABANDONED
    return files.change(slug, "reopen", step, now, ended=ended, works=lambda _: False)[0]


def _end(files: SessionFiles, slug: str, operation: str, status: str, now: datetime | None) -> Brainstorm:
    def step(session: Session, _: datetime) -> None:
        session["status"] = status

    return files.change(slug, operation, step, now, ended=(status,))[0]


def restore(files: SessionFiles, slug: str) -> str:
    """Restore a session from the trash; see `BrainstormStore.restore`."""
    with files.call("restore", slug):
        check_slug(slug)
        trash.newest_in_trash(files.fs, files.folder, slug)  # a missing session must not leave a lock file
        with files.held(slug):
            return trash.bring_back(files.fs, files.folder, slug)


def find_ended(files: SessionFiles, name: str, *, in_archive: bool) -> str:
    """Resolve a name in the trash or the archive; see `BrainstormStore.find_ended`."""
    if in_archive:
        rows = sorted(archived(files), key=lambda row: believed(row.updated), reverse=True)
        ids = [os.path.basename(row.path).removesuffix(SUFFIX) for row in rows]
        slugs = [row.slug for row in rows]
    else:
        ids = slugs = trash.trashed(files.fs, files.folder)
    if name in ids or name in slugs:
        return name
    if name == LATEST and ids:
        return ids[0]
    what = "archived brainstorm sessions" if in_archive else "brainstorm sessions in the trash"
    return one_named(name, set(slugs), what) or one_named(name, set(ids), what) or name


def archived(files: SessionFiles) -> list[Row]:
    """The sessions in the archive; see `BrainstormStore.archived`."""
    folder = os.path.join(files.folder, trash.ARCHIVE)
    found = (
        row_at(files.fs, os.path.join(folder, f"{name}{SUFFIX}"), trash.slug_of(name))
        for name in names(files.fs, folder)
    )
    return [row for row in found if row is not None]


def restore_archived(files: SessionFiles, name: str, *, replace: bool, now: datetime | None) -> str:
    """Restore a session from the archive; see `BrainstormStore.restore_archived`."""
    row = _in_archive(files, name)
    slug = row.slug
    with files.call("restore", slug), files.held(slug):
        path = files.path(slug)
        data = bytes_at(files.fs, row.path)
        if data is None:
            raise NotFound(f"no session {name} in the archive", path=row.path)
        if bytes_at(files.fs, path) is None:
            atomic.create(path, data, fs=files.fs)
        else:
            try:
                files.make_room(slug, new=replace, now=now or datetime.now(UTC))
            except AlreadyExists as error:
                error.hint = "--replace archives that one and restores this one"
                raise
            atomic.replace(path, (data,), fs=files.fs)
        atomic.erase_tree(row.path, fs=files.fs)
        cleaned_up.forget(files.fs, files.folder, slug)
        return path


def _in_archive(files: SessionFiles, name: str) -> Row:
    """The archived session of that name; for a slug the one that changed last."""
    rows = archived(files)
    exact = [row for row in rows if os.path.basename(row.path) == f"{name}{SUFFIX}"]
    same_slug = [row for row in rows if row.slug == name]
    found = exact or sorted(same_slug, key=lambda row: believed(row.updated))
    if not found:
        raise NotFound(
            f"no session {name} in the archive",
            path=os.path.join(files.folder, trash.ARCHIVE),
            session=name,
            hint="`sessionary brainstorm list --archived` lists the archive",
        )
    return found[-1]
