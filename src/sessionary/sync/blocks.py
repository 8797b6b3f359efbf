"""Blocks: a file cut into byte ranges that never change, each named by all that stands before it.

A block's id holds the hash of the chain up to and with it, so **equal id means equal bytes and equal history**: a
block is only ever created, creating it twice is the same as once, and no answer that was lost on the way needs to be
asked for again. Two sessions that share their beginning share the blocks of it, and a chain that was followed back to
its start proves every byte.

Ranges end at line ends, so that what a head points to is always whole lines; a line longer than a block is cut into
fragments. An agent's log repeats its whole context in each request: such a line is small only beside the request before
it. So each block is compressed with what precedes it in the file as a dictionary, from the last line on that is about
as long. Whoever reads a block has these bytes already: the chain says that they are the same.

docs/formats/sync.md says all of this for other languages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

import zstandard

from sessionary.errors import Corrupt, Unsupported

FORMAT = 1
BLOCK = 256 << 10
"""The most bytes of a file that one block holds."""

LOOK_BACK = 4 << 20
"""The most bytes before a block that it may be compressed against."""

NEAR = 64 << 10
"""So many of them always, where there are as many."""

OVERHEAD = 1 << 10
"""What is stored of a block is at most so many bytes, and a 128th, longer than what it holds of the file."""

ANEW = (
    "nothing here was changed; push this session again from a machine that has it whole: `sessionary sync check "
    "--repair`"
)
"""The remedy for what is damaged on the other side: only a machine that has it can put it again."""

START = sha256(b"sessionary chain 1").hexdigest()
_LEVEL = 3
_SHORTEST = 8  # zstandard takes no dictionary of fewer bytes


class Piece(NamedTuple):
    """One block of a file as both sides know it: where it ends in the file, and the chain up to and with it."""

    end: int
    chain: str


class Bytes(Protocol):
    """What blocks are cut from: bytes at offsets, `disk.scan.LineFile` for one."""

    def read(self, byte: int, length: int) -> bytes:
        """The bytes at an offset; fewer only where the file ends."""
        ...


class InMemory(NamedTuple):
    """Bytes in memory, to cut blocks from."""

    data: bytes

    def read(self, byte: int, length: int) -> bytes:
        return self.data[byte : byte + length]


class Stored(NamedTuple):
    """A block as it lies on the other side, its first line understood.

    Attributes:
        chain: the chain up to and with it.
        prev: the chain before it.
        raw: how many bytes of the file it holds.
        back: how many bytes before it it was compressed against.
        body: these bytes, compressed.
    """

    chain: str
    prev: str
    raw: int
    back: int
    body: bytes


def follow(chain: str, raw: bytes) -> str:
    """The chain after these bytes: SHA-256 over the chain before them and their own SHA-256."""
    return sha256(bytes.fromhex(chain) + sha256(raw).digest()).hexdigest()


def part_key(name: str) -> str:
    """What the ids of all blocks of a file begin with."""
    return sha256(name.encode()).hexdigest()[:8]


def block_id(key: str, seq: int, chain: str) -> str:
    """The id of block number `seq` (from 0) of a file. Ids of one file sort as its blocks do."""
    return f"{key}-{seq:08}-{chain[:32]}"


def id_range(key: str, first: int, stop: int) -> tuple[str, str]:
    """Between which ids (the second one left out) all blocks number `first` to `stop - 1` of a file lie."""
    return f"{key}-{first:08}", f"{key}-{stop:08}"


def whole_lines(file: Bytes, size: int) -> int:
    """How many of the first `size` bytes are whole lines; what follows is torn, or being written."""
    end, step = size, 1 << 12
    while end:
        begin = max(0, end - step)
        newline = file.read(begin, end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end, step = begin, min(2 * step, BLOCK)
    return 0


def cut(file: Bytes, start: int, stop: int, *, block: int = BLOCK) -> Iterator[int]:
    """Where the blocks of the bytes from `start` to `stop` end: each as long as it may be, at a line end if it can."""
    while start < stop:
        end = min(start + block, stop)
        if end < stop:
            newline = file.read(start, block).rfind(b"\n")
            end = start + newline + 1 if newline >= 0 else end
        yield end
        start = end


def matching(file: Bytes, size: int, pieces: Sequence[Piece]) -> int:
    """How many of these pieces the first `size` bytes of a file begin with. Costs one pass over them."""
    begin, chain = 0, START
    for count, piece in enumerate(pieces):
        if piece.end > size or follow(chain, file.read(begin, piece.end - begin)) != piece.chain:
            return count
        begin, chain = piece
    return len(pieces)


def pack(file: Bytes, start: int, end: int, prev: str) -> tuple[str, bytes]:
    """The bytes of a file from `start` to `end` as a block: the chain up to and with it, and what to store."""
    raw = file.read(start, end - start)
    before = file.read(start - back, back) if (back := _look_back(file, start, raw)) else b""
    header = {"v": FORMAT, "prev": prev, "raw": len(raw), "back": back}
    body = _compressor(before).compress(raw)
    return follow(prev, raw), json.dumps(header, separators=(",", ":")).encode() + b"\n" + body


def unpack(block: str, data: bytes) -> Stored:
    """Understand the first line of a stored block. Its bytes are proved when they are unfolded.

    Args:
        block: its id.
        data: what was stored.

    Raises:
        Corrupt: this is no block.
        Unsupported: a newer version of Sessionary has written it.
    """
    line, _, body = data.partition(b"\n")
    try:
        header = json.loads(line)
        version, prev, raw, back = (header[name] for name in ("v", "prev", "raw", "back"))
        numbers = all(type(number) is int for number in (version, raw, back))
        if not numbers or version < 1 or len(bytes.fromhex(prev)) != 32:
            raise ValueError("a field of another type")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(block, str(error)) from None
    if version > FORMAT:
        raise Unsupported(
            f"block {block} is of format {version}; this version reads up to {FORMAT}",
            hint="update sessionary on this machine",
        )
    if not 0 < raw <= BLOCK or not 0 <= back <= LOOK_BACK:
        raise _damaged(block, f"it claims {raw} bytes, compressed against {back}")
    if len(data) > raw + raw // 128 + OVERHEAD:
        raise _damaged(block, f"it claims {raw} bytes, and has {len(data)} for them")
    return Stored("", prev, raw, back, body)


def unfold(blocks: Iterable[Stored], before: bytes) -> Iterator[bytes]:
    """The bytes of blocks that follow one another, proved against their chains.

    Args:
        blocks: the blocks in order.
        before: the bytes of the file before the first of them, the last `LOOK_BACK` at least.

    Raises:
        Corrupt: a block does not hold what its id says.
    """
    window = bytearray(before[-LOOK_BACK:])
    for stored in blocks:
        raw = _decompress(stored, bytes(window[len(window) - stored.back :]) if stored.back else b"")
        if follow(stored.prev, raw) != stored.chain:
            raise _damaged(stored.chain[:32], "its bytes are not those that its id was made of")
        yield raw
        window += raw
        if len(window) > 2 * LOOK_BACK:
            del window[:-LOOK_BACK]


def _decompress(stored: Stored, before: bytes) -> bytes:
    """The bytes of a block. It says its size itself, so that a small block cannot fill the memory."""
    if len(before) != stored.back:
        raise _damaged(stored.chain[:32], "it was compressed against bytes before the beginning of the file")
    dictionary = _dictionary(before)
    try:
        if zstandard.get_frame_parameters(stored.body).content_size != stored.raw:
            raise _damaged(stored.chain[:32], "it holds more or fewer bytes than it says")
        reader = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=2 * LOOK_BACK)
        return reader.decompress(stored.body, max_output_size=stored.raw)
    except zstandard.ZstdError as error:
        raise _damaged(stored.chain[:32], str(error)) from None


def _compressor(before: bytes) -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary(before))


def _dictionary(before: bytes) -> zstandard.ZstdCompressionDict | None:
    return zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if before else None


def _look_back(file: Bytes, start: int, raw: bytes) -> int:
    """How many bytes before `start` to compress `raw` against: back to the last line that is about as long.

    The lines of a log that repeat one another are its long ones, and between two of them there are many short ones.
    """
    back = min(NEAR, start)
    before = file.read(start - back, back)
    longest = _longest(before, raw)
    step = back
    while 2 * longest > NEAR and step < min(start, LOOK_BACK):
        step = min(4 * step, start, LOOK_BACK)
        before = file.read(start - step, step)
        longest = _longest(before, raw)
        found = _long_line(before, longest // 2)
        if found is not None:
            back = max(back, step - found)
            break
        back = step
    return back if back >= _SHORTEST else 0


def _longest(before: bytes, raw: bytes) -> int:
    """The length of the longest line in `raw`; of the first one, what lies before it counts too."""
    lines = raw.split(b"\n")
    begun = len(before) - before.rfind(b"\n") - 1
    return max(begun + len(lines[0]), *map(len, lines))


def _long_line(before: bytes, length: int) -> int | None:
    """Where the last whole line of so many bytes begins; the first of them may be cut, and the last unfinished."""
    begin = len(before)
    lines = before.split(b"\n")
    begin -= len(lines[-1])
    for line in reversed(lines[1:-1]):
        begin -= len(line) + 1
        if len(line) >= length:
            return begin
    return None


def _damaged(block: str, why: str) -> Corrupt:
    return Corrupt(
        f"block {block} of the other side cannot be read: {why}",
        operation="pull",
        hint=ANEW,
    )
