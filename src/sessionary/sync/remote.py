"""The remote protocol: the verbs of a store of blocks and heads.

A store can be a remote if it can keep bytes under a name, refuse a name that is taken, and compare before it swaps: a
document database, a relational one, an object store. Batches, locks, leases, clocks and change feeds are not
required, because some store lacks each of them or supports it only in part.

A remote knows neither layouts nor sessions: blocks and heads are bytes under names of ``A-Z a-z 0-9 . _ -``. A remote
object is bound to one tenant. `sessionary.testing.remote_suite` has a test for every MUST below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from sessionary.errors import Invalid, RemoteError

LARGEST_BLOCK = 384 << 10
"""Bytes that a remote MUST be able to store in one block, and in one head."""

LATER = (
    "nothing is lost: the files are the queue, and the next push sends them. If this persists, check that the service "
    "runs, and whether its address is right: `sessionary sync init ADDRESS --replace`"
)
"""Hint for a passing failure."""

IDLE_PAGES = 100
"""Number of consecutive pages that MAY contain nothing new; after more of them the caller stops."""


class Block(NamedTuple):
    """A block as stored."""

    id: str
    data: bytes


class BlockPage(NamedTuple):
    """Some blocks of a range in id order, and the position of the next page; None at the end."""

    blocks: tuple[Block, ...]
    following: str | None


class BlockStat(NamedTuple):
    """A block without its bytes.

    Attributes:
        id: its id.
        size: approximate number of bytes stored.
        age: seconds since it was put, by the store's clock; None if unknown. It may be computed on access, which then
            fails as a call does.
        version: opaque identifier of this put.
    """

    id: str
    size: int
    age: float | None
    version: str


class StatPage(NamedTuple):
    """Some blocks of a range in id order, and the position of the next page; None at the end."""

    stats: tuple[BlockStat, ...]
    following: str | None


class HeadRecord(NamedTuple):
    """A head as stored. The etag is an opaque identifier of this version."""

    name: str
    data: bytes
    etag: str


class HeadPage(NamedTuple):
    """Some heads in any order, and the position of the next page; None at the end."""

    heads: tuple[HeadRecord, ...]
    following: str | None


class Remote(Protocol):
    """Storage of blocks and heads. Calls may come from several threads at once, and from many machines.

    Every call MUST end within a bounded time. Failures MUST be raised as `RemoteError`, with ``retryable=True`` if
    the same call may succeed later; ``details["retry_after"]`` may state after how many seconds. A call that raised
    may have been carried out: every call may be repeated, whatever became of it before. What a call acknowledged MUST
    survive a crash of the remote. A store that charges per call MAY have an attribute `ru`, the units charged so far;
    the caller adds up the differences. One that reads blocks to answer another call MAY have an attribute `fetched`,
    their bytes so far.

    Stored bytes MUST be returned unchanged. Data of another tenant MUST never be visible or changed.

    Attributes:
        settled_after: seconds after which all calls have taken effect: no call that raised MUST be carried out later
            than that, and every list and head read from then on MUST show what had been acknowledged before.
    """

    @property
    def settled_after(self) -> float: ...

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        """Store a block under its id in a space; True if it was stored, False if the id existed.

        An existing block MUST stay unchanged, whatever `data` is. Of several concurrent puts of one id, all MUST
        succeed. A block of `LARGEST_BLOCK` bytes MUST be accepted. When this returns, `read_range` MUST find the
        block, on this machine at once.
        """
        ...

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        """Return the blocks of a space with ``first <= id < stop``, in bytewise order of the ids.

        A page MAY hold fewer blocks than exist, even none, but MUST then give the position of the next page:
        `following`, passed back as `after`. Over all pages, each block that existed at the first page MUST appear
        exactly once, and the pages MUST end: `following` is never the given `after`, and see `IDLE_PAGES`.
        """
        ...

    def read_head(self, name: str) -> HeadRecord | None:
        """Return the head of this name; None if it does not exist.

        MAY be a moment old, but MUST be a version that was stored.
        """
        ...

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        """Replace the head that has this etag, or with None create it; return its new etag.

        MUST be decided at one place for all machines: of several swaps of the same version, exactly one MUST win. If
        the head has another version (or exists, or does not exist), nothing MUST be changed, and the result is None.
        The new etag MUST never have been that of another version of this head.
        """
        ...

    def list_heads(self, after: str | None = None) -> HeadPage:
        """Return all heads, in pages as in `read_range`; a page SHOULD hold a hundred or more. MAY be a moment old.

        A head that existed at the first page and is not changed meanwhile MUST appear exactly once; one that is
        changed meanwhile MUST appear at least once, in any of its versions. With "" as `after`, it MUST list
        everything from the store, without a cache of an earlier list: garbage collection begins in this way.
        """
        ...

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        """As `read_range`, without the bytes.

        Nothing MUST be written for that; to determine an age, something MAY be. An age MUST NOT be larger than the
        real one; None if it is unknown. A block that was removed and put again MUST have the age of its last put.
        """
        ...

    def delete_block(self, space: str, block: str, version: str) -> bool:
        """Remove a block if it is this put of it. False if it does not exist, or was put again since.

        When this returns, `read_range` MUST NOT find it, and `put_block` MUST store it as a new one. A store that
        cannot compare and remove in one step MUST compare first, and MAY then remove one that was put again in
        between. A caller without permission MUST get a `RemoteError`, also if the block does not exist. A store that
        cannot remove anything MUST raise one always.
        """
        ...


_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*")


def check_name(name: str) -> str:
    """Return the name of a block, a space or a head.

    Raises:
        Invalid: it has other characters than ``A-Z a-z 0-9 . _ -``, only dots, or more than 255 characters.
    """
    if len(name) > 255 or not _NAME.fullmatch(name):
        allowed = "at most 255 of A-Z a-z 0-9 . _ - are allowed"
        raise Invalid(f"{name[:80]!r} is not a valid name of a block or head: {allowed}")
    return name


def refuse_large(name: str, data: bytes, most: int = LARGEST_BLOCK) -> None:
    """Refuse a block or head that is larger than a remote has to accept. Raises RemoteError."""
    if len(data) > most:
        raise RemoteError(f"{name} has {len(data)} bytes; a block or head may have {most}")


class OpenRemote(Remote, Protocol):
    """A remote with preparation and close."""

    def prepare(self) -> Any:
        """Create what the remote needs, if that is its task, and check that it can store sessions."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class WrappedRemote:
    """A remote around another one. Every verb passes through `call`; a subclass overrides what it changes."""

    def __init__(self, inner: Remote) -> None:
        self._inner = inner

    @property
    def inner(self) -> Remote:
        """The inner remote."""
        return self._inner

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call `verb` of the inner remote."""
        return getattr(self.inner, verb)(*arguments)

    def prepare(self) -> Any:
        """Prepare the inner remote, if it has to be prepared."""
        return getattr(self.inner, "prepare", lambda: None)()

    def close(self) -> None:
        """Close the inner remote, if it can be closed."""
        getattr(self.inner, "close", lambda: None)()

    @property
    def settled_after(self) -> float:
        """As for the inner remote."""
        return self.inner.settled_after

    @property
    def ru(self) -> float:
        """The units that the inner remote has charged so far."""
        return float(getattr(self.inner, "ru", 0.0))

    @property
    def fetched(self) -> int:
        """The bytes of blocks that the inner remote has read to answer other calls."""
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
        page: StatPage = self.call("list_blocks", space, first, stop, after)
        return page

    def delete_block(self, space: str, block: str, version: str) -> bool:
        removed: bool = self.call("delete_block", space, block, version)
        return removed


def blocks_of(remote: Remote, space: str, first: str, stop: str) -> Iterator[Block]:
    """Yield all blocks of a range, over all its pages.

    Raises:
        RemoteError: the remote failed, or its pages do not end.
    """
    for page in block_pages(remote, space, first, stop):
        yield from page.blocks


def is_unreadable(error: RemoteError) -> bool:
    """True if the store answered with a block that cannot be decrypted: a retry returns the same."""
    return "unreadable" in (error.details or {})


def block_pages(remote: Remote, space: str, first: str, stop: str) -> Iterator[BlockPage]:
    """As `blocks_of`, page by page."""
    return _pages(
        lambda after: remote.read_range(space, first, stop, after),
        lambda page: (block.id for block in page.blocks),
    )


def heads_of(remote: Remote, *, anew: bool = False) -> Iterator[HeadRecord]:
    """Yield all heads, over all pages.

    Args:
        anew: do not use a cache of an earlier list.

    Raises:
        RemoteError: the remote failed, or its pages do not end.
    """
    heads = _pages(remote.list_heads, lambda page: (head.name for head in page.heads), "" if anew else None)
    for page in heads:
        yield from page.heads


def heads_by_name(remote: Remote) -> dict[str, HeadRecord]:
    """Return all heads by name. Raises as `heads_of`."""
    return {record.name: record for record in heads_of(remote)}


def stats_of(remote: Remote, space: str, first: str = "", stop: str = "~") -> Iterator[BlockStat]:
    """Yield all blocks of a range without their bytes, over all its pages. Raises as `blocks_of`."""
    pages: Iterator[StatPage] = _pages(
        lambda after: remote.list_blocks(space, first, stop, after),
        lambda page: (one.id for one in page.stats),
    )
    for page in pages:
        yield from page.stats


def read_block(remote: Remote, space: str, name: str) -> bytes | RemoteError | None:
    """Return the bytes of a block; None if it is missing, the error if it cannot be decrypted."""
    try:
        found = blocks_of(remote, space, name, name + "~")
        return next((block.data for block in found if block.id == name), None)
    except RemoteError as error:
        if not is_unreadable(error):
            raise
        return error


_Page = TypeVar("_Page", BlockPage, HeadPage, StatPage)


def _pages(
    read: Callable[[str | None], _Page], names: Callable[[_Page], Iterable[str]], after: str | None = None
) -> Iterator[_Page]:
    """Yield the pages. An endless sequence is refused: it would keep a pull busy for ever."""
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
                "the remote returns pages without anything new",
                hint="nothing here was changed; check the store, and any proxy before it",
            )
        after = page.following
