"""In-memory remote: the reference for all others, and a server for tests with several machines.

Machines share a `MemoryServer`; `remote` returns the view of one tenant.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable

from sessionary.sync.remote import (
    Block,
    BlockPage,
    BlockStat,
    HeadPage,
    HeadRecord,
    StatPage,
    refuse_large,
)

PAGE_BYTES = 4 << 20
PAGE_HEADS = 200
PAGE_STATS = 1000


class _Tenant:
    def __init__(self) -> None:
        self.blocks: dict[str, dict[str, bytes]] = defaultdict(dict)
        self.ids: dict[str, list[str]] = defaultdict(list)
        self.put: dict[tuple[str, str], tuple[float, int]] = {}
        self.heads: dict[str, tuple[bytes, int]] = {}
        self.names: list[str] = []


class MemoryServer:
    """Shared storage of several machines. Lost with the process.

    Args:
        page_bytes: approximate bytes of blocks in a page.
        page_heads: number of heads in a page.
        clock: seconds, for the age of blocks.
    """

    def __init__(
        self,
        *,
        page_bytes: int = PAGE_BYTES,
        page_heads: int = PAGE_HEADS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self.page_bytes = page_bytes
        self.page_heads = page_heads
        self.guard = threading.Lock()
        self.tenants: dict[str, _Tenant] = defaultdict(_Tenant)
        self.versions = 0

    def remote(self, tenant: str = "me") -> MemoryRemote:
        """Return the view of one tenant."""
        return MemoryRemote(self, tenant)


class MemoryRemote:
    """One tenant's blocks and heads on a `MemoryServer`."""

    settled_after = 0.0

    def __init__(self, server: MemoryServer, tenant: str) -> None:
        self._server = server
        self._mine = server.tenants[tenant]

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        refuse_large(block, data)
        with self._server.guard:
            if block in self._mine.blocks[space]:
                return False
            self._mine.blocks[space][block] = bytes(data)
            insort(self._mine.ids[space], block)
            self._server.versions += 1
            self._mine.put[space, block] = self._server.clock(), self._server.versions
            return True

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        with self._server.guard:
            ids = self._mine.ids[space]
            at = bisect_left(ids, first) if after is None else bisect_right(ids, after)
            end = bisect_left(ids, stop)
            found: list[Block] = []
            size = 0
            while at < end and (not found or size < self._server.page_bytes):
                found.append(Block(ids[at], self._mine.blocks[space][ids[at]]))
                size += len(found[-1].data)
                at += 1
            return BlockPage(tuple(found), found[-1].id if found and at < end else None)

    def read_head(self, name: str) -> HeadRecord | None:
        with self._server.guard:
            return self._head(name)

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        refuse_large(name, data)
        with self._server.guard:
            present = self._head(name)
            if (None if present is None else present.etag) != etag:
                return None
            if present is None:
                insort(self._mine.names, name)
            self._server.versions += 1
            self._mine.heads[name] = bytes(data), self._server.versions
            return str(self._server.versions)

    def list_heads(self, after: str | None = None) -> HeadPage:
        with self._server.guard:
            at = 0 if after is None else bisect_right(self._mine.names, after)
            names = self._mine.names[at : at + self._server.page_heads]
            found = tuple(head for head in map(self._head, names) if head is not None)
            more = at + len(names) < len(self._mine.names)
            return HeadPage(found, names[-1] if more else None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        with self._server.guard:
            ids = self._mine.ids[space]
            at = bisect_left(ids, first) if after is None else bisect_right(ids, after)
            end = min(bisect_left(ids, stop), at + PAGE_STATS)
            more = end < bisect_left(ids, stop)
            stats = tuple(self._stat(space, block) for block in ids[at:end])
            return StatPage(stats, ids[end - 1] if more else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        with self._server.guard:
            if block not in self._mine.blocks[space] or self._stat(space, block).version != version:
                return False
            del self._mine.blocks[space][block]
            self._mine.ids[space].remove(block)
            self._mine.put.pop((space, block), None)
            return True

    def _stat(self, space: str, block: str) -> BlockStat:
        size = len(self._mine.blocks[space][block])
        put = self._mine.put.get((space, block))
        age = None if put is None else max(0.0, self._server.clock() - put[0])
        return BlockStat(block, size, age, "" if put is None else str(put[1]))

    def _head(self, name: str) -> HeadRecord | None:
        present = self._mine.heads.get(name)
        return present and HeadRecord(name, present[0], str(present[1]))
