"""The heads that were fetched from a store whose lists have names and etags, but no bytes.

A list of an object store says which version of each head there is; to have its bytes costs a request for each. So what
was fetched is remembered by the etag that lists tell of it, and only a head that has another one by now is fetched
again. **Nothing else is believed of it than that these bytes had this etag**: the list says which etag counts, and a
head that is not in the list is forgotten.

A process that ends would have to begin anew, and most do end: `sync pull` is one. A `Cache` keeps what is remembered
until the next one. It is a cache: lost, damaged, or that of another store, it costs requests and nothing else. Of two
processes that write it at once the last one stands.
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
    """Where bytes are kept that may be lost."""

    def read(self) -> bytes | None:
        """What was kept last; None if nothing is there, or nothing that can be read. Never raises."""
        ...

    def keep(self, data: bytes) -> None:
        """Keep these bytes instead, whole or not at all. Never raises."""
        ...


class CachedValue:
    """Values of one owner in a note. Whatever is not the owner's, undamaged and of this format, is not there.

    Args:
        owner: whose they are, and where: remote, tenant.
        cache: where they are kept; None to keep nothing.
    """

    def __init__(self, owner: tuple[str, ...], cache: Cache | None) -> None:
        self._seal = sha256(FORMAT + "\0".join(owner).encode("utf-8", "surrogatepass"))
        self._cache = cache

    def read(self, decode: Callable[[bytes], _T]) -> _T | None:
        """What was kept, decoded; None if there is nothing, or nothing to be trusted."""
        data = self._cache.read() if self._cache is not None else None
        if data is None or self._digest(data[_DIGEST:]) != data[:_DIGEST]:
            return None
        try:
            return decode(data[_DIGEST:])
        except msgspec.MsgspecError:
            return None

    def keep(self, value: Any) -> None:
        """Keep a value that msgspec can encode."""
        if self._cache is not None:
            data = msgspec.msgpack.encode(value)
            self._cache.keep(self._digest(data) + data)

    def _digest(self, data: bytes) -> bytes:
        seal = self._seal.copy()
        seal.update(data)
        return seal.digest()


class ListedHead(NamedTuple):
    """A head, and the etag by which a list speaks of this version of it.

    That need not be the etag to swap it by: Google lists etags, but compares generations.
    """

    listed: str
    head: HeadRecord


_decode = msgspec.msgpack.Decoder(list[ListedHead]).decode


class HeadCache:
    """Heads as they were fetched last. For several threads.

    Args:
        owner: whose heads these are, and where: what another one has kept is not looked at.
        cache: where they are kept for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...], cache: Cache | None = None) -> None:
        self._kept = CachedValue(owner, cache)
        self._guard = threading.Lock()
        self._known: dict[str, ListedHead] | None = None
        self._versions: dict[str, str] = {}
        self._seen: set[str] = set()
        self._goes_on: str | None = None

    def get(self, name: str, listed: str) -> ListedHead | None:
        """The head of this name, if this version of it is known."""
        with self._guard:
            found = self._all().get(name)
            return found if found is not None and listed and found.listed == listed else None

    def follow(self, after: str | None, page: Iterable[ListedHead], following: str | None) -> None:
        """Note a page of a list. What is missing in a list is forgotten if it was followed from first page to last."""
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
