"""Import a file: recognise its format, read its sessions, and store them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import READ, Fs, not_found, read_at, read_bytes, require_regular, storage_failed
from sessionary.errors import Invalid
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.sqlite import Database
from sessionary.model import Problem
from sessionary.workspace.imports import databases, simple_traces, traces
from sessionary.workspace.imports.taking_over import ImportedSession, Sources, take_over

Outcomes = Iterator[ImportedSession | Problem]
_DATABASE = b"SQLite format 3\0"
_KNOWN = "ATIF 1.0 to 1.8, STS, or a database of the OpenAI Agents SDK, Google ADK or LangGraph"


@dataclass(slots=True)
class Imported:
    """The result of an import.

    Attributes:
        path: the file; an absolute path.
        format: what it is: ``atif``, ``sts``, ``openai-agents``, ``google-adk`` or ``langgraph``.
        sessions: what was done with each session.
        problems: what could not be read of the file.
    """

    path: str
    format: str
    sessions: list[ImportedSession] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def import_file(path: Path, home: Path, fs: Fs) -> Imported:
    """Import the sessions of a file; see `Workspace.import_file`."""
    stem = path.name.split(".", maxsplit=1)[0] or path.name
    name, outcomes = _recognised(str(path.absolute()), stem, str(home), fs)
    done = Imported(str(path.absolute()), name)
    for one in outcomes:
        if isinstance(one, Problem):
            done.problems.append(one)
        else:
            done.sessions.append(one)
    return done


def _recognised(path: str, stem: str, home: str, fs: Fs) -> tuple[str, Outcomes]:
    """The format of a file, and what importing its sessions does, one by one.

    Raises:
        Invalid: its format is unknown.
        NotFound, StorageFailed: it is missing, or cannot be read.
    """
    if not _begins_as_database(path, fs):
        name, sources = _trace(path, stem, fs)
    else:
        database = Database(path, fs)
        tables = databases.tables_of(database)
        if tables >= databases.THREAD_TABLES:
            return LANGGRAPH, databases.threads(database, home)
        name, sources = databases.recognised(database, tables)
    return name, (one if isinstance(one, Problem) else take_over(home, one, fs) for one in sources)


def _trace(path: str, stem: str, fs: Fs) -> tuple[str, Sources]:
    raw = read_bytes(fs, path, operation="import") or b""
    if simple_traces.is_sts(raw.partition(b"\n")[0]):
        return "sts", simple_traces.sts_sources(raw, path, stem)
    try:
        document = decode(raw)
    except Undecodable as error:
        raise Invalid(
            f"{path} is not JSON: {error}", operation="import", path=path, hint=f"import {_KNOWN}"
        ) from None
    if traces.is_atif(document):
        return "atif", traces.atif_sources(document, path, stem)
    raise Invalid(f"the format of {path} is unknown", operation="import", path=path, hint=f"import {_KNOWN}")


def _begins_as_database(path: str, fs: Fs) -> bool:
    try:
        fd = fs.open(path, READ)
        try:
            require_regular(fs.fstat(fd))
            return read_at(fs, fd, len(_DATABASE), 0) == _DATABASE
        finally:
            fs.close(fd)
    except FileNotFoundError:
        raise not_found(path, f"there is no file {path}") from None
    except OSError as error:
        raise storage_failed(error, "import", path) from error
