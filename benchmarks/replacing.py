"""What replacing the metadata costs over the calls that make a replacement durable."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.harness import Benchmark, Limit, Measurement, Row, Work, by_turns, compared, in_words, settle
from benchmarks.samples import messages, metadata, write_session
from sessionary import SessionStore
from sessionary.disk import atomic

ROUNDS = 41
BATCH = 20


def _replace(path: Path, data: bytes) -> None:
    """The floor: a temp file, written and flushed, renamed, the folder flushed. No backup."""
    temp = f"{path}.new"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(temp, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _metadata(place: Path) -> list[Measurement]:
    """Our replacement of the file against the floor; beside them what `update_metadata` takes, which reads it first."""
    write_session(place / "session", messages(2))
    path = place / "session" / "metadata.json"
    floor = place / "floor"
    floor.mkdir()
    store = SessionStore(place)
    count = itertools.count(2)

    def document() -> bytes:
        return json.dumps(metadata("session", next(count)), ensure_ascii=False, indent=2).encode()

    def replace_it(data: bytes) -> None:
        atomic.replace(str(path), (data,), backup=f"{path}.backup")

    def update(_: bytes) -> None:
        store.update_metadata("session", {"turn_count": next(count)})

    works = [
        _batch(replace_it, document),
        _batch(lambda data: _replace(floor / "metadata.json", data), document),
        _batch(update, document),
    ]
    for work in works:
        work()
    settle()
    ours, theirs, whole = by_turns(works, ROUNDS)
    measured = compared(ours, theirs, each=BATCH)
    words = f"{measured.numbers}; `update_metadata`, which reads and merges first: {in_words(median(whole) / BATCH)}"
    return [measured._replace(numbers=words)]


def _batch(write: Callable[[bytes], None], document: Callable[[], bytes]) -> Work:
    """A round of replacements by documents that are made beforehand."""

    def once() -> float:
        documents = [document() for _ in range(BATCH)]
        start = time.perf_counter()
        for data in documents:
            write(data)
        return time.perf_counter() - start

    return once


BENCHMARKS = (
    Benchmark(
        "metadata",
        (
            Row(
                "metadata replace with backup (`disk.atomic.replace`)",
                "temp + fsync + rename + fsync dir",
                Limit(1.2),
            ),
        ),
        _metadata,
    ),
)
