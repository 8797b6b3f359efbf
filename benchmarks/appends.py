"""What an append costs over the system calls that it cannot do without."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Limit, Measurement, Row, Work, by_turns, compared, settle
from benchmarks.samples import line_of, messages, write_session
from sessionary import EventsLog, SessionStore

# Many short rounds: one that another program interrupts is then one of many.
DURABLE_ROUNDS = 51
DURABLE_BATCH = 60
RELAXED_ROUNDS = 301
RELAXED_BATCH = 100
# A session of ten messages stays small only for a few appends: many sessions get a few each. More than a few would
# also take them past 16 KiB, where the backup is refreshed, and the long session passes no power of two here.
SMALL_SESSIONS = 15
SMALL_APPENDS = DURABLE_BATCH // SMALL_SESSIONS


class _Raw:
    """The floor: whole lines written to a descriptor that is kept open, and flushed if so wanted."""

    def __init__(self, path: Path, before: Sequence[dict[str, Any]], *, flush: bool) -> None:
        path.write_bytes(b"".join(map(line_of, before)))
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.flush = flush

    def append(self, line: bytes) -> None:
        os.write(self.fd, line)
        if self.flush:
            os.fdatasync(self.fd)


def _batch(append: Callable[[Any], object], items: Sequence[Any], count: int) -> Work:
    """A round of `count` appends; the items are taken in turn."""
    supply = itertools.cycle(items)

    def once() -> float:
        batch = list(itertools.islice(supply, count))
        start = time.perf_counter()
        for item in batch:
            append(item)
        return time.perf_counter() - start

    return once


def _durable(place: Path) -> list[Measurement]:
    store = SessionStore(place / "sessions")
    before, fresh = messages(10_000), messages(300, seed=1)
    write_session(place / "sessions" / "long", before)
    raw = _Raw(place / "raw.jsonl", before, flush=True)
    store.append("long", fresh[:1])  # opens the session and makes its first backup
    settle()
    long = _batch(lambda message: store.append("long", [message]), fresh, DURABLE_BATCH)
    floor = _batch(raw.append, [line_of(message) for message in fresh], DURABLE_BATCH)
    short = _short(store, place / "sessions", before[:10], fresh)
    ours, raws, shorts = by_turns([long, floor, short], DURABLE_ROUNDS)
    return [compared(ours, raws, each=DURABLE_BATCH), compared(ours, shorts, each=DURABLE_BATCH)]


def _short(
    store: SessionStore, folder: Path, before: Sequence[dict[str, Any]], fresh: Sequence[dict[str, Any]]
) -> Work:
    """A round of as many appends to sessions of ten messages, each already open."""
    rounds = itertools.count()

    def once() -> float:
        names = [f"short-{next(rounds)}-{number}" for number in range(SMALL_SESSIONS)]
        for name in names:
            write_session(folder / name, before)
            store.append(name, fresh[:1])
        settle()
        start = time.perf_counter()
        for name in names:
            for message in fresh[1 : 1 + SMALL_APPENDS]:
                store.append(name, [message])
        return time.perf_counter() - start

    return once


def _events(place: Path) -> list[Measurement]:
    log = EventsLog(place / "session", durability="none")
    events = [
        {
            "event": "llm:response",
            "duration_ms": 2100,
            "data": {"model": "model-a", "text": message["content"]},
        }
        for message in messages(300, 900, stamped=False)
    ]
    for event in events:
        log.append(event)
    written = (place / "session" / "events.jsonl").read_bytes().splitlines(keepends=True)
    raw = _Raw(place / "raw.jsonl", [], flush=False)
    ours = _batch(log.append, events, RELAXED_BATCH)
    floor = _batch(raw.append, written, RELAXED_BATCH)
    measured = compared(*by_turns([ours, floor], RELAXED_ROUNDS), each=RELAXED_BATCH)
    log.close()
    return [measured]


def _messages(place: Path) -> list[Measurement]:
    store = SessionStore(place, durability="none")
    fresh = messages(300)
    store.append("session", fresh[:1])
    raw = _Raw(place / "raw.jsonl", [], flush=False)
    ours = _batch(lambda message: store.append("session", [message]), fresh, RELAXED_BATCH)
    floor = _batch(raw.append, [line_of(message) for message in fresh], RELAXED_BATCH)
    return [compared(*by_turns([ours, floor], RELAXED_ROUNDS), each=RELAXED_BATCH)]


BENCHMARKS = (
    Benchmark(
        "append-durable",
        (
            Row("`append` of 1 kB, durable, to 10,000 messages", "raw write + fdatasync", Limit(1.6)),
            Row("the same", "the same to 10 messages", Limit(1.15)),
        ),
        _durable,
    ),
    Benchmark(
        "append-event",
        (Row("`EventsLog.append`, level none, kept handle", "raw write", Limit(15)),),
        _events,
    ),
    Benchmark(
        "append-message",
        (Row("`SessionStore.append`, level none, kept handle", "raw write", Limit(25)),),
        _messages,
    ),
)
