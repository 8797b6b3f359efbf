"""What stands between the engine and a remote: patience with a failing one, and a count of what it cost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sessionary.errors import RemoteError, Unsupported
from sessionary.sync.remote import (
    BlockPage,
    Collectable,
    HeadPage,
    HeadRecord,
    Remote,
    StatPage,
    collectable,
)

# Not the generator of the module: whoever has seeded that one finds it as he left it, and a forked child draws anew.
_CHANCE = random.SystemRandom()

_T = TypeVar("_T")
TRIES = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0


@dataclass(slots=True)
class Cost:
    """What was asked of a remote: calls, repeated ones included, bytes of blocks and heads, and units charged."""

    requests: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    ru: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.requests + other.requests,
            self.bytes_up + other.bytes_up,
            self.bytes_down + other.bytes_down,
            self.ru + other.ru,
        )


class RetryingRemote:
    """A remote that is asked again when it may answer later, and whose calls are counted.

    Every verb may be repeated whatever became of it before. A swap that was carried out although its answer was lost
    then finds another version there: the caller looks whether that is its own.

    Args:
        inner: the remote.
        sleep: how to wait, in seconds.
        tries: how often to ask in all.
    """

    def __init__(
        self, inner: Remote, *, sleep: Callable[[float], None] = time.sleep, tries: int = TRIES
    ) -> None:
        self.inner = inner
        self.cost = Cost()
        self._sleep = sleep
        self._tries = tries

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        return self._ask(lambda: self.inner.put_block(space, block, data), up=len(data))

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = self._ask(lambda: self.inner.read_range(space, first, stop, after))
        self.cost.bytes_down += sum(len(block.data) for block in page.blocks)
        return page

    def read_head(self, name: str) -> HeadRecord | None:
        head = self._ask(lambda: self.inner.read_head(name))
        self.cost.bytes_down += len(head.data) if head else 0
        return head

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        return self._ask(lambda: self.inner.swap_head(name, data, etag), up=len(data))

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = self._ask(lambda: self.inner.list_heads(after))
        self.cost.bytes_down += sum(len(head.data) for head in page.heads)
        return page

    @property
    def settled_after(self) -> float | None:
        """As the remote inside; None if nothing can be removed from it."""
        return getattr(self.inner, "settled_after", None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        inner = must_collect(self.inner)
        return self._ask(lambda: inner.list_blocks(space, first, stop, after))

    def delete_block(self, space: str, block: str, version: str) -> bool:
        inner = must_collect(self.inner)
        return self._ask(lambda: inner.delete_block(space, block, version))

    def _ask(self, call: Callable[[], _T], up: int = 0) -> _T:
        pause = FIRST_PAUSE
        for left in reversed(range(self._tries)):
            self.cost.requests += 1
            self.cost.bytes_up += up
            charged, fetched = _charged(self.inner), _fetched(self.inner)
            try:
                return call()
            except RemoteError as error:
                if not error.retryable or not left:
                    raise
                told = error.details.get("retry_after")
                wait = told if isinstance(told, int | float) else pause * _CHANCE.uniform(0.5, 1.0)
            finally:
                self.cost.ru += _charged(self.inner) - charged
                self.cost.bytes_down += _fetched(self.inner) - fetched
            self._sleep(min(max(0.0, wait), LONGEST_PAUSE))
            pause *= 2
        raise AssertionError("unreachable: the last try returns or raises")


def must_collect(remote: Remote) -> Collectable:
    """The remote, from which blocks can be removed.

    Raises:
        Unsupported: they cannot.
    """
    found = collectable(remote)
    if found is None:
        raise Unsupported("nothing can be removed from this remote", operation="gc")
    return found


def _charged(remote: Remote) -> float:
    """The units that a remote has been charged so far; 0 if it is of a kind that is not."""
    return float(getattr(remote, "ru", 0.0))


def _fetched(remote: Remote) -> int:
    """The bytes of blocks that a remote has read so far without being asked for them."""
    return int(getattr(remote, "fetched", 0))
