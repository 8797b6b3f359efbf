"""The heads that were listed, so that the next list asks only for those that have changed since.

A list reads every head that a tenant has, and is paid for by the head. The service stamps each write with the second in
which it was made, by its own clock, and that stamp is always indexed. Heads are never removed, only marked, so what was
listed and what has changed since are all there are.

What was listed is as new as the *first* page of the list, however much later the last one came: a machine may sleep in
between, and a head of the first page is not looked at again. The stamps of two servers may differ a little, and a
replica may lag: what was written some minutes before that page was read is asked for again each time. Once a day
everything is listed anew, whatever was missed or restored; at once, where an older stamp comes with a new version.

Whoever removes blocks relies on none of this: he asks for all heads, with ``after`` as the empty text.
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
"""Seconds before the stamp up to which all is known, from which on changes are asked for again."""

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
    """All heads of a tenant as far as they are known. For several threads.

    Args:
        owner: whose heads these are, and where.
        cache: where they are kept for the next process; None to keep them for this one only.
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
        """From which second on to ask for changes; None if everything is to be listed."""
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
        """Note a page of a list of everything. Only a list that was followed from its first page to its last counts.

        Args:
            after: behind which name the page begins.
            page: what is in it.
            following: behind which name the next one begins.
            now: the time by the clock here.
            answered: by that of the service, if it told; else the newest stamp of the page must do.
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
        """Note what has changed since that second, page by page; `answered` is the service's time of the first one.

        Returns:
            All heads; None if that cannot be said, and everything is to be listed: what was known has been forgotten
            meanwhile, or a version came that is another one and yet stamped earlier.
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
        """A head is not there: if it was listed, all of it is forgotten."""
        with self._guard:
            self._look()
            if self._known and name in self._known:
                self._forget()

    def _forget(self) -> None:
        self._known = {}
        self._keep()

    def _look(self) -> None:
        """Find what an earlier process has kept, once."""
        if not self._looked and (found := self._kept.read(_decode)) is not None:
            self._known, self._listed = {one.head.name: one for one in found.heads}, found.at
            self._until = found.until
        self._looked = True

    def _keep(self) -> None:
        if self._known is not None and self._listed is not None:
            self._kept.keep(_Listed(self._listed, list(self._known.values()), self._until))


def _is_odd(one: Stamped, known: Stamped | None) -> bool:
    """True for another version that is stamped earlier: a replica has stayed behind, or the clocks of two differ."""
    return known is not None and one.head.etag != known.head.etag and one.at < known.at


def _until(page: Iterable[Stamped], answered: float | None) -> int:
    return max((one.at for one in page), default=0) if answered is None else int(answered)
