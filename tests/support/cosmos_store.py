r"""What the double of Cosmos DB keeps, and the rules it keeps to: partitions, ids, etags, limits, batches, prices.

This is **our reading of Microsoft's documentation**, not the service, and not derived from it. A test that passes here
proves that we do what we believe to be right; only a real account can prove that we believe the right thing.

Kept rules: the id is unique in its partition (409); an etag that does not match changes nothing (412); an item has
2 MB at most (413), an id 1,023 bytes and none of ``/ \ ? #`` (400); the partition key of the header is that of the body
(400, 1001); a batch is all or nothing, in one partition, of 100 operations and 2 MB; to sort by a property takes an
index; a page has 4 MB; who has not seen a write may be shown an older state for a while (session consistency).
"""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support import request_units as units
from tests.support.cosmos_query import BadQuery, Item, Query, parse

ITEM_BYTES: Final = 2 << 20
PAGE_BYTES: Final = 4 << 20
PAGE_ITEMS: Final = 100
ID_BYTES: Final = 1023
BATCH: Final = 100
DEPTH: Final = 128
_OWN: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
_ALWAYS_INDEXED: Final = frozenset({"id", "_ts"})


class Refused(Exception):
    """The service answers with a status of failure."""

    def __init__(self, status: int, message: str, sub: int | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.sub = sub
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.ru = 1.0


@dataclass
class Answer:
    """What the service answers.

    Attributes:
        status: the HTTP status.
        body: to be sent as JSON; None for nothing.
        ru: request units charged.
        etag: of the item concerned.
        continuation: where a page goes on.
    """

    status: int
    body: Any = None
    ru: float = 0.0
    etag: str | None = None
    continuation: str | None = None


@dataclass
class Container:
    """Items by partition and id, each with all its versions; the last one is the truth.

    Attributes:
        properties: what it was made with.
        lag: for so many seconds, who has not seen a write may be shown the state before it.
        versions: of each item, the number of the write and what it left: None for a deletion.
    """

    properties: dict[str, Any]
    lag: float = 0.0
    clock: Callable[[], float] = time.time
    lsn: int = 0
    versions: dict[tuple[str, str], list[tuple[int, Item | None]]] = field(default_factory=dict)
    written: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        path = self.properties["partitionKey"]["paths"][0]
        self.key: str = path.strip("/")
        included = self.properties.get("indexingPolicy", {}).get("includedPaths", [{"path": "/*"}])
        self._indexed = {one["path"].strip("/").removesuffix("/?") for one in included}

    def newest(self, pk: str, id_: str) -> Item | None:
        """An item as it is."""
        versions = self.versions.get((pk, id_))
        return versions[-1][1] if versions else None

    def seen(self, pk: str, known: int) -> Iterator[Item]:
        """The items of a partition as one may be shown them who knows the writes up to a number."""
        horizon = self.clock() - self.lag
        shown = max(known, next((n for n in range(self.lsn, 0, -1) if self.written[n - 1] <= horizon), 0))
        for (partition, _), versions in list(self.versions.items()):
            if partition == pk:
                past = [item for lsn, item in versions if lsn <= shown]
                if past and past[-1] is not None:
                    yield past[-1]

    def put(self, pk: str, item: Item) -> Item:
        """Add a version, with what the service adds to an item."""
        plain = {name: value for name, value in item.items() if name not in _OWN}
        stamped = plain | {
            "_rid": uuid.uuid4().hex[:16],
            "_self": "dbs/d/colls/c/docs/i/",
            "_etag": f'"{uuid.uuid4()}"',
            "_attachments": "attachments/",
            "_ts": int(self.clock()),
        }
        self._add(pk, item["id"], stamped)
        return stamped

    def remove(self, pk: str, id_: str) -> None:
        """Add a version that is none."""
        self._add(pk, id_, None)

    def kept(self) -> tuple[Any, ...]:
        """All of its items as they are, to be put back later."""
        return {key: list(versions) for key, versions in self.versions.items()}, self.lsn, list(self.written)

    def put_back(self, kept: tuple[Any, ...]) -> None:
        """Undo all that was written since."""
        versions, self.lsn, written = kept
        self.versions = {key: list(items) for key, items in versions.items()}
        self.written = list(written)

    def can_sort_by(self, name: str | None) -> bool:
        """Whether there is an index for an order."""
        return name is None or name in _ALWAYS_INDEXED | self._indexed or "*" in self._indexed

    def _add(self, pk: str, id_: str, item: Item | None) -> None:
        self.lsn += 1
        self.written.append(self.clock())
        self.versions.setdefault((pk, id_), []).append((self.lsn, item))


class Store:
    """An account: its databases and containers, and what may be done with items.

    Attributes:
        guard: held while anything is looked at or changed; all writes are decided under it, one after the other.
        databases: containers by the names of databases and containers.
    """

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.databases: dict[str, dict[str, Container]] = {}

    def container(self, database: str, name: str) -> Container:
        """A container; 404 if it is not there."""
        found = self.databases.get(database, {}).get(name)
        if found is None:
            raise Refused(404, "Resource Not Found: owner resource does not exist", 1003)
        return found

    def create(
        self, box: Container, pk: str, body: Item, *, over: bool = False, match: str | None = None
    ) -> Answer:
        """Create an item, or with `over` upsert it."""
        _check(box, pk, body)
        before = box.newest(pk, body["id"])
        if before is not None and not over:
            raise Refused(409, "Resource with specified id or name already exists.")
        _check_etag(before, match)
        made = box.put(pk, body)
        if before is None:
            return Answer(201, made, units.create_ru(_size(made), 1), made["_etag"])
        return Answer(200, made, units.replace_ru(_size(before), _size(made), 1), made["_etag"])

    def replace(self, box: Container, pk: str, id_: str, body: Item, match: str | None = None) -> Answer:
        """Replace an item that is there."""
        _check(box, pk, body)
        if body["id"] != id_:
            raise Refused(400, "the id of the body is not that of the address")
        before = _there(box, pk, id_)
        _check_etag(before, match)
        made = box.put(pk, body)
        return Answer(200, made, units.replace_ru(_size(before), _size(made), 1), made["_etag"])

    def delete(self, box: Container, pk: str, id_: str, match: str | None = None) -> Answer:
        """Delete an item that is there."""
        before = _there(box, pk, id_)
        _check_etag(before, match)
        box.remove(pk, id_)
        return Answer(204, None, units.create_ru(_size(before)))

    def read(self, box: Container, pk: str, id_: str, known: int, unless: str | None = None) -> Answer:
        """Read one item, unless it has the etag that the reader knows."""
        found = next((item for item in box.seen(pk, known) if item["id"] == id_), None)
        if found is None:
            raise Refused(404, "Resource Not Found")
        if unless == found["_etag"]:
            return Answer(304, None, 1.0, found["_etag"])
        return Answer(200, found, units.read_ru(_size(found)), found["_etag"])

    def query(
        self, box: Container, pk: str, body: Mapping[str, Any], count: int, token: str, known: int
    ) -> Answer:
        """A page of a query over one partition."""
        try:
            query = parse(body["query"], body.get("parameters") or ())
        except (BadQuery, KeyError) as error:
            raise Refused(400, str(error)) from None
        if not box.can_sort_by(query.by):
            raise Refused(400, f"The order by query does not have an index for c.{query.by}")
        items = query.sorted(box.seen(pk, known))
        if query.count:
            return Answer(200, _feed([len(items)]), units.query_ru([]))
        page, more = _cut(query, _behind(query, items, token), count)
        continuation = _token(query, page[-1]) if more else None
        rows = [query.shown(item) for item in page]
        return Answer(
            200, _feed(rows), units.query_ru([_size(item) for item in page]), continuation=continuation
        )

    def batch(self, box: Container, pk: str, operations: list[dict[str, Any]]) -> Answer:
        """Several operations in one partition: all of them, or none."""
        if len(operations) > BATCH or len(json.dumps(operations)) > ITEM_BYTES:
            raise Refused(
                413 if len(operations) <= BATCH else 400, f"a batch has {BATCH} operations and 2 MB at most"
            )
        kept = box.kept()
        results: list[dict[str, Any]] = []
        total = 0.0
        for number, operation in enumerate(operations):
            try:
                answer = self._one(box, pk, operation)
            except Refused as error:
                box.put_back(kept)
                failed = [{"statusCode": 424, "requestCharge": 0.0} for _ in operations]
                failed[number]["statusCode"] = error.status
                return Answer(207, failed, total)
            total += answer.ru
            results.append({"statusCode": answer.status, "requestCharge": answer.ru, "eTag": answer.etag})
            if answer.body is not None:
                results[-1]["resourceBody"] = answer.body
        return Answer(200, results, total)

    def _one(self, box: Container, pk: str, operation: dict[str, Any]) -> Answer:
        kind, match, id_ = operation["operationType"], operation.get("ifMatch"), operation.get("id", "")
        if kind in ("Create", "Upsert"):
            return self.create(box, pk, operation["resourceBody"], over=kind == "Upsert", match=match)
        if kind == "Replace":
            return self.replace(box, pk, id_, operation["resourceBody"], match)
        if kind == "Delete":
            return self.delete(box, pk, id_, match)
        if kind == "Read":
            return self.read(box, pk, id_, box.lsn)
        raise Refused(400, f"no such operation: {kind}")


def _check(box: Container, pk: str, body: object) -> None:
    if not isinstance(body, dict):
        raise Refused(400, "an item is an object")
    id_ = body.get("id")
    if not isinstance(id_, str) or not id_:
        raise Refused(400, "The input content is invalid: the required property 'id' is missing")
    if len(id_.encode()) > ID_BYTES or any(sign in id_ for sign in "/\\?#"):
        raise Refused(400, "the id is too long or has an illegal character")
    if body.get(box.key) != pk:
        raise Refused(
            400, "PartitionKey extracted from document doesn't match the one specified in the header", 1001
        )
    if _size(body) > ITEM_BYTES:
        raise Refused(413, "Request size is too large")
    if _depth(body) > DEPTH:
        raise Refused(400, "the item is nested too deep")


def _check_etag(present: Item | None, match: str | None) -> None:
    if match is not None and present is not None and match != present["_etag"]:
        raise Refused(412, "One of the specified pre-condition is not met")


def _there(box: Container, pk: str, id_: str) -> Item:
    found = box.newest(pk, id_)
    if found is None:
        raise Refused(404, "Resource Not Found")
    return found


def _size(item: Mapping[str, Any]) -> int:
    return len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _feed(rows: list[Any]) -> dict[str, Any]:
    return {"_rid": "c", "Documents": rows, "_count": len(rows)}


def _cut(query: Query, items: list[Item], count: int) -> tuple[list[Item], bool]:
    """The items of a page, and whether there are more."""
    limit = PAGE_ITEMS if count < 1 else count
    page: list[Item] = []
    size = 0
    for item in items[:limit]:
        size += _size(query.shown(item))
        if page and size > PAGE_BYTES:
            break
        page.append(item)
    return page, len(page) < len(items)


def _token(query: Query, last: Item) -> str:
    """The continuation of a query: after an item, so that items added meanwhile do not shift it."""
    place = [last["id"]] if query.by is None else [last[query.by], last["id"]]
    return base64.b64encode(json.dumps(place).encode()).decode()


def _behind(query: Query, items: list[Item], token: str) -> list[Item]:
    if not token:
        return items
    place = json.loads(base64.b64decode(token))
    if query.by is None:
        at = next((n for n, item in enumerate(items) if item["id"] == place[0]), -1)
        return items[at + 1 :]
    by = query.by
    return [
        item
        for item in items
        if ([item[by], item["id"]] < place if query.down else [item[by], item["id"]] > place)
    ]
