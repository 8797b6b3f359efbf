"""The other side: five verbs, and nothing else that a store would have to offer.

What can hold bytes under a name, refuse a name that is taken, and compare before it swaps can be a remote: a document
database, a relational one, an object store. No batch, no lock, no lease, no clock and no change feed is asked for,
because some store lacks each of them or promises it only in part.

Removing is asked of nobody. A store that can do it offers a sixth verb, `Collectable`, in two halves.

A remote knows neither layouts nor sessions: blocks and heads are bytes under names of ``A-Z a-z 0-9 . _ -``.
It is bound to one tenant when it is made. `sessionary.testing.remote_suite` has a test for every MUST below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from sessionary.errors import RemoteError, Unsupported

LARGEST_BLOCK = 384 << 10
"""What a remote MUST be able to hold in one block, and in one head."""

LATER = (
    "nothing is lost: the files are the queue, and the next push sends them. If it stays so, see whether the service "
    "runs, and whether its address is right: `sessionary sync init ADDRESS --replace`"
)
"""What to do about a failure that may pass."""

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


class BlockStat(NamedTuple):
    """A block without its bytes.

    Attributes:
        id: its id.
        size: about how many bytes are stored.
        age: seconds since it was put, by the store's own clock; None if the store cannot tell. It may be asked for only
            when it is looked at, which then fails as a call does.
        version: the store's own word for this putting of it, opaque to all others.
    """

    id: str
    size: int
    age: float | None
    version: str


class StatPage(NamedTuple):
    """Some blocks of a range in the order of their ids, and where to go on; None if there are no more."""

    stats: tuple[BlockStat, ...]
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
    may have been carried out all the same: each of them may be repeated, whatever became of it before.
    What a call acknowledged MUST survive a crash of the other side. A store that is paid for by the call MAY have an
    attribute `ru`, the units it has charged so far; the caller adds up what its calls add to it.
    One that reads blocks to answer another call MAY have an attribute `fetched`, their bytes so far.

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
        Asked for what stands behind the empty text, it MUST ask the store for all of them, and may not make do with
        what it has kept of an earlier list: so whoever removes blocks begins.
        """
        ...


class Collectable(Remote, Protocol):
    """A remote from which blocks can be removed: the optional sixth verb. docs/formats/sync.md says how to use it.

    Attributes:
        settled_after: seconds after which all is as it was told: no call that raised MUST be carried out later than
            that, and every list and every head that is read from then on MUST show what had been acknowledged before.
    """

    @property
    def settled_after(self) -> float: ...

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        """As `read_range`, without the bytes.

        Nothing MUST be written for that; to tell an age, something MAY be. An age MUST NOT be larger than it is:
        whoever cannot tell says None. A block that was removed and put again MUST have the age of its last putting.
        """
        ...

    def delete_block(self, space: str, block: str, version: str) -> bool:
        """Remove a block if it is this putting of it. False if it is not there, or was put anew since.

        When this returns, `read_range` MUST NOT find it, and `put_block` MUST store it as if it had never been there.
        A store that cannot compare and remove in one step MUST look first, and MAY then remove one that was put anew
        in between. Who lacks the right MUST be told so by a `RemoteError`, also where the block is not there.
        """
        ...


def collectable(remote: Remote) -> Collectable | None:
    """The remote, if blocks can be removed from it; else None."""
    return None if getattr(remote, "settled_after", None) is None else cast("Collectable", remote)


def must_collect(remote: Remote) -> Collectable:
    """The remote, which supports the removal of blocks.

    Raises:
        Unsupported: it does not.
    """
    found = collectable(remote)
    if found is None:
        raise Unsupported("nothing can be removed from this remote", operation="gc")
    return found


class OpenRemote(Remote, Protocol):
    """A remote with what is done before the first call and after the last."""

    def prepare(self) -> Any:
        """Make what it needs on the other side, if that is its business, and find out whether it can hold sessions."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class WrappedRemote:
    """A remote around another one. Every verb passes through `call`; a subclass overrides what it changes."""

    def __init__(self, inner: Remote) -> None:
        self._inner = inner

    @property
    def inner(self) -> Remote:
        """The remote inside."""
        return self._inner

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call `verb` of the remote inside."""
        return getattr(self.inner, verb)(*arguments)

    def prepare(self) -> Any:
        """Prepare the remote inside, if it has to be prepared."""
        return getattr(self.inner, "prepare", lambda: None)()

    def close(self) -> None:
        """Close the remote inside, if it can be closed."""
        getattr(self.inner, "close", lambda: None)()

    @property
    def settled_after(self) -> float | None:
        """As for the remote inside; None if it does not support removal."""
        return getattr(self.inner, "settled_after", None)

    @property
    def ru(self) -> float:
        """The units that the remote inside has charged so far."""
        return float(getattr(self.inner, "ru", 0.0))

    @property
    def fetched(self) -> int:
        """The bytes of blocks that the remote inside has read to answer other calls."""
        return int(getattr(self.inner, "fetched", 0))

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        stored: bool = self.call("put_block", space, block, data)
        return stored

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page: BlockPage = self.call("read_range", space, first, stop, after)
        return page

    def read_head(self, name: str) -> HeadRecord | None:
        head: HeadRecord | None = self.call("read_head", name)
        return head

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        new: str | None = self.call("swap_head", name, data, etag)
        return new

    def list_heads(self, after: str | None = None) -> HeadPage:
        page: HeadPage = self.call("list_heads", after)
        return page

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        must_collect(self)
        page: StatPage = self.call("list_blocks", space, first, stop, after)
        return page

    def delete_block(self, space: str, block: str, version: str) -> bool:
        must_collect(self)
        removed: bool = self.call("delete_block", space, block, version)
        return removed


def blocks_of(remote: Remote, space: str, first: str, stop: str) -> Iterator[Block]:
    """All blocks of a range, over all its pages.

    Raises:
        RemoteError: the remote failed, or comes to no end.
    """
    for page in block_pages(remote, space, first, stop):
        yield from page.blocks


def is_unreadable(error: RemoteError) -> bool:
    """True if the store answered, and what it gave is a block that cannot be opened: the next call gives it again."""
    return "unreadable" in (error.details or {})


def block_pages(remote: Remote, space: str, first: str, stop: str) -> Iterator[BlockPage]:
    """As `blocks_of`, page by page."""
    return _pages(
        lambda after: remote.read_range(space, first, stop, after),
        lambda page: (block.id for block in page.blocks),
    )


def heads_of(remote: Remote, *, anew: bool = False) -> Iterator[HeadRecord]:
    """All heads, over all pages.

    Args:
        remote: the other side.
        anew: take nothing from what was kept of an earlier list.

    Raises:
        RemoteError: the remote failed, or comes to no end.
    """
    heads = _pages(remote.list_heads, lambda page: (head.name for head in page.heads), "" if anew else None)
    for page in heads:
        yield from page.heads


def stats_of(remote: Collectable, space: str, first: str = "", stop: str = "~") -> Iterator[BlockStat]:
    """All blocks of a range without their bytes, over all its pages. Raises as `blocks_of`."""
    pages: Iterator[StatPage] = _pages(
        lambda after: remote.list_blocks(space, first, stop, after),
        lambda page: (one.id for one in page.stats),
    )
    for page in pages:
        yield from page.stats


_Page = TypeVar("_Page", BlockPage, HeadPage, StatPage)


def _pages(
    read: Callable[[str | None], _Page], names: Callable[[_Page], Iterable[str]], after: str | None = None
) -> Iterator[_Page]:
    """Page upon page. Whoever holds the other side could otherwise keep a pull busy for ever."""
    seen: set[str] = set()
    idle = 0
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
