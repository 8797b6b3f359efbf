"""Queries on the sessions of a project. Nothing here writes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import NamedTuple

from sessionary.errors import NotFound
from sessionary.layouts.brainstorm.constants import SUFFIX, check_slug
from sessionary.layouts.brainstorm.files import IN_PROGRESS, SessionFiles
from sessionary.layouts.brainstorm.reading import Row, names, row_at, rows
from sessionary.layouts.clock import believed, future_note
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem


class Found(NamedTuple):
    """The result of a launch.

    Attributes:
        sessions: those that can be resumed, the one that changed last first; with a slug the session of that
        name, whatever its status.
        problems: unreadable files; they block a new session of that name.
    """

    sessions: list[Row]
    problems: list[Problem]


def find(files: SessionFiles, name: str) -> str:
    """Resolve a name; see `BrainstormStore.find`."""
    with files.call("find", name):
        found = one_named(name, names(files.fs, files.folder), "brainstorm sessions")
        if found is None and name == LATEST:
            sessions = sorted(rows(files.fs, files.folder), key=lambda row: believed(row.updated))
            found = sessions[-1].slug if sessions else None
        if found is None:
            raise NotFound(
                f"no brainstorm session {name}",
                hint="`sessionary brainstorm list` lists all",
            )
        return found


def detect(files: SessionFiles, slug: str | None) -> Found:
    """The sessions that a launch can resume; see `BrainstormStore.detect`."""
    if slug is not None:
        row = row_at(files.fs, files.path(slug), slug)
        found = [] if row is None else [row]
    else:
        found = [*rows(files.fs, files.folder)]
    broken = [row for row in found if not row.readable]
    usable = [row for row in found if row.readable and (slug is not None or row.status == IN_PROGRESS)]
    usable.sort(key=lambda row: row.updated or datetime.min.replace(tzinfo=UTC), reverse=True)
    return Found(usable, [problem for row in broken for problem in row.problems])


def validate(files: SessionFiles, slug: str | None, *, strict: bool) -> list[Problem]:
    """The problems of one session, or of all; see `BrainstormStore.validate`."""
    wanted = names(files.fs, files.folder) if slug is None else [check_slug(slug)]
    problems: list[Problem] = []
    for name in wanted:
        path = os.path.join(files.folder, f"{name}{SUFFIX}")
        row = row_at(files.fs, path, name, strict=strict)
        if row is None and slug is not None:
            files.bytes_of(slug)  # raises NotFound
        if row is not None:
            problems += [*row.problems, *future_note("updated", row.updated, path)]
    return problems
