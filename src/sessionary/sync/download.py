"""Blocks of a file as they arrive: what each says of itself is noted, its bytes are laid down, and too much is refused.

Which of them are the file's is known only when all have been seen, since the chain leads from the last one backwards.
Until then anything may come: blocks of forks, of pushes that lost a race, or whatever a store makes up that lies. So
the head bounds it. Of each number one block belongs to the file, so all of them hold at least what the smallest ones
do: once that is more than the head says in all, it is given up. And what is laid down is at most about twice what the
head speaks of. Of what comes beyond, only the first line is noted, and the few that turn out to belong to the file are
asked for once more.
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
"""So many bytes the blocks of one number may have together: those of forks and of lost races are far from it."""

SPARE = 1 << 20
"""So many bytes beside twice what the head speaks of may be laid down: forks of a short session do no harm."""

_LEAST = 1 << 10
"""As so many bytes each of them counts at least: to know of it takes memory too."""

_BLOCK_ID = re.compile(r"([0-9a-f]{8})-([0-9]{8})-[0-9a-f]{32}")


class Range(NamedTuple):
    """Blocks number `first` to `stop - 1` of the file `name` in a space, which hold `most` bytes of it at most."""

    space: str
    name: str
    first: int
    stop: int
    most: int


class Arrived(NamedTuple):
    """A block that came.

    Attributes:
        prev: the chain before it.
        raw: how many bytes of the file it says that it holds.
        slot: where it lies in the spool, as it came; None if it was not laid down.
        fault: why it is no block. That matters only if the chain leads to it.
    """

    prev: str
    raw: int
    slot: Slot | None
    fault: SessionaryError | None = None


def arrived(remote: Remote, of: Range, spool: Spool) -> dict[str, Arrived]:
    """All blocks of a range by their ids, as many of them laid down as can be the file's.

    Raises:
        RemoteError: the other side failed, or gives out more than belongs there.
        Corrupt: they hold more bytes than the head says of the whole file, whichever of them are the file's.
        StorageFailed: they cannot be laid down.
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
            found[block.id] = Arrived(
                "", 0, None, copy.copy(error)
            )  # the copy holds no frame, and so no bytes
            continue
        sum_.add(number, stored.raw)
        slot = None
        if len(block.data) <= room:
            room -= len(block.data)
            slot = spool.put(block.data)
        found[block.id] = Arrived(stored.prev, stored.raw, slot)
    return found


def laid_down(remote: Remote, of: Range, wanted: Mapping[str, Arrived], spool: Spool) -> dict[str, Slot]:
    """Ask once more for these blocks of a range, and lay them down; what is not there any more is left out.

    Raises:
        Corrupt: a block says something else of itself than it did before.
        RemoteError, StorageFailed: as `arrived`.
    """
    slots: dict[str, Slot] = {}
    for _, block in _numbered(remote, of):
        if block.id not in wanted or block.id in slots:
            continue
        stored, before = unpack(block.id, block.data), wanted[block.id]
        if (stored.prev, stored.raw) != (before.prev, before.raw):
            raise Corrupt(
                f"block {block.id} of the other side is another one each time it is asked for",
                operation="pull",
                hint="nothing here was changed; something is wrong with the store, or with what stands before it",
            )
        slots[block.id] = spool.put(block.data)
    return slots


class _Sum:
    """What the blocks that came hold together at least: of each number the smallest."""

    def __init__(self, of: Range) -> None:
        self._of = of
        self._smallest: dict[int, int] = {}
        self._total = 0

    def add(self, number: int, raw: int) -> None:
        known = self._smallest.get(number)
        smallest = raw if known is None else min(known, raw)
        self._smallest[number] = smallest
        self._total += smallest - (known or 0)
        # Of this number a smaller one may come yet, of one byte at least.
        if self._total - smallest >= self._of.most:
            raise too_long(self._of)


def too_long(of: Range) -> Corrupt:
    """The blocks of a file hold more than its head says."""
    return Corrupt(
        f"the blocks of {of.name} hold more than the {of.most} bytes that the head leaves for them",
        operation="pull",
        hint=ANEW,
    )


def _numbered(remote: Remote, of: Range) -> Iterator[tuple[int, Block]]:
    """The blocks of a range that are called as they should be, with their numbers.

    Raises:
        Corrupt: one is larger than any may be.
        RemoteError: there are so many of one number as no forks leave behind.
    """
    key = part_key(of.name)
    came: Counter[int | None] = Counter()
    for block in blocks_of(remote, of.space, *id_range(key, of.first, of.stop)):
        if len(block.data) > LARGEST_BLOCK:
            raise Corrupt(f"block {block.id} of the other side has {len(block.data)} bytes", operation="pull")
        parts = _BLOCK_ID.fullmatch(block.id)
        number = int(parts[2]) if parts and parts[1] == key and of.first <= int(parts[2]) < of.stop else None
        came[number] += max(len(block.data), _LEAST)
        if came[number] > ALIKE:
            raise RemoteError(
                f"the remote gives block upon block where one belongs (the last one is {block.id})",
                operation="pull",
                hint="nothing here was changed; something is wrong with the store, or with what stands before it",
            )
        if number is not None:
            yield number, block
