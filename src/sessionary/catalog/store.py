"""Refresh the catalogue: compare fingerprints, read the sessions that changed, store what was read.

Two processes may refresh at once: the rows of both are true of what each has read, and a row whose fingerprint no
longer holds is read again. Nothing changed means that nothing is written.

The journal is a rollback journal. With a write-ahead log every connection maps an index file into memory, and a process
whose cache folder is emptied meanwhile dies of SIGBUS.
"""

from __future__ import annotations

import math
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import MsgspecError, Struct, json, msgpack
from msgspec.structs import replace

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, make_dirs
from sessionary.errors import AlreadyExists, NotFound, StorageFailed
from sessionary.escaping import is_utf8
from sessionary.layouts.abilities import HasOpening, KnownTime, SaysByPlace
from sessionary.layouts.base import Layout
from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.files import PartKind, raise_joined
from sessionary.layouts.fingerprints import UNKNOWN
from sessionary.model import Cursor, Problem, SessionRef, Severity, Summary, TimedUsage

if TYPE_CHECKING:
    from sessionary.transcript.fold import Progress

VERSION = 9
"""Raised with `schema.sql`, and whenever a layout says something else of the same files."""

FILE = "catalogue.db"
WAIT = 0.5
"""Seconds to wait for a lock; a list does without the catalogue rather than wait longer."""

PAUSE = 10.0
"""Seconds in which a catalogue that was locked is not tried again: each layout would wait for it."""

_PASSING = frozenset({"unreadable_file", "no_file", "too_large", FUTURE_TIME})
"""Problems that may go without a change of the files: who asks, or the clock, decides about them."""

BATCH = 32 << 20
"""Bytes of sessions after which what was read of them is stored, so that a process that is killed loses no more."""

_SHARE = 100
"""The state of a fold is stored if it takes less than this part of the session. Smaller sessions are read anew."""

_UNUSABLE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
_COLUMNS = (
    "place, id, project, agent, title, parent, cwd, branch, messages, turns, turn_count, created, updated, size, "
    "health, nested, version, usage, fingerprint"
)
_OF_PROBLEMS = "place, code, severity, path, line, byte, message, repair, span"
_TABLES = ("sessions", "problems", "progress")
_usage_of = json.Decoder(list[TimedUsage]).decode


class _Row(Struct, frozen=True, gc=False):
    """The stored row of one session. The session is read again if its fingerprint is unknown."""

    fingerprint: bytes
    summary: Summary


class Unread(NamedTuple):
    """A session that must be read: it is new, or has changed.

    Attributes:
        layout: its layout.
        ref: the session.
        fingerprint: its state before it is read.
        row: what is stored of it.
    """

    layout: Layout
    ref: SessionRef
    fingerprint: bytes
    row: _Row | None

    def header(self) -> Summary | None:
        """The summary from its documents, names, stats and first records, without counts. None if it is gone."""
        from sessionary.layouts.summary import summary_of  # as in `Catalog._read`

        layout, ref = self.layout, self.ref
        by_place = layout.stated(ref) if isinstance(layout, SaysByPlace) else iter(())
        opening = layout.opening(ref) if isinstance(layout, HasOpening) else iter(())
        try:
            return replace(summary_of(layout, ref, chain(by_place, opening)), unread=True)
        except NotFound:
            return None


class _Read(NamedTuple):
    """A session that was read, to be stored."""

    row: _Row
    progress: Progress | None


class Catalog:
    """The catalogue in a folder.

    Args:
        folder: the cache folder; None does without a catalogue.
    """

    def __init__(self, folder: str | None) -> None:
        self.path: str | None = None if folder is None else os.path.join(folder, FILE)
        self._locked_until = 0.0

    def summaries(self, layout: Layout) -> Iterator[Summary]:
        """The summary of every session of a layout, in no order; reads only those that changed.

        What was read is stored each time that it is `BATCH` bytes, and when the iteration ends or is given up.

        Raises:
            StorageFailed: as `Layout.discover`, after all that could be found.
        """
        return self.read(self.survey(layout))

    def survey(self, layout: Layout) -> Iterator[Summary | Unread]:
        """The summary of every session of a layout that has not changed, and the others to be read.

        Raises:
            StorageFailed: as `summaries`.
        """
        known = self._load(layout)
        for ref in layout.discover():
            row, fingerprint = known.pop(ref.locator, None), layout.fingerprint(ref)
            if row is not None and fingerprint and row.fingerprint == fingerprint:
                yield row.summary
            else:
                yield Unread(layout, ref, fingerprint, row)
        if known:
            self._store(layout.name, _home(layout), [], list(known))

    def read(self, found: Iterable[Summary | Unread]) -> Iterator[Summary]:
        """The summaries of sessions, each of which is read when it is asked for; stored as by `summaries`.

        Raises:
            StorageFailed: as `found`; or a file holds a session of which nothing can be read. After all others.
        """
        batch, size = list[tuple[Unread, _Read | None]](), 0.0
        closed = list[StorageFailed]()
        try:
            for one in _until_closed(found, closed):
                if isinstance(one, Summary):
                    yield one
                    continue
                try:
                    read = self._read(one)
                except NotFound:  # removed since its name was read
                    read = None
                if read is None or not read.row.summary.listed:
                    if one.row is not None:
                        batch.append((one, None))
                    closed += () if read is None else _unreadable(read.row.summary)
                    continue
                if one.row != read.row:
                    batch.append((one, read))
                    size += read.row.summary.size
                if size >= BATCH:
                    size = 0 if self._store_batch(batch) else -math.inf  # tried once more at the end
                yield read.row.summary
        finally:
            self._store_batch(batch)
        raise_joined(closed)

    def summary(self, layout: Layout, ref: SessionRef, *, at_most: int | None = None) -> Summary:
        """The summary of one session; reads only what changed.

        Args:
            at_most: a session that was never read and whose conversation has more bytes is not read, and its summary
                is `Summary.unread`.

        Raises:
            NotFound: the session is gone.
        """
        row, fingerprint = self._load(layout, ref.locator).get(ref.locator), layout.fingerprint(ref)
        if row is not None and fingerprint and row.fingerprint == fingerprint:
            return row.summary
        new = Unread(layout, ref, fingerprint, row)
        if at_most is not None and row is None and (header := new.header()) and _size(new, header) > at_most:
            return header
        found = self._read(new)
        if found.row.summary.listed and row != found.row:
            self._store(layout.name, _home(layout), [found], [])
        return found.row.summary

    def _read(self, one: Unread) -> _Read:
        """A session as it is now.

        Raises:
            NotFound: the session is gone.
        """
        from sessionary.layouts.summary import summarize  # here: a list that reads nothing needs none

        layout, ref, fingerprint, row = one
        before = None if row is None else self._progress(layout.name, _home(layout), ref.locator)
        summary, progress = summarize(layout, ref, before, share=_SHARE)
        if any(problem.code in _PASSING for problem in summary.problems):
            fingerprint = UNKNOWN
        return _Read(_Row(fingerprint, summary), progress)

    def _store_batch(self, batch: list[tuple[Unread, _Read | None]]) -> bool:
        """Store what was read, drop what is gone, and empty the batch; False if that failed."""
        of_layouts: dict[tuple[str, str], tuple[list[_Read], list[str]]] = {}
        for one, read in batch:
            some, gone = of_layouts.setdefault((one.layout.name, _home(one.layout)), ([], []))
            if read is None:
                gone.append(one.ref.locator)
            else:
                some.append(read)
        stored = all(self._store(*key, *rows) for key, rows in of_layouts.items())
        if stored:
            batch.clear()
        return stored

    # -- SQLite

    def _load(self, layout: Layout, place: str | None = None) -> dict[str, _Row]:
        """The stored rows of the sessions of a layout, or of the one at a place, by place."""
        if (path := self._usable) is None or not os.path.exists(path) or not is_utf8(place or ""):
            return {}
        where, key = "kind = ? AND home = ?", [layout.name, _home(layout)]
        if place is not None:
            where, key = f"{where} AND place = ?", [*key, place]
        try:
            with closing(connect(path)) as connection:
                problems: dict[str, list[Problem]] = {}
                found = connection.execute(
                    f"SELECT {_OF_PROBLEMS} FROM problems WHERE {where} ORDER BY place, number", key
                )
                for stored_place, code, severity, *rest in found:
                    problems.setdefault(str(stored_place), []).append(
                        Problem(code, Severity(severity), *rest)
                    )
                known = {}
                rows = connection.execute(f"SELECT {_COLUMNS}, checksum FROM sessions WHERE {where}", key)
                for *values, checksum in rows:
                    of_it = problems.get(values[0], [])
                    if _checksum(values, of_it) == checksum:
                        known[values[0]] = _row(layout.name, values, of_it)
                return known
        except (sqlite3.Error, MsgspecError, ValueError, TypeError, OSError) as error:
            self._give_up(error)
            return {}

    def known_times(self, layout: Layout) -> dict[str, KnownTime]:
        """When each session of a layout changed last, by place; to order them, so the checksums are not compared."""
        if (path := self._usable) is None or not os.path.exists(path):
            return {}
        statement = "SELECT place, fingerprint, updated FROM sessions WHERE kind = ? AND home = ? AND updated NOT NULL"
        try:
            with closing(connect(path)) as connection:
                return {
                    place: KnownTime(fingerprint, datetime.fromisoformat(updated).timestamp())
                    for place, fingerprint, updated in connection.execute(
                        statement, (layout.name, _home(layout))
                    )
                }
        except (sqlite3.Error, ValueError, TypeError, OSError) as error:
            self._give_up(error)
            return {}

    def _progress(self, kind: str, home: str, place: str) -> Progress | None:
        """The stored state of the fold of a session, if there is one."""
        from sessionary.transcript.fold import Progress

        statement = (
            "SELECT cursor, fold, usage, progress.checksum FROM progress JOIN sessions USING (kind, home, place)"
            " WHERE kind = ? AND home = ? AND place = ?"
        )
        try:
            with closing(connect(self.path or "")) as connection:
                row = connection.execute(statement, (kind, home, place)).fetchone()
                if row is not None and _checksum_of_progress(*row[:3]) == row[3]:
                    return Progress(Cursor(row[0]), row[1], _usage_of(row[2]))
        except (sqlite3.Error, MsgspecError, UnicodeEncodeError, TypeError, OSError) as error:
            self._give_up(error)
        return None

    def _store(self, kind: str, home: str, read: list[_Read], gone: list[str]) -> bool:
        """Store the sessions that were read, and drop those that are gone; False if that failed."""
        if (path := self._usable) is None:
            return False
        try:
            with closing(connect(path, make=True)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                places = (*gone, *(one.row.summary.ref.locator for one in read))
                keys = [(kind, home, place) for place in places if is_utf8(place)]
                for table in _TABLES:
                    where = f"DELETE FROM {table} WHERE kind = ? AND home = ? AND place = ?"
                    connection.executemany(where, keys)
                for one in read:
                    with suppress(UnicodeEncodeError, OverflowError):  # a lone surrogate, 65 bits
                        _insert(connection, kind, home, one)
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return False
        return True

    @property
    def _usable(self) -> str | None:
        """Its path; None without a cache folder, and for some seconds after another process held its lock too long."""
        return self.path if time.monotonic() >= self._locked_until else None

    def _give_up(self, error: Exception) -> None:
        """Do without the catalogue; delete one that is damaged or of another version."""
        import logging  # here, since a list that has nothing to report should not wait for it

        logging.getLogger(__name__).debug("the catalogue is not used: %s", error)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            self._locked_until = time.monotonic() + PAUSE
        if self.path is not None and not isinstance(error, OSError) and code in _UNUSABLE:
            for suffix in ("", "-journal"):
                with suppress(OSError):
                    atomic.forget_file(self.path + suffix)


def _size(one: Unread, header: Summary) -> int:
    """The bytes of a session without the logs beside its conversation, which are not read for its summary."""
    return header.size - sum(part.size for part in one.layout.parts(one.ref) if part.kind is PartKind.LOG)


def _until_closed(
    found: Iterable[Summary | Unread], closed: list[StorageFailed]
) -> Iterator[Summary | Unread]:
    """The items; the StorageFailed that ends them is added to `closed`."""
    try:
        yield from found
    except StorageFailed as error:
        closed.append(error)


def _unreadable(summary: Summary) -> Iterator[StorageFailed]:
    """The damage of a file that no list shows."""
    for one in summary.problems:
        if one.severity > Severity.note:
            yield StorageFailed(one.message, path=one.path, session=summary.ref.session_id, hint=one.repair)


def connect(path: str, *, make: bool = False) -> sqlite3.Connection:
    """Open a catalogue of this version.

    Args:
        path: the file.
        make: make the file and its tables if they are missing.

    Raises:
        sqlite3.Error: it is damaged, of another version, locked, or cannot be opened.
        OSError: it cannot be made.
    """
    if make:
        make_dirs(OS_FS, os.path.dirname(path), durable=False)
        with suppress(AlreadyExists):
            atomic.create(path, b"", durable=False)  # SQLite would let others read it
    connection = sqlite3.connect(f"{_uri(path)}?mode=rw", uri=True, timeout=WAIT, isolation_level=None)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and make:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in schema().split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"{path} is a catalogue of version {version}")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def schema() -> str:
    """The statements that make the tables, with the description of each column."""
    from importlib.resources import files  # here, since it loads much

    return files("sessionary.catalog").joinpath("schema.sql").read_text("utf-8")


def _uri(path: str) -> str:
    from urllib.parse import quote  # here, since it loads much

    return "file:" + quote(os.fsencode(path))


def _insert(connection: sqlite3.Connection, kind: str, home: str, read: _Read) -> None:
    summary, progress = read.row.summary, read.progress
    key = (kind, home, summary.ref.locator)
    values = _values(read.row)
    _insert_rows(connection, "sessions", [(*key[:2], *values, _checksum(values, summary.problems))])
    problems = enumerate(summary.problems)
    _insert_rows(connection, "problems", [(*key, number, *one) for number, one in problems])
    if progress is not None:
        cursor, state, usage = progress.cursor.state, progress.state, _usage_text(progress.usage)
        checksum = _checksum_of_progress(cursor, state, usage)
        _insert_rows(connection, "progress", [(*key, cursor, state, checksum)])


def _insert_rows(connection: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)


def _values(row: _Row) -> list[Any]:
    """The values of `_COLUMNS`."""
    summary, ref = row.summary, row.summary.ref
    return [
        ref.locator,
        ref.session_id,
        ref.project,
        summary.agent,
        summary.title,
        summary.parent,
        summary.cwd,
        summary.branch,
        summary.messages,
        summary.turns,
        summary.turn_count,
        _text(summary.created),
        _text(summary.updated),
        summary.size,
        summary.health,
        int(summary.nested),
        summary.version,
        _usage_text(summary.usage),
        row.fingerprint,
    ]


def _row(kind: str, values: list[Any], problems: list[Problem]) -> _Row:
    place, session_id, project, agent, title, parent, cwd, branch, messages, turns, turn_count, *rest = values
    created, updated, size, health, nested, version, usage, fingerprint = rest
    summary = Summary(
        SessionRef(kind, session_id, place, project),
        agent,
        title,
        parent,
        messages,
        turns,
        turn_count,
        _time(created),
        _time(updated),
        size,
        health,
        problems,
        cwd=cwd,
        branch=branch,
        usage=_usage_of(usage),
        nested=bool(nested),
        version=version,
    )
    return _Row(fingerprint, summary)


def _usage_text(usage: list[TimedUsage]) -> str:
    return json.encode(usage).decode()


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _checksum(values: list[Any], problems: list[Problem]) -> int:
    """Of a row: SQLite has none, and a flipped bit in a title would be believed."""
    return zlib.crc32(msgpack.encode((values, problems)))


def _checksum_of_progress(cursor: bytes, state: bytes, usage: str) -> int:
    return zlib.crc32(usage.encode(), zlib.crc32(state, zlib.crc32(cursor)))


def _home(layout: Layout) -> str:
    """The home of a layout; names are other texts where the file system has another encoding."""
    encoding = sys.getfilesystemencoding()
    return str(layout.home) if encoding == "utf-8" else f"{layout.home} ({encoding})"
