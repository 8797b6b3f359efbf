"""Databases of other programs: read while they are written, and never changed."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OsFs
from sessionary.errors import Corrupt, NotFound, StorageFailed
from sessionary.layouts.sqlite import Database
from sessionary.testing.layout_suite import CountingFs

WRITER = """
import os, sqlite3, sys
path, journal, end = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None)
connection.execute(f"PRAGMA journal_mode = {journal}")
connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, twice INTEGER)")
for number in range(200):
    connection.execute("INSERT INTO t VALUES (?, ?)", (number, 2 * number))
if end == "closed":
    connection.close()
print("ready", flush=True)
if end == "killed":
    os._exit(1)
if end == "open":
    sys.stdin.read()
number = 200
while end == "writing":
    connection.execute("INSERT INTO t VALUES (?, ?)", (number, 2 * number))
    number += 1
    if not number % 500:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""
STATES = ["closed", "open", "killed"]


class Writer:
    """A process that has written a database, and what it does now."""

    def __init__(self, path: Path, journal: str, end: str) -> None:
        command = [sys.executable, "-c", WRITER, str(path), journal, end]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"
        if end in ("closed", "killed"):
            self.process.wait(60)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "of the agent").mkdir()
    return tmp_path / "of the agent"


@pytest.fixture
def writers() -> Iterator[list[Writer]]:
    started: list[Writer] = []
    yield started
    for writer in started:
        writer.end()


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()}


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("state", STATES)
def test_all_rows_are_read_and_no_byte_changes(
    folder: Path, writers: list[Writer], journal: str, state: str
) -> None:
    path = folder / "a 100% db.sqlite"
    writers.append(Writer(path, journal, state))
    before = content(folder)
    rows = Database(str(path)).fetch("SELECT number, twice FROM t ORDER BY number")
    assert rows == [(number, 2 * number) for number in range(200)]
    assert Database(str(path)).columns("t") == ["number", "twice"]
    assert Database(str(path)).columns("nothing") == []
    assert content(folder) == before


def test_a_log_without_shared_memory_is_read(folder: Path, writers: list[Writer]) -> None:
    path = folder / "db"
    writers.append(Writer(path, "wal", "killed"))
    (folder / "db-shm").unlink()
    before = content(folder)
    assert set(before) == {"db", "db-wal"}
    assert Database(str(path)).fetch("SELECT count(*) FROM t") == [(200,)]
    assert content(folder) == before


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_each_read_is_of_one_moment_while_it_is_written(
    folder: Path, writers: list[Writer], journal: str
) -> None:
    path = folder / "db"
    writers.append(Writer(path, journal, "writing"))
    database, read = Database(str(path)), 0
    for _ in range(60):
        with suppress(StorageFailed):  # written all the time
            [(count, total)] = database.fetch("SELECT count(*), sum(twice) FROM t")
            assert total == count * (count - 1), "the rows of two moments"
            read += 1
    assert read or journal == "delete"
    assert writers[0].process.poll() is None


def test_a_change_during_the_read_discards_it(folder: Path, writers: list[Writer]) -> None:
    path = folder / "db"
    writers.append(Writer(path, "wal", "closed"))
    seen: list[int] = []

    def count(connection: sqlite3.Connection) -> int:
        [(found,)] = connection.execute("SELECT count(*) FROM t").fetchall()
        if not seen:
            with sqlite3.connect(folder / "other") as other:
                other.execute("CREATE TABLE t (number)")
            os.replace(folder / "other", path)
        seen.append(found)
        return int(found)

    assert Database(str(path)).read(count) == 0
    assert seen == [200, 0]


def test_a_text_that_is_not_valid_utf8_hides_no_other_row(folder: Path) -> None:
    with sqlite3.connect(folder / "db") as connection:
        connection.execute("CREATE TABLE t (name TEXT)")
        connection.execute("INSERT INTO t VALUES (CAST(x'61ff' AS TEXT)), ('b')")
    database = Database(str(folder / "db"))
    assert database.fetch("SELECT name FROM t ORDER BY rowid") == [("a\ufffd",), ("b",)]
    assert database.fetch("SELECT CAST(name AS BLOB) FROM t ORDER BY rowid") == [(b"a\xff",), (b"b",)]


@pytest.mark.skipif(os.name != "posix", reason="no pipes with names")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_pipe_is_an_error_and_is_not_waited_for(folder: Path, suffix: str) -> None:
    sqlite3.connect(folder / "a.db").close()
    path = folder / f"a.db{suffix}"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(StorageFailed, match="not a regular file"):
        Database(str(folder / "a.db")).fetch("SELECT 1")


def test_what_cannot_be_read_is_an_error_with_a_remedy(folder: Path, writers: list[Writer]) -> None:
    with pytest.raises(NotFound, match="There is no database"):
        Database(str(folder / "nothing")).fetch("SELECT 1")
    (folder / "text").write_text("this is no database, and long enough to be sure" * 50)
    with pytest.raises(Corrupt, match="not a database") as failed:
        Database(str(folder / "text")).fetch("SELECT * FROM sqlite_master")
    assert failed.value.hint is not None
    writers.append(Writer(folder / "db", "wal", "closed"))
    with pytest.raises(StorageFailed, match="no such table: u"):
        Database(str(folder / "db")).fetch("SELECT * FROM u")
    with pytest.raises(StorageFailed, match="cannot be read: attempt to write a readonly database"):
        Database(str(folder / "db")).fetch("DELETE FROM t")


@contextmanager
def unfinished(path: Path) -> Iterator[sqlite3.Connection]:
    """A write that has changed pages of a database, whose former content is in its rollback journal."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TABLE t (number INTEGER, data BLOB)")
        connection.executemany("INSERT INTO t VALUES (1, ?)", [(b"x" * 4000,)] * 50)
        connection.execute("BEGIN")
        connection.execute("UPDATE t SET number = 2")
        yield connection


def test_a_write_that_a_dead_program_left_is_reported(folder: Path) -> None:
    copy = folder.parent / "copy"
    with unfinished(folder / "db"):
        shutil.copytree(folder, copy)
    before = content(copy)
    with pytest.raises(StorageFailed, match="holds an unfinished write: db-journal") as failed:
        Database(str(copy / "db")).fetch("SELECT sum(number) FROM t")
    assert "start it" in str(failed.value.hint)
    assert content(copy) == before
    with closing(sqlite3.connect(copy / "db")) as program:
        program.execute("SELECT * FROM t").fetchone()
    assert Database(str(copy / "db")).fetch("SELECT sum(number) FROM t") == [(50,)], "it undid the write"


def test_a_write_that_goes_on_is_waited_for(folder: Path) -> None:
    looked = 0
    with unfinished(folder / "db") as connection:

        class Ending(OsFs):
            """The write ends after the database was looked at for the fifth time."""

            def stat(self, path: Any, **more: Any) -> os.stat_result:
                nonlocal looked
                looked += path.endswith("db")
                if looked == 5 and connection.in_transaction:
                    connection.execute("COMMIT")
                return os.stat(path, **more)

        assert Database(str(folder / "db"), Ending()).fetch("SELECT sum(number) FROM t") == [(100,)]
    assert looked >= 5


def test_stats_alone_go_through_the_file_system(folder: Path, writers: list[Writer]) -> None:
    writers.append(Writer(folder / "db", "wal", "closed"))
    fs = CountingFs()
    Database(str(folder / "db"), fs).fetch("SELECT * FROM t")
    assert set(fs.calls) == {"stat"}
