"""Reading JSON Lines of any size in bounded memory, with what is damaged in them."""

from __future__ import annotations

from collections.abc import Iterator

from sessionary.disk.fs import READ, Fs, not_found, read_at, require_regular, storage_failed
from sessionary.model import Problem, Record

WINDOW = 1 << 21


def read_jsonl(fs: Fs, path: str) -> Iterator[Record | Problem]:
    """The records of a file in order; problems stand where they occur.

    Raises:
        NotFound: there is no such file.
        StorageFailed: it cannot be read.
    """
    from sessionary.codec import read_lines  # here, since a list that reads nothing needs no codec

    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"There is no file {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        size = require_regular(fs.fstat(fd)).st_size
        for line, low, data in windows(fs, fd, 0, size):
            reading = read_lines(data, path, line=line, byte=low)
            found: list[Record | Problem] = [*reading.problems, *reading.records()]
            yield from sorted(found, key=lambda one: one.byte or 0)
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


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
    while True:
        data = fs.pread(fd, wanted, byte)
        if len(data) < min(wanted, size - byte):  # some file systems return short reads
            data += read_at(fs, fd, wanted - len(data), byte + len(data))
        if len(data) < wanted:
            return data, True
        if cut := data.rfind(b"\n") + 1:
            return (data if cut == wanted else data[:cut]), False
        wanted = max(2 * wanted, length)
