"""Upload plan: the next blocks of a push, the head that follows them, and what is verified after the swap.

A backlog is sent in rounds of a few blocks, each ending at a line end and committed by its own head, so that an
interrupted push loses only one round. Documents are sent whole with the last round: so no head refers to turns that
its conversation does not have yet, or to a partial document.

Until a head refers to a block, a garbage collection may remove it. A push may find an existing block that an
interrupted push left long ago, and it may be removed the next moment. A fork shares the blocks of its parent, which
may be rewound or deleted meanwhile. And a machine may sleep between a put and the swap. So a push verifies those
blocks after the swap: from then on a garbage collection that removes one sees the head when it checks again, and puts
the block back (docs/formats/sync.md has the proof).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import zstandard

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.files import PartKind
from sessionary.sync.blocks import (
    BLOCK,
    START,
    Bytes,
    InMemory,
    Piece,
    block_id,
    cut,
    follow,
    id_range,
    pack,
    part_key,
)
from sessionary.sync.download import inline_bytes
from sessionary.sync.heads import HISTORY, INLINE, INLINE_ALL, LINES, SHORT, Head, Mark, PartHead, Past
from sessionary.sync.local_files import LocalPart, Matched
from sessionary.sync.remote import Remote, stats_of

ROUND = 16
"""Number of new blocks of a growing file before a head, extended to the end of a line."""


class Draft(NamedTuple):
    """A file of the next head.

    Attributes:
        puts: the blocks that the remote may lack: ids and bytes.
        done: False if the file continues after this round.
    """

    part: PartHead
    pieces: list[Piece]
    puts: list[tuple[str, bytes]]
    done: bool


@dataclass(frozen=True, slots=True)
class Stamp:
    """The fields of a head about the push itself."""

    device: str
    at: str
    active: str


@dataclass(frozen=True, slots=True)
class Claims:
    """Further fields of a head.

    Attributes:
        taken: ledgers that this device owns from now on.
        held: files of which a device holds a damaged version back.
        accepted: files that the user sends although they are damaged.
        items: for immutable files among them, the chain of their bytes.
        versioned: documents whose earlier versions are kept; see `versions_kept`.
        above: the number of the head is higher than this.
    """

    taken: Collection[str] = ()
    held: Mapping[str, Mark] = field(default_factory=dict)
    accepted: Collection[str] = ()
    items: Mapping[str, str] = field(default_factory=dict)
    versioned: Collection[str] = ()
    above: int = 0
    history: int = HISTORY


def draft_all(
    fs: Fs,
    mine: Mapping[str, LocalPart],
    known: Mapping[str, Sequence[Piece]],
    matched: Mapping[str, Matched],
    block: int = BLOCK,
) -> dict[str, Draft]:
    """Return the next round of a session; see `draft`. Includes documents if it is the last one."""
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
    """Return the next round of one file: what is known already, and blocks for what follows.

    Args:
        matched: number of them that the file starts with.
        block: bytes in one block.
        room: a document of at most this many bytes, compressed, is stored in the head.
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


def _inline(file: Bytes, part: LocalPart, room: int) -> Draft | None:
    """Return a small document to store in the head; None if it is empty or too large for that."""
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
    """Yield the ends of the next `ROUND` blocks, extended to the end of a line."""
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
    """Return the head after this round.

    Args:
        old: the head that it replaces, or an empty one for a new session.
        matched: number of pieces of the old head that each of them starts with.
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
    past = (*old.history, Past(old.gen, stamp.at, rewound))[-claims.history :] if rewound else old.history
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
    """Return the damaged files that a user has sent, until they are replaced."""
    kept = {
        name: chain
        for name, chain in old.accepted.items()
        if name not in drafts
        or chain in {drafts[name].part.chain, *(piece.chain for piece in drafts[name].pieces)}
    }
    sent = {name: drafts[name].part.chain for name in claims.accepted if name in drafts}
    return {**kept, **sent, **claims.items}


def _has_version(old: PartHead, new: PartHead) -> bool:
    """True if a document was changed, and its earlier version fits into blocks: neither empty nor too long."""
    return old.chain != new.chain and (old.n > 0 or (old.data is not None and 0 < old.size <= BLOCK))


def versions_kept(old: Head, new: Head) -> list[tuple[str, bytes]]:
    """Return the blocks (ids and bytes) of documents in the old head whose earlier versions the new one names.

    A document that was stored in the head exists nowhere else; one in blocks is stored already.
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


# -- verification after the swap

REST = 10.0
"""Seconds after which a push does not rely on its own puts any more.

A garbage collection on a store that compares before it removes waits for as long, in addition to the time that the
store takes to settle.
"""

Numbers = Mapping[str, Sequence[int]]


def assumed(head: Head, drafts: Mapping[str, Draft], matched: Mapping[str, Matched]) -> dict[str, list[int]]:
    """Return the blocks of a round that were not put, because the remote should have them, though not by this head.

    Args:
        matched: number of known pieces that each file starts with.
    """
    held = {part.name: part.n for part in head.parts}
    found = {
        name: list(range(held.get(name, 0), min(matched[name].pieces, one.part.n)))
        for name, one in drafts.items()
    }
    return {name: numbers for name, numbers in found.items() if numbers}


def put_numbers(drafts: Mapping[str, Draft]) -> dict[str, list[int]]:
    """Return the numbers of the blocks that a round puts."""
    return {
        name: list(range(len(one.pieces) - len(one.puts), len(one.pieces)))
        for name, one in drafts.items()
        if one.puts
    }


def together(*several: Numbers) -> dict[str, list[int]]:
    """Return the union of these block numbers."""
    names = {name for numbers in several for name in numbers}
    return {name: sorted({n for numbers in several for n in numbers.get(name, ())}) for name in sorted(names)}


def put_missing(
    fs: Fs, remote: Remote, space: str, part: LocalPart, pieces: Sequence[Piece], numbers: Iterable[int]
) -> None:
    """Put those of these blocks that are missing, as far as the local file has not changed."""
    key, known = part_key(part.name), [number for number in numbers if number < len(pieces)]
    if not known:
        return
    there = {stat.id for stat in stats_of(remote, space, *id_range(key, min(known), max(known) + 1))}
    with LineFile(part.path, fs) as file:
        for number in known:
            begin, prev = pieces[number - 1] if number else Piece(0, START)
            end, wanted = pieces[number]
            name = block_id(key, number, wanted)
            if name in there or end > part.size:
                continue
            chain, data = pack(file, begin, end, prev)
            if chain == wanted:
                remote.put_block(space, name, data)


def in_blocks(head: Head, pieces: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Return the pieces that are stored in blocks, without documents in the head."""
    inline = {
        part.name for part in head.parts if part.data is not None and part.kind == PartKind.DOCUMENT.value
    }
    return {name: ends for name, ends in pieces.items() if name not in inline}


def named(head: Head, pieces: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Return the pieces of files that the head still names; an emptied tombstone has none."""
    names = {part.name for part in head.parts}
    return {name: ends for name, ends in pieces.items() if name in names}
