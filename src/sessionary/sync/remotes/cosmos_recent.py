"""Cache of listed heads, so that the next list requests only changed ones.

A list reads every head of a tenant, and is charged per head. The service stamps each write with its second, by its
own clock, and that stamp is always indexed. Heads are never removed, only marked, so the listed ones and the changed
ones are complete.

A list is as recent as its *first* page, however late the last one came: the machine may sleep in between, and heads
of the first page are not read again. Stamps of two servers may differ a little, and a replica may lag: so writes of
some minutes before that page are requested again each time. Once a day everything is listed again, to find what was
missed or restored; at once, if a new version has an older stamp.

Garbage collection does not use this cache: it lists all heads, with "" as ``after``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from sessionary.sync.remote import HeadRecord
from sessionary.sync.remotes.head_cache import Cache, CachedValue

OVERLAP: Final = 600
"""Seconds before the last known stamp from which on changes are requested again."""

RELIST: Final = timedelta(days=1)


class Stamped(NamedTuple):
    """A head, and when the service wrote it, in seconds."""

    at: int
    head: HeadRecord


class _Listed(Struct, frozen=True, array_like=True):
    at: datetime
    heads: list[Stamped]
    until: int


_decode = msgspec.msgpack.Decoder(_Listed).decode


class Recent:
    """All known heads of a tenant. For several threads.

    Args:
        owner: the tenant and the store.
        cache: stores them for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...] = (), cache: Cache | None = None) -> None:
        self._kept = CachedValue(owner, cache)
        self._looked = False
        self._guard = threading.Lock()
        self._known: dict[str, Stamped] | None = None
        self._listed: datetime | None = None
        self._until = 0
        self._growing: dict[str, Stamped] = {}
        self._growing_until = 0
        self._goes_on: str | None = None

    def since(self, now: datetime) -> int | None:
        """Return the second from which on to request changes; None if everything must be listed."""
        with self._guard:
            self._look()
            if not self._known or self._listed is None or abs(now - self._listed) >= RELIST:
                return None
            return self._until - OVERLAP

    def follow(
        self,
        after: str | None,
        page: Sequence[Stamped],
        following: str | None,
        now: datetime,
        answered: float | None = None,
    ) -> None:
        """Record a page of a complete list. Only a list that was followed from the first page to the last counts.

        Args:
            after: the name before the page.
            page: its heads.
            following: the name before the next page.
            now: the local time.
            answered: the service's time, if known; else the newest stamp of the page is used.
        """
        with self._guard:
            if not after:
                self._growing, self._growing_until = {}, _until(page, answered)
            elif after != self._goes_on:
                return
            self._growing |= {one.head.name: one for one in page}
            self._goes_on = following
            if following is None:
                self._known, self._listed, self._growing = self._growing, now, {}
                self._until = self._growing_until
                self._keep()

    def merge(
        self, since: int, *pages: Sequence[Stamped], answered: float | None = None
    ) -> tuple[HeadRecord, ...] | None:
        """Record changes since a second, page by page; `answered` is the service's time of the first page.

        Returns:
            All heads; None if everything must be listed: the cache was dropped meanwhile, or a new version has an
            older stamp.
        """
        changed = [one for page in pages for one in page]
        with self._guard:
            if not self._known or since > self._until:
                return None
            if any(_is_odd(one, self._known.get(one.head.name)) for one in changed):
                self._forget()
                return None
            newer = {one.head.name: one for one in changed if one != self._known.get(one.head.name)}
            self._until = max(self._until, _until(next(iter(pages), ()), answered))
            if newer:
                self._known |= newer
                self._keep()
            return tuple(self._known[name].head for name in sorted(self._known))

    def miss(self, name: str) -> None:
        """Record that a head is missing: if it was listed, the cache is dropped."""
        with self._guard:
            self._look()
            if self._known and name in self._known:
                self._forget()

    def _forget(self) -> None:
        self._known = {}
        self._keep()

    def _look(self) -> None:
        """Load what an earlier process has stored, once."""
        if not self._looked and (found := self._kept.read(_decode)) is not None:
            self._known, self._listed = {one.head.name: one for one in found.heads}, found.at
            self._until = found.until
        self._looked = True

    def _keep(self) -> None:
        if self._known is not None and self._listed is not None:
            self._kept.keep(_Listed(self._listed, list(self._known.values()), self._until))


def _is_odd(one: Stamped, known: Stamped | None) -> bool:
    """True for a new version with an older stamp: a replica lags, or two clocks differ."""
    return known is not None and one.head.etag != known.head.etag and one.at < known.at


def _until(page: Iterable[Stamped], answered: float | None) -> int:
    return max((one.at for one in page), default=0) if answered is None else int(answered)
