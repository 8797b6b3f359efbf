"""The heads that were fetched from a store whose lists have names and etags, but no bytes.

A list of an object store says which version of each head there is; to have its bytes costs a request for each. So what
was fetched is remembered by the etag that lists tell of it, and only a head that has another one by now is fetched
again. **Nothing else is believed of it than that these bytes had this etag**: the list says which etag counts, and a
head that is not in the list is forgotten.

A process that ends would have to begin anew, and most do end: `sync pull` is one. A `Note` keeps what is remembered
until the next one. It is a cache: lost, damaged, or that of another store, it costs requests and nothing else. Of two
processes that write it at once the last one stands.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from sessionary.sync.remote import HeadRecord
from sessionary.sync.remotes.kept import Kept, Note


class ListedHead(NamedTuple):
    """A head, and the etag by which a list speaks of this version of it.

    That need not be the etag to swap it by: Google lists etags, but compares generations.
    """

    listed: str
    head: HeadRecord


_decode = msgspec.msgpack.Decoder(list[ListedHead]).decode


class FetchedHeads:
    """Heads as they were fetched last. For several threads.

    Args:
        owner: whose heads these are, and where: what another one has kept is not looked at.
        note: where they are kept for the next process; None to keep them for this one only.
    """

    def __init__(self, owner: tuple[str, ...], note: Note | None = None) -> None:
        self._kept = Kept(owner, note)
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
