"""Rows of a database as lines of JSON, value for value, and such lines as a database again.

The first line is an object that names the format, the kind, the database and the session. Then, for each table, an
object with its name and columns, and each row as an array. An integer, a float, a text and a null are what they are in
JSON; ``{"blob": …}`` is a blob in base64, ``{"text": …}`` a text that is not valid UTF-8, likewise, and ``{"real": …}``
an infinite float. The order is that of the rows, so that a session that grows mostly grows at the end.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from sessionary.errors import Corrupt
from sessionary.layouts.sqlite import Database
from sessionary.model import SessionRef

FORMAT = 1
Take = Callable[[Iterator[bytes]], list[bytes]]
"""Chooses among the lines of a session while they are read."""

_ORDER = ("seq", "time_created", "position", "id")


class _Text(bytes):
    """A text as it is stored."""


def dump(
    database: Database,
    ref: SessionRef,
    place: str,
    tables: Sequence[tuple[str, str]],
    mask: Callable[[bytes], bytes] = lambda data: data,
    *,
    take: Take = list,
) -> list[bytes]:
    """The rows of a session, all of one moment, as lines without newlines.

    Args:
        place: where a database with these rows alone is to lie in a home, with slashes.
        tables: the tables, each with the condition of its rows, in which ``:id`` is the id, and their order if it is
            another than that of `_ORDER`. Missing ones are passed over.
        mask: returns a text or a blob without secrets.
        take: chooses among the lines; it may be called several times.

    Raises:
        NotFound, Corrupt: as `Database.read`.
    """
    head = {"format": FORMAT, "kind": ref.kind, "database": place, "session": ref.session_id}

    def lines(connection: sqlite3.Connection) -> Iterator[bytes]:
        connection.text_factory = _Text
        yield _line(head)
        for table, condition in tables:
            columns = [
                name.decode()
                for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            ]
            if columns:
                order = ", ".join(name for name in _ORDER if name in columns) or "1"
                names = ", ".join(map(_quoted, columns))
                query = f"SELECT {names} FROM {_quoted(table)} WHERE {condition}"
                query += "" if " ORDER BY " in condition else f" ORDER BY {order}"
                yield _line({"table": table, "columns": columns})
                for row in connection.execute(query, {"id": ref.session_id}):
                    yield _line([_stored(value, mask) for value in row])

    return database.read(lambda connection: take(lines(connection)))


def place_of(line: bytes) -> str:
    """The path below a home for a database of rows, by their first line. Raises Corrupt as `database_of`."""
    try:
        return str(json.loads(line)["database"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"archived rows cannot be read: {error}") from None


def database_of(lines: Iterable[bytes]) -> bytes:
    """The bytes of a database with these rows; its columns have no types, so that every value stays as it is.

    Raises:
        Corrupt: a line is not what `dump` writes.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        table = ""
        try:
            for number, line in enumerate(lines):
                value = json.loads(line)
                if isinstance(value, list):
                    marks = ", ".join(map(_mark, value))
                    connection.execute(f"INSERT INTO {table} VALUES ({marks})", list(map(_value, value)))
                elif number:
                    table, columns = _quoted(value["table"]), list(map(_quoted, value["columns"]))
                    connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                elif value["format"] != FORMAT:
                    raise ValueError(f"format {value['format']} is not known")
        except (ValueError, KeyError, TypeError, OverflowError, sqlite3.Error, binascii.Error) as error:
            raise Corrupt(f"archived rows cannot be read: {error}") from None
        return connection.serialize()


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stored(value: Any, mask: Callable[[bytes], bytes]) -> Any:
    if isinstance(value, _Text):
        text = mask(value)
        try:
            return text.decode()
        except UnicodeDecodeError:
            return {"text": base64.b64encode(text).decode()}
    if isinstance(value, bytes):
        return {"blob": base64.b64encode(mask(value)).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return value


def _mark(stored: Any) -> str:
    return "CAST(? AS TEXT)" if isinstance(stored, dict) and "text" in stored else "?"


def _value(stored: Any) -> Any:
    if not isinstance(stored, dict):
        return stored
    if "real" in stored:
        return float(stored["real"])
    return base64.b64decode(stored["text"] if "text" in stored else stored["blob"], validate=True)
