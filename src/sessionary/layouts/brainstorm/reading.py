"""One session file, read: the document in the present version, and all that is odd about it. Nothing here writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.codec.yaml_faults import Faults
from sessionary.codec.yaml_read import LIMITS, bad_yaml, load_yaml
from sessionary.disk.fs import READ, Fs, read_all, storage_failed
from sessionary.errors import Corrupt, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.brainstorm.fields import faults_of
from sessionary.layouts.brainstorm.migrations import Migrated, migrate
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.vocabulary import SUFFIX, VERSION, is_slug, is_whole
from sessionary.model import Problem, Severity, health


class Row(NamedTuple):
    """What a list shows of a session. What the file does not say, or says wrongly, is None.

    Attributes:
        slug: the name of the file without its suffix.
        path: the file.
        id: as in the file.
        status: as in the file.
        phase: as in the file.
        mode: as in the file; ``standard`` if it does not say.
        persona: as in the file.
        ems: the score.
        iteration: where the session stands.
        ideas: how many there are.
        iterations: how many entries of the history count.
        answered: how many of them have an answer.
        created: when it began (UTC).
        updated: when it last changed (UTC); when it began if the file does not say.
        ems_line: the scores of its iterations in order.
        last_question: the last one asked.
        size: bytes of the file.
        problems: all that is odd.
        parent: the session that it comes from, if it gave way to another device's version of it.
    """

    slug: str
    path: str
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    mode: str | None = None
    persona: str | None = None
    ems: int | None = None
    iteration: int | None = None
    ideas: int = 0
    iterations: int = 0
    answered: int = 0
    created: datetime | None = None
    updated: datetime | None = None
    ems_line: tuple[int, ...] = ()
    last_question: str | None = None
    size: int = 0
    problems: tuple[Problem, ...] = ()
    parent: str | None = None

    @property
    def readable(self) -> bool:
        """False if nobody can go on with the session before its file is corrected."""
        return all(problem.severity < Severity.stops_resume for problem in self.problems)

    @property
    def health(self) -> str:
        """The worst severity as a word, or ``ok``."""
        return health(list(self.problems))


class Read(NamedTuple):
    """A file as it was read: the value in it, and what came of that in the present version."""

    value: Any
    migrated: Migrated
    faults: Faults


def parse(data: bytes, path: str, slug: str | None, *, strict: bool = False) -> Read:
    """The document in the bytes of a file, checked but not refused.

    Raises:
        Corrupt: it is no YAML that can be read.
        SchemaError: it holds no map.
        Unsupported: its version is not known here.
    """
    value = load_yaml(data, path=path)
    if not isinstance(value, dict):
        raise SchemaError(
            f"{path}: holds no session",
            faults=["the file holds no map"],
            operation="load",
            path=path,
            session=slug,
            details={"code": "missing_field"},
            hint="restore the file from version control or the trash",
        )
    migrated = migrate(value, path=path)
    faults = faults_of(migrated.document, slug=slug, path=path, data=data, strict=strict)
    if migrated.was != VERSION:
        faults.add(
            "old_version",
            ["format_version"],
            f"is {migrated.was}; read as {VERSION}",
            "the next change stores it so, with a backup",
            Severity.note,
        )
    if migrated.healed:
        faults.add(
            "half_migrated",
            [],
            "an earlier migration left the file half in the old form; it is read whole",
            "the next change stores it so, with a backup",
            Severity.cosmetic,
        )
    return Read(value, migrated, faults)


def brainstorm_of(data: bytes, path: str, slug: str) -> tuple[Brainstorm, Migrated]:
    """The session in the bytes of a file.

    Raises:
        Corrupt, Unsupported: as for `parse`.
        SchemaError: who it is or where it stands is missing or wrong; holds all such faults.
    """
    read = parse(data, path, slug)
    read.faults.raise_any(Severity.stops_resume, operation="load", session=slug)
    return Brainstorm(read.migrated.document, path, read.faults.problems(), data), read.migrated


def file_bytes(fs: Fs, path: str) -> tuple[bytes, os.stat_result]:
    """What a session file holds, and its stat from before it was read.

    Raises:
        Corrupt: it is larger than any session; it was not read.
        OSError: it is not there, or cannot be read.
    """
    fd = fs.open(path, READ)
    try:
        found = fs.fstat(fd)
        if found.st_size > LIMITS.size:
            raise bad_yaml("too_large", f"{found.st_size:,} bytes, more than {LIMITS.size:,}", path)
        return read_all(fs, fd), found
    finally:
        fs.close(fd)


def names(fs: Fs, folder: str) -> list[str]:
    """The slugs of the session files in a folder, sorted; none if it is not there.

    Raises:
        StorageFailed: it cannot be looked into.
    """
    try:
        found = fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_failed(error, "look into", folder) from error
    return sorted(name[: -len(SUFFIX)] for name in found if name.endswith(SUFFIX) and name[0] != ".")


def rows(fs: Fs, folder: str) -> Iterator[Row]:
    """What a list shows of every session in a folder, by name."""
    for slug in names(fs, folder):
        row = row_at(fs, f"{folder}/{slug}{SUFFIX}", slug)
        if row is not None:
            yield row


def row_at(fs: Fs, path: str, slug: str, *, strict: bool = False) -> Row | None:
    """What a list shows of the session in a file; None if it is gone."""
    try:
        return row_of(file_bytes(fs, path)[0], path, slug, strict=strict)
    except FileNotFoundError:
        return None
    except Corrupt as error:
        return Row(slug, path, problems=(refusal(error, path),))
    except OSError as error:
        return Row(slug, path, problems=(refusal(storage_failed(error, "read", path), path),))


def row_of(data: bytes, path: str, slug: str, *, strict: bool = False) -> Row:
    """What a list shows of a session, whatever is wrong with it."""
    try:
        read = parse(data, path, slug, strict=strict)
    except (Corrupt, SchemaError, Unsupported) as error:
        return Row(slug, path, size=len(data), problems=(refusal(error, path),))
    problems = [*read.faults.problems(), *_of_name(path, slug)]
    session = read.migrated.document.get("session")
    if not isinstance(session, dict):
        return Row(slug, path, size=len(data), problems=tuple(problems))
    view = Brainstorm(read.migrated.document, path)
    number = session.get("iteration")
    history = view.history if type(number) is int else []
    return Row(
        slug,
        path,
        id=_text(session, "id"),
        status=_text(session, "status"),
        phase=_text(session, "phase"),
        mode=view.mode,
        persona=view.persona,
        ems=session["ems"] if is_whole(session.get("ems"), 0, 100) else None,
        iteration=number if type(number) is int else None,
        ideas=len(view.ideas),
        iterations=len(history),
        answered=sum(1 for entry in history if entry.get("responses")),
        created=view.created,
        updated=view.updated,
        ems_line=tuple(view.ems_line),
        last_question=_text(session, "last_question"),
        size=len(data),
        problems=tuple(problems),
        parent=_text(session, "parent_id"),
    )


def refusal(error: Corrupt | SchemaError | Unsupported | StorageFailed, path: str) -> Problem:
    """What to tell of a file that cannot be read at all."""
    code = error.details.get("code", "unreadable")
    line = error.details.get("line")
    return Problem(code, Severity.stops_resume, path, line, None, error.message, error.hint)


def _of_name(path: str, slug: str) -> Iterator[Problem]:
    if not is_slug(slug):
        yield Problem(
            "odd_name",
            Severity.stops_resume,
            path,
            None,
            None,
            f"{os.path.basename(path)} is no name of a session file",
            "rename it to lower-case words with hyphens between",
        )


def _text(session: dict[str, Any], name: str) -> str | None:
    value = session.get(name)
    return value if isinstance(value, str) else None
