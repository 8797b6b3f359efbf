"""What an operation costs in request units (RU), by the table that Microsoft publishes for sizes of items.

For budgets and estimates. What an account really charged is in the header of each of its answers, and that is what
`CosmosRemote.ru` adds up.

Between two sizes of the table the price is drawn as a straight line. A replacement is charged as a deletion and a
creation, each term of the index with `TERM` more: both are said beside the table. What a query costs beyond reading
what it finds is not published; `QUERY` is an estimate.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

KB: Final = 1024
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
READ: Final = (1.00, 1.04, 1.14, 1.33, 1.67, 2.19, 4.76, 9.95, 20.28, 40.95, 145.90, 291.80)
WRITE: Final = (4.95, 6.29, 6.67, 7.04, 9.52, 11.23, 22.67, 48.19, 98.29, 184.57, 625.0, 1250.0)
TERM: Final = 0.2
QUERY: Final = 2.3

LARGEST: Final = 2048 * KB
"""No item may have more; an upsert of more fails with 413."""


def read_ru(size: int) -> float:
    """A point read of an item of so many bytes."""
    return _price(READ, size)


def create_ru(size: int, terms: int = 0) -> float:
    """A new item of so many bytes with so many indexed terms."""
    return _price(WRITE, size) + terms * TERM


def replace_ru(before: int, after: int, terms: int = 0) -> float:
    """An item of `before` bytes replaced by, or upserted as, one of `after` bytes."""
    return create_ru(before) + create_ru(after, terms)


def query_ru(sizes: list[int]) -> float:
    """A query, or one page of one, that finds items of these sizes in one partition. An estimate."""
    return QUERY + sum(map(read_ru, sizes))


def ru_of(verb: str, size: int, before: int | None = None) -> float:
    """What one of the five verbs costs on Cosmos DB.

    Args:
        verb: ``put_block``, ``swap_head``, ``read_head``, ``read_range`` or ``list_heads``.
        size: bytes of the block or head; of all of them for the last two, which are charged as one item.
        before: bytes of the head that is replaced; None for a new one.

    Raises:
        ValueError: unknown verb.
    """
    item = item_bytes(size)
    if verb == "put_block" or (verb == "swap_head" and before is None):
        return create_ru(item, terms=1)
    if verb == "swap_head":
        return replace_ru(item_bytes(before or 0), item, terms=1)
    if verb in ("read_head", "read_range", "list_heads"):
        return query_ru([item])
    raise ValueError(f"{verb!r} is none of the five verbs")


def item_bytes(size: int) -> int:
    """About how many bytes an item of `CosmosRemote` has for so many bytes of a block: base64, names and brackets."""
    return 4 * ((size + 2) // 3) + 220


def _price(table: tuple[float, ...], size: int) -> float:
    kb = max(size / KB, SIZES[0])
    if kb > SIZES[-1]:
        raise ValueError(f"an item of {size} bytes is refused: it may have {LARGEST}")
    at = bisect_left(SIZES, kb)
    if SIZES[at] == kb:
        return table[at]
    share = (kb - SIZES[at - 1]) / (SIZES[at] - SIZES[at - 1])
    return table[at - 1] + share * (table[at] - table[at - 1])
