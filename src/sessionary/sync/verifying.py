"""Verification of a file's blocks on the remote by their hashes, and repair from the local file.

A block is damaged if its bytes do not match its id, or if it cannot be decrypted. It was compressed against the bytes
before it: those come from the local file, as far as it is as agreed, and from the blocks behind that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.errors import Corrupt, RemoteError, Unsupported
from sessionary.sync.blocks import LOOK_BACK, START, Piece, block_id, id_range, pack, part_key, unfold, unpack
from sessionary.sync.local_files import LocalPart, opened
from sessionary.sync.remote import Collectable, Remote, blocks_of, is_unreadable, stats_of


class BlockFault(NamedTuple):
    """A block that a head refers to and that is not as it was put.

    Attributes:
        number: its number in the file, from 0.
        id: its id.
        why: the fault; empty if it is missing.
    """

    number: int
    id: str
    why: str = ""


class Compared(NamedTuple):
    """A file to verify.

    Attributes:
        space: the space of its blocks.
        name: its name.
        pieces: its agreed blocks.
        here: the local file; None without one.
        matched: number of pieces that the local file starts with.
    """

    space: str
    name: str
    pieces: Sequence[Piece]
    here: LocalPart | None
    matched: int

    def before(self, number: int) -> Piece:
        """Return the start of a block, and the chain before it."""
        return self.pieces[number - 1] if number else Piece(0, START)

    def id(self, number: int) -> str:
        """Return the id of a block."""
        return block_id(part_key(self.name), number, self.pieces[number].chain)


def examine(fs: Fs, remote: Remote, one: Compared) -> list[BlockFault]:
    """Read and verify all blocks of a file; return the missing and damaged ones.

    Raises:
        RemoteError: the remote failed.
        StorageFailed: the local file cannot be read.
        Unsupported: a newer version wrote a block.
    """
    faults: list[BlockFault] = []
    known: bytes | None = b""  # the bytes before the block, behind the local ones; None if unavailable
    with opened(fs, one.here) as file:
        for number, found in enumerate(_found(remote, one)):
            begin = one.before(number).end
            if number <= one.matched and file is not None:
                known = file.read(max(0, begin - LOOK_BACK), min(begin, LOOK_BACK))
            fault, raw = _proved(one, number, found, known)
            known = (known + raw)[-LOOK_BACK:] if known is not None and raw is not None else None
            if fault is not None:
                faults.append(fault)
    return faults


def _proved(
    one: Compared, number: int, found: bytes | RemoteError | None, before: bytes | None
) -> tuple[BlockFault | None, bytes | None]:
    """Return the fault of a block, and its bytes if they are verified."""
    name = one.id(number)
    if found is None:
        return BlockFault(number, name), None
    if isinstance(found, RemoteError):
        return BlockFault(number, name, "it cannot be opened"), None
    begin, prev = one.before(number)
    end, chain = one.pieces[number]
    try:
        stored = unpack(name, found)._replace(chain=chain)
        if (stored.prev, stored.raw) != (prev, end - begin):
            return BlockFault(number, name, "its header belongs to another block"), None
        if before is None or (stored.back > len(before) and number > one.matched):
            return None, None  # its dictionary is damaged or missing
        return None, b"".join(unfold([stored], before))
    except Corrupt as error:
        return BlockFault(number, name, error.message), None


def _found(remote: Remote, one: Compared) -> Iterator[bytes | RemoteError | None]:
    """Yield the bytes of each block in order; None for a missing one, an error for one that cannot be decrypted."""
    at = 0
    key = part_key(one.name)
    try:
        for block in blocks_of(remote, one.space, *id_range(key, 0, len(one.pieces))):
            while at < len(one.pieces) and one.id(at) < block.id:
                yield None
                at += 1
            if at < len(one.pieces) and one.id(at) == block.id:
                yield block.data
                at += 1
    except RemoteError as error:
        if not is_unreadable(error):
            raise
    else:
        yield from [None] * (len(one.pieces) - at)
        return
    for number in range(at, len(one.pieces)):
        yield _alone(remote, one.space, one.id(number))


def _alone(remote: Remote, space: str, name: str) -> bytes | RemoteError | None:
    try:
        found = blocks_of(remote, space, name, name + "~")
        return next((block.data for block in found if block.id == name), None)
    except RemoteError as error:
        if not is_unreadable(error):
            raise
        return error


def put_right(fs: Fs, remote: Remote, store: Collectable | None, one: Compared, fault: BlockFault) -> bool:
    """Put a block again from the local file, in place of a damaged one; False if that is impossible.

    Args:
        fs: the file system.
        remote: the remote.
        store: the same, if blocks can be removed from it.
        one: the file.
        fault: the block.

    Raises:
        RemoteError: the remote failed, or does not permit the removal.
        StorageFailed: the local file cannot be read.
    """
    if one.here is None or fault.number >= one.matched:
        return False
    begin, prev = one.before(fault.number)
    with LineFile(one.here.path, fs) as file:
        chain, data = pack(file, begin, one.pieces[fault.number].end, prev)
    if chain != one.pieces[fault.number].chain:
        return False  # changed since it was compared
    if not fault.why and remote.put_block(one.space, fault.id, data):
        return True
    if store is None:
        return False
    for stat in stats_of(store, one.space, fault.id, fault.id + "~"):
        if stat.id == fault.id:
            store.delete_block(one.space, fault.id, stat.version)
    remote.put_block(one.space, fault.id, data)
    return isinstance(found := _alone(remote, one.space, fault.id), bytes) and _holds(found, data)


def _holds(found: bytes, data: bytes) -> bool:
    """True if a stored block has the same header as the one that was put, and a body of the same length."""
    try:
        return unpack("", found) == unpack("", data)
    except (Corrupt, Unsupported):
        return False
