"""Operations on many sessions: clean up, migrate. Each session is handled separately, under its own lock."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from typing import NamedTuple

from sessionary.errors import Corrupt, Invalid, SchemaError, SessionaryError, Unsupported
from sessionary.layouts import cleaned_up
from sessionary.layouts.brainstorm import trash
from sessionary.layouts.brainstorm.constants import SUFFIX, is_slug
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, SessionFiles
from sessionary.layouts.brainstorm.reading import (
    Row,
    brainstorm_of,
    bytes_at,
    names,
    parse,
    refusal,
    row_at,
    rows,
)
from sessionary.model import Problem, Severity

# A temporary file has the name of its target: a session, its backup, or an archived one with its date.
_TEMP = re.compile(
    r"\.([a-z0-9-]+?)(?:-\d{4}-\d\d-\d\d(?:-\d+)?)?\.yaml(?:\.bak(?:-\d+)?)?\.[0-9a-f]{16}\.tmp"
)


class Cleaned(NamedTuple):
    """A session that was cleaned up, or would be.

    Attributes:
        row: the session.
        moved_to: its new path; None after a dry run, after erasing, and if it could not be moved.
        problem: why it could not be moved.
    """

    row: Row
    moved_to: str | None = None
    problem: Problem | None = None


class MigratedFile(NamedTuple):
    """A file that was migrated, or would be.

    Attributes:
        slug: its session.
        was: its previous version.
        healed: whether an earlier migration had left it incomplete.
        backup: the backup of the old bytes; None after a dry run.
        problem: why it could not be migrated.
    """

    slug: str
    was: str
    healed: bool
    backup: str | None = None
    problem: Problem | None = None


def is_stale(row: Row, days: int, now: datetime) -> bool:
    """True for a session that has ended, and has not changed for more than this many days of 24 hours.

    The time of change is that in the file; the times of the file itself are those of the last copy.
    """
    return (
        row.readable
        and is_slug(row.slug)
        and row.status in (COMPLETED, ABANDONED)
        and row.updated is not None
        and now - row.updated > timedelta(days=days)
    )


def clean_up(
    files: SessionFiles, days: int, now: datetime, *, dry_run: bool, erase: bool, keep: str | None = None
) -> list[Cleaned]:
    """Move old sessions to the trash, except the session `keep`; see `BrainstormStore.cleanup`."""
    if type(days) is not int or days < 0:
        raise Invalid(
            f"cannot clean up after {days!r} days", operation="cleanup", hint="use a whole number from 0"
        )
    if not dry_run:
        _sweep(files)
    stale = [row for row in rows(files.fs, files.folder) if row.slug != keep and is_stale(row, days, now)]
    if dry_run:
        return [Cleaned(row) for row in stale]
    done = []
    for row in stale:
        try:
            with files.held(row.slug):
                now_there = row_at(files.fs, row.path, row.slug)
                if now_there is None or now_there.updated is None or not is_stale(now_there, days, now):
                    continue  # it was resumed or removed since the check
                cleaned_up.note(files.fs, files.folder, row.slug, now_there.updated, now)
                moved_to = trash.discard(files.fs, row.path, now, erase=erase)
                done.append(Cleaned(now_there, None if erase else moved_to))
        except SessionaryError as error:
            message, remedy = f"not moved: {error}", "try again later"
            problem = Problem.of_file("not_moved", Severity.note, row.path, message, remedy)
            done.append(Cleaned(row, problem=problem))
    return done


def _sweep(files: SessionFiles) -> None:
    """Delete temporary files of killed writers, each under the lock of its writer."""
    for folder in (files.folder, os.path.join(files.folder, trash.ARCHIVE)):
        try:
            left = [(found[1], name) for name in files.fs.listdir(folder) if (found := _TEMP.fullmatch(name))]
        except OSError:
            continue
        for slug, name in left:
            try:
                with files.held(slug):
                    files.fs.unlink(os.path.join(folder, name))
            except (OSError, SessionaryError):
                continue  # its writer is alive, or it is gone; the next clean-up checks again


def migrate(files: SessionFiles, slug: str | None, *, dry_run: bool) -> list[MigratedFile]:
    """Store every older file, or one, in the current version; see `BrainstormStore.migrate`."""
    slugs = names(files.fs, files.folder) if slug is None else [slug]
    return [done for each in slugs if (done := _migrate(files, each, dry_run=dry_run))]


def _migrate(files: SessionFiles, slug: str, *, dry_run: bool) -> MigratedFile | None:
    """Store one older file in the current version; None if it has that already."""
    path = f"{files.folder}/{slug}{SUFFIX}"
    try:
        data = bytes_at(files.fs, path)
        if data is None:
            return None
        migrated = parse(data, path, slug).migrated
        if not migrated.changed:
            return None
        if dry_run:
            return MigratedFile(slug, migrated.was, migrated.healed)
        with files.call("migrate", slug), files.held(slug):
            data = files.bytes_of(slug)
            session = brainstorm_of(data, path, slug)
            backup = trash.keep_backup(files.fs, path, data) if session.is_migrated else None
            files.store(session)
            return MigratedFile(slug, migrated.was, migrated.healed, backup)
    except (Corrupt, SchemaError, Unsupported) as error:
        was, problem = str(error.details.get("version", "")), refusal(error, path, "bad_field")
    except SessionaryError as error:
        message, remedy = f"not migrated: {error.message}", error.hint or "try again later"
        was, problem = "", Problem.of_file("not_migrated", Severity.note, path, message, remedy)
    return MigratedFile(slug, was, False, None, problem)
