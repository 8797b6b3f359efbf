"""What a list of ten thousand sessions costs over the system calls that it cannot do without."""

from __future__ import annotations

import io
import os
import uuid
from contextlib import redirect_stdout
from pathlib import Path

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, settle, timed
from benchmarks.samples import messages, write_session
from sessionary import SessionStore

SESSIONS = 10_000
ROUNDS = 7


def _listing(place: Path) -> list[Measurement]:
    folder = place / "projects" / "-home-u-app" / "sessions"
    conversation = messages(2)
    for number in range(SESSIONS):
        write_session(folder / str(uuid.UUID(int=number * 0x9E3779B97F4A7C15_0000_0000, version=4)), conversation)
    settle()
    store = SessionStore(folder)
    base = str(folder)
    ids, floor, command, reading = by_turns(
        [
            timed(store.list_sessions),
            timed(lambda: _stat_all(base)),
            timed(lambda: _command(place)),
            timed(lambda: _read_all(base)),
        ],
        ROUNDS,
    )
    return [compared(ids, floor), compared(command, reading)]


def _stat_all(base: str) -> list[os.stat_result]:
    with os.scandir(base) as entries:
        return [os.stat(entry.path) for entry in entries]


def _read_all(base: str) -> int:
    """The floor of everything that tells counts and health: both files of each session, as bytes."""
    total = 0
    with os.scandir(base) as entries:
        for entry in entries:
            os.stat(entry.path)
            for name in ("transcript.jsonl", "metadata.json"):
                fd = os.open(f"{entry.path}/{name}", os.O_RDONLY)
                total += len(os.read(fd, os.fstat(fd).st_size))
                os.close(fd)
    return total


def _command(home: Path) -> None:
    """`sessionary list` without the start of its process. Raises RuntimeError unless it shows every session."""
    from sessionary.cli.app import cli

    out = io.StringIO()
    with redirect_stdout(out):
        cli.main(["list", "--home", str(home)], standalone_mode=False)
    if out.getvalue().count("\n") != SESSIONS + 1:
        raise RuntimeError("`sessionary list` does not show every session")


BENCHMARKS = (
    Benchmark(
        "list",
        (
            Row(
                f"`list_sessions()` of {SESSIONS:,} sessions of 2 messages",
                "scandir + one stat per folder",
                Limit(3.5),
            ),
            Row(
                "`sessionary list` of them in process, with messages and health",
                "that + reading transcript and metadata",
                Limit(1.3),
            ),
        ),
        _listing,
    ),
)
