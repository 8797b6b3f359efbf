"""What an MCP search takes over stores of Claude Code and Codex, with secrets masked, as an agent asks for it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

from benchmarks.agent_stores import FREQUENT, RARE, write_stores
from benchmarks.harness import Benchmark, Limit, Measurement, Row, settle
from sessionary.mcp import answers
from sessionary.mcp.reading import Call, Reading
from sessionary.workspace import Workspace

SESSIONS, SIZE = 3_000, 100_000
"""About 350 MB, since each session ends with a whole turn."""
ELSEWHERE = "chunk"
"""A word of every result of a tool in Codex; no message has it and `FREQUENT`."""
ROUNDS = 7


def _searching(place: Path) -> list[Measurement]:
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    home = place / "home"
    total = sum(path.stat().st_size for path in write_stores(home, SESSIONS, SIZE).paths)
    settle()
    reading = Reading(lambda: Call(Workspace(home), redact=True))
    return [
        _measured(reading, FREQUENT, total),
        _measured(reading, RARE, total),
        _measured(reading, f"{FREQUENT} {ELSEWHERE}", total),
    ]


def _measured(reading: Reading, query: str, total: int) -> Measurement:
    """Milliseconds of a search, and the size of its answer.

    Raises:
        RuntimeError: the answer is larger than its budget.
    """
    seconds, size = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        text = reading.search_sessions(query).text()
        seconds.append(time.perf_counter() - start)
        size = answers.estimate(text)
    if size > answers.DEFAULT_TOKENS:
        raise RuntimeError(f"the answer has {size} tokens")
    words = f"{min(seconds) * 1000:.0f} to {max(seconds) * 1000:.0f} ms over {total / 1e6:.0f} MB; {size:,} tokens"
    return Measurement(median(seconds) * 1000, words)


BENCHMARKS = (
    Benchmark(
        "mcp-search",
        (
            Row("an MCP search of a word in every answer of 3,000 sessions", "-", Limit(400, unit=" ms")),
            Row("the same, of a word in two sessions of a thousand", "-", Limit(400, unit=" ms")),
            Row("the same, of two frequent words that no message has both of", "-", Limit(400, unit=" ms")),
        ),
        _searching,
    ),
)
