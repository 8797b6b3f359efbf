"""What a push sends next: blocks for what is new, and the head that comes after them.

A backlog goes in rounds of a few blocks, each ending at a line end and committed by a head of its own, so that a push
that is cut off loses one round and not the whole. Documents go with the last round, each whole, however large it is: no
head then speaks of turns that its conversation does not have yet, nor of a document that ends in the middle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import zstandard

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.base import PartKind
from sessionary.sync.blocks import BLOCK, START, Bytes, InMemory, Piece, block_id, cut, follow, pack, part_key
from sessionary.sync.heads import HISTORY, INLINE, INLINE_ALL, LINES, SHORT, Head, Mark, PartHead, Past
from sessionary.sync.incoming import inline_bytes
from sessionary.sync.local_files import LocalPart, Matched

ROUND = 16
"""So many new blocks of a file that grows go before a head, and then as many more as a line takes to its end."""


class Draft(NamedTuple):
    """One file of the next head.

    Attributes:
        part: what the head will say of it.
        pieces: where its blocks end.
        puts: the blocks that the other side may not have yet: ids and bytes.
        done: False if the file goes on behind this round.
    """

    part: PartHead
    pieces: list[Piece]
    puts: list[tuple[str, bytes]]
    done: bool


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a head says of the push itself."""

    device: str
    at: str
    active: str


@dataclass(frozen=True, slots=True)
class Claims:
    """What a head says besides of its files.

    Attributes:
        taken: the ledgers that this device writes from now on.
        held: the files of which a device holds a damaged version back.
        accepted: the files that the user sends although they are damaged.
        items: of those that are made once, the chain of the bytes of each.
        versioned: the documents whose earlier versions are kept; see `versions_kept`.
        above: its number is higher than this.
    """

    taken: Collection[str] = ()
    held: Mapping[str, Mark] = field(default_factory=dict)
    accepted: Collection[str] = ()
    items: Mapping[str, str] = field(default_factory=dict)
    versioned: Collection[str] = ()
    above: int = 0


def draft_all(
    fs: Fs,
    mine: Mapping[str, LocalPart],
    known: Mapping[str, Sequence[Piece]],
    matched: Mapping[str, Matched],
    block: int = BLOCK,
) -> dict[str, Draft]:
    """The next round of a session; see `draft`. Documents are in it if nothing goes on behind it."""
    drafts: dict[str, Draft] = {}
    room = INLINE_ALL
    for name, part in sorted(mine.items(), key=lambda item: item[1].kind is PartKind.DOCUMENT):
        if part.kind is PartKind.DOCUMENT and not all(one.done for one in drafts.values()):
            break
        one = draft(fs, part, known.get(name, ()), matched[name].pieces, block, min(INLINE, room))
        room -= len(one.part.data or b"")
        drafts[name] = one
    return drafts


def draft(
    fs: Fs, part: LocalPart, known: Sequence[Piece], matched: int, block: int = BLOCK, room: int = INLINE
) -> Draft:
    """The next round of one file: what it shares with what is known, and blocks for what follows.

    Args:
        fs: the file system.
        part: the file.
        known: pieces that the other side has.
        matched: with how many of them the file begins.
        block: how many bytes a block may hold.
        room: a document of at most so many bytes, compressed, goes into the head.
    """
    with LineFile(part.path, fs) as file:
        if part.kind is PartKind.DOCUMENT and (inline := _inline(file, part, room)) is not None:
            return inline
        pieces = list(known[:matched])
        end, chain = pieces[-1] if pieces else Piece(0, START)
        puts = []
        cuts = cut if part.kind is PartKind.DOCUMENT else _round
        for stop in cuts(file, end, part.size, block=block):
            prev, seq = chain, len(pieces)
            chain, data = pack(file, end, stop, prev)
            puts.append((block_id(part_key(part.name), seq, chain), data))
            pieces.append(Piece(stop, chain))
            end = stop
    head = PartHead(part.name, part.kind.value, end, len(pieces), chain, None, bool(part.origin))
    return Draft(head, pieces, puts, end == part.size)


def cut_anew(fs: Fs, here: LocalPart, old: PartHead, pieces: Sequence[Piece], first: int) -> Draft | None:
    """A file whose bytes stay as they are, in other blocks from number `first` on; None if there are no others.

    For a remote from which a damaged block cannot be removed: what lies under its id stays there for ever.
    """
    with LineFile(here.path, fs) as file:
        begin, prev = pieces[first - 1] if first else Piece(0, START)
        length = pieces[first].end - begin
        if length < 2 and first:
            return cut_anew(fs, here, old, pieces, first - 1)
        if length < 2 and len(pieces) == 1:
            return None
        size = pieces[-1].end
        step = next(cut(file, begin, size, block=max(1, length // 2))) if length > 1 else pieces[1].end
        new, puts = list(pieces[:first]), []
        at, chain = begin, prev
        for stop in (step, *cut(file, step, size)):
            before, number = chain, len(new)
            chain, data = pack(file, at, stop, before)
            puts.append((block_id(part_key(old.name), number, chain), data))
            new.append(Piece(stop, chain))
            at = stop
    part = msgspec.structs.replace(old, n=len(new), chain=chain)
    return Draft(part, new, puts, True)


def _inline(file: Bytes, part: LocalPart, room: int) -> Draft | None:
    """A small document, to lie in the head itself; None if it is empty or too large for that."""
    if not 0 < part.size <= BLOCK:
        return None
    raw = file.read(0, part.size)
    data = zstandard.ZstdCompressor(level=9).compress(raw)
    if len(data) > room:
        return None
    chain = follow(START, raw)
    head = PartHead(part.name, part.kind.value, len(raw), 0, chain, data, bool(part.origin))
    return Draft(head, [Piece(len(raw), chain)], [], len(raw) == part.size)


def _round(file: Bytes, start: int, size: int, *, block: int) -> Iterator[int]:
    """Where the next blocks end: `ROUND` of them, and then as many more as a line takes to its end."""
    for count, end in enumerate(cut(file, start, size, block=block), 1):
        yield end
        if count >= ROUND and file.read(end - 1, 1) == b"\n":
            return


def next_head(
    old: Head,
    drafts: Mapping[str, Draft],
    matched: Mapping[str, Matched],
    stamp: Stamp,
    claims: Claims = Claims(),
) -> Head:
    """The head after this round.

    Args:
        old: the head that it replaces, or the first one of a session, without parts.
        drafts: the files that are here.
        matched: with how many pieces of the old head each of them begins.
        stamp: who pushes, and when.
        claims: what it says besides.
    """
    done = all(one.done for one in drafts.values())
    parts = {part.name: part for part in old.parts}
    rewound = {
        name: (parts[name].n, parts[name].chain)
        for name, one in drafts.items()
        if name in parts and one.part.kind in LINES and matched[name].pieces < parts[name].n
    }
    if done:
        rewound |= {
            name: (max(1, parts[name].n), parts[name].chain)
            for name in claims.versioned
            if name in parts and name in drafts and _has_version(parts[name], drafts[name].part)
        }
    for name, one in drafts.items():
        if done or one.part.kind != PartKind.DOCUMENT.value:
            before = name in parts and parts[name].redacted
            parts[name] = msgspec.structs.replace(one.part, redacted=before or one.part.redacted)
    past = (*old.history, Past(old.gen, stamp.at, rewound))[-HISTORY:] if rewound else old.history
    count = max(old.count, claims.above) + 1
    return msgspec.structs.replace(
        old,
        gen=old.gen + bool(rewound),
        count=count,
        device=stamp.device,
        at=stamp.at,
        active=max(old.active, stamp.active) if claims.held else stamp.active,
        deleted=False,
        parts=tuple(parts[name] for name in sorted(parts)),
        history=past,
        owners={**old.owners, **dict.fromkeys(claims.taken, stamp.device)},
        counts={**old.counts, stamp.device[:SHORT]: count},
        held=dict(claims.held),
        accepted=_accepted(old, drafts, claims),
    )


def _accepted(old: Head, drafts: Mapping[str, Draft], claims: Claims) -> dict[str, str]:
    """What a user has sent although it is damaged: until a file is replaced by something else."""
    kept = {
        name: chain
        for name, chain in old.accepted.items()
        if name not in drafts
        or chain in {drafts[name].part.chain, *(piece.chain for piece in drafts[name].pieces)}
    }
    return (
        kept
        | {name: drafts[name].part.chain for name in claims.accepted if name in drafts}
        | dict(claims.items)
    )


def _has_version(old: PartHead, new: PartHead) -> bool:
    """True if a document was changed, and its earlier version can lie in blocks: it is not empty, nor too long."""
    return old.chain != new.chain and (old.n > 0 or (old.data is not None and 0 < old.size <= BLOCK))


def versions_kept(old: Head, new: Head) -> list[tuple[str, bytes]]:
    """The blocks, ids and bytes, of documents in the old head whose earlier versions the new one names.

    A document that lay in the head is nowhere else; one that lay in blocks is there already.
    """
    if new.gen == old.gen or not new.history:
        return []
    tips = new.history[-1].tips
    kept = []
    for part in old.parts:
        if part.data is not None and part.name in tips:
            raw = inline_bytes(part)
            chain, data = pack(InMemory(raw), 0, len(raw), START)
            kept.append((block_id(part_key(part.name), 0, chain), data))
    return kept
