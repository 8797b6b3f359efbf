"""Parallel prefilter: threads find the conversations that plainly contain no match, ahead of the scan.

Most conversations have no match, and reading a file or searching its bytes releases the interpreter lock. So two
cores search a gigabyte in little more than half the time of one, and hits are still returned in order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from threading import Event, current_thread
from typing import TypeVar

Item = TypeVar("Item")
_NAME = "sessionary-search"

ALONE = 16
"""Number of conversations searched without threads: a frequent word is found in the first ones."""

WORTH = 32 << 20
"""Bytes below which a search ends before threads would have started."""

PART = 4 << 20
"""Bytes of conversations in a unit of work: small enough not to delay hits."""

THREADS = 4
"""Number of threads. More would wait for the interpreter lock."""


def looked_ahead(
    items: Sequence[tuple[int, Item]], quiet: Callable[[Item, Event], bool]
) -> Generator[tuple[Item, bool]]:
    """Yield each item in order, and True if it plainly contains no match.

    Args:
        items: the items to search, each with its size in bytes.
        quiet: called in a thread; returns True if an item plainly contains no match. Must not raise; may return early
            once the event is set, because its result is then unused.
    """
    for _, item in items[:ALONE]:
        yield item, False
    rest = items[ALONE:]
    threads = min(_cores(), THREADS)
    if threads < 2 or sum(size for size, _ in rest) < WORTH:
        for _, item in rest:
            yield item, False
        return
    from concurrent.futures import ThreadPoolExecutor  # here, since the first hits do not wait for it

    unused = Event()
    parts = _parts(rest)
    pool = ThreadPoolExecutor(threads, thread_name_prefix=_NAME)

    def ask(part: list[Item]) -> Callable[[], list[tuple[Item, bool]]]:
        try:
            return pool.submit(lambda: [(item, quiet(item, unused)) for item in part]).result
        except RuntimeError:  # the limit of threads of this user or container is reached
            return lambda: [(item, False) for item in part]

    try:
        begun = deque(map(ask, islice(parts, 3 * threads)))
        while begun:
            found = begun.popleft()()
            begun.extend(map(ask, islice(parts, 1)))
            yield from found
    finally:
        unused.set()
        # The interpreter may collect an abandoned search in one of its own threads, which cannot wait for itself.
        is_own = current_thread().name.startswith(_NAME)
        pool.shutdown(wait=not is_own, cancel_futures=True)


def _parts(items: Iterable[tuple[int, Item]]) -> Iterator[list[Item]]:
    """Group the items into units of work."""
    part: list[Item] = []
    bytes_ = 0
    for size, item in items:
        part.append(item)
        bytes_ += size
        if bytes_ >= PART:
            yield part
            part, bytes_ = [], 0
    if part:
        yield part


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
