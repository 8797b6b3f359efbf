"""Reading JSON Lines of any size in bounded memory, with what is damaged in them."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from msgspec import MsgspecError, Struct, msgpack

from sessionary.disk.fs import READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.model import Cursor, Problem, Record, Reset

WINDOW = 1 << 18
WIDE_WINDOW = 1 << 21
"""For a window with damage: a record that is spread over several lines is recognised only if they are read together."""
MARK = 1 << 10
"""Bytes before a cursor that must be the same when reading goes on there."""
LOOKS = 3
"""How often a last line that is truncated and still grows is read again: a writer may be in the middle of it."""


class _Position(Struct, array_like=True):
    """A place at which a line begins: the file, the offset, the number of the line, a checksum of what is before."""

    device: int
    inode: int
    offset: int
    line: int
    mark: int


def read_jsonl(fs: Fs, path: str, after: Cursor | None = None) -> Iterator[Record | Problem | Reset | Cursor]:
    """The records of a file in order; problems stand where they occur.

    The last item is the cursor to go on from. There is none if the file ends within a line or with damage, since
    what is added may change how the end is read.

    Args:
        fs: the file system.
        path: the file.
        after: read only what follows. If the file was replaced, truncated or changed before the cursor, `Reset` comes
            first, and the file is read from its start.

    Raises:
        NotFound: there is no such file.
        StorageFailed: it cannot be read.
    """
    # Here, since a list that reads nothing needs neither.
    from stringzilla import count

    from sessionary.codec import read_lines

    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"There is no file {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        found = require_regular(fs.fstat(fd))
        size, looks, last, begin = found.st_size, LOOKS, False, None
        if after is not None and (begin := _begin(fs, fd, after)) is None:
            yield Reset()
        low, line = (begin.offset, begin.line) if begin else (0, 1)
        while not last:
            data, last = window(fs, fd, low, size, WINDOW)
            reading = read_lines(data, path, line=line, byte=low)
            if reading.problems and not last:
                data, last = window(fs, fd, low, size, max(WINDOW, WIDE_WINDOW))
                reading = read_lines(data, path, line=line, byte=low)
            if last and reading.torn and looks and (grown := fs.fstat(fd).st_size) > low + len(data):
                size, looks, last = grown, looks - 1, False
                continue
            items: list[Record | Problem] = [*reading.problems, *reading.records()]
            yield from sorted(items, key=lambda one: one.byte or 0) if reading.problems else items
            low, line = low + len(data), line + count(data, b"\n")
            if last and not reading.problems and data[-1:] in (b"", b"\n"):
                mark = _mark(fs, fd, low)
                yield Cursor(msgpack.encode(_Position(found.st_dev, found.st_ino, low, line, mark)))
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def _begin(fs: Fs, fd: int, after: Cursor) -> _Position | None:
    """Where to go on; None if the file is another one, or changed before the cursor."""
    try:
        begin = msgpack.decode(after.state, type=_Position)
    except MsgspecError:
        return None
    found = fs.fstat(fd)
    same = (begin.device, begin.inode) == (found.st_dev, found.st_ino) and found.st_size >= begin.offset
    return begin if same and _mark(fs, fd, begin.offset) == begin.mark else None


def _mark(fs: Fs, fd: int, offset: int) -> int:
    start = max(offset - MARK, 0)
    return crc32(read_at(fs, fd, offset - start, start))


def windows(fs: Fs, fd: int, start: int, size: int, length: int = WINDOW) -> Iterator[tuple[int, int, bytes]]:
    """Pieces of the file from an offset on at which a line begins, each with its first line and byte."""
    from stringzilla import (
        count,  # here, since a list that reads nothing needs none; several times as fast as bytes
    )

    line, byte, last = 1, start, False
    while not last:
        data, last = window(fs, fd, byte, size, length)
        if data:
            yield line, byte, data
        line, byte = line + count(data, b"\n"), byte + len(data)


def window(fs: Fs, fd: int, byte: int, size: int, length: int) -> tuple[bytes, bool]:
    """The bytes from an offset to a newline or the end of the file, and whether it is the end.

    Args:
        fs: the file system.
        fd: the file.
        byte: the offset at which a line begins.
        size: the size of the file a moment ago; data added since is read as well.
        length: maximum number of bytes, unless a line is longer.
    """
    wanted = min(length, size - byte + 1) if byte <= size else length
    data = _read(fs, fd, wanted, byte, size)
    cut = data.rfind(b"\n") + 1
    if len(data) < wanted or cut == wanted:
        return data, len(data) < wanted
    if cut:
        return data[:cut], False
    # One line is longer than a window: its end is found first, so that it is held once and nothing beside it.
    del data
    end = byte + wanted
    while True:
        piece = _read(fs, fd, length, end, size)
        cut = piece.find(b"\n") + 1
        if cut or len(piece) < length:
            return read_at(fs, fd, end + (cut or len(piece)) - byte, byte), not cut
        end += len(piece)


def _read(fs: Fs, fd: int, wanted: int, byte: int, size: int) -> bytes:
    data = fs.pread(fd, wanted, byte)
    if len(data) < min(wanted, size - byte):  # some file systems return short reads
        data += read_at(fs, fd, wanted - len(data), byte + len(data))
    return data


def raw_line(fs: Fs, path: str, byte: int) -> bytes:
    """The line of a file that begins at an offset, without its newline.

    Raises:
        NotFound: there is no such file.
        StorageFailed: it cannot be read.
    """
    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"There is no file {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        size = require_regular(fs.fstat(fd)).st_size
        data, _ = window(fs, fd, byte, size, MARK)
        return data.split(b"\n", 1)[0]
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)
