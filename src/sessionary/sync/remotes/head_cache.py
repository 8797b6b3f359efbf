"""Cache of fetched heads, for stores whose lists have names and etags but no bytes.

A list of an object store has the etag of each head; its bytes cost a request each. So fetched heads are cached by the
etag in the list, and only changed ones are fetched again. **The cache is only trusted for the bytes of an etag**: the
list decides which etag is current, and heads that are not listed are dropped.

A `Cache` keeps it for the next process, because most processes are short: `sync pull` is one. If it is lost, damaged,
or that of another store, it only costs requests. If two processes write it at once, the last write wins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from sessionary.sync.remote import HeadRecord

FORMAT = b"sessionary kept 1"
_DIGEST = 32
_T = TypeVar("_T")


class Cache(Protocol):
    """Storage for bytes that may be lost."""

    def read(self) -> bytes | None:
        """Return the stored bytes; None if they are missing or unreadable. Never raises."""
        ...

    def keep(self, data: bytes) -> None:
        """Replace the stored bytes atomically. Never raises."""
        ...


class CachedValue:
    """A value of one owner in a cache. Damaged data, and data of other owners or formats, count as missing.

    Args:
        owner: its identity: remote, tenant.
        cache: stores it; None to store nothing.
    """

    def __init__(self, owner: tuple[str, ...], cache: Cache | None) -> None:
        self._seal = sha256(FORMAT + "\0".join(owner).encode("utf-8", "surrogatepass"))
        self._cache = cache

    def read(self, decode: Callable[[bytes], _T]) -> _T | None:
        """Return the decoded value; None if it is missing or invalid."""
        data = self._cache.read() if self._cache is not None else None
        if data is None or self._digest(data[_DIGEST:]) != data[:_DIGEST]:
            return None
        try:
            return decode(data[_DIGEST:])
        except msgspec.MsgspecError:
            return None

    def keep(self, value: Any) -> None:
        """Store a value that msgspec can encode."""
        if self._cache is not None:
            data = msgspec.msgpack.encode(value)
            self._cache.keep(self._digest(data) + data)

    def _digest(self, data: bytes) -> bytes:
        seal = self._seal.copy()
        seal.update(data)
        return seal.digest()


class ListedHead(NamedTuple):
    """A head, and its etag in the list.

    The etag for a swap may differ: Google lists etags, but compares generations.
    """

    listed: str
    head: HeadRecord


_decode = msgspec.msgpack.Decoder(list[ListedHead]).decode


class HeadCache:
    """The heads as they were fetched last. For several threads.

    Args:
        owner: the tenant and the store; data of another owner is ignored.
        cache: stores them for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...], cache: Cache | None = None) -> None:
        self._kept = CachedValue(owner, cache)
        self._guard = threading.Lock()
        self._known: dict[str, ListedHead] | None = None
        self._versions: dict[str, str] = {}
        self._seen: set[str] = set()
        self._goes_on: str | None = None

    def get(self, name: str, listed: str) -> ListedHead | None:
        """Return the head of this name, if this version of it is cached."""
        with self._guard:
            found = self._all().get(name)
            return found if found is not None and listed and found.listed == listed else None

    def follow(self, after: str | None, page: Iterable[ListedHead], following: str | None) -> None:
        """Record a page of a list. Heads missing in a list are dropped if it was followed from first page to last."""
        with self._guard:
            heads = {one.head.name: one for one in page}
            known = self._all()
            known |= heads
            if not after:
                self._seen = set()
            elif after != self._goes_on:
                return
            self._seen |= heads.keys()
            self._goes_on = following
            if following is None:
                self._known = {name: known[name] for name in sorted(self._seen)}
                self._keep(self._known)

    def _all(self) -> dict[str, ListedHead]:
        if self._known is None:
            self._known = {one.head.name: one for one in self._kept.read(_decode) or ()}
            self._versions = _versions(self._known)
        return self._known

    def _keep(self, known: dict[str, ListedHead]) -> None:
        versions = _versions(known)
        if versions != self._versions:
            self._kept.keep(list(known.values()))
            self._versions = versions


def _versions(known: dict[str, ListedHead]) -> dict[str, str]:
    return {name: one.listed for name, one in known.items()}
