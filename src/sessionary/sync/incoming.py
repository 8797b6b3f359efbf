"""Remote files: blocks are found, their chain is followed back, their bytes are verified.

A range of blocks may contain more than a head refers to: blocks of pushes that lost a race, and of forks, which share
a space. Following the chain backwards from the head excludes them. So nothing of a file can be verified before all of
its blocks have been seen, and they are read several times: they are stored in a spool, not in memory. The amount is
limited, whatever the remote returns.
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
"""Key in the details of an error: the id of a block that a head refers to and that is missing (yet)."""


class FetchedBlock(NamedTuple):
    """A fetched block.

    Attributes:
        id: its id.
        chain: the chain including it.
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
        part: its entry in the head.
        start: length of the prefix that is known to equal the local file.
        pieces: ends of all of its blocks.
        fetched: the blocks behind `start`.
        spool: the spool with the blocks.
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
        remote: the remote.
        space: the space of its blocks.
        part: its entry in the head.
        agreed: the agreed pieces.
        begins: number of agreed pieces that the local file starts with.
        spool: stores the blocks.

    Raises:
        RemoteError: a block of the head is missing (yet), see `MISSING`; or the remote failed.
        StorageFailed: the blocks cannot be stored.
        Corrupt: head and blocks contradict each other.
    """
    if part.data is not None:
        return _from_head(part, spool)
    first = min(begins, part.n)
    # The blocks before them hold at least one byte each.
    behind = Range(space, part.name, first, part.n, part.size - first)
    chain = _chain(remote, spool, behind, part.chain)
    if first and (chain[0].prev if chain else part.chain) != agreed[first - 1].chain:
        # It was rewound to before the local version: only the whole chain shows where they diverge.
        before = chain[0].prev if chain else part.chain
        most = part.size - sum(one.raw for one in chain)
        chain = _chain(remote, spool, Range(space, part.name, 0, first, most), before) + chain
        first = next(
            (at for at in range(first) if chain[at].chain != agreed[at].chain),
            first,
        )
        chain = chain[first:]
    if not first and (chain[0].prev if chain else part.chain) != START:
        raise _damaged(f"the chain of {part.name} is incomplete at its start")
    return _with_ends(part, list(agreed[:first]), chain, spool)


def fetch_version(remote: Remote, space: str, name: str, n: int, chain: str, spool: Spool) -> Theirs:
    """Fetch an earlier version of a file, known only by its number of blocks and its chain.

    Raises:
        RemoteError, StorageFailed, Corrupt: as `fetch`.
    """
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
        f"block {name} of {of.name} is not on the remote yet",
        retryable=True,
        operation="pull",
        details={MISSING: name},
        hint="another machine is pushing, or the remote lags; pull again",
    )


def _from_head(part: PartHead, spool: Spool) -> Theirs:
    raw = inline_bytes(part)
    return Theirs(part, 0, [Piece(len(raw), part.chain)], [], spool, raw)


def inline_bytes(part: PartHead) -> bytes:
    """Return the bytes of a document that is stored in the head.

    Raises:
        Corrupt: they do not match the head.
    """
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
