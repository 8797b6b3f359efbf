"""A file as the other side has it: its blocks found, their chain followed back, their bytes proved.

A range of blocks may hold more than a head points to: blocks of pushes that lost a race, and those of forks, which
share a space. Following the chain from the head backwards leaves all of them out. So nothing of a file can be proved
before all of its blocks have been seen, and they are read several times until it is written: they wait in a spool,
as they came, and not in memory. How much may wait there is bounded, whatever the other side gives out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import zstandard

from sessionary.disk.spool import Slot, Spool
from sessionary.errors import Corrupt, RemoteError
from sessionary.sync.blocks import (
    LOOK_BACK,
    START,
    Bytes,
    Piece,
    Stored,
    block_id,
    follow,
    id_range,
    part_key,
    unfold,
    unpack,
)
from sessionary.sync.heads import PartHead
from sessionary.sync.remote import LARGEST_BLOCK, Remote, blocks_of

LARGEST_DOCUMENT = 1 << 20
CHUNK = 1 << 20

ALIKE = 64 << 20
"""So many bytes the blocks of one number may have together: those of forks and of lost races are far from it."""

_LEAST = 1 << 10
"""As so many bytes each of them counts at least: to know of it takes memory too."""

_BLOCK_ID = re.compile(r"([0-9a-f]{8})-([0-9]{8})-[0-9a-f]{32}")

MISSING = "missing"
"""In the details of an error: the block that a head points to and that is not there (yet)."""


class FetchedBlock(NamedTuple):
    """A block that was fetched.

    Attributes:
        id: its id.
        chain: the chain up to and with it.
        prev: the chain before it.
        raw: how many bytes of the file it holds.
        slot: where it lies in the spool, as it came.
    """

    id: str
    chain: str
    prev: str
    raw: int
    slot: Slot


class Theirs(NamedTuple):
    """A file of the other side.

    Attributes:
        part: what the head says of it.
        start: up to which byte it is known to be what the file here begins with.
        pieces: where all of its blocks end.
        fetched: the blocks behind `start`.
        spool: where they lie.
        whole: all of its bytes, where they lie in the head.
    """

    part: PartHead
    start: int
    pieces: list[Piece]
    fetched: list[FetchedBlock]
    spool: Spool
    whole: bytes | None

    def rest(self, here: Bytes | None) -> Iterator[bytes]:
        """The bytes behind `start`. The file here gives those before it, against which they were compressed.

        Raises:
            Corrupt: a block does not hold what its id says.
            StorageFailed: the spool cannot be read.
        """
        if self.whole is not None:
            yield self.whole
            return
        back = min(self.start, LOOK_BACK)
        yield from unfold(self._stored(), here.read(self.start - back, back) if here and back else b"")

    def _stored(self) -> Iterator[Stored]:
        for one in self.fetched:
            yield unpack(one.id, self.spool.get(one.slot))._replace(chain=one.chain)

    def all(self, here: Bytes | None) -> Iterator[bytes]:
        """All of its bytes: what the file here begins with, then the rest."""
        at = 0
        while here and at < self.start:
            chunk = here.read(at, min(CHUNK, self.start - at))
            if not chunk:
                raise Corrupt("a file became shorter while it was read", operation="pull")
            yield chunk
            at += len(chunk)
        yield from self.rest(here)


def fetch(
    remote: Remote, space: str, part: PartHead, agreed: Sequence[Piece], begins: int, spool: Spool
) -> Theirs:
    """The blocks of a file that the file here does not begin with.

    Args:
        remote: the other side.
        space: where its blocks lie.
        part: what the head says of the file.
        agreed: the pieces that were agreed of it.
        begins: with how many of these the file here begins.
        spool: where to lay down what comes.

    Raises:
        RemoteError: a block that the head points to is not there (yet), see `MISSING`; or the other side failed.
        StorageFailed: it cannot be laid down.
        Corrupt: head and blocks contradict one another.
    """
    if part.data is not None:
        return _from_head(part, spool)
    first = min(begins, part.n)
    chain = _chain(remote, spool, space, part, first, part.n, part.chain)
    if first and (chain[0].prev if chain else part.chain) != agreed[first - 1].chain:
        # It was rewound there to before what we have: only the beginning of the chain can tell where they part.
        before = chain[0].prev if chain else part.chain
        chain = _chain(remote, spool, space, part, 0, first, before) + chain
        first = next(
            (at for at in range(first) if chain[at].chain != agreed[at].chain),
            first,
        )
        chain = chain[first:]
    if not first and (chain[0].prev if chain else part.chain) != START:
        raise Corrupt(f"the chain of {part.name} does not begin at its beginning", operation="pull")
    return _with_ends(part, list(agreed[:first]), chain, spool)


def _with_ends(part: PartHead, pieces: list[Piece], chain: list[FetchedBlock], spool: Spool) -> Theirs:
    start = end = pieces[-1].end if pieces else 0
    for stored in chain:
        end += stored.raw
        pieces.append(Piece(end, stored.chain))
    if end != part.size:
        raise Corrupt(
            f"the blocks of {part.name} hold {end} bytes, the head says {part.size}", operation="pull"
        )
    return Theirs(part, start, pieces, chain, spool, None)


def _chain(
    remote: Remote, spool: Spool, space: str, part: PartHead, first: int, stop: int, last: str
) -> list[FetchedBlock]:
    """Blocks number `first` to `stop - 1` of the chain that ends with `last`."""
    if first >= stop:
        return []
    key = part_key(part.name)
    found = _laid_down(remote, spool, space, key, first, stop)
    chain: list[FetchedBlock] = []
    for seq in reversed(range(first, stop)):
        name = block_id(key, seq, last)
        if name not in found:
            raise RemoteError(
                f"block {name} of {part.name} is not there yet",
                retryable=True,
                operation="pull",
                details={MISSING: name},
                hint="another machine is pushing, or the other side is behind; pull again",
            )
        stored = unpack(name, spool.get(found[name]))
        chain.append(FetchedBlock(name, last, stored.prev, stored.raw, found[name]))
        last = stored.prev
    return chain[::-1]


def _laid_down(remote: Remote, spool: Spool, space: str, key: str, first: int, stop: int) -> dict[str, Slot]:
    """Where the blocks number `first` to `stop - 1` of a file lie in the spool, by their ids."""
    found: dict[str, Slot] = {}
    came: Counter[int | None] = Counter()
    for block in blocks_of(remote, space, *id_range(key, first, stop)):
        if len(block.data) > LARGEST_BLOCK:
            raise Corrupt(f"block {block.id} of the other side has {len(block.data)} bytes", operation="pull")
        parts = _BLOCK_ID.fullmatch(block.id)
        number = int(parts[2]) if parts and parts[1] == key and first <= int(parts[2]) < stop else None
        came[number] += max(len(block.data), _LEAST)
        if came[number] > ALIKE:
            raise RemoteError(
                f"the remote gives block upon block where one belongs (the last one is {block.id})",
                operation="pull",
                hint="nothing here was changed; something is wrong with the store, or with what stands before it",
            )
        if number is not None and block.id not in found:
            found[block.id] = spool.put(block.data)
    return found


def _from_head(part: PartHead, spool: Spool) -> Theirs:
    raw = inline_bytes(part)
    return Theirs(part, 0, [Piece(len(raw), part.chain)], [], spool, raw)


def inline_bytes(part: PartHead) -> bytes:
    """The bytes of a document that lies in the head.

    Raises:
        Corrupt: they are not what the head says.
    """
    assert part.data is not None
    if part.size > LARGEST_DOCUMENT:
        raise Corrupt(f"the head claims {part.size} bytes of {part.name}", operation="pull")
    try:
        if zstandard.get_frame_parameters(part.data).content_size != part.size:
            raise Corrupt(f"{part.name} in the head is longer than it says", operation="pull")
        raw = zstandard.ZstdDecompressor().decompress(part.data, max_output_size=part.size)
    except zstandard.ZstdError as error:
        raise Corrupt(f"{part.name} in the head cannot be read: {error}", operation="pull") from None
    if len(raw) != part.size or follow(START, raw) != part.chain:
        raise Corrupt(f"{part.name} in the head is not what its chain says", operation="pull")
    return raw
