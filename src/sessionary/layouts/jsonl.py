"""Reader of JSON Lines of any size in bounded memory; damage is reported in place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import TypeVar
from zlib import crc32

from msgspec import MsgspecError, Struct, msgpack

from sessionary.disk.fs import READ, Fs, not_found, read_at, read_bytes, require_regular, storage_failed
from sessionary.layouts.abilities import KnownTime, Recency
from sessionary.layouts.base import MayMatch
from sessionary.layouts.clock import changed_at
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of_file
from sessionary.model import Cursor, Place, Problem, Record, Reset, SessionRef, Skipped

T = TypeVar("T")

WINDOW = 1 << 18
"""Bytes that are read at a time. Fits into the processor cache between reading and decoding or searching."""
WIDE_WINDOW = 1 << 21
"""For a window with damage: a record that is spread over several lines is recognised only if they are read together."""
MARK = 1 << 10
"""Number of bytes before a cursor that must be unchanged to continue there."""
TAIL = 1 << 14
"""Bytes at the end of a file that are searched for its newest time."""
LOOKS = 3
"""Number of times that a growing, truncated last line is read again: a writer may be in the middle of it."""


Stored = Record | Problem | Reset | Skipped | Cursor
"""An item of a file."""

_SALVAGED = frozenset("control_characters glued_records nul_run number_too_long raw_newline".split())
"""Codes of lines that may hold whole records."""


class _Position(Struct, array_like=True):
    """A place at which a line begins: the file, the offset, the number of the line, a checksum of what is before."""

    device: int
    inode: int
    offset: int
    line: int
    mark: int


def read_jsonl(
    fs: Fs,
    path: str,
    after: Cursor | None = None,
    may_match: MayMatch | None = None,
    *,
    salvage: bool = False,
) -> Iterator[Stored]:
    """The records of a file in order; problems stand where they occur.

    The last item is the cursor to go on from. There is none if the file ends within a line or with damage, since
    what is added may change how the end is read.

    Args:
        after: read only what follows. If the file was replaced, truncated or changed before the cursor, `Reset` comes
            first, and the file is read from its start.
        may_match: decode only lines that may be of interest; `Skipped` counts the records before them. The rest
            behind the last one is not counted, and there is no cursor. Where the file is damaged, all is decoded.
        salvage: yield the whole records that a damaged line holds, behind its problem. Some writers forget a newline,
            a power cut leaves zeros before a record, and some write raw control characters. Not with `may_match`.

    Raises:
        NotFound: the file does not exist.
    """
    return chain.from_iterable(read_windows(fs, path, after, may_match, salvage=salvage))


def read_windows(
    fs: Fs,
    path: str,
    after: Cursor | None = None,
    may_match: MayMatch | None = None,
    *,
    salvage: bool = False,
    until: Cursor | None = None,
) -> Iterator[Iterable[Stored]]:
    """As `read_jsonl`, window by window, for `by_windows`.

    Args:
        until: the cursor of an earlier reading; what was added behind it is left out. Not with `may_match`.
    """
    with opened(fs, path) as (fd, found):
        begin = None if after is None else _begin(fs, fd, after)
        if after is not None and begin is None:
            yield (Reset(),)
        low, line = (begin.offset, begin.line) if begin else (0, 1)
        if may_match is None:
            stop = sys.maxsize if until is None else _offset(until)
            yield from _decoded(fs, fd, path, found, low, line, salvage, stop)
        else:
            yield from _matching(fs, fd, path, found, low, line, may_match)


@contextmanager
def opened(fs: Fs, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file, opened for reading, and its stat. Raises NotFound if the file does not exist."""
    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        raise not_found(path, f"There is no file {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        yield fd, require_regular(fs.fstat(fd))
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    finally:
        fs.close(fd)


def by_windows(
    windows: Iterable[Iterable[Stored]], taken: Callable[[Iterable[Stored]], Iterable[T]]
) -> Iterator[T]:
    """What `taken` makes of the items of each window, which it takes all before the first one is yielded.

    A processor runs one step for many records faster than all steps for each: its caches hold the code of one step.
    A window is in memory in any case, and what is made of it mostly refers to its texts.
    """
    return chain.from_iterable([*taken(window)] for window in windows)


def _decoded(
    fs: Fs,
    fd: int,
    path: str,
    found: os.stat_result,
    low: int,
    line: int,
    salvage: bool = False,
    stop: int = sys.maxsize,
) -> Iterator[Iterable[Record | Problem | Cursor]]:
    """The records from a line on, which begins at the byte `low`, up to the line at the byte `stop`, by windows."""
    from stringzilla import count  # here, since a list that reads nothing needs none of them

    from sessionary.codec import read_lines
    from sessionary.codec.lines import clean_records

    size, looks, last = found.st_size, LOOKS, False
    while not last and low < stop:
        data, last = window(fs, fd, low, size, min(WINDOW, stop - low))
        if (clean := clean_records(data, line, low)) is not None:
            low, line = low + len(data), line + count(data, b"\n")
            del data  # a line may be long, and the next one too
            yield clean
            del clean
            if last:
                yield (_cursor(fs, fd, found, low, line),)
            continue
        reading = read_lines(data, path, line=line, byte=low)
        if reading.problems and not last:
            data, last = window(fs, fd, low, size, min(max(WINDOW, WIDE_WINDOW), stop - low))
            reading = read_lines(data, path, line=line, byte=low)
        if last and reading.torn and looks and (grown := fs.fstat(fd).st_size) > low + len(data):
            size, looks, last = grown, looks - 1, False
            continue
        low, line, end = low + len(data), line + count(data, b"\n"), data[-1:]
        del data
        if reading.problems:
            items: list[Record | Problem] = [*reading.problems, *reading.records()]
            items.sort(key=lambda one: one.byte or 0)
            yield [*_with_salvaged(fs, fd, items)] if salvage else items
            del items
        else:
            yield reading.records()
        if last and not reading.problems and end in (b"", b"\n"):
            yield (_cursor(fs, fd, found, low, line),)
        del reading


def _with_salvaged(fs: Fs, fd: int, items: Iterable[Record | Problem]) -> Iterator[Record | Problem]:
    """The items, and behind the problem of a line the whole records that it holds."""
    from sessionary.codec import split_glued
    from sessionary.codec.damage import lenient

    for found in items:
        yield found
        if type(found) is Problem and found.code in _SALVAGED and found.byte is not None:
            line = read_at(fs, fd, found.span, found.byte)
            spans = [(0, len(line))] if found.code == "number_too_long" else split_glued(line)
            for low, high in spans:
                if (value := lenient(line[low:high])) is not None:
                    yield Record(value, found.line or 1, found.byte + low, line[low:high])


def _matching(
    fs: Fs, fd: int, path: str, found: os.stat_result, low: int, line: int, may_match: MayMatch
) -> Iterator[Iterable[Record | Problem | Skipped]]:
    """The records of the lines that may be of interest; from the first damage before such a line on, all of them."""
    from stringzilla import count

    from sessionary.codec import read_lines

    while (begin := _next_match(fs, fd, low, found.st_size, may_match)) is not None:
        skipped = _counted(fs, fd, low, begin)
        data, last = window(fs, fd, begin, found.st_size, WINDOW)
        number = line + (skipped.records if skipped else 0)
        reading = read_lines(data, path, line=number, byte=begin)
        if skipped is None or reading.problems:
            for rest in _decoded(fs, fd, path, found, low, line):
                yield (item for item in rest if not isinstance(item, Cursor))
            return
        if skipped.records:
            yield (skipped,)
        low, line = begin + len(data), number + count(data, b"\n")
        del data
        yield reading.records()
        del reading
        if last:
            return


def may_hold(fs: Fs, path: str, may_match: MayMatch) -> bool:
    """False if no record of a file can be of interest. Raises as `read_jsonl`."""
    return any(not isinstance(item, Skipped) for item in read_jsonl(fs, path, None, may_match))


def _next_match(fs: Fs, fd: int, low: int, size: int, may_match: MayMatch) -> int | None:
    """The offset of the next lines of interest; None without any. A file that begins otherwise may be any."""
    while True:
        data = _read(fs, fd, WINDOW, low, size)
        is_end, cut = len(data) < WINDOW, data.rfind(b"\n") + 1
        if not is_end and not cut:
            data, is_end = window(fs, fd, low, size, WINDOW)
            cut = len(data)
        # Bytes behind the last newline are read again with the rest of their line, which is cheaper than a copy.
        if may_match(data) or (low == 0 and not data.startswith(b"{")):
            return low
        if is_end:
            return None
        low += cut


def _counted(fs: Fs, fd: int, low: int, end: int) -> Skipped | None:
    """The number of records between two lines; None if some bytes may not be records."""
    from sessionary.codec.lines import count_records

    records, time = 0, None
    while low < end:
        data, _ = window(fs, fd, low, end, WINDOW)
        found = count_records(data)
        if not found:
            return None
        records, low = records + found, low + len(data)
        time = _last_time(data) or time
    return Skipped(records, time)


def _last_time(data: bytes) -> datetime | None:
    """The time of the last record in these lines that has one."""
    from sessionary.codec import decode_object
    from sessionary.transcript.typed import time_of

    end = len(data)
    while end >= 0:
        begin = data.rfind(b"\n", 0, end) + 1
        value = decode_object(data[begin:end]) if begin < end else None
        if value is not None and (time := time_of(value)) is not None:
            return time
        end = begin - 1
    return None


def _begin(fs: Fs, fd: int, after: Cursor) -> _Position | None:
    """The position of a cursor; None if the file is another one, or changed before it."""
    try:
        begin = msgpack.decode(after.state, type=_Position)
    except MsgspecError:
        return None
    found = fs.fstat(fd)
    same = (begin.device, begin.inode) == (found.st_dev, found.st_ino) and found.st_size >= begin.offset
    return begin if same and mark_before(fs, fd, begin.offset) == begin.mark else None


def _cursor(fs: Fs, fd: int, found: os.stat_result, offset: int, line: int) -> Cursor:
    position = _Position(found.st_dev, found.st_ino, offset, line, mark_before(fs, fd, offset))
    return Cursor(msgpack.encode(position))


def _offset(cursor: Cursor) -> int:
    return msgpack.decode(cursor.state, type=_Position).offset


def mark_before(fs: Fs, fd: int, offset: int) -> int:
    """A checksum of the last bytes before an offset, by which a cursor knows a file that only grew."""
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


def raw_record(fs: Fs, ref: SessionRef, place: Place) -> bytes:
    """As `Layout.raw`, of a layout that stores records in files: the line at an offset, or the whole file."""
    path = place.path or ref.locator
    if place.byte is None:
        return read_bytes(fs, path) or b""
    return raw_line(fs, path, place.byte)


def raw_line(fs: Fs, path: str, byte: int) -> bytes:
    """The line of a file that begins at an offset, without its newline. Raises NotFound if the file does not exist."""
    with opened(fs, path) as (fd, found):
        data, _ = window(fs, fd, byte, found.st_size, TAIL)
        return data.split(b"\n", 1)[0]


def read_range(fs: Fs, path: str, byte: int, length: int) -> bytes:
    """The bytes of a file from an offset on. Raises as `raw_line`."""
    with opened(fs, path) as (fd, _):
        return read_at(fs, fd, length, byte)


def recency(
    fs: Fs, path: str, now: float, known: KnownTime | None = None, salt: str | None = None
) -> Recency:
    """When a file of messages changed.

    A file that was copied may be older than its messages, and one that was touched newer: both count for `changed`.

    Args:
        known: the time of its newest message; the file is not opened if it has this fingerprint.
        salt: of the fingerprint; None if it covers more than this file, or is unknown.
    """
    try:
        found = fs.stat(path)
    except (OSError, ValueError):
        return Recency(None, None, 0)  # reading reports what cannot be read
    if known is not None and salt is not None:
        state = fingerprint_of_file(found, now, salt)
        if state != UNKNOWN and state == known.fingerprint:
            return Recency(known.updated, max(found.st_mtime, known.updated), found.st_size)
    last = _time_at_the_end(fs, path)
    times = () if last is None else (last.timestamp(),)
    newest = changed_at(now, *times, found.st_mtime, found.st_ctime)
    return Recency(newest, max((found.st_mtime, *times)), found.st_size)


def _time_at_the_end(fs: Fs, path: str) -> datetime | None:
    """The time of the last message in the last bytes of a file that has one."""
    try:
        with opened(fs, path) as (fd, found):
            data = read_at(fs, fd, min(found.st_size, TAIL), max(0, found.st_size - TAIL))
    except OSError:
        return None
    return _last_time(data if found.st_size <= TAIL else data[data.find(b"\n") + 1 :])
