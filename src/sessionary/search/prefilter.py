"""Which of the next conversations hold none of the words: threads look through them, ahead of the one who reads.

Nearly all conversations hold nothing, and who reads a file or searches its bytes leaves the interpreter to others. So
two cores get through a gigabyte in little more than half the time of one, and hits still come in their order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")

ALONE = 16
"""So many are not looked at ahead: a frequent word is found in the first ones, and then all that would be in vain."""

WORTH = 32 << 20
"""Fewer bytes than these are searched before threads would have begun."""

PART = 4 << 20
"""A thread is given conversations of about so many bytes at a time: few enough to keep hits from waiting for them."""

THREADS = 4
"""More would wait for each other: the interpreter runs one at a time."""


def looked_ahead(
    items: Sequence[tuple[int, Item]], quiet: Callable[[Item, Event], bool]
) -> Iterator[tuple[Item, bool]]:
    """Each of the items in order, and whether it was found to hold nothing.

    Args:
        items: what is searched, each with its bytes.
        quiet: asked in a thread whether one plainly holds nothing. Must not raise; may give up once the event is set,
            for then nobody wants to know any more.
    """
    for _, item in items[:ALONE]:
        yield item, False
    rest = items[ALONE:]
    threads = min(_cores(), THREADS)
    if threads < 2 or sum(size for size, _ in rest) < WORTH:
        for _, item in rest:
            yield item, False
        return
    nobody = Event()
    parts = _parts(rest)
    with ThreadPoolExecutor(threads, thread_name_prefix="search") as pool:

        def ask(part: list[Item]) -> Callable[[], list[tuple[Item, bool]]]:
            try:
                return pool.submit(lambda: [(item, quiet(item, nobody)) for item in part]).result
            except RuntimeError:  # so many threads this person, or this container, may not have
                return lambda: [(item, False) for item in part]

        try:
            begun = deque(map(ask, islice(parts, 3 * threads)))
            while begun:
                found = begun.popleft()()
                begun.extend(map(ask, islice(parts, 1)))
                yield from found
        finally:
            nobody.set()
            pool.shutdown(cancel_futures=True)


def _parts(items: Iterable[tuple[int, Item]]) -> Iterator[list[Item]]:
    """The items, in parts of a good size."""
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
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
