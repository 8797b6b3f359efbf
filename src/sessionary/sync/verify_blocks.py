"""Verification, after the swap, of blocks that a push relied on without putting them itself.

Until a head refers to a block, a garbage collection may remove it. A push may find an existing block that an
interrupted push left long ago, and it may be removed the next moment. A fork shares the blocks of its parent, which
may be rewound or deleted meanwhile. And a machine may sleep between a put and the swap. So a push checks those blocks
after the swap: from then on a garbage collection that removes one sees the head when it checks again, and puts the
block back (docs/formats/sync.md has the proof).
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
"""Seconds after which a push does not rely on its own puts any more.

A garbage collection on a store that compares before it removes waits for as long, in addition to the time that the
store takes to settle.
"""

Numbers = Mapping[str, Sequence[int]]


def assumed(head: Head, drafts: Mapping[str, Draft], matched: Mapping[str, Matched]) -> dict[str, list[int]]:
    """Return the blocks of a round that were not put, because the remote should have them, though not by this head.

    Args:
        head: the head that is replaced.
        drafts: the round.
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
    fs: Fs,
    remote: Remote,
    space: str,
    mine: Mapping[str, LocalPart],
    pieces: Mapping[str, Sequence[Piece]],
    wanted: Numbers,
) -> None:
    """Put missing blocks from local files; files that have changed are skipped.

    Raises:
        RemoteError: the remote failed.
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
    """Return the missing ones of these blocks; all of them if they cannot be listed."""
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
    """Return the pieces that are stored in blocks, without documents in the head."""
    inline = {
        part.name for part in head.parts if part.data is not None and part.kind == PartKind.DOCUMENT.value
    }
    return {name: ends for name, ends in pieces.items() if name not in inline}


def named(head: Head, pieces: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Return the pieces of files that the head still names; an emptied tombstone has none."""
    names = {part.name for part in head.parts}
    return {name: ends for name, ends in pieces.items() if name in names}
