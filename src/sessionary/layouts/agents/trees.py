"""The plan of a log whose records form a tree: a rewind continues at an older record, and what it left stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import msgpack

from sessionary.layouts.agents.logs import Verdict
from sessionary.model import Record
from sessionary.transcript.branches import Node, Tip, Tree

REWOUND = "of branches that were rewound or abandoned"
BESIDE = "of sub-agents"


class TreePlan:
    """The records on the line; see `logs.Plan`.

    Args:
        node: a record as a node; None for one that is outside of the tree and counts.
        state: the tip of the line, of a cursor; None to read from the start.
        beside: the key of a record of a sub-agent, which is not part of the session; None if all records are.
        split: True if consecutive records of one id are pieces of one message. Any other record with an id that
            occurred before is a copy.
    """

    def __init__(
        self,
        node: Callable[[dict[str, Any]], Node | None],
        state: bytes | None = None,
        *,
        beside: str | None = None,
        split: bool = False,
    ) -> None:
        from sessionary.codec.seen import Seen, digest_of  # here, since a list that reads nothing needs none

        self.hidden: Counter[str] = Counter()
        self._node, self._beside, self._split = node, beside, split
        self._tip = Tip() if state is None else msgpack.decode(state, type=Tip)
        self._tree = Tree()
        self._gone: set[str] = set()
        self._newest: dict[str, tuple[int, int]] = {}
        self._unshown: set[str] = set()
        self._seen, self._digest_of = Seen(), digest_of
        self._previous: str | None = None
        self.is_plain = state is None

    def survey(self, found: Record) -> None:
        record = found.value
        if self._beside is not None and record.get(self._beside):
            self.hidden[BESIDE] += 1
            self.is_plain = False
        elif (node := self._node(record)) is not None:
            if self._tree.add(node):
                if not node.shown:
                    self._unshown.add(node.id)
                return
            if node.shown:
                self._unshown.discard(node.id)
            if not self._split:
                self._newest[node.id] = (found.line, found.byte)

    def follow(self, record: dict[str, Any]) -> bool:
        if self._beside is not None and record.get(self._beside):
            return False
        node = self._node(record)
        return node is None or self._tip.extend(node)

    def settle(self) -> None:
        self.is_plain = self.is_plain and self._tree.is_straight
        self._gone = self._tree.abandoned()
        self._tip = self._tree.tip(self._gone)
        if count := len(self._gone - self._unshown):
            self.hidden = Counter({REWOUND: count, **self.hidden})
        self._tree, self._unshown = Tree(), set()

    def newest(self, record: dict[str, Any]) -> tuple[int, int] | None:
        node = self._node(record) if self._newest else None
        return None if node is None else self._newest.get(node.id)

    def verdict(self, record: dict[str, Any]) -> Verdict:
        if self._beside is not None and record.get(self._beside):
            return Verdict.ASIDE
        node = self._node(record)
        if node is None:
            return Verdict.SHOWN
        again = self._seen.add(self._digest_of(node.id)) is not None
        again = again and not (self._split and node.id == self._previous)
        self._previous = node.id
        if again:
            return Verdict.COPY
        return Verdict.ASIDE if node.id in self._gone else Verdict.SHOWN

    def state(self) -> bytes:
        return msgpack.encode(self._tip)
