"""A remote in one file, which several processes share: the other side for tests with programs that are killed.

SQLite does what is hard about it: a call is one transaction, a process that dies within one has done nothing, and of
several that swap one version the first wins. A connection is opened for each call, so none is inherited by a fork.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sessionary.errors import RemoteError
from sessionary.sync.remote import LARGEST_BLOCK, Block, BlockPage, BlockStat, HeadPage, HeadRecord, StatPage

PAGE_BLOCKS, PAGE_STATS, PAGE_HEADS = 16, 100, 200

_TABLES = """
CREATE TABLE IF NOT EXISTS blocks (tenant, space, id, data, put_at REAL, PRIMARY KEY (tenant, space, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS heads (tenant, name, data, version INTEGER, PRIMARY KEY (tenant, name)) WITHOUT ROWID;
"""


class FileRemote:
    """One tenant's blocks and heads in a file.

    Its blocks can be removed, too. A call is carried out before it returns, or never.

    Args:
        path: the file; made if it is not there, in a folder that is.
        tenant: whose they are.
    """

    settled_after = 0.0

    def __init__(self, path: str | os.PathLike[str], tenant: str = "me") -> None:
        self._path = os.fspath(path)
        self._tenant = tenant
        with self._opened() as base:
            base.executescript(_TABLES)

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        _refuse_large(block, data)
        with self._opened() as base:
            row = (self._tenant, space, block, data, time.time())
            return base.execute("INSERT OR IGNORE INTO blocks VALUES (?, ?, ?, ?, ?)", row).rowcount == 1

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        query = (
            "SELECT id, data FROM blocks WHERE tenant = ? AND space = ? AND id >= ? AND id < ? AND id > ?"
            " ORDER BY id LIMIT ?"
        )
        with self._opened() as base:
            row = (self._tenant, space, first, stop, after or "", PAGE_BLOCKS + 1)
            found = [Block(*one) for one in base.execute(query, row)]
        more = len(found) > PAGE_BLOCKS
        return BlockPage(tuple(found[:PAGE_BLOCKS]), found[PAGE_BLOCKS - 1].id if more else None)

    def read_head(self, name: str) -> HeadRecord | None:
        query = "SELECT name, data, version FROM heads WHERE tenant = ? AND name = ?"
        with self._opened() as base:
            row = base.execute(query, (self._tenant, name)).fetchone()
        return None if row is None else HeadRecord(row[0], row[1], str(row[2]))

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        _refuse_large(name, data)
        with self._opened() as base:
            if etag is None:
                row = (self._tenant, name, data)
                done = base.execute("INSERT OR IGNORE INTO heads VALUES (?, ?, ?, 1)", row).rowcount
                return "1" if done else None
            swap = "UPDATE heads SET data = ?, version = version + 1 WHERE tenant = ? AND name = ? AND version = ?"
            if not base.execute(swap, (data, self._tenant, name, etag)).rowcount:
                return None
            return str(int(etag) + 1)

    def list_heads(self, after: str | None = None) -> HeadPage:
        query = "SELECT name, data, version FROM heads WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?"
        with self._opened() as base:
            rows = base.execute(query, (self._tenant, after or "", PAGE_HEADS + 1)).fetchall()
        found = tuple(HeadRecord(name, data, str(version)) for name, data, version in rows[:PAGE_HEADS])
        return HeadPage(found, found[-1].name if len(rows) > PAGE_HEADS else None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        query = (
            "SELECT id, length(data), put_at FROM blocks WHERE tenant = ? AND space = ? AND id >= ? AND id < ?"
            " AND id > ? ORDER BY id LIMIT ?"
        )
        with self._opened() as base:
            row = (self._tenant, space, first, stop, after or "", PAGE_STATS + 1)
            found = base.execute(query, row).fetchall()
        now = time.time()
        stats = tuple(_stat(name, size, put_at, now) for name, size, put_at in found[:PAGE_STATS])
        return StatPage(stats, stats[-1].id if len(found) > PAGE_STATS else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        query = "DELETE FROM blocks WHERE tenant = ? AND space = ? AND id = ? AND put_at = ?"
        with self._opened() as base:
            row = (self._tenant, space, block, float(version or "nan"))
            return base.execute(query, row).rowcount == 1

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=30)) as base, base:
                yield base
        except sqlite3.Error as error:
            raise RemoteError(f"{self._path}: {error}", retryable=True) from error


def _stat(name: str, size: int, put_at: float | None, now: float) -> BlockStat:
    if put_at is None:
        return BlockStat(name, size, None, "")
    return BlockStat(name, size, max(0.0, now - put_at), repr(put_at))


def _refuse_large(name: str, data: bytes) -> None:
    if len(data) > LARGEST_BLOCK:
        raise RemoteError(f"{name} has {len(data)} bytes; a block or head may have {LARGEST_BLOCK}")
