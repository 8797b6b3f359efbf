"""Read the catalogue with SQL. Only reading is permitted, whatever the statement says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, NamedTuple

from sessionary.catalog.store import Catalog, connect
from sessionary.errors import Invalid, StorageFailed

_PERMITTED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION}
)
_REFUSED_FUNCTIONS = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
HINT = "`sessionary sql --schema` prints the tables"
_ONLY_READING = f"the catalogue is only read: use SELECT; {HINT}"
_STEPS = 1_000_000
"""Steps of SQLite between two looks whether the user pressed Ctrl-C: some milliseconds."""


class Rows(NamedTuple):
    """The result of a query.

    Attributes:
        names: the names of its columns.
        rows: its rows.
    """

    names: list[str]
    rows: list[tuple[Any, ...]]


def query(catalog: Catalog, statement: str) -> Rows:
    """The rows of one SQL statement. Raises Invalid if the statement is wrong, or does more than read."""
    if catalog.path is None:
        raise StorageFailed("there is no cache folder for the catalogue", hint="set XDG_CACHE_HOME")
    try:
        connection = connect(catalog.path, make=True)
    except (sqlite3.Error, OSError) as error:
        raise StorageFailed(
            f"the catalogue {catalog.path} cannot be read: {error}",
            path=catalog.path,
            hint="check that its folder can be written, or set XDG_CACHE_HOME to one that can",
        ) from error
    with closing(connection):
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(lambda: 0, _STEPS)  # Python handles Ctrl-C only in code of its own
        try:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            return Rows(names, list(cursor))
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None
            hint = _ONLY_READING if code == sqlite3.SQLITE_AUTH else HINT
            raise Invalid(f"the statement cannot be run: {error}", hint=hint) from error


def _authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Permit reading the tables and calling functions that reach nothing outside of them."""
    if action not in _PERMITTED or (action == sqlite3.SQLITE_FUNCTION and second in _REFUSED_FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
