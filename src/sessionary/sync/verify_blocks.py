"""Blocks that a push relied on, though it did not put them itself just now: put again once the head points to them.

Until a head points to a block, whoever tidies up on the other side may remove it. A push may have been told that a
block is there already, left behind by a push that was cut off long ago, and the next moment it may be gone. A fork
shares the blocks of the session it comes from, which may be rewound or thrown away meanwhile. And a machine may fall
asleep between a put and the swap. So a push looks, after the swap, after those blocks: from then on whoever removes
one sees the head when it looks again, and puts the block back (docs/formats/sync.md has the whole argument).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.base import PartKind
from sessionary.sync.blocks import START, Piece, block_id, id_range, pack, part_key
from sessionary.sync.heads import Head
from sessionary.sync.local_files import LocalPart, Matched
from sessionary.sync.remote import Remote, collectable, stats_of
from sessionary.sync.upload_plan import Draft

REST = 10.0
"""Seconds after which a push does not rely any more on what it has put itself.

Whoever removes from a store that looks first waits for as long, besides the time that the store takes to settle."""

Numbers = Mapping[str, Sequence[int]]


def assumed(head: Head, drafts: Mapping[str, Draft], matched: Mapping[str, Matched]) -> dict[str, list[int]]:
    """The blocks of a round that were not put, because the other side is taken to have them, though not by this head.

    Args:
        head: the head that is replaced.
        drafts: the round.
        matched: with how many pieces of what is known each file begins.
    """
    held = {part.name: part.n for part in head.parts}
    found = {
        name: list(range(held.get(name, 0), min(matched[name].pieces, one.part.n)))
        for name, one in drafts.items()
    }
    return {name: numbers for name, numbers in found.items() if numbers}


def put_numbers(drafts: Mapping[str, Draft]) -> dict[str, list[int]]:
    """The numbers of the blocks that a round puts."""
    return {
        name: list(range(len(one.pieces) - len(one.puts), len(one.pieces)))
        for name, one in drafts.items()
        if one.puts
    }


def together(*several: Numbers) -> dict[str, list[int]]:
    """All of these blocks, each once."""
    names = {name for numbers in several for name in numbers}
    return {name: sorted({n for numbers in several for n in numbers.get(name, ())}) for name in sorted(names)}


def put_missing(
    fs: Fs,
    remote: Remote,
    space: str,
    mine: Mapping[str, LocalPart],
    pieces: Mapping[str, Sequence[Piece]],
    wanted: Numbers,
) -> None:
    """Put those of these blocks that the other side has not, from the files here; what has changed here is passed over.

    Raises:
        RemoteError: the other side failed.
    """
    for name, numbers in wanted.items():
        if name in mine and name in pieces:
            _put(
                fs,
                remote,
                space,
                mine[name],
                pieces[name],
                _missing(remote, space, name, pieces[name], numbers),
            )


def _missing(
    remote: Remote, space: str, name: str, pieces: Sequence[Piece], numbers: Iterable[int]
) -> list[int]:
    """Those of these blocks that are not there; all of them where they cannot be listed."""
    known = [number for number in numbers if number < len(pieces)]
    store = collectable(remote)
    if store is None or not known:
        return known
    key = part_key(name)
    there = {stat.id for stat in stats_of(store, space, *id_range(key, min(known), max(known) + 1))}
    return [number for number in known if block_id(key, number, pieces[number].chain) not in there]


def _put(
    fs: Fs, remote: Remote, space: str, part: LocalPart, pieces: Sequence[Piece], numbers: Iterable[int]
) -> None:
    with LineFile(part.path, fs) as file:
        for number in numbers:
            begin, prev = pieces[number - 1] if number else Piece(0, START)
            end, wanted = pieces[number]
            if end > part.size:
                return
            chain, data = pack(file, begin, end, prev)
            if chain == wanted:
                remote.put_block(space, block_id(part_key(part.name), number, chain), data)


def in_blocks(head: Head, pieces: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Those of these pieces that lie in blocks: of a document that lies in the head there is none."""
    inline = {
        part.name for part in head.parts if part.data is not None and part.kind == PartKind.DOCUMENT.value
    }
    return {name: ends for name, ends in pieces.items() if name not in inline}


def named(head: Head, pieces: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Those of these pieces whose file the head still names: of a tombstone that was emptied, nothing is kept."""
    names = {part.name for part in head.parts}
    return {name: ends for name, ends in pieces.items() if name in names}
