"""Blocks: immutable byte ranges of a file, each named by a hash of everything before it.

The id of a block contains the hash of the chain up to and including it, so **equal id means equal bytes and equal
history**: blocks are only created, creating one twice is harmless, and a lost answer needs no recovery. Sessions with
a common beginning share its blocks, and a chain that was followed to its start verifies every byte.

Ranges end at line ends, so that a head always refers to whole lines; a line longer than a block is split. An agent's
log repeats its whole context in each request, so a line is small only relative to the request before it. Therefore
each block is compressed with the preceding bytes of the file as a dictionary, starting at the last line of about the
same length. A reader of a block has these bytes already; the chain guarantees that they are the same.

docs/formats/sync.md specifies the format for other implementations.
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
"""Most bytes of a file in one block."""

LOOK_BACK = 4 << 20
"""Most bytes before a block that it may be compressed against."""

NEAR = 64 << 10
"""Bytes that a block is compressed against at least, if there are as many."""

OVERHEAD = 1 << 10
"""Most bytes by which a stored block exceeds its file range, besides a 128th of it."""

ANEW = (
    "nothing was changed on this machine; push the session again from a machine that has it: `sessionary sync check "
    "--repair`"
)
"""Hint for damage on the remote: only a machine with the session can put it again."""

START = sha256(b"sessionary chain 1").hexdigest()
CHUNK = 1 << 20
_LEVEL = 3
_SHORTEST = 8  # the smallest dictionary of zstandard


class Piece(NamedTuple):
    """A block of a file as both sides know it: its end offset, and the chain up to and including it."""

    end: int
    chain: str


class Bytes(Protocol):
    """Random access to bytes, for instance `disk.line_reader.LineFile`."""

    def read(self, byte: int, length: int) -> bytes:
        """Read bytes at an offset; fewer only at the end of the file."""
        ...


class InMemory(NamedTuple):
    """Bytes in memory."""

    data: bytes

    def read(self, byte: int, length: int) -> bytes:
        return self.data[byte : byte + length]


def chunks(file: Bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end`, or to the end of the file, in pieces that fit into memory."""
    while start < end and (chunk := file.read(start, min(CHUNK, end - start))):
        yield chunk
        start += len(chunk)


class Stored(NamedTuple):
    """A block as stored on the remote, with its header decoded.

    Attributes:
        chain: the chain up to and including it.
        prev: the chain before it.
        raw: number of bytes of the file in it.
        back: number of bytes before it that it was compressed against.
        body: these bytes, compressed.
    """

    chain: str
    prev: str
    raw: int
    back: int
    body: bytes


def follow(chain: str, raw: bytes) -> str:
    """Return the chain after these bytes: SHA-256 over the chain before them and their own SHA-256."""
    return sha256(bytes.fromhex(chain) + sha256(raw).digest()).hexdigest()


def part_key(name: str) -> str:
    """Return the prefix of all block ids of a file."""
    return sha256(name.encode()).hexdigest()[:8]


def block_id(key: str, seq: int, chain: str) -> str:
    """Return the id of block number `seq` (from 0) of a file. Ids of one file sort in block order."""
    return f"{key}-{seq:08}-{chain[:32]}"


def id_range(key: str, first: int, stop: int) -> tuple[str, str]:
    """Return the bounds of the ids of blocks `first` to `stop - 1` of a file; the second is exclusive."""
    return f"{key}-{first:08}", f"{key}-{stop:08}"


def whole_lines(file: Bytes, size: int) -> int:
    """Return the length of the whole lines in the first `size` bytes; the rest is torn, or being written."""
    end, step = size, 1 << 12
    while end:
        begin = max(0, end - step)
        newline = file.read(begin, end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end, step = begin, min(2 * step, BLOCK)
    return 0


def cut(file: Bytes, start: int, stop: int, *, block: int = BLOCK) -> Iterator[int]:
    """Yield the end offsets of the blocks from `start` to `stop`.

    Each is as long as possible, and ends at a line end if possible.
    """
    while start < stop:
        end = min(start + block, stop)
        if end < stop:
            newline = file.read(start, block).rfind(b"\n")
            end = start + newline + 1 if newline >= 0 else end
        yield end
        start = end


def matching(file: Bytes, size: int, pieces: Sequence[Piece]) -> int:
    """Return how many of these pieces the first `size` bytes of a file start with. Reads them once."""
    begin, chain = 0, START
    for count, piece in enumerate(pieces):
        if piece.end > size or follow(chain, file.read(begin, piece.end - begin)) != piece.chain:
            return count
        begin, chain = piece
    return len(pieces)


def pack(file: Bytes, start: int, end: int, prev: str) -> tuple[str, bytes]:
    """Encode the bytes from `start` to `end` as a block: return the chain including it, and the bytes to store."""
    raw = file.read(start, end - start)
    before = file.read(start - back, back) if (back := _look_back(file, start, raw)) else b""
    header = {"v": FORMAT, "prev": prev, "raw": len(raw), "back": back}
    body = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary(before)).compress(raw)
    return follow(prev, raw), json.dumps(header, separators=(",", ":")).encode() + b"\n" + body


def unpack(block: str, data: bytes) -> Stored:
    """Decode the header of a stored block. Its bytes are verified by `unfold`.

    Args:
        data: the stored bytes.

    Raises:
        Corrupt: this is not a block.
        Unsupported: a newer version of Sessionary wrote it.
    """
    line, _, body = data.partition(b"\n")
    try:
        header = json.loads(line)
        version, prev, raw, back = (header[name] for name in ("v", "prev", "raw", "back"))
        numbers = all(type(number) is int for number in (version, raw, back))
        if not numbers or version < 1 or len(bytes.fromhex(prev)) != 32:
            raise ValueError("a field has the wrong type")
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
    """Yield the bytes of consecutive blocks, verified against their chains.

    Args:
        blocks: the blocks in order.
        before: the bytes of the file before the first of them, at least the last `LOOK_BACK`.

    Raises:
        Corrupt: a block does not match its id.
    """
    window = bytearray(before[-LOOK_BACK:])
    for stored in blocks:
        raw = _decompress(stored, bytes(window[len(window) - stored.back :]) if stored.back else b"")
        if follow(stored.prev, raw) != stored.chain:
            raise _damaged(stored.chain[:32], "its bytes do not match its id")
        yield raw
        window += raw
        if len(window) > 2 * LOOK_BACK:
            del window[:-LOOK_BACK]


def _decompress(stored: Stored, before: bytes) -> bytes:
    """Decompress a block. Its header states the size, so a small block cannot fill the memory."""
    if len(before) != stored.back:
        raise _damaged(stored.chain[:32], "it was compressed against more bytes than the file has before it")
    dictionary = _dictionary(before)
    try:
        if zstandard.get_frame_parameters(stored.body).content_size != stored.raw:
            raise _damaged(stored.chain[:32], "its size differs from its header")
        reader = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=2 * LOOK_BACK)
        return reader.decompress(stored.body, max_output_size=stored.raw)
    except zstandard.ZstdError as error:
        raise _damaged(stored.chain[:32], str(error)) from None


def _dictionary(before: bytes) -> zstandard.ZstdCompressionDict | None:
    return zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if before else None


def _look_back(file: Bytes, start: int, raw: bytes) -> int:
    """Return how many bytes before `start` to compress against: back to the last line of about the same length.

    The lines of a log that repeat each other are long, with many short lines in between.
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
    """Return the length of the longest line in `raw`; the first one includes its beginning before `raw`."""
    lines = raw.split(b"\n")
    begun = len(before) - before.rfind(b"\n") - 1
    return max(begun + len(lines[0]), *map(len, lines))


def _long_line(before: bytes, length: int) -> int | None:
    """Return the offset of the last whole line of about this length; the first line may be cut, the last incomplete."""
    begin = len(before)
    lines = before.split(b"\n")
    begin -= len(lines[-1])
    for line in reversed(lines[1:-1]):
        begin -= len(line) + 1
        if len(line) >= length:
            return begin
    return None


def _damaged(block: str, why: str) -> Corrupt:
    return Corrupt(f"block {block} on the remote cannot be read: {why}", operation="pull", hint=ANEW)
