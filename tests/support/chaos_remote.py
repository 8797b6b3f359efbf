"""A remote that fails as networks and services do, and kills its caller at any call.

What may happen to a call:

``kill`` and ``kill after``
    The process of the caller dies before the call, or after the other side has carried it out.
``lost``
    It is carried out, and the answer is lost.
``dropped``
    The connection breaks before the other side has heard of it; or it hangs until the caller gives up.
``late``
    As ``dropped``, but the request is on its way still, and is carried out some calls later: writes overtake it.
``throttled``
    The other side refuses for now, and says when to come again.

Pages may come with fewer entries than there are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from sessionary.errors import RemoteError
from sessionary.sync.remote import BlockPage, HeadPage, Remote, StatPage, WrappedRemote
from tests.support.faults import Killed

FAULTS = ("kill", "kill after", "lost", "dropped", "late", "throttled")
_WRITES = {"put_block", "swap_head", "delete_block"}


class ChaosRemote(WrappedRemote):
    """Does every call through `inner`, except where fate decides otherwise.

    Args:
        inner: the remote.
        plan: what happens to the n-th call, from 1.
        fate: for all others: each fault with this chance.
        chance: how likely each fault of `faults` is at each call; 0 for never.
        faults: those that `fate` chooses from.

    Attributes:
        calls: how many calls there were.
        log: the calls in words, with what happened to them.
        counts: how often each verb was called.
    """

    def __init__(
        self,
        inner: Remote,
        plan: dict[int, str] | None = None,
        *,
        fate: random.Random | None = None,
        chance: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
    ) -> None:
        super().__init__(inner)
        self.plan = plan or {}
        self.calls = 0
        self.log: list[str] = []
        self.counts: Counter[str] = Counter()
        self._fate = fate
        self._chance = chance
        self._faults = faults
        self._late: list[tuple[int, Callable[[], Any]]] = []
        self._rests: dict[str | None, HeadPage] = {}
        self._dead = False

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        keep = self._part_of(len(page.blocks))
        if keep == len(page.blocks):
            return page
        return BlockPage(page.blocks[:keep], page.blocks[keep - 1].id)

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = super().list_heads(after)
        keep = self._part_of(len(page.heads))
        if keep == len(page.heads):
            return page
        rest = f"rest {self.calls}"
        self._rests[rest] = HeadPage(page.heads[keep:], page.following)
        return HeadPage(page.heads[:keep], rest)

    @property
    def settled_after(self) -> float:
        """More than the remote inside, since calls may come late."""
        return super().settled_after + 1.0

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        page = super().list_blocks(space, first, stop, after)
        keep = self._part_of(len(page.stats))
        if keep == len(page.stats):
            return page
        return StatPage(page.stats[:keep], page.stats[keep - 1].id)

    def rest(self, seconds: float) -> None:
        """What a caller does who waits until all is settled: meanwhile everything arrives that is on its way."""
        self.settle()

    def settle(self) -> None:
        """Carry out what is on its way still."""
        late, self._late = self._late, []
        for _, call in late:
            call()

    def call(self, verb: str, *arguments: Any) -> Any:
        if self._dead:
            raise Killed(f"{verb} after the kill")
        self.calls += 1
        self.counts[verb] += 1
        due = [late for when, late in self._late if when <= self.calls]
        self._late = [(when, late) for when, late in self._late if when > self.calls]
        for late in due:
            late()
        fault = self.plan.get(self.calls) or self._chosen()
        about = 1 if verb in ("put_block", "read_range", "list_blocks", "delete_block") else 0
        self.log.append(f"{verb} {(arguments[about] or '')[:24]} {fault or ''}".rstrip())
        if verb == "list_heads" and arguments[0] in self._rests:
            held_back = self._rests[arguments[0]]
            return self._strike(fault, verb, lambda: held_back)
        return self._strike(fault, verb, lambda: super(ChaosRemote, self).call(verb, *arguments))

    def _chosen(self) -> str | None:
        if self._fate is None or self._fate.random() >= self._chance:
            return None
        return self._fate.choice(self._faults)

    def _strike(self, fault: str | None, verb: str, call: Callable[[], Any]) -> Any:
        if fault is None:
            return call()
        if fault in ("lost", "kill after"):
            call()
        if fault in ("kill", "kill after"):
            self._dead = True
            raise Killed(f"{fault} at {verb}")
        if fault == "late" and verb in _WRITES:
            self._late.append((self.calls + (self._fate.randint(1, 6) if self._fate else 2), call))
        details = {"retry_after": 0.0} if fault == "throttled" else {}
        raise RemoteError(f"{fault} at {verb}", retryable=True, details=details)

    def _part_of(self, count: int) -> int:
        if self._fate is None or not count:
            return count
        return self._fate.randint(1, count)
