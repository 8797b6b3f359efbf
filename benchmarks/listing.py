"""What a list of ten thousand sessions costs over the system calls that it cannot do without."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    Benchmark,
    Limit,
    Measurement,
    Row,
    by_turns,
    compared,
    in_words,
    ratio,
    settle,
    timed,
)
from benchmarks.samples import messages, write_session
from sessionary import SessionStore
from sessionary.cli import main
from sessionary.layouts.fingerprints import MTIME_GRACE

SESSIONS = 10_000
ROUNDS = 7
PROCESSES = 31
"""Rounds with two processes that begin anew: they vary most, and cost little."""


def _listing(place: Path) -> list[Measurement]:
    folder = place / "projects" / "-home-u-app" / "sessions"
    question = messages(1)[0]
    conversation = [question, {**question, "role": "assistant"}]
    chance = random.Random(0)
    folders = [folder / str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(SESSIONS)]
    for session in folders:
        write_session(session, conversation)
    settle()
    time.sleep(MTIME_GRACE)  # what was written a moment ago is not remembered
    store = SessionStore(folder)
    base = str(folder)
    ids, floor, first, again, reading = by_turns(
        [
            timed(store.list_sessions),
            timed(lambda: _stat_all(base)),
            lambda: _command(place, forget=True),
            lambda: _command(place, forget=False),
            timed(lambda: _read_all(base)),
        ],
        ROUNDS,
    )
    changed, _ = by_turns([lambda: _after_changes(place, folders), timed(lambda: _read_all(base))], ROUNDS)
    bare = timed(lambda: _bare(place, base))
    processes, bares = by_turns([timed(lambda: _process(place, forget=False)), bare], PROCESSES)
    fresh, idle = by_turns([timed(lambda: _process(place, forget=True)), bare], ROUNDS)
    times = f"{in_words(median(fresh))}, {ratio(fresh, idle):.2f}x"
    numbers = (
        f"{compared(processes, bares).numbers} ({_READING} + `python -c pass`)"
        f"; the very first time, with nothing remembered: {times}"
        f", after 1 in 100 has changed {in_words(median(changed))}"
        f", the first time {in_words(median(first))}"
    )
    return [compared(ids, floor), compared(again, reading), Measurement(1000 * median(processes), numbers)]


def _stat_all(base: str) -> list[os.stat_result]:
    with os.scandir(base) as entries:
        return [os.stat(entry.path) for entry in entries]


def _read_all(base: str) -> int:
    """The floor of everything that reports counts and health: both files of each session, as bytes."""
    total = 0
    with os.scandir(base) as entries:
        for entry in entries:
            os.stat(entry.path)
            for name in ("transcript.jsonl", "metadata.json"):
                fd = os.open(f"{entry.path}/{name}", os.O_RDONLY)
                total += len(os.read(fd, os.fstat(fd).st_size))
                os.close(fd)
    return total


def _after_changes(home: Path, folders: list[Path]) -> float:
    """Seconds of the command when one session in a hundred was touched since the last time."""
    for session in folders[::100]:
        os.utime(session / "transcript.jsonl")
    return _command(home, forget=False)


def _command(home: Path, *, forget: bool) -> float:
    """Seconds of `sessionary list` without the start of its process, with or without what earlier ones remembered.

    Raises:
        RuntimeError: it did not show every session.
    """
    out = io.StringIO()
    os.environ["XDG_CACHE_HOME"] = str(home / "cache")
    if forget:
        shutil.rmtree(home / "cache", ignore_errors=True)
    start = time.perf_counter()
    with redirect_stdout(out):
        main(["list", "--home", str(home)])
    seconds = time.perf_counter() - start
    if out.getvalue().count("\n") != SESSIONS + 1:
        raise RuntimeError("`sessionary list` does not show every session")
    return seconds


def _process(home: Path, *, forget: bool) -> None:
    """`sessionary list` as a person has it: a process of its own.

    Raises:
        RuntimeError: it did not show every session.
    """
    if forget:
        shutil.rmtree(home / "cache", ignore_errors=True)
    command = [str(Path(sys.executable).with_name("sessionary")), "list", "--home", str(home)]
    done = subprocess.run(command, check=True, capture_output=True, env=_surroundings(home))
    if done.stdout.count(b"\n") != SESSIONS + 1:
        raise RuntimeError("`sessionary list` does not show every session")


def _surroundings(home: Path) -> dict[str, str]:
    """As where it is installed: Python keeps what it has compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"XDG_CACHE_HOME": str(home / "cache"), "PYTHONPYCACHEPREFIX": str(home / "compiled")}


def _bare(home: Path, base: str) -> None:
    """What no such process can do without."""
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=_surroundings(home))
    _read_all(base)


_COMMAND = "`sessionary list` of them in process, with messages and health, by what the last list remembered"
_PROCESS = "`sessionary list` of them, with messages and health, unchanged: the whole of a new process"
_READING = "scandir, stat, reading transcript and metadata"

BENCHMARKS = (
    Benchmark(
        "list",
        (
            Row(
                f"`list_sessions()` of {SESSIONS:,} sessions of 2 messages",
                "scandir + one stat per folder",
                Limit(3.5),
            ),
            Row(_COMMAND, _READING, Limit(1.3)),
            Row(_PROCESS, "-", Limit(400, unit=" ms")),
        ),
        _listing,
    ),
)
