"""A session that grows: thousands of saves, each of the whole conversation with one message more.

The original cleans, copies and rewrites everything each time, so its cost grows with the square of the session. Both
sides also write the metadata, which changes with every save, as it does in the application.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import original
from benchmarks.harness import LONG_ROUNDS, Benchmark, Limit, Measurement, Row, in_words, ratio, settle
from benchmarks.samples import messages, metadata
from sessionary import SessionStore
from sessionary.disk.fs import FILE_MODE
from sessionary.testing.wrapper import WrappedFs

SAVES = 2000
CHUNK = 100
# The original's saves are sampled: its cost grows steadily with the length, and all of them would take many minutes.
STRIDE = 10


class _CountingFs(WrappedFs):
    """Counts the bytes written to transcripts and to their backups, temp files included."""

    def __init__(self) -> None:
        super().__init__()
        self.transcript = self.backup = 0
        self._names: dict[int, str] = {}

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        fd = super().open(path, flags, mode)
        self._names[fd] = path.rpartition("/")[2]
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        written = super().write(fd, data)
        name = self._names.get(fd, "")
        if "transcript.jsonl.backup" in name:
            self.backup += written
        elif "transcript.jsonl" in name:
            self.transcript += written
        return written


def _long(place: Path) -> list[Measurement]:
    conversation = messages(SAVES, 2000)
    return [_time(place, conversation), *_bytes(place, conversation)]


def _short(place: Path) -> list[Measurement]:
    return [_time(place, messages(SAVES, 200, stamped=False))]


def _time(place: Path, conversation: list[dict[str, Any]]) -> Measurement:
    """Both grow a session of their own, by turns of a hundred saves; the sum over all saves counts."""
    rounds = [_grow(place / str(number), conversation) for number in range(LONG_ROUNDS)]
    ours, theirs = zip(*rounds, strict=True)
    return Measurement(ratio(ours, theirs), f"{in_words(median(ours))} : {in_words(median(theirs))}")


def _grow(place: Path, conversation: list[dict[str, Any]]) -> tuple[float, float]:
    """Seconds of all saves, ours and the original's."""
    store = SessionStore(place / "ours")

    def ours(count: int) -> None:
        store.save("s", conversation[:count], metadata("s", count))

    def theirs(count: int) -> None:
        original.save(place / "original", "s", conversation[:count], metadata("s", count))

    own = other = 0.0
    for first in range(1, SAVES + 1, CHUNK):
        own += _saves(ours, range(first, first + CHUNK))
        other += _saves(theirs, range(first + STRIDE // 2, first + CHUNK, STRIDE)) * STRIDE
    return own, other


def _saves(save: Callable[[int], object], counts: range) -> float:
    """Seconds that saves of the first so many messages take."""
    settle()  # the original leaves its writing to the kernel: the next measurement shall not pay for it
    start = time.perf_counter()
    for count in counts:
        save(count)
    return time.perf_counter() - start


def _bytes(place: Path, conversation: list[dict[str, Any]]) -> list[Measurement]:
    fs = _CountingFs()
    store = SessionStore.with_fs(fs, place / "counted")
    for count in range(1, SAVES + 1):
        store.save("s", conversation[:count], metadata("s", count))
    final = (place / "counted" / "s" / "transcript.jsonl").stat().st_size
    return [
        Measurement(count / final, f"{count / 1e6:.2f} MB : {final / 1e6:.2f} MB")
        for count in (fs.transcript, fs.transcript + fs.backup)
    ]


_GROWING = f"{SAVES:,} saves, the transcript one 2 kB message longer each time, durable"
_PEER = "the original's algorithm (copy to backup, rewrite, no fsync)"

BENCHMARKS = (
    Benchmark(
        "saves",
        (
            Row(f"{_GROWING}: time", _PEER, Limit(0.1)),
            Row(f"{_GROWING}: transcript bytes written", "bytes of the final file", Limit(1.2)),
            Row(f"{_GROWING}: with the backups", "bytes of the final file", Limit(2.3)),
        ),
        _long,
    ),
    Benchmark(
        "saves-short",
        (Row("the same, 200 B messages without timestamps: time", _PEER, Limit(0.25)),),
        _short,
    ),
)
