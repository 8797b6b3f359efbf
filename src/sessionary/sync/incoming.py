"""A file as the other side has it: its blocks found, their chain followed back, their bytes proved.

A range of blocks may hold more than a head points to: blocks of pushes that lost a race, and those of forks, which
share a space. Following the chain from the head backwards leaves all of them out. So nothing of a file can be proved
before all of its blocks have been seen, and they are read several times until it is written: they wait in a spool,
as they came, and not in memory. How much may wait there is bounded, whatever the other side gives out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import zstandard

from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import Corrupt, RemoteError
from sessionary.sync.blocks import (
    ANEW,
    BLOCK,
    LOOK_BACK,
    START,
    Bytes,
    Piece,
    Stored,
    block_id,
    follow,
    part_key,
    unfold,
    unpack,
)
from sessionary.sync.download import Arrived, Range, arrived, laid_down, too_long
from sessionary.sync.heads import LARGEST_DOCUMENT, PartHead
from sessionary.sync.remote import Remote

CHUNK = 1 << 20

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
    # The blocks before them hold a byte each at least.
    behind = Range(space, part.name, first, part.n, part.size - first)
    chain = _chain(remote, spool, behind, part.chain)
    if first and (chain[0].prev if chain else part.chain) != agreed[first - 1].chain:
        # It was rewound there to before what we have: only the beginning of the chain can tell where they part.
        before = chain[0].prev if chain else part.chain
        most = part.size - sum(one.raw for one in chain)
        chain = _chain(remote, spool, Range(space, part.name, 0, first, most), before) + chain
        first = next(
            (at for at in range(first) if chain[at].chain != agreed[at].chain),
            first,
        )
        chain = chain[first:]
    if not first and (chain[0].prev if chain else part.chain) != START:
        raise _damaged(f"the chain of {part.name} does not begin at its beginning")
    return _with_ends(part, list(agreed[:first]), chain, spool)


def fetch_version(remote: Remote, space: str, name: str, n: int, chain: str, spool: Spool) -> Theirs:
    """An earlier version of a file, of which a head knows only the number of its blocks and its chain.

    Raises:
        RemoteError, StorageFailed, Corrupt: as `fetch`.
    """
    blocks = _chain(remote, spool, Range(space, name, 0, n, n * BLOCK), chain)
    if not blocks or blocks[0].prev != START:
        raise _damaged(f"the chain of {name} does not begin at its beginning")
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
    """The blocks of a range that the chain leads to which ends with `last`."""
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
    return [
        FetchedBlock(name, at, one.prev, one.raw, _slot(name, one, slots, of))
        for name, at, one in chain[::-1]
    ]


def _slot(name: str, one: Arrived, late: Mapping[str, Slot], of: Range) -> Slot:
    slot = one.slot or late.get(name)
    if slot is None:
        raise _not_there(name, of)
    return slot


def _not_there(name: str, of: Range) -> RemoteError:
    return RemoteError(
        f"block {name} of {of.name} is not there yet",
        retryable=True,
        operation="pull",
        details={MISSING: name},
        hint="another machine is pushing, or the other side is behind; pull again",
    )


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
        raise _damaged(f"the head claims {part.size} bytes of {part.name}")
    try:
        if zstandard.get_frame_parameters(part.data).content_size != part.size:
            raise _damaged(f"{part.name} in the head is longer than it says")
        raw = zstandard.ZstdDecompressor().decompress(part.data, max_output_size=part.size)
    except zstandard.ZstdError as error:
        raise _damaged(f"{part.name} in the head cannot be read: {error}") from None
    if len(raw) != part.size or follow(START, raw) != part.chain:
        raise _damaged(f"{part.name} in the head is not what its chain says")
    return raw


def _damaged(what: str) -> Corrupt:
    return Corrupt(what, operation="pull", hint=ANEW)
