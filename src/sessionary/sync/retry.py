"""Retries of failed remote calls, and a count of their cost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from operator import add
from typing import Any

from sessionary.errors import RemoteError
from sessionary.sync.remote import BlockPage, HeadPage, HeadRecord, Remote, WrappedRemote

# A generator of our own: a seed that the program set on the shared one stays effective. A forked child seeds anew.
_CHANCE = random.SystemRandom()

TRIES = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0


@dataclass(slots=True)
class Cost:
    """Cost of remote calls: number of calls including retries, bytes of blocks and heads, and units charged."""

    requests: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    ru: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(add, astuple(self), astuple(other)))


class RetryingRemote(WrappedRemote):
    """A remote whose failed calls are retried, and whose calls are counted.

    Every verb may be repeated, whatever became of it before. A swap that was carried out although its answer was lost
    then finds another version: the caller checks whether that is its own.

    Args:
        tries: number of attempts in all.
        on_call: called before each call.
    """

    def __init__(
        self,
        inner: Remote,
        *,
        sleep: Callable[[float], None] = time.sleep,
        tries: int = TRIES,
        on_call: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(inner)
        self._on_call = on_call
        self.cost = Cost()
        self._sleep = sleep
        self._tries = tries

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call `verb` of the inner remote, with retries after passing failures, and count the cost."""
        up = sum(len(one) for one in arguments if isinstance(one, bytes))
        pause = FIRST_PAUSE
        for left in reversed(range(self._tries)):
            self._on_call()
            self.cost.requests += 1
            self.cost.bytes_up += up
            charged, fetched = super().ru, super().fetched
            try:
                answer = super().call(verb, *arguments)
            except RemoteError as error:
                if not error.retryable or not left:
                    raise
                after = error.details.get("retry_after")
                wait = after if isinstance(after, int | float) else pause * _CHANCE.uniform(0.5, 1.0)
            else:
                self.cost.bytes_down += _received(answer)
                return answer
            finally:
                self.cost.ru += super().ru - charged
                self.cost.bytes_down += super().fetched - fetched
            self._sleep(min(max(0.0, wait), LONGEST_PAUSE))
            pause *= 2
        raise AssertionError("unreachable: the last try returns or raises")


def _received(answer: Any) -> int:
    """Return the bytes of blocks and heads in an answer."""
    match answer:
        case HeadRecord():
            return len(answer.data)
        case HeadPage():
            return sum(len(head.data) for head in answer.heads)
        case BlockPage():
            return sum(len(block.data) for block in answer.blocks)
    return 0
