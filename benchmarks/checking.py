"""What a check of healthy transcripts costs over decoding them, which no check can do without."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from benchmarks.gigabyte import write_gigabyte
from benchmarks.harness import LONG_ROUNDS, Benchmark, Limit, Measurement, Row, by_turns, compared, settle
from sessionary.model import health
from sessionary.workspace import Workspace

_decode_lines = msgspec.json.Decoder().decode_lines


def _checking(place: Path) -> list[Measurement]:
    paths = write_gigabyte(place)
    settle()
    ours, decoding = by_turns([lambda: _check(place, len(paths)), lambda: _decode(paths)], LONG_ROUNDS)
    return [compared(ours, decoding)]


def _check(home: Path, count: int) -> float:
    """Seconds to check every session.

    Raises:
        RuntimeError: not all of them were checked, or one is not well.
    """
    workspace = Workspace(home)
    start = time.perf_counter()
    found = [health(list(workspace.layout_of(ref).check(ref))) for ref in workspace.refs()]
    seconds = time.perf_counter() - start
    if len(found) != count or set(found) - {"ok", "note"}:
        raise RuntimeError("a healthy session is not found healthy")
    return seconds


def _decode(paths: list[Path]) -> float:
    start = time.perf_counter()
    for path in paths:
        _decode_lines(path.read_bytes())
    return time.perf_counter() - start


BENCHMARKS = (
    Benchmark(
        "check",
        (
            Row(
                "check of 1 GB of healthy transcripts",
                "msgspec decodes them, file by file",
                Limit(3),
            ),
        ),
        _checking,
    ),
)
