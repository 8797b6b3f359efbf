"""The heads that a process has listed, so that its next list asks only for those that have changed since.

A list reads every head that a tenant has, and is paid for by the head. The service stamps each write with the second in
which it was made, by its own clock, and that stamp is always indexed. Heads are never removed, only marked, so what was
listed and what has changed since are all there are.

The stamps of two servers may differ a little, and a replica may lag: what was written some minutes before the newest
stamp is asked for again each time. Once an hour everything is listed anew, whatever was missed or restored.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sessionary.sync.remote import HeadRecord

OVERLAP: Final = 600
"""Seconds before the newest stamp from which on changes are asked for again."""

RELIST: Final = timedelta(hours=1)


class Stamped(NamedTuple):
    """A head, and when the service wrote it, in seconds."""

    at: int
    head: HeadRecord


class Recent:
    """All heads of a tenant as far as they are known. For several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[str, Stamped] | None = None
        self._listed: datetime | None = None
        self._growing: dict[str, Stamped] = {}
        self._goes_on: str | None = None

    def since(self, now: datetime) -> int | None:
        """From which second on to ask for changes; None if everything is to be listed."""
        with self._guard:
            if not self._known or self._listed is None or abs(now - self._listed) >= RELIST:
                return None
            return max(one.at for one in self._known.values()) - OVERLAP

    def follow(
        self, after: str | None, page: Iterable[Stamped], following: str | None, now: datetime
    ) -> None:
        """Note a page of a list of everything. Only a list that was followed from its first page to its last counts."""
        with self._guard:
            if after is None:
                self._growing = {}
            elif after != self._goes_on:
                return
            self._growing |= {one.head.name: one for one in page}
            self._goes_on = following
            if following is None:
                self._known, self._listed, self._growing = self._growing, now, {}

    def merge(self, changed: Iterable[Stamped]) -> tuple[HeadRecord, ...]:
        """Note what has changed; returns all heads."""
        with self._guard:
            known = self._known or {}
            for one in changed:
                before = known.get(one.head.name)
                if before is None or before.at <= one.at:  # a replica may show what was
                    known[one.head.name] = one
            return tuple(known[name].head for name in sorted(known))
