"""Download of the blocks of a file: headers are noted, bytes are stored, and excess is refused.

Which blocks belong to the file is known only when all have been seen, because the chain is followed backwards. Until
then anything may arrive: blocks of forks, of pushes that lost a race, or invented ones. So the head sets limits. One
block of each number belongs to the file, so all of them hold at least as much as the smallest ones: once that exceeds
the size in the head, the download stops. At most about twice the size in the head is stored. Of further blocks only
the header is noted, and the few that turn out to belong to the file are fetched again.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import Corrupt, RemoteError, SessionaryError
from sessionary.sync.blocks import ANEW, id_range, part_key, unpack
from sessionary.sync.remote import LARGEST_BLOCK, Block, Remote, blocks_of

ALIKE = 64 << 20
"""Most bytes of all blocks of one number: far above those of forks and lost races."""

SPARE = 1 << 20
"""Bytes beyond twice the size in the head that may be stored, so that forks of a short session do no harm."""

_LEAST = 1 << 10
"""Least bytes that a block counts as: noting it takes memory too."""

_BLOCK_ID = re.compile(r"([0-9a-f]{8})-([0-9]{8})-[0-9a-f]{32}")


class Range(NamedTuple):
    """Blocks `first` to `stop - 1` of the file `name` in a space, which hold at most `most` bytes of it."""

    space: str
    name: str
    first: int
    stop: int
    most: int


class Arrived(NamedTuple):
    """A block that arrived.

    Attributes:
        prev: the chain before it.
        raw: number of bytes of the file in it, by its header.
        slot: its position in the spool, as it arrived; None if it was not stored.
        fault: why it is invalid. Only relevant if the chain leads to it.
    """

    prev: str
    raw: int
    slot: Slot | None
    fault: SessionaryError | None = None


def arrived(remote: Remote, of: Range, spool: Spool) -> dict[str, Arrived]:
    """Fetch all blocks of a range, by id; store as many as can belong to the file.

    Raises:
        RemoteError: the remote failed, or returned too much.
        Corrupt: the blocks hold more bytes than the head states for the file, whichever of them belong to it.
        StorageFailed: they cannot be stored.
    """
    found: dict[str, Arrived] = {}
    sum_ = _Sum(of)
    room = 2 * (of.most + (of.stop - of.first) * _LEAST) + SPARE
    for number, block in _numbered(remote, of):
        if block.id in found:
            continue
        try:
            stored = unpack(block.id, block.data)
        except SessionaryError as error:
            found[block.id] = Arrived("", 0, None, copy.copy(error))  # without a body, so without memory
            continue
        sum_.add(number, stored.raw)
        slot = None
        if len(block.data) <= room:
            room -= len(block.data)
            slot = spool.put(block.data)
        found[block.id] = Arrived(stored.prev, stored.raw, slot)
    return found


def laid_down(remote: Remote, of: Range, wanted: Mapping[str, Arrived], spool: Spool) -> dict[str, Slot]:
    """Fetch these blocks of a range again and store them; missing ones are left out.

    Raises:
        Corrupt: the header of a block differs from the first time.
        RemoteError, StorageFailed: as `arrived`.
    """
    slots: dict[str, Slot] = {}
    for _, block in _numbered(remote, of):
        if block.id not in wanted or block.id in slots:
            continue
        stored, before = unpack(block.id, block.data), wanted[block.id]
        if (stored.prev, stored.raw) != (before.prev, before.raw):
            raise Corrupt(
                f"block {block.id} on the remote is different each time it is fetched",
                operation="pull",
                hint="nothing here was changed; check the store, and any proxy before it",
            )
        slots[block.id] = spool.put(block.data)
    return slots


class _Sum:
    """Least total size of the blocks that arrived: the smallest of each number."""

    def __init__(self, of: Range) -> None:
        self._of = of
        self._smallest: dict[int, int] = {}
        self._total = 0

    def add(self, number: int, raw: int) -> None:
        known = self._smallest.get(number)
        smallest = raw if known is None else min(known, raw)
        self._smallest[number] = smallest
        self._total += smallest - (known or 0)
        # A smaller block of this number may follow, of one byte at least.
        if self._total - smallest >= self._of.most:
            raise too_long(self._of)


def too_long(of: Range) -> Corrupt:
    """Return the error for blocks that hold more than their head states."""
    return Corrupt(
        f"the blocks of {of.name} hold more than the {of.most} bytes that the head leaves for them",
        operation="pull",
        hint=ANEW,
    )


def _numbered(remote: Remote, of: Range) -> Iterator[tuple[int, Block]]:
    """Yield the valid blocks of a range, with their numbers.

    Raises:
        Corrupt: a block exceeds the size limit.
        RemoteError: there are more blocks of one number than forks can leave.
    """
    key = part_key(of.name)
    came: Counter[int | None] = Counter()
    for block in blocks_of(remote, of.space, *id_range(key, of.first, of.stop)):
        if len(block.data) > LARGEST_BLOCK:
            raise Corrupt(f"block {block.id} on the remote has {len(block.data)} bytes", operation="pull")
        parts = _BLOCK_ID.fullmatch(block.id)
        number = int(parts[2]) if parts and parts[1] == key and of.first <= int(parts[2]) < of.stop else None
        came[number] += max(len(block.data), _LEAST)
        if came[number] > ALIKE:
            raise RemoteError(
                f"the remote returns too many blocks with one number (the last one is {block.id})",
                operation="pull",
                hint="nothing here was changed; check the store, and any proxy before it",
            )
        if number is not None:
            yield number, block
