"""Rows of a database as lines, and as a database again: each value with its type."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Corrupt
from sessionary.layouts.agents import sql_rows
from sessionary.layouts.sqlite import Database
from sessionary.model import SessionRef

REF = SessionRef("opencode", "s", "", None)
VALUES: list[Any] = [
    None,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    1.0,
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    float("inf"),
    float("-inf"),
    "",
    "1",
    "ä 中 \x00 \u2028 \n \ud7ff",
    b"",
    b"\x00\xff\xfe",
]


def database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE message (id TEXT, session_id TEXT, value)")
    return connection


def test_every_value_keeps_its_type(tmp_path: Path) -> None:
    with closing(database(tmp_path / "a.db")) as connection:
        for number, value in enumerate(VALUES):
            connection.execute("INSERT INTO message VALUES (?, 's', ?)", (f"{number:03}", value))
        connection.execute("INSERT INTO message VALUES ('900', 's', CAST(x'ff41' AS TEXT))")
        connection.execute("INSERT INTO message VALUES ('901', 'other', 1)")
        connection.text_factory = bytes
        query = "SELECT typeof(value), value FROM message WHERE session_id = 's' ORDER BY id"
        wanted = connection.execute(query).fetchall()
    lines = sql_rows.dump(Database(str(tmp_path / "a.db")), REF, "x.db", [("message", "session_id = :id")])
    with closing(sqlite3.connect(":memory:")) as again:
        again.text_factory = bytes
        again.deserialize(sql_rows.database_of(lines))
        assert again.execute(query).fetchall() == wanted
        assert len(wanted) == len(VALUES) + 1
    assert (
        sql_rows.dump(Database(str(tmp_path / "a.db")), REF, "x.db", [("message", "session_id = :id")])
        == lines
    )


def test_a_missing_table_is_passed_over(tmp_path: Path) -> None:
    database(tmp_path / "a.db").close()
    lines = sql_rows.dump(Database(str(tmp_path / "a.db")), REF, "x.db", [("todo", "session_id = :id")])
    assert lines == [b'{"format":1,"kind":"opencode","database":"x.db","session":"s"}']


@pytest.mark.parametrize(
    "lines",
    [
        [b"{"],
        [b"{}"],
        [b'{"format":2}'],
        [b'{"format":1}', b"[1]"],
        [b'{"format":1}', b'{"table":"t","columns":["a"]}', b"[1,2]"],
        [b'{"format":1}', b'{"table":"t","columns":["a"]}', b'[{"blob":"?"}]'],
    ],
)
def test_damaged_lines_are_refused(lines: list[bytes]) -> None:
    with pytest.raises(Corrupt, match="archived rows cannot be read"):
        sql_rows.database_of(lines)
