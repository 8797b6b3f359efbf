"""What it costs to carry sessions: bytes, requests and request units of a push, and the time of a fresh pull.

Counts come from a remote in memory that counts, times from a PostgreSQL server on this machine that flushes as it does
by default. Request units are those of the table that Microsoft publishes for Cosmos DB, by the size of what would be
stored there; a replace costs as much as a delete and a create.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.harness import (
    Benchmark,
    Limit,
    Measurement,
    Row,
    Work,
    by_turns,
    compared,
    settle,
    timed,
)
from benchmarks.samples import line_of, messages, metadata, write_session
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.remote import BlockPage, HeadPage, HeadRecord, Remote, WrappedRemote
from sessionary.sync.remotes.postgres import PostgresRemote
from sessionary.sync.report import Report, SyncStatus
from sessionary.sync.retry import Cost
from sessionary.sync.rules import Rules
from tests.support.memory_remote import MemoryServer
from tests.support.postgres_server import PostgresServer

TURNS, TOGETHER = 200, 3
A_TURN, LINE = 8, 1875  # messages and bytes of each: 3 MB in all
LOG_TURNS, REQUESTS, SAID = 60, 4, 4  # so many requests a turn, after so many messages of 1 kB more
SESSIONS = 1000
LARGE = 100_000_000
ROUNDS = 7
ITEM = 2 << 20
ENVELOPE = 250  # bytes of an item beside its data: ids, keys, what the service adds

# Request units by kilobytes, as published for Cosmos DB.
_KILOBYTES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_READ = (1.00, 1.04, 1.14, 1.33, 1.67, 2.19, 4.76, 9.95, 20.28, 40.95, 145.9, 291.8)
_WRITE = (4.95, 6.29, 6.67, 7.04, 9.52, 11.23, 22.67, 48.19, 98.29, 184.57, 625.0, 1250.0)


def units(table: Sequence[float], size: int) -> float:
    """What an item of `size` bytes costs, between the lines of a table."""
    kilobytes = size / 1024
    at = bisect_left(_KILOBYTES, kilobytes)
    if at in (0, len(_KILOBYTES)):
        return table[min(at, len(table) - 1)]
    low, high = _KILOBYTES[at - 1 : at + 1]
    return table[at - 1] + (table[at] - table[at - 1]) * (kilobytes - low) / (high - low)


def as_item(size: int) -> int:
    """The bytes of an item that holds `size` bytes in base64."""
    return ENVELOPE + size * 4 // 3


class Metered(WrappedRemote):
    """A remote that adds up what its calls would cost in Cosmos DB."""

    def __init__(self, inner: Remote) -> None:
        super().__init__(inner)
        self.units = 0.0

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        self.units += units(_WRITE, as_item(len(data)))
        return self._inner.put_block(space, block, data)

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = self._inner.read_range(space, first, stop, after)
        self.units += sum(units(_READ, as_item(len(block.data))) for block in page.blocks)
        return page

    def read_head(self, name: str) -> HeadRecord | None:
        head = self._inner.read_head(name)
        self.units += units(_READ, as_item(len(head.data) if head else 0))
        return head

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        self.units += units(_WRITE, as_item(len(data))) * (1 if etag is None else 2)
        return self._inner.swap_head(name, data, etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = self._inner.list_heads(after)
        self.units += sum(units(_READ, as_item(len(head.data))) for head in page.heads)
        return page


def _engine(home: Path, remote: Remote, *, logs: bool = False) -> Engine:
    layout = AmplifierSyncLayout(home / "home")
    return Engine(layout, remote, state_dir=home / "state", rules=Rules(logs=logs), quiet=0)


def _folder(home: Path, session: str) -> Path:
    return home / "home" / "projects" / "-home-u-app" / "sessions" / session


# -- pushing a conversation as it grows


def _turns() -> list[bytes]:
    lines = [line_of(message) for message in messages(TURNS * A_TURN, LINE)]
    return [b"".join(lines[at : at + A_TURN]) for at in range(0, len(lines), A_TURN)]


def _grow(home: Path, remote: Remote, turns: Sequence[bytes], together: int) -> Cost:
    """Let a session grow turn by turn, pushing after so many of them."""
    folder = _folder(home, "one")
    folder.mkdir(parents=True)
    cost = Cost()
    for turn, lines in enumerate(turns, 1):
        with open(folder / "transcript.jsonl", "ab") as file:
            file.write(lines)
        (folder / "metadata.json").write_text(json.dumps(metadata("one", turn), indent=2))
        if turn % together == 0 or turn == len(turns):
            _add(cost, _told(_engine(home, remote).push(), SyncStatus.PUSHED).cost)
    return cost


def _add(cost: Cost, more: Cost) -> None:
    cost.requests += more.requests
    cost.bytes_up += more.bytes_up
    cost.bytes_down += more.bytes_down


def _told(report: Report, standing: SyncStatus) -> Report:
    """The report, if every session stands so: what failed must not pass for cheap."""
    wrong = [outcome for outcome in report.outcomes if outcome.standing is not standing]
    if wrong or not report.outcomes:
        raise RuntimeError(f"not every session is {standing.value}: {wrong[:2]}")
    return report


def _upserts(turns: Sequence[bytes]) -> tuple[float, int]:
    """Units per turn of a store that upserts the whole transcript as one item, and the turn where that is too large."""
    size, total = 0, 0.0
    for turn, lines in enumerate(turns):
        size += len(lines)
        if size + ENVELOPE > ITEM:
            return total / turn, turn
        total += units(_WRITE, size + ENVELOPE) * (2 if turn else 1)
    raise RuntimeError("the transcript never becomes too large for one item")


def _pushes(place: Path) -> list[Measurement]:
    turns = _turns()
    size = sum(map(len, turns))
    each = _grow(place / "each", MemoryServer().remote(), turns, 1)
    meter = Metered(MemoryServer().remote())
    three = _grow(place / "three", meter, turns, TOGETHER)
    naive, until = _upserts(turns)
    ours = meter.units / TURNS
    resent = sum(len(lines) * (TURNS - at) for at, lines in enumerate(turns))
    return [
        Measurement(
            each.bytes_up / size,
            f"{each.bytes_up / 1e6:.2f} MB : {size / 1e6:.2f} MB, pushed after every turn "
            f"({three.bytes_up / size:.2f}x after every third; whole transcripts: {resent / size:.0f}x)",
        ),
        Measurement(
            three.requests / TURNS, f"{three.requests} requests, {each.requests} if pushed every turn"
        ),
        Measurement(ours / naive, f"{ours:.1f} : {naive:.0f} RU (which ends at turn {until})"),
    ]


# -- an event log that repeats itself


def _write_log(path: Path) -> int:
    """Each request holds all that was said before; returns the bytes written."""
    said: list[dict[str, Any]] = []
    spoken = iter(messages(LOG_TURNS * REQUESTS * SAID))
    with open(path, "wb") as log:
        for turn in range(LOG_TURNS):
            log.write(line_of({"event": "prompt:submit", "turn": turn, "data": {}}))
            for step in range(REQUESTS):
                new = [next(spoken) for _ in range(SAID)]
                said += new
                request = {"model": "model-a", "messages": said}
                log.write(line_of({"event": "llm:request", "turn": turn, "step": step, "data": request}))
                for message in new:
                    log.write(line_of({"event": "tool:post", "turn": turn, "data": message}))
    return path.stat().st_size


def _logs(place: Path) -> list[Measurement]:
    folder = _folder(place, "one")
    write_session(folder, messages(10))
    size = _write_log(folder / "events.jsonl")
    cost = _told(_engine(place, MemoryServer().remote(), logs=True).push(), SyncStatus.PUSHED).cost
    return [
        Measurement(
            cost.bytes_up / size, f"{cost.bytes_up / 1e6:.2f} MB : {size / 1e6:.0f} MB, transcript included"
        )
    ]


# -- pulling from PostgreSQL


@contextmanager
def _postgres(place: Path) -> Iterator[tuple[PostgresServer, PostgresRemote]]:
    place.chmod(0o755)  # where we are root, the server runs as somebody else
    with PostgresServer(place / "postgres", durable=True) as server:
        remote = PostgresRemote(server.conninfo, tenant="me")
        try:
            remote.prepare()
            yield server, remote
        finally:
            remote.close()


def _unchanged(place: Path) -> list[Measurement]:
    a, b = place / "a", place / "b"
    spoken = messages(4)
    for number in range(SESSIONS):
        write_session(_folder(a, f"session-{number:04}"), spoken)
    with _postgres(place) as (_, remote):
        _told(_engine(a, remote).push(), SyncStatus.PUSHED)
        first = _told(_engine(b, remote).pull(), SyncStatus.PULLED).cost
        cost = _told(_engine(b, remote).pull(), SyncStatus.IN_STEP).cost
    words = f"{cost.requests} requests for {SESSIONS} sessions ({first.requests} when all of them were new)"
    return [Measurement(cost.requests * 100 / SESSIONS, words)]


def _write_large(folder: Path) -> bytes:
    """A session of `LARGE` bytes, no turn of which is a repetition."""
    write_session(folder, ())
    once = b"".join(map(line_of, messages(2000)))
    whole = b"".join(
        once.replace(b'"2026-', b'"20%02d-' % (26 + time)).replace(b'"call_', b'"call_%d_' % time)
        for time in range(LARGE // len(once))
    )
    (folder / "transcript.jsonl").write_bytes(whole)
    return whole


def _fresh(place: Path) -> list[Measurement]:
    whole = _write_large(_folder(place / "a", "one"))
    with (
        _postgres(place) as (server, remote),
        psycopg.connect(server.conninfo, autocommit=True) as connection,
    ):
        pushed = _told(_engine(place / "a", remote).push(), SyncStatus.PUSHED).cost
        connection.execute("CREATE TABLE raw (number int PRIMARY KEY, data bytea)")
        for number, at in enumerate(range(0, len(whole), 1 << 18)):
            connection.execute("INSERT INTO raw VALUES (%s, %s)", (number, whole[at : at + (1 << 18)]))
        connection.execute("CHECKPOINT")
        pulls = iter(range(ROUNDS))

        def pull() -> None:
            home = place / f"fresh-{next(pulls)}"
            _told(_engine(home, remote).pull(), SyncStatus.PULLED)

        works: list[Work] = [
            _settled(timed(pull)),
            _settled(timed(lambda: _copy(connection, place / "copied"))),
        ]
        ours, theirs = by_turns(works, ROUNDS)
    last = place / f"fresh-{ROUNDS - 1}"
    if (_folder(last, "one") / "transcript.jsonl").read_bytes() != whole:
        raise RuntimeError("what was pulled is not what was pushed")
    names = (
        f"{len(whole) / 1e6:.0f} MB in {pushed.requests} blocks and heads of {pushed.bytes_up / 1e6:.0f} MB"
    )
    return [compared(ours, theirs, names=names)]


def _settled(work: Work) -> Work:
    def once() -> float:
        settle()
        return work()

    return once


def _copy(connection: psycopg.Connection[Any], path: Path) -> None:
    """The floor: the same bytes as the server has them, to a file that is flushed."""
    statement = "COPY (SELECT data FROM raw ORDER BY number) TO STDOUT (FORMAT binary)"
    with open(path, "wb") as file, connection.cursor() as cursor, cursor.copy(statement) as rows:
        for row in rows:
            file.write(row)
        file.flush()
        os.fsync(file.fileno())


GROWING = f"{TURNS} turns, 3 MB transcript"

BENCHMARKS = (
    Benchmark(
        "sync-push",
        (
            Row(f"bytes up, {GROWING}", "transcript size", Limit(0.6)),
            Row(f"requests per turn, the same pushed {TOGETHER} turns at a time", "-", Limit(1, unit="")),
            Row(
                "RU per turn (published table), pushed likewise",
                "upsert of the whole transcript, up to the turn where it hits 2 MB",
                Limit(1 / 50),
            ),
        ),
        _pushes,
    ),
    Benchmark(
        "sync-log",
        (
            Row(
                f"bytes up, event log of {LOG_TURNS} turns, each request with the whole context",
                "its size",
                Limit(1 / 50),
            ),
        ),
        _logs,
    ),
    Benchmark(
        "sync-unchanged",
        (Row(f"pull of {SESSIONS:,} unchanged sessions: requests per 100", "-", Limit(1, unit="")),),
        _unchanged,
    ),
    Benchmark(
        "sync-fresh",
        (
            Row(
                "fresh pull of one 100 MB session from local PostgreSQL",
                "COPY of the same bytes + fsync",
                Limit(3),
            ),
        ),
        _fresh,
    ),
)
