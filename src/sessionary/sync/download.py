"""Remote files: their blocks are downloaded, their chain is followed back, their bytes are verified.

A range of blocks may contain more than a head refers to: blocks of pushes that lost a race, of forks, which share a
space, or invented ones. Following the chain backwards from the head excludes them. So nothing of a file can be
verified before all of its blocks have been seen, and they are read several times: they are stored in a spool, not in
memory.

The head limits the amount. One block of each number belongs to the file, so all of them hold at least as much as the
smallest ones: once that exceeds the size in the head, the download stops. At most about twice the size in the head is
stored. Of further blocks only the header is noted, and the few that turn out to belong to the file are fetched again.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import zstandard

from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import Corrupt, RemoteError, SessionaryError
from sessionary.sync.blocks import (
    ANEW,
    BLOCK,
    CHUNK,
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
from sessionary.sync.heads import LARGEST_DOCUMENT, PartHead
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
        RemoteError: as `arrived`.
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


MISSING = "missing"
"""Key in the details of an error: the id of a block that a head refers to and that is missing (yet)."""


class FetchedBlock(NamedTuple):
    """A fetched block.

    Attributes:
        prev: the chain before it.
        raw: number of bytes of the file in it.
        slot: its position in the spool, as it arrived.
    """

    id: str
    chain: str
    prev: str
    raw: int
    slot: Slot


class Theirs(NamedTuple):
    """A remote file.

    Attributes:
        start: length of the prefix that is known to equal the local file.
        fetched: the blocks behind `start`.
        whole: all of its bytes, if they are stored in the head.
    """

    part: PartHead
    start: int
    pieces: list[Piece]
    fetched: list[FetchedBlock]
    spool: Spool
    whole: bytes | None

    def rest(self, here: Bytes | None) -> Iterator[bytes]:
        """Yield the bytes behind `start`. The local file supplies the bytes before, as the dictionary.

        Raises:
            Corrupt: a block does not match its id.
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
        """Yield all of its bytes: the common prefix from the local file, then the rest."""
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
    """Fetch the blocks of a file behind the common prefix with the local file.

    Args:
        begins: number of agreed pieces that the local file starts with.

    Raises:
        RemoteError: a block of the head is missing (yet), see `MISSING`; or the remote failed.
        Corrupt: head and blocks contradict each other.
    """
    if part.data is not None:
        raw = inline_bytes(part)
        return Theirs(part, 0, [Piece(len(raw), part.chain)], [], spool, raw)
    first = min(begins, part.n)
    # The blocks before them hold at least one byte each.
    behind = Range(space, part.name, first, part.n, part.size - first)
    chain = _chain(remote, spool, behind, part.chain)
    if first and (chain[0].prev if chain else part.chain) != agreed[first - 1].chain:
        # It was rewound to before the local version: only the whole chain shows where they diverge.
        before = chain[0].prev if chain else part.chain
        most = part.size - sum(one.raw for one in chain)
        chain = _chain(remote, spool, Range(space, part.name, 0, first, most), before) + chain
        first = next((at for at in range(first) if chain[at].chain != agreed[at].chain), first)
        chain = chain[first:]
    if not first and (chain[0].prev if chain else part.chain) != START:
        raise _damaged(f"the chain of {part.name} is incomplete at its start")
    return _with_ends(part, list(agreed[:first]), chain, spool)


def fetch_version(remote: Remote, space: str, name: str, n: int, chain: str, spool: Spool) -> Theirs:
    """Fetch an earlier version of a file, known only by its number of blocks and its chain. Raises as `fetch`."""
    blocks = _chain(remote, spool, Range(space, name, 0, n, n * BLOCK), chain)
    if not blocks or blocks[0].prev != START:
        raise _damaged(f"the chain of {name} is incomplete at its start")
    part = PartHead(name, "", sum(one.raw for one in blocks), n, chain)
    return _with_ends(part, [], blocks, spool)


def _with_ends(part: PartHead, pieces: list[Piece], chain: list[FetchedBlock], spool: Spool) -> Theirs:
    start = end = pieces[-1].end if pieces else 0
    for stored in chain:
        end += stored.raw
        pieces.append(Piece(end, stored.chain))
    if end != part.size:
        raise _damaged(f"the blocks of {part.name} hold {end} bytes, the head says {part.size}")
    return Theirs(part, start, pieces, chain, spool, None)


def _chain(remote: Remote, spool: Spool, of: Range, last: str) -> list[FetchedBlock]:
    """Return the blocks of a range on the chain that ends with `last`."""
    if of.first >= of.stop:
        return []
    key = part_key(of.name)
    found = arrived(remote, of, spool)
    chain: list[tuple[str, str, Arrived]] = []
    size = 0
    for seq in reversed(range(of.first, of.stop)):
        name = block_id(key, seq, last)
        if name not in found:
            raise _not_there(name, of)
        one = found[name]
        if one.fault is not None:
            raise one.fault
        if (size := size + one.raw) > of.most:
            raise too_long(of)
        chain.append((name, last, one))
        last = one.prev
    late = {name: one for name, _, one in chain if one.slot is None}
    slots = laid_down(remote, of, late, spool) if late else {}
    blocks: list[FetchedBlock] = []
    for name, at, one in chain[::-1]:
        slot = one.slot or slots.get(name)
        if slot is None:
            raise _not_there(name, of)
        blocks.append(FetchedBlock(name, at, one.prev, one.raw, slot))
    return blocks


def _not_there(name: str, of: Range) -> RemoteError:
    return RemoteError(
        f"block {name} of {of.name} is not on the remote yet",
        retryable=True,
        operation="pull",
        details={MISSING: name},
        hint="another machine is pushing, or the remote lags; pull again",
    )


def inline_bytes(part: PartHead) -> bytes:
    """Return the bytes of a document that is stored in the head. Raises Corrupt if they do not match the head."""
    assert part.data is not None
    if part.size > LARGEST_DOCUMENT:
        raise _damaged(f"the head claims {part.size} bytes of {part.name}")
    try:
        if zstandard.get_frame_parameters(part.data).content_size != part.size:
            raise _damaged(f"{part.name} in the head is longer than stated")
        raw = zstandard.ZstdDecompressor().decompress(part.data, max_output_size=part.size)
    except zstandard.ZstdError as error:
        raise _damaged(f"{part.name} in the head cannot be read: {error}") from None
    if len(raw) != part.size or follow(START, raw) != part.chain:
        raise _damaged(f"{part.name} in the head does not match its chain")
    return raw


def _damaged(what: str) -> Corrupt:
    return Corrupt(what, operation="pull", hint=ANEW)
