"""What replacing the metadata costs over the calls that make a replacement durable."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, settle, timed
from benchmarks.samples import messages, metadata, write_session
from sessionary import SessionStore

ROUNDS = 15
BATCH = 100


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
    write_session(place / "session", messages(2))
    floor = place / "floor"
    floor.mkdir()
    store = SessionStore(place)
    count = itertools.count(2)

    def fields() -> dict[str, Any]:
        turn = next(count)
        return {"turn_count": turn, "description": f"Turn {turn} of the work on the stock service"}

    def ours() -> None:
        for _ in range(BATCH):
            store.update_metadata("session", fields())

    def theirs() -> None:
        for _ in range(BATCH):
            document = {**metadata("session"), **fields()}
            _replace(floor / "metadata.json", json.dumps(document, ensure_ascii=False, indent=2).encode())

    ours()
    theirs()
    settle()
    return [compared(*by_turns([timed(ours), timed(theirs)], ROUNDS), each=BATCH)]


BENCHMARKS = (
    Benchmark(
        "metadata",
        (
            Row(
                "metadata replace with backup (`update_metadata`: read, merge, replace)",
                "temp + fsync + rename + fsync dir",
                Limit(1.2),
            ),
        ),
        _metadata,
    ),
)
