"""The code of the how-to for PostgreSQL runs unchanged, against a real server."""

import os
import re
from pathlib import Path
from typing import Any

import psycopg
import pyrage
import pytest
from psycopg.conninfo import make_conninfo

from sessionary.errors import RemoteError
from sessionary.sync.report import SyncStatus
from tests.support.postgres_server import PostgresServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "sync-postgres.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
ADDRESS = re.compile(r"postgresql://(\w+)@db\.example\.org/(\w+)\?sslmode=verify-full")


@pytest.mark.lane("postgres")
def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".amplifier" / "projects" / "-home-u-app" / "sessions" / "one"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text('{"role": "user", "content": "Hello"}\n')
    os.utime(folder / "transcript.jsonl", (0, 0))
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(f"# public key: {identity.to_public()}\n{identity}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with PostgresServer() as server:
        _as_the_page_says(server)

        def here(found: re.Match[str]) -> str:
            return make_conninfo(server.conninfo, user=found[1], dbname=found[2])

        shown: dict[str, Any] = {}
        opened = []
        for block in BLOCKS:
            exec(ADDRESS.sub(here, block), shown)
            opened += [shown[name] for name in ("remote", "owner") if name in shown]
        assert [one.standing for one in shown["report"].outcomes] == [SyncStatus.PUSHED]
        assert shown["owner"].prepare() is True
        with pytest.raises(RemoteError, match="does not exist"):  # this database has not been set up
            shown["remote"].read_head("one")
        for remote in opened:
            remote.close()


def _as_the_page_says(server: PostgresServer) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE sessions LOGIN")
        connection.execute("CREATE ROLE ann LOGIN")
        for database in ("sessions", "sealed"):
            connection.execute(f"CREATE DATABASE {database} OWNER sessions")
