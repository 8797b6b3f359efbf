"""The heads that were listed, so that the next list asks only for those that have changed since.

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

import msgspec
from msgspec import Struct

from sessionary.sync.remote import HeadRecord
from sessionary.sync.remotes.kept import Kept, Note

OVERLAP: Final = 600
"""Seconds before the newest stamp from which on changes are asked for again."""

RELIST: Final = timedelta(days=1)


class Stamped(NamedTuple):
    """A head, and when the service wrote it, in seconds."""

    at: int
    head: HeadRecord


class _Listed(Struct, frozen=True, array_like=True):
    at: datetime
    heads: list[Stamped]


_decode = msgspec.msgpack.Decoder(_Listed).decode


class Recent:
    """All heads of a tenant as far as they are known. For several threads.

    Args:
        owner: whose heads these are, and where.
        note: where they are kept for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...] = (), note: Note | None = None) -> None:
        self._kept = Kept(owner, note)
        self._looked = False
        self._guard = threading.Lock()
        self._known: dict[str, Stamped] | None = None
        self._listed: datetime | None = None
        self._growing: dict[str, Stamped] = {}
        self._goes_on: str | None = None

    def since(self, now: datetime) -> int | None:
        """From which second on to ask for changes; None if everything is to be listed."""
        with self._guard:
            self._look()
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
                self._keep()

    def merge(self, changed: Iterable[Stamped]) -> tuple[HeadRecord, ...]:
        """Note what has changed; returns all heads."""
        with self._guard:
            known = self._known or {}
            newer = [one for one in changed if _is_newer(one, known.get(one.head.name))]
            if newer:
                known |= {one.head.name: one for one in newer}
                self._keep()
            return tuple(known[name].head for name in sorted(known))

    def miss(self, name: str) -> None:
        """A head is not there: if it was listed, all of it is forgotten."""
        with self._guard:
            self._look()
            if self._known and name in self._known:
                self._known = {}
                self._keep()

    def _look(self) -> None:
        """Find what an earlier process has kept, once."""
        if not self._looked and (found := self._kept.read(_decode)) is not None:
            self._known, self._listed = {one.head.name: one for one in found.heads}, found.at
        self._looked = True

    def _keep(self) -> None:
        if self._known is not None and self._listed is not None:
            self._kept.keep(_Listed(self._listed, list(self._known.values())))


def _is_newer(one: Stamped, known: Stamped | None) -> bool:
    """False also for what a replica shows that has stayed behind."""
    return known is None or (one != known and known.at <= one.at)
