"""What a fork and a rewind of a large session cost over the bytes that they cannot but write.

The session has 40 MB of transcript and an event log of 1 GB, of one conversation: each prompt of the log begins a turn
of the transcript, at the time that it was logged.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.event_file import EventFile, write_event_file
from benchmarks.harness import (
    LONG_ROUNDS,
    Benchmark,
    Limit,
    Measurement,
    Row,
    Work,
    by_turns,
    compared,
    settle,
)
from benchmarks.samples import line_of, messages, metadata
from sessionary.layouts.amplifier.forks import fork_session
from sessionary.layouts.amplifier.rewinding import rewind
from sessionary.layouts.amplifier.transactions import undo

TRANSCRIPT = 40_000_000
EVENTS = 1_000_000_000
ALLOWED = 0.05
"""Seconds that a rewind may take beside its bytes: some fifteen flushes, and finding the turn."""
BLOCK = 1 << 20


def _surgery(place: Path) -> list[Measurement]:
    session = place / "sessions" / "3f0c8a52-1111-4222-8333-444455556666"
    session.mkdir(parents=True)
    log = write_event_file(session / "events.jsonl", EVENTS, seed=3)
    with (session / "transcript.jsonl").open("wb") as out:
        out.writelines(map(line_of, _conversation(log)))
    document = metadata(session.name, turn=len(log.prompts))
    (session / "metadata.json").write_text(json.dumps(document, indent=2), "utf-8")
    settle()
    return [_fork(session, place), _rewind(session, place, len(log.prompts))]


def _conversation(log: EventFile) -> Iterator[dict[str, Any]]:
    """Turns of as many messages as make 40 MB in all."""
    each = TRANSCRIPT // 1000 // len(log.prompts)
    spoken = messages(TRANSCRIPT // 600, stamped=False)
    answers = (message for message in spoken if message["role"] != "user")
    with log.path.open("rb") as file:
        for byte in log.prompts:
            file.seek(byte)
            event = json.loads(file.readline())
            moment = datetime.fromisoformat(event["ts"]) + timedelta(milliseconds=1)
            yield {"role": "user", "content": event["data"]["prompt"], "timestamp": moment.isoformat()}
            for message in itertools.islice(answers, each - each % 2):
                yield {**message, "timestamp": moment.isoformat()}


def _fork(session: Path, place: Path) -> Measurement:
    def ours() -> float:
        start = time.perf_counter()
        result = fork_session(session)
        seconds = time.perf_counter() - start
        assert result.session_dir is not None
        shutil.rmtree(result.session_dir)
        settle()
        return seconds

    def floor() -> float:
        copy = place / "copy"
        copy.mkdir()
        start = time.perf_counter()
        for name in ("transcript.jsonl", "metadata.json", "events.jsonl"):
            _copy(session / name, copy / name)
        seconds = time.perf_counter() - start
        shutil.rmtree(copy)
        settle()
        return seconds

    return compared(*by_turns([ours, floor], LONG_ROUNDS))


def _rewind(session: Path, place: Path, turns: int) -> Measurement:
    planned = rewind(session, turns - 1, dry_run=True)

    def ours() -> float:
        start = time.perf_counter()
        done = rewind(session, turns - 1)
        seconds = time.perf_counter() - start
        if not done.events_dropped or not done.messages_dropped:
            raise RuntimeError("the last turn has no events")
        undo(session)
        settle()
        return max(0.0, seconds - ALLOWED)

    def floor() -> float:
        start = time.perf_counter()
        _copy(session / "events.jsonl", place / "one", planned.rewritten)
        seconds = time.perf_counter() - start
        (place / "one").unlink()
        settle()
        return seconds

    works: list[Work] = [ours, floor]
    measured = by_turns(works, 7)
    return compared(*measured, names=f"{planned.rewritten / 1e6:.1f} MB are rewritten")


def _copy(source: Path, target: Path, size: int | None = None) -> None:
    """The floor: so many bytes through one block of memory, and a flush."""
    left = source.stat().st_size if size is None else size
    read = os.open(source, os.O_RDONLY)
    write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    while left > 0 and (block := os.read(read, min(BLOCK, left))):
        os.write(write, block)
        left -= len(block)
    os.fsync(write)
    os.close(read)
    os.close(write)


BENCHMARKS = (
    Benchmark(
        "surgery",
        (
            Row(
                "fork at the end of a session of 40 MB with a 1 GB event log",
                "copy of the same bytes + fsync",
                Limit(1.5),
            ),
            Row(
                "rewind of it by one turn, less 50 ms",
                "copy + fsync of the bytes that it must rewrite",
                Limit(1.5),
            ),
        ),
        _surgery,
    ),
)
