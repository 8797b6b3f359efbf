"""Reading JSON Lines that are compressed with Zstandard, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from sessionary.disk.fs import Fs
from sessionary.layouts.jsonl import WIDE_WINDOW, opened
from sessionary.model import Problem, Record

SUFFIX = ".zst"
MAGIC = b"\x28\xb5\x2f\xfd"
_INPUT = 1 << 12
"""Compressed bytes per step: few bytes may stand for many."""
_LARGEST_WINDOW = 1 << 27


class Damaged(Exception):
    """The compressed data is damaged, or ends within a frame."""


def read_compressed(fs: Fs, path: str) -> Iterator[Record | Problem]:
    """The records of a file in order; lines and offsets are those of the decompressed text.

    Raises:
        NotFound: the file does not exist.
        Damaged: the rest of it cannot be decompressed; everything before it was yielded.
    """
    from sessionary.codec import read_lines  # here: a list that reads nothing does not need it

    buffer, line, byte, damage = bytearray(), 1, 0, None
    pieces = decompressed(fs, path)
    ended = False
    while not ended:
        try:
            piece = next(pieces, None)
        except Damaged as error:
            piece, damage = None, error
        ended = piece is None
        whole = 0 if piece is None else piece.rfind(b"\n") + 1
        size = len(buffer)
        buffer += piece or b""
        if not ended and (len(buffer) < WIDE_WINDOW or not whole):
            continue
        cut = len(buffer) if ended else size + whole
        data = bytes(buffer[:cut])
        reading = read_lines(data, path, line=line, byte=byte)
        items: list[Record | Problem] = [*reading.problems, *reading.records()]
        yield from sorted(items, key=lambda one: one.byte or 0) if reading.problems else items
        line, byte = line + data.count(b"\n"), byte + cut
        del buffer[:cut]
    if damage is not None:
        raise damage


def decompressed(fs: Fs, path: str) -> Iterator[bytes]:
    """The text of a file in pieces. Raises as `read_compressed`."""
    import zstandard

    try:
        with opened(fs, path) as (fd, _):
            decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
            frame, begun, offset = decompressor.decompressobj(), False, 0
            while data := fs.pread(fd, _INPUT, offset):
                offset += len(data)
                while data:
                    if piece := frame.decompress(data):
                        yield piece
                    data, begun = (frame.unused_data, False) if frame.eof else (b"", True)
                    if not begun:
                        frame = decompressor.decompressobj()
    except zstandard.ZstdError as error:
        raise Damaged(str(error)) from None
    if begun:
        raise Damaged("it ends within a frame")


def compressed_lines(fs: Fs, path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file without their newlines, each with its offset in the text. Raises as `read_compressed`."""
    held, byte = list[bytes](), 0
    for piece in decompressed(fs, path):
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole = b"".join((*held, line))
            yield byte, whole
            held, byte = [], byte + len(whole) + 1
        held.append(rest)
    if rest := b"".join(held):
        yield byte, rest


def compressed_line(fs: Fs, path: str, byte: int) -> bytes:
    """The line that begins at an offset of the text, without its newline. Raises as `read_compressed`."""
    return next((line for begin, line in compressed_lines(fs, path) if begin == byte), b"")


def first_bytes(fs: Fs, path: str) -> bytes:
    """The first bytes of a file, by which a Zstandard frame is known. Raises `NotFound` and `StorageFailed`."""
    with opened(fs, path) as (fd, _):
        return fs.pread(fd, len(MAGIC), 0)
