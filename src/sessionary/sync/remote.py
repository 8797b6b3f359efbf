"""The other side: five verbs, and nothing else that a store would have to offer.

What can hold bytes under a name, refuse a name that is taken, and compare before it swaps can be a remote: a document
database, a relational one, an object store. No batch, no lock, no lease, no clock and no change feed is asked for,
because some store lacks each of them or promises it only in part.

A remote knows neither layouts nor sessions: blocks and heads are bytes under names of ``A-Z a-z 0-9 . _ -``.
It is bound to one tenant when it is made. `sessionary.testing.remote_suite` has a test for every MUST below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from sessionary.errors import RemoteError

LARGEST_BLOCK = 384 << 10
"""What a remote MUST be able to hold in one block, and in one head."""

IDLE_PAGES = 100
"""So many pages in a row MAY bring nothing new; a remote that goes on longer is given up."""


class Block(NamedTuple):
    """A block as it is stored."""

    id: str
    data: bytes


class BlockPage(NamedTuple):
    """Some blocks of a range in the order of their ids, and where to go on; None if there are no more."""

    blocks: tuple[Block, ...]
    following: str | None


class HeadRecord(NamedTuple):
    """A head as it is stored. The etag is the remote's own word for this version of it, opaque to all others."""

    name: str
    data: bytes
    etag: str


class HeadPage(NamedTuple):
    """Some heads in any order, and where to go on; None if there are no more."""

    heads: tuple[HeadRecord, ...]
    following: str | None


class Remote(Protocol):
    """Where blocks and heads lie. Calls may come from several threads at once, and from many machines.

    Every call MUST end within a bounded time. What went wrong MUST come as `RemoteError`, with ``retryable=True``
    if the same call may succeed later; ``details["retry_after"]`` may say after how many seconds. A call that raised
    may have been carried out all the same: each of the five may be repeated, whatever became of it before.
    What a call acknowledged MUST survive a crash of the other side. A store that is paid for by the call MAY have an
    attribute `ru`, the units it has charged so far; the caller adds up what its calls add to it.

    Whatever is stored MUST come back as the same bytes. Nothing of another tenant MUST ever be seen or changed.
    """

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        """Store a block under its id in a space; True if it was stored, False if the id was there already.

        A block that is there MUST stay as it is, whatever `data` says. Of several that put one id at once, all MUST
        succeed. A block of `LARGEST_BLOCK` bytes MUST be taken. When this returns, `read_range` MUST find the block,
        on this machine at once.
        """
        ...

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        """The blocks of a space whose ids are not below `first` and below `stop`, in bytewise order of the ids.

        A page MAY hold fewer blocks than there are, even none, but MUST then say where to go on: `following`, given
        back as `after`. Page upon page, each block that was there at the first MUST come exactly once, and it MUST come
        to an end: `following` is never the `after` that was given, and see `IDLE_PAGES`.
        """
        ...

    def read_head(self, name: str) -> HeadRecord | None:
        """The head of this name; None if there is none. MAY be a moment old, but MUST be one that was stored."""
        ...

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        """Replace the head that has this etag, or with None make one where there is none; returns its new etag.

        MUST be decided at one place for all machines: of several that swap the same version, exactly one MUST win.
        If the head is another version by now (or is there, or is not there), nothing MUST be changed, and the answer
        is None. The new etag MUST never have been that of another version of this head.
        """
        ...

    def list_heads(self, after: str | None = None) -> HeadPage:
        """All heads, page by page as in `read_range`; a page SHOULD hold a hundred or more. MAY be a moment old.

        A head that was there at the first page and is not changed meanwhile MUST come exactly once; one that is
        changed meanwhile MUST come at least once, in any of its versions.
        """
        ...


def blocks_of(remote: Remote, space: str, first: str, stop: str) -> Iterator[Block]:
    """All blocks of a range, over all its pages.

    Raises:
        RemoteError: the remote failed, or comes to no end.
    """
    for page in block_pages(remote, space, first, stop):
        yield from page.blocks


def block_pages(remote: Remote, space: str, first: str, stop: str) -> Iterator[BlockPage]:
    """As `blocks_of`, page by page."""
    return _pages(
        lambda after: remote.read_range(space, first, stop, after),
        lambda page: (block.id for block in page.blocks),
    )


def heads_of(remote: Remote) -> Iterator[HeadRecord]:
    """All heads, over all pages.

    Raises:
        RemoteError: the remote failed, or comes to no end.
    """
    for page in _pages(remote.list_heads, lambda page: (head.name for head in page.heads)):
        yield from page.heads


_Page = TypeVar("_Page", BlockPage, HeadPage)


def _pages(read: Callable[[str | None], _Page], names: Callable[[_Page], Iterable[str]]) -> Iterator[_Page]:
    """Page upon page. Whoever holds the other side could otherwise keep a pull busy for ever."""
    seen: set[str] = set()
    after, idle = None, 0
    while True:
        page = read(after)
        yield page
        if page.following is None:
            return
        known = len(seen)
        seen.update(names(page))
        idle = 0 if len(seen) > known else idle + 1
        if page.following == after or idle > IDLE_PAGES:
            raise RemoteError(
                "the remote gives page upon page with nothing new in it",
                hint="nothing here was changed; something is wrong with the store, or with what stands before it",
            )
        after = page.following
