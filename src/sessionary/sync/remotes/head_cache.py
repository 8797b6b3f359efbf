"""Cache of listed heads, for stores whose complete lists are expensive.

A list of an object store has the etag of each head; its bytes cost a request each. So fetched heads are cached by the
etag in the list, and only changed ones are fetched again. **Such a cache is only trusted for the bytes of an etag**:
the list decides which etag is current.

A list of Cosmos DB reads every head of a tenant, and is charged per head. The service stamps each write with its
second, by its own clock, and that stamp is always indexed. Heads are never removed, only marked, so the listed ones
and those that changed since are complete (`RecentHeads`).

A `Cache` stores the heads for the next process, because most processes are short: `sync pull` is one. If it is lost,
damaged, or that of another store, it only costs requests. If two processes write it at once, the last write wins.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from sessionary.sync.remote import HeadRecord

OVERLAP: Final = 600
"""Seconds before the last known stamp from which on changes are requested again."""

RELIST: Final = timedelta(days=1)
_FORMAT = b"sessionary kept 2"
_DIGEST = 32


class Cache(Protocol):
    """Storage for bytes that may be lost."""

    def read(self) -> bytes | None:
        """Return the stored bytes; None if they are missing or unreadable. Never raises."""
        ...

    def keep(self, data: bytes) -> None:
        """Replace the stored bytes atomically. Never raises."""
        ...


class CachedHead(NamedTuple):
    """A head, and its version in a list: its etag there, or the second of its write.

    The etag for a swap may differ: Google lists etags, but compares generations.
    """

    version: str | int
    head: HeadRecord


class _Stored(Struct, frozen=True, array_like=True):
    heads: list[CachedHead]
    at: datetime | None
    until: int


_decode = msgspec.msgpack.Decoder(_Stored).decode


class HeadCache:
    """The heads as they were listed last. For several threads.

    Args:
        owner: the tenant and the store; data of another owner is ignored.
        cache: stores them for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...] = (), cache: Cache | None = None) -> None:
        self._seal = sha256(_FORMAT + "\0".join(owner).encode("utf-8", "surrogatepass"))
        self._cache = cache
        self._guard = threading.Lock()
        self._is_read = False
        self._known: dict[str, CachedHead] = {}
        self._at: datetime | None = None
        self._until = 0
        self._stored: object = None
        self._listed: dict[str, CachedHead] = {}
        self._listed_until = 0
        self._goes_on: str | None = None

    def get(self, name: str, version: str) -> CachedHead | None:
        """Return the head of this name, if this version of it is cached."""
        with self._guard:
            self._read()
            found = self._known.get(name)
            return found if found is not None and version and found.version == version else None

    def follow(
        self,
        after: str | None,
        page: Iterable[CachedHead],
        following: str | None,
        at: datetime | None = None,
        until: int = 0,
    ) -> None:
        """Record a page of a list. Heads missing in a list are dropped if it was followed from first page to last.

        Args:
            after: the name before the page.
            page: its heads.
            following: the name before the next page.
            at: the local time.
            until: the second, by the clock of the service, from which on changes may be missing.
        """
        with self._guard:
            self._read()
            heads = {one.head.name: one for one in page}
            self._known |= heads
            if not after:
                self._listed, self._listed_until = {}, until
            elif after != self._goes_on:
                return
            self._listed |= heads
            self._goes_on = following
            if following is None:
                self._known = dict(sorted(self._listed.items()))
                self._at, self._until = at, self._listed_until
                self._store()

    def _read(self) -> None:
        """Load what an earlier process has stored, once. Invalid data counts as missing."""
        if self._is_read:
            return
        self._is_read = True
        data = self._cache.read() if self._cache is not None else None
        if data is None or self._digest(data[_DIGEST:]) != data[:_DIGEST]:
            return
        try:
            found = _decode(data[_DIGEST:])
        except msgspec.MsgspecError:
            return
        self._known = {one.head.name: one for one in found.heads}
        self._at, self._until = found.at, found.until
        self._stored = self._state()

    def _store(self) -> None:
        """Store the known heads, if they have changed."""
        state = self._state()
        if state != self._stored:
            self._stored = state
            self._write(_Stored(list(self._known.values()), self._at, self._until))

    def _state(self) -> object:
        """A value that changes with the known heads."""
        return {name: one.version for name, one in self._known.items()}, self._at

    def _write(self, value: Any) -> None:
        if self._cache is not None:
            data = msgspec.msgpack.encode(value)
            self._cache.keep(self._digest(data) + data)

    def _digest(self, data: bytes) -> bytes:
        seal = self._seal.copy()
        seal.update(data)
        return seal.digest()


class RecentHeads(HeadCache):
    """All known heads of a tenant, of which only changed ones are requested again. Their versions are stamps.

    A list is as recent as its *first* page, however late the last one came: the machine may sleep in between, and
    heads of the first page are not read again. Stamps of two servers may differ a little, and a replica may lag: so
    writes of some minutes before that page are requested again each time. Once a day everything is listed again, to
    find what was missed or restored; at once, if a new version has an older stamp.

    Garbage collection does not use this cache: it lists all heads, with "" as ``after``.
    """

    def since(self, now: datetime) -> int | None:
        """Return the second from which on to request changes; None if everything must be listed."""
        with self._guard:
            self._read()
            if not self._known or self._at is None or abs(now - self._at) >= RELIST:
                return None
            return self._until - OVERLAP

    def listed(
        self,
        after: str | None,
        page: Sequence[CachedHead],
        following: str | None,
        now: datetime,
        answered: float | None = None,
    ) -> None:
        """As `follow`. `answered` is the service's time, if known; else the newest stamp of the page is used."""
        self.follow(after, page, following, now, _until(page, answered))

    def merge(
        self, since: int, *pages: Sequence[CachedHead], answered: float | None = None
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
                self._store()
            return tuple(self._known[name].head for name in sorted(self._known))

    def miss(self, name: str) -> None:
        """Record that a head is missing: if it was listed, the cache is dropped."""
        with self._guard:
            self._read()
            if name in self._known:
                self._forget()

    def _forget(self) -> None:
        self._known = {}
        self._store()


def _is_odd(one: CachedHead, known: CachedHead | None) -> bool:
    """True for a new version with an older stamp: a replica lags, or two clocks differ."""
    return known is not None and one.head.etag != known.head.etag and int(one.version) < int(known.version)


def _until(page: Iterable[CachedHead], answered: float | None) -> int:
    return max((int(one.version) for one in page), default=0) if answered is None else int(answered)
