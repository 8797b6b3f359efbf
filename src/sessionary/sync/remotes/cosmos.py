"""Blocks and heads in one container of Azure Cosmos DB (API for NoSQL), through Microsoft's own SDK.

Each block and each head is one item. There is a partition for the blocks of each space, and one for the heads of each
tenant, so that every request reads a single partition:

====== ==================== ============ ==========================================================================
what   ``pk``               ``id``       bytes
====== ==================== ============ ==========================================================================
block  ``b!TENANT!SPACE``   the block's  ``b``: base64
head   ``h!TENANT``         the head's   ``t``: as text, if it is printable ASCII (readable in the portal); else ``b``
====== ==================== ============ ==========================================================================

The code relies only on what the service decides at one place: that an id is new (409), and that an etag matches (412).
A lost answer is harmless: a block that is created again exists already, and a swapped head has another etag. Ranges
are requested by key and not by continuation token, so any client can request a page again. Heads are read by query and
not by point read: for a missing head emulators answer 500, where the service answers 404.

A repeated list of heads requests only changed ones (`head_cache`), because lists are charged per head.

Tenants are separated by the names of partitions only. Data roles of Cosmos DB apply to whole containers:
read permission on a container covers all of it. Give each tenant its own container where that matters.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sessionary.errors import Invalid, RemoteError
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remote import Block, BlockPage, BlockStat, HeadPage, HeadRecord, StatPage, check_name
from sessionary.sync.remotes.cosmos_link import Link, ResponseHeaders
from sessionary.sync.remotes.head_cache import Cache, CachedHead, RecentHeads

if TYPE_CHECKING:
    from azure.cosmos import ContainerProxy

_Row = dict[str, Any]
PATIENCE: Final = 120.0
PAGE_BLOCKS, PAGE_HEADS, PAGE_STATS = 100, 400, 1000
"""Page sizes; the service also ends pages at 4 MB."""

LARGEST_ITEM: Final = (2 << 20) - (4 << 10)
"""An item may have 2 MB; the service adds a few properties."""

_TAKEN, _CHANGED, _GONE = 409, 412, 404
_HEAD: Final = "c.id, c.t, c.b, c._etag"


class CosmosRemote:
    """One tenant's blocks and heads in a container.

    Nothing is imported or requested before the first call. Calls may come from several threads.

    Args:
        config: the container and the credentials.
        tenant: the owner of the sessions; any text without ``!``, the same on all machines of the tenant.
        patience: seconds after which a call fails; a server that sends nothing fails earlier.
        page_blocks: number of blocks in a request.
        page_heads: number of heads in a request.
        cache: stores the listed heads, so that the next process requests only changed ones.
        now: the clock, to detect a wrong one.

    Raises:
        Invalid: the tenant cannot be a part of a key.
    """

    def __init__(
        self,
        config: CosmosConfig,
        *,
        tenant: str,
        patience: float = PATIENCE,
        page_blocks: int = PAGE_BLOCKS,
        page_heads: int = PAGE_HEADS,
        cache: Cache | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not tenant or "!" in tenant or len(tenant.encode()) > 512:
            raise Invalid(f"{tenant[:80]!r} cannot be a tenant", hint="1 to 512 bytes of text, without !")
        self._link = Link(config, patience=patience, now=now)
        self._tenant = tenant
        self._heads = f"h!{tenant}"
        self._recent = RecentHeads((config.endpoint, config.database, config.container, tenant), cache)
        self._now = now
        self._page_blocks = page_blocks
        self._page_heads = page_heads

    settled_after = 30.0

    def __repr__(self) -> str:
        return f"CosmosRemote({self._link.config!r}, tenant={self._tenant!r})"

    @property
    def ru(self) -> float:
        """The request units that the service has charged so far."""
        return self._link.ru

    def prepare(self) -> None:
        """Create the database and the container if they are missing; existing ones are unchanged.

        Checks that items can be created and replaced, with one that is removed again if permitted.

        Nothing else creates them: a data role may not, and a wrong name must be noticed.

        Raises:
            RemoteError: the service refuses, or the existing container is not ours.
        """
        self._link.prepare()
        self._prove_writing()

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._link.close()

    # -- the verbs

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        item = _item(self._space(space), block, base64.b64encode(data).decode(), "b")
        return self._create(item) is not None

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        rows, more, _ = self._page(
            "SELECT c.id, c.b FROM c WHERE c.pk = @pk AND c.id {} @first AND c.id < @stop ORDER BY c.id".format(
                ">=" if after is None else ">"
            ),
            {"@pk": self._space(space), "@first": first if after is None else after, "@stop": stop},
            self._page_blocks,
        )
        blocks = tuple(Block(row["id"], _bytes(row)) for row in rows)
        return BlockPage(blocks, blocks[-1].id if more and blocks else None)

    def read_head(self, name: str) -> HeadRecord | None:
        rows, _, _ = self._page(
            f"SELECT {_HEAD} FROM c WHERE c.pk = @pk AND c.id = @id", {"@pk": self._heads, "@id": name}, 1
        )
        if not rows:
            self._recent.miss(name)
            return None
        return _head(rows[0])

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        text = data.decode("ascii") if data.isascii() else ""
        readable = bool(text) and text.isprintable()
        item = _item(
            self._heads, name, text if readable else base64.b64encode(data).decode(), "t" if readable else "b"
        )
        return self._create(item) if etag is None else self._replace(item, etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        since = self._recent.since(self._now()) if after is None else None
        if since is not None and (heads := self._brought_up(since)) is not None:
            return HeadPage(heads, None)
        rows, more, answered = self._page(
            f"SELECT {_HEAD}, c._ts FROM c WHERE c.pk = @pk AND c.id > @after ORDER BY c.id",
            {"@pk": self._heads, "@after": after or ""},
            self._page_heads,
        )
        page = [_stamped(row) for row in rows]
        following = page[-1].head.name if more and page else None
        self._recent.listed(after, page, following, self._now(), answered)
        return HeadPage(tuple(one.head for one in page), following)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        beyond = ">=" if after is None else ">"
        rows, more, now = self._page(
            "SELECT c.id, c._ts, c._etag, LENGTH(c.b) AS size FROM c "
            f"WHERE c.pk = @pk AND c.id {beyond} @first AND c.id < @stop ORDER BY c.id",
            {"@pk": self._space(space), "@first": first if after is None else after, "@stop": stop},
            PAGE_STATS,
        )
        stats = tuple(_stat(row, now) for row in rows)
        return StatPage(stats, stats[-1].id if more and stats else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        return self._delete(self._space(space), check_name(block), version)

    def _delete(self, pk: str, name: str, version: str) -> bool:
        def work(container: ContainerProxy, answer: ResponseHeaders) -> bool:
            container.delete_item(name, pk, response_hook=answer, **_if_match(version))
            return True

        return self._link.ask(work, _CHANGED, _GONE) is True

    def _brought_up(self, since: int) -> tuple[HeadRecord, ...] | None:
        """Return all heads, requesting only those that were written since a second of the service's clock."""
        pages, _, answered = self._query(
            f"SELECT {_HEAD}, c._ts FROM c WHERE c.pk = @pk AND c._ts >= @since",
            {"@pk": self._heads, "@since": since},
            self._page_heads,
            whole=True,
        )
        return self._recent.merge(
            since, *([_stamped(row) for row in page] for page in pages), answered=answered
        )

    def _prove_writing(self) -> None:
        """Create and replace an item in a partition that nothing else reads."""
        pk, name = f"c!{self._tenant}", f"check-{secrets.token_hex(8)}"
        item = _item(pk, name, "", "b")
        etag = self._create(item)
        if etag is None or (etag := self._replace(item, etag)) is None:
            raise RemoteError(
                f"{self!r} does not store what was written", hint="choose another container, or try again"
            )
        with suppress(RemoteError):  # without permission to delete, a few bytes stay
            self._delete(pk, name, etag)

    # -- requests

    def _create(self, item: dict[str, str]) -> str | None:
        """Return the etag of a new item; None if its id is taken."""

        def work(container: ContainerProxy, answer: ResponseHeaders) -> str:
            container.create_item(item, response_hook=answer)
            return _etag(answer)

        return self._link.ask(work, _TAKEN)

    def _replace(self, item: dict[str, str], etag: str) -> str | None:
        """Return the new etag of an item; None if its etag has changed, or it does not exist."""

        def work(container: ContainerProxy, answer: ResponseHeaders) -> str:
            container.replace_item(item["id"], item, response_hook=answer, **_if_match(etag))
            return _etag(answer)

        return self._link.ask(work, _CHANGED, _GONE)

    def _query(
        self, query: str, values: dict[str, str | int], count: int, *, whole: bool = False
    ) -> tuple[list[list[_Row]], bool, float | None]:
        """Return rows of a query over one partition: one page of them, or with `whole` all, page by page.

        Emulators ignore the partition key beside a query, and search all: so each query contains it.

        Returns:
            The pages, whether there are more, and the service's time of the first answer, if known.
        """
        named: list[dict[str, object]] = [{"name": name, "value": value} for name, value in values.items()]

        def work(
            container: ContainerProxy, answer: ResponseHeaders
        ) -> tuple[list[list[_Row]], bool, float | None]:
            pages: Any = container.query_items(
                query,
                parameters=named,
                partition_key=values["@pk"],
                max_item_count=count,
                response_hook=answer,
            ).by_page()
            found: list[list[_Row]] = []
            for page in pages:
                found.append(list(page))
                if found[-1] and not whole:
                    return found[-1:], pages.continuation_token is not None, answer.time
            return found if whole else [], False, answer.time

        answer = self._link.ask(work)
        assert answer is not None, "no status was passed that allows None"
        return answer

    def _page(
        self, query: str, values: dict[str, str | int], count: int
    ) -> tuple[list[_Row], bool, float | None]:
        """Return one page of a query, as `_query`."""
        pages, more, answered = self._query(query, values, count)
        return [row for page in pages for row in page], more, answered

    def _space(self, space: str) -> str:
        return f"b!{self._tenant}!{check_name(space)}"


def _if_match(etag: str) -> dict[str, Any]:
    from azure.core import MatchConditions

    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _item(pk: str, name: str, text: str, field: str) -> dict[str, str]:
    if len(text) > LARGEST_ITEM:
        raise RemoteError(f"{name} takes {len(text)} bytes as an item of Cosmos DB, which has 2 MB at most")
    return {"id": check_name(name), "pk": pk, field: text}


def _etag(answer: ResponseHeaders) -> str:
    if answer.etag is None:
        raise ValueError("the answer to a write has no etag")
    return answer.etag


def _head(row: _Row) -> HeadRecord:
    return HeadRecord(row["id"], _bytes(row), row["_etag"])


def _stamped(row: _Row) -> CachedHead:
    return CachedHead(int(row["_ts"]), _head(row))


def _stat(row: _Row, now: float | None) -> BlockStat:
    """Return a block without its bytes; its stamp has whole seconds, so a second is subtracted from its age."""
    size = int(row.get("size") or 0) * 3 // 4
    age = None if now is None else max(0.0, now - int(row["_ts"]) - 1)
    return BlockStat(row["id"], size, age, row["_etag"])


def _bytes(row: _Row) -> bytes:
    try:
        if "t" in row:
            return bytes(row["t"], "ascii")
        return base64.b64decode(row["b"], validate=True)
    except (KeyError, TypeError, binascii.Error, UnicodeEncodeError) as error:
        raise RemoteError(f"the item {row.get('id')!r} in Cosmos DB was not written by Sessionary") from error
