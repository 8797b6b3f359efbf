"""Reading an SQLite database of another program, live or not, without changing a byte of it or beside it.

A plain read-only connection is not enough: it changes the shared-memory file of a live database, and creates one beside
a database that is closed. So:

- With a `-shm` beside the database a process uses it, or used it and died. It is opened with `readonly_shm`, which
  reads a snapshot under the locks of SQLite.
- Without one it is opened without locks, and the index of a `-wal` beside it is built in memory. A write in the
  meantime shows in the stats of the files: what was read is then discarded, and read again. A rollback journal that
  is not empty belongs to an unfinished write, which is waited for, or to a program that died.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, TypeVar
from urllib.parse import quote

from sessionary.disk.fs import OS_FS, Fs, not_found, require_regular, storage_failed
from sessionary.errors import Corrupt, StorageFailed

TRIES = 20
PAUSE = 0.05
"""Seconds between two tries; a program that writes for a second without a pause is reported."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
Result = TypeVar("Result")
_State = tuple[tuple[int, int, int] | None, ...]


def _text(stored: bytes) -> str:
    """A text of a row; invalid UTF-8 in one does not hide the others. Cast to BLOB what must be exact."""
    return stored.decode("utf-8", "replace")


class Database:
    """An SQLite database that another program owns."""

    def __init__(self, path: str, fs: Fs = OS_FS) -> None:
        self.path = path
        self._fs = fs

    def fetch(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, of one moment. Ask for pages of a large table: a transaction must be short.

        Raises:
            NotFound: the file does not exist.
            Corrupt: it is damaged, or no database.
        """
        return self.read(lambda connection: connection.execute(statement, parameters).fetchall())

    def columns(self, table: str) -> list[str]:
        """The names of the columns of a table; none if the table does not exist. Raises as `fetch`."""
        return [name for (name,) in self.fetch("SELECT name FROM pragma_table_info(?)", (table,))]

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """What `work` returns, given a connection within one read transaction. It may be called several times.

        Raises:
            as `fetch`.
        """
        is_unfinished = False
        for _ in range(TRIES):
            before = self._state()
            if before[0] is None:
                raise not_found(self.path, f"There is no database {self.path}")
            shared = before[2] is not None
            try:
                with closing(self._connect(shared=shared)) as connection:
                    connection.execute("BEGIN")
                    result = work(connection)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                is_unfinished = code == sqlite3.SQLITE_READONLY and before[3] is not None
                passes = is_unfinished or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if self._same(before, shared=shared) and not passes:
                    raise self._failed(error, code) from error
            else:
                is_unfinished = False
                if self._same(before, shared=shared):
                    return result
            time.sleep(PAUSE)
        if is_unfinished:
            raise StorageFailed(
                f"the database {self.path} holds an unfinished write: {os.path.basename(self.path)}-journal",
                path=self.path,
                hint="try again when its program pauses; if it is not running, start it: it undoes the write",
            )
        raise StorageFailed(
            f"the database {self.path} is being written all the time",
            path=self.path,
            hint="try again when the program that writes it pauses",
        )

    def _connect(self, *, shared: bool) -> sqlite3.Connection:
        how = "readonly_shm=1" if shared else "vfs=unix-none" if os.name == "posix" else "vfs=win32-none"
        uri = f"file:{quote(os.fsencode(self.path))}?mode=ro&{how}"
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
        connection.text_factory = _text
        if not shared:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # keeps the index of the log in memory
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _state(self) -> _State:
        """The stats of the database, its log, its shared memory, and its rollback journal; None of what is missing."""
        found: list[tuple[int, int, int] | None] = []
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                stat = require_regular(self._fs.stat(self.path + suffix))  # SQLite would wait for a pipe
                found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
            except FileNotFoundError:
                found.append(None)
            except OSError as error:
                raise storage_failed(error, "read", self.path) from error
        return tuple(found)

    def _same(self, before: _State, *, shared: bool) -> bool:
        """Whether what was read is of one moment. Under locks a log may grow: the snapshot ends before that."""
        after = self._state()
        return after[0] == before[0] and (after[2] is not None if shared else after == before)

    def _failed(self, error: sqlite3.Error, code: int) -> StorageFailed | Corrupt:
        if code in _DAMAGED:
            hint = "its program may repair it; `sqlite3 FILE .recover` writes what is readable"
            return Corrupt(f"{self.path}: {error}", path=self.path, hint=hint)
        return StorageFailed(
            f"the database {self.path} cannot be read: {error}",
            path=self.path,
            hint="check its owner and mode"
            if code != sqlite3.SQLITE_ERROR
            else "it lacks what its program creates: start that program, or restore a backup",
        )
