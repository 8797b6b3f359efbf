"""Read one session file: the document in the current version, and its problems. Nothing here writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.codec.yaml_faults import Faults
from sessionary.codec.yaml_read import LIMITS, bad_yaml, load_yaml
from sessionary.disk.fs import (
    OS_FS,
    Fs,
    descriptor,
    names_in,
    placeholder_name,
    read_all,
    require_regular,
    storage_failed,
)
from sessionary.errors import Corrupt, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.brainstorm.constants import SUFFIX, VERSION, is_slug, is_whole
from sessionary.layouts.brainstorm.fields import faults_of
from sessionary.layouts.brainstorm.messages import counted
from sessionary.layouts.brainstorm.migrations import Migrated, migrate
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.clock import believed
from sessionary.layouts.conflict_copies import copy_of, copy_problem, is_there, not_downloaded
from sessionary.model import Problem, Severity, health


class Row(NamedTuple):
    """A session in a list. Missing and invalid values are None.

    Attributes:
        slug: the name of the file without its suffix.
        path: the file.
        id, status, phase, persona: as in the file.
        mode: as in the file; ``standard`` if missing.
        ems: the score.
        iteration: the current iteration.
        ideas: number of ideas.
        iterations: number of history entries that are not superseded.
        answered: number of those with an answer.
        messages: number of messages as a conversation.
        turns: number of user answers, superseded ones included.
        created: the start (UTC).
        updated: the last change (UTC); the start if missing.
        ems_line: the scores of its iterations in order.
        last_question: the last one asked.
        size: bytes of the file.
        problems: damage, and oddities.
        parent: its origin, if it is the sibling of another device's version.
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
    messages: int = 0
    turns: int = 0
    created: datetime | None = None
    updated: datetime | None = None
    ems_line: tuple[int, ...] = ()
    last_question: str | None = None
    size: int = 0
    problems: tuple[Problem, ...] = ()
    parent: str | None = None

    @property
    def name(self) -> str:
        """The name of its file without the suffix: the slug; in the archive, the id."""
        return os.path.basename(self.path).removesuffix(SUFFIX)

    @property
    def readable(self) -> bool:
        """False if the session cannot be resumed before its file is corrected."""
        return all(problem.severity < Severity.stops_resume for problem in self.problems)

    @property
    def health(self) -> str:
        """The worst severity as text, or ``ok``."""
        return health(list(self.problems))


class Read(NamedTuple):
    """A file, as read: the document in the current version, and its faults."""

    migrated: Migrated
    faults: Faults


def parse(data: bytes, path: str, slug: str | None, *, strict: bool = False) -> Read:
    """The document in the bytes of a file, with its faults collected but not refused.

    Raises:
        Corrupt: it is not readable YAML.
        SchemaError: it is not a map.
        Unsupported: its version is unknown.
    """
    value = load_yaml(data, path=path)
    if not isinstance(value, dict):
        raise SchemaError(
            f"{path}: contains no session",
            faults=["the file is not a map"],
            operation="load",
            path=path,
            session=slug,
            details={"code": "missing_field"},
            hint="restore the file from version control or the trash",
        )
    migrated = migrate(value, path=path)
    faults = faults_of(migrated.document, slug=slug, path=path, data=data, strict=strict)
    if strict and value.get("format_version") is None:
        faults.add(
            "missing_field", ["format_version"], "is missing", f'write format_version: "{VERSION}" at the top'
        )
    if migrated.was != VERSION:
        faults.add(
            "old_version",
            ["format_version"],
            f"is {migrated.was}; read as {VERSION}",
            "the next change stores the new version, with a backup",
            Severity.note,
        )
    if migrated.healed:
        faults.add(
            "half_migrated",
            [],
            "an earlier migration left the file incomplete; it is read correctly",
            "the next change stores the new version, with a backup",
            Severity.cosmetic,
        )
    return Read(migrated, faults)


def brainstorm_of(data: bytes, path: str, slug: str) -> Brainstorm:
    """The session in the bytes of a file.

    Raises:
        Corrupt, Unsupported: as for `parse`.
        SchemaError: its identity or position is missing or wrong; has all such faults.
    """
    read = parse(data, path, slug)
    read.faults.raise_any(Severity.stops_resume, operation="load", session=slug)
    return Brainstorm(read.migrated.document, path, read.faults.problems(), data, read.migrated.changed)


def file_bytes(fs: Fs, path: str) -> tuple[bytes, os.stat_result]:
    """The content of a session file, and its stat from before it was read.

    Raises:
        Corrupt: it is larger than any session, and was not read.
        OSError: it does not exist, is not a regular file (a pipe would never end), or cannot be read.
    """
    with descriptor(fs, path) as fd:
        found = require_regular(fs.fstat(fd))
        if found.st_size > LIMITS.size:
            raise bad_yaml("too_large", f"{found.st_size:,} bytes, more than {LIMITS.size:,}", path)
        return read_all(fs, fd), found


def bytes_at(fs: Fs, path: str) -> bytes | None:
    """The content of a session file; None if it does not exist. Raises as `file_bytes`."""
    try:
        return file_bytes(fs, path)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_failed(error, "read", path) from error


def names(fs: Fs, folder: str) -> list[str]:
    """The slugs of the session files in a folder, sorted; none if it is missing. Exact duplicates are left out."""
    found = names_in(fs, folder) or ()
    files = {name for name in found if name.endswith(SUFFIX) and name[0] != "."}
    return sorted(name[: -len(SUFFIX)] for name in files if not _is_duplicate(fs, folder, name, files))


def _is_duplicate(fs: Fs, folder: str, name: str, files: Collection[str]) -> bool:
    """True for a synchroniser's copy of a session with the same bytes."""
    copy = copy_of(name, files, devices=False)
    if copy is None:
        return False
    try:
        return file_bytes(fs, f"{folder}/{name}")[0] == file_bytes(fs, f"{folder}/{copy.original}")[0]
    except (OSError, Corrupt):
        return False


def not_here(fs: Fs, folder: str) -> Iterator[Problem]:
    """The problems for placeholders of sessions that are not on this device."""
    try:
        found = fs.listdir(folder)
    except OSError:
        return  # reported by the listing of sessions
    for name in sorted(found):
        original = name[1:].removesuffix(".icloud")
        if original.endswith(SUFFIX) and name == placeholder_name(original) and original not in found:
            yield not_downloaded(f"{folder}/{name}", original)


def rows(fs: Fs, folder: str, slug_of: Callable[[str], str] = str) -> Iterator[Row]:
    """The list entry of every session in a folder, by name; `slug_of` gives the slug for the name of a file."""
    for name in names(fs, folder):
        row = row_at(fs, f"{folder}/{name}{SUFFIX}", slug_of(name))
        if row is not None:
            yield row


def newest_first(rows: Iterable[Row]) -> list[Row]:
    """The list entries, the session that changed last first."""
    return sorted(rows, key=lambda row: believed(row.updated), reverse=True)


def row_at(fs: Fs, path: str, slug: str, *, strict: bool = False) -> Row | None:
    """The list entry of the session in a file; None if it is gone."""
    try:
        return row_of(file_bytes(fs, path)[0], path, slug, strict=strict, fs=fs)
    except FileNotFoundError:
        return None
    except Corrupt as error:
        return Row(slug, path, problems=(refusal(error, path),))
    except OSError as error:
        return Row(slug, path, problems=(refusal(storage_failed(error, "read", path), path),))


def row_of(data: bytes, path: str, slug: str, *, strict: bool = False, fs: Fs = OS_FS) -> Row:
    """The list entry of a session, whatever its damage."""
    original = _original(fs, path)
    try:
        read = parse(data, path, slug if original is None else original.removesuffix(SUFFIX), strict=strict)
    except (Corrupt, SchemaError, Unsupported) as error:
        return Row(slug, path, size=len(data), problems=(refusal(error, path),))
    problems = [*read.faults.problems(), *_of_name(fs, path, slug, original)]
    session = read.migrated.document.get("session")
    if not isinstance(session, dict):
        return Row(slug, path, size=len(data), problems=tuple(problems))
    view = Brainstorm(read.migrated.document, path)
    number = session.get("iteration")
    history = view.history if type(number) is int else []
    messages, turns = counted(session)
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
        messages=messages,
        turns=turns,
        created=view.created,
        updated=view.updated,
        ems_line=tuple(view.ems_line),
        last_question=_text(session, "last_question"),
        size=len(data),
        problems=tuple(problems),
        parent=_text(session, "parent_id"),
    )


def refusal(
    error: Corrupt | SchemaError | Unsupported | StorageFailed, path: str, code: str = "unreadable_file"
) -> Problem:
    """The problem for an unreadable file; `code` if the error has none."""
    code, line = error.details.get("code", code), error.details.get("line")
    return Problem(code, Severity.stops_resume, path, line, None, error.message, error.hint)


def _original(fs: Fs, path: str) -> str | None:
    """The name of the session file of which the file at `path` is a synchroniser's copy; None if it is not one."""
    folder, name = os.path.split(path)
    copy = copy_of(name, devices=False)
    return copy.original if copy is not None and is_there(fs, f"{folder}/{copy.original}") else None


def _of_name(fs: Fs, path: str, slug: str, original: str | None) -> Iterator[Problem]:
    if original is not None:
        yield copy_problem(fs, path, f"{os.path.dirname(path)}/{original}", original.removesuffix(SUFFIX))
    elif not is_slug(slug):
        words = f"{os.path.basename(path)} is not a valid name of a session file"
        remedy = "rename it to lower-case words with hyphens between"
        yield Problem.of_file("odd_name", Severity.stops_resume, path, words, remedy)


def _text(session: dict[str, Any], name: str) -> str | None:
    value = session.get(name)
    return value if isinstance(value, str) else None
