"""What a remote costs a save: nothing, be it slow or dead.

A round saves a conversation that grows by 1 kB a save, durably, and gives the median of its saves. In that time
background sync runs several times: 64 kB come together every 64 saves. The rounds alternate, and the thread of one
ends before the next begins, or it would burden the peer as well.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Benchmark, Limit, Measurement, Row, Work, by_turns, compared, settle
from benchmarks.samples import messages, metadata
from sessionary import HybridSessionStore
from sessionary.errors import RemoteError
from sessionary.sync.remote import Remote, WrappedRemote
from tests.support.memory_remote import MemoryServer

ROUNDS = 41
SAVES = 120
DELAY = 0.15
"""Seconds that the slow one takes for each call: a database on another continent."""


class _Far(WrappedRemote):
    """Does every call of `inner`, late; or none of them, without an inner one."""

    def __init__(self, inner: Remote | None, delay: float) -> None:
        super().__init__(inner or MemoryServer().remote())
        self._answers = inner is not None
        self._delay = delay

    def call(self, verb: str, *arguments: Any) -> Any:
        time.sleep(self._delay)
        if not self._answers:
            raise RemoteError("no answer", retryable=True)
        return super().call(verb, *arguments)


def _saves(place: Path, remote: Callable[[], Remote] | None) -> Work:
    """The median save of a round, in seconds."""
    rounds = itertools.count()
    conversation = messages(SAVES, 1000)

    def once() -> float:
        session = f"s{next(rounds)}"
        store = HybridSessionStore(place / "sessions", remote=remote, state_dir=place / "state")
        settle()
        took = []
        for count in range(1, SAVES + 1):
            said = conversation[:count]
            start = time.perf_counter()
            store.save(session, said, metadata(session, 1))
            took.append(time.perf_counter() - start)
        _end(store)
        return median(took)

    return once


def _end(store: HybridSessionStore) -> None:
    worker = store._worker
    store.close(0)
    if worker is not None and (thread := worker.background._thread) is not None:
        thread.join()


def _measure(place: Path) -> Sequence[Measurement]:
    server = MemoryServer()
    ways: dict[str, Callable[[], Remote] | None] = {
        "none": None,
        "dead": lambda: _Far(None, 0.0),
        "slow": lambda: _Far(server.remote(), DELAY),
    }
    works = [_saves(place / name, remote) for name, remote in ways.items()]
    none, dead, slow = by_turns(works, ROUNDS)
    return [compared(dead, none), compared(slow, none)]


BENCHMARKS = (
    Benchmark(
        "hybrid",
        (
            Row(
                "durable save of 1 kB while the remote is dead: median",
                "the same without a remote",
                Limit(1.05),
            ),
            Row(
                f"the same while the remote takes {DELAY * 1000:.0f} ms a call",
                "the same without a remote",
                Limit(1.05),
            ),
        ),
        _measure,
    ),
)
