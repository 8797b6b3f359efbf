"""Totals over sessions: counts, bytes and health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field

from sessionary.model import Summary


class Stats(Struct):
    """What sessions add up to.

    Attributes:
        sessions, messages, turns: their numbers.
        size: bytes.
        first, last: the earliest and the latest time of a last change; None if none is known.
        health: the number of sessions of each health.
    """

    sessions: int = 0
    messages: int = 0
    turns: int = 0
    size: int = 0
    first: datetime | None = None
    last: datetime | None = None
    health: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, summaries: Iterable[Summary]) -> Stats:
        """Add sessions up."""
        stats = cls()
        for one in summaries:
            stats.sessions += 1
            stats.messages += one.messages
            stats.turns += one.turns
            stats.size += one.size
            stats.health[one.health] += 1
            if one.updated is not None:
                stats.first = min(stats.first or one.updated, one.updated)
                stats.last = max(stats.last or one.updated, one.updated)
        return stats
