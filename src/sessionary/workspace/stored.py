"""The files of a session as they are stored, record by record: those that are no message and damaged ones too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.errors import NotFound
from sessionary.layouts.base import Layout, PartKind
from sessionary.layouts.compressed import SUFFIX as COMPRESSED
from sessionary.layouts.compressed import Damaged, compressed_lines
from sessionary.layouts.jsonl import read_range
from sessionary.model import SessionRef

_ORDER = (PartKind.JOURNAL, PartKind.DOCUMENT, PartKind.LOG, PartKind.KEPT)
_LINES = (".jsonl", ".records")
_DOCUMENTS = (".json", ".yaml", ".yml")


class StoredFile(NamedTuple):
    """A file of a session that holds text.

    Attributes:
        name: its name, relative to the folder of the session.
        path: its path.
        size: its bytes.
        is_lines: it has a record in each line; else it is one document.
    """

    name: str
    path: str
    size: int
    is_lines: bool


class StoredRecord(NamedTuple):
    """A line of a file, or a piece of a document.

    Attributes:
        number: its number, from 1; of a line its line.
        byte: the offset of its first byte; in a compressed file that in its text.
        size: its bytes, without the newline.
        data: its first bytes.
    """

    number: int
    byte: int
    size: int
    data: bytes


def stored_files(layout: Layout, ref: SessionRef) -> list[StoredFile]:
    """The files of a session that hold text, that of the conversation first; none if it is in a database."""
    found = []
    for part in sorted(
        layout.parts(ref), key=lambda one: _ORDER.index(one.kind) if one.kind in _ORDER else 9
    ):
        name = os.path.basename(part.path)
        is_lines = any(ending in name for ending in _LINES)
        if is_lines or any(ending in name for ending in _DOCUMENTS):
            found.append(StoredFile(part.name, part.path, part.size, is_lines))
    return found


def stored_records(fs: Fs, file: StoredFile, first: int, width: int) -> Iterator[StoredRecord]:
    """The records of a file, from the one with a number on; of each at most `width` bytes, and of a document pieces.

    Raises:
        NotFound: the file is gone.
        StorageFailed: it cannot be read.
    """
    if not file.is_lines:
        pieces = _pieces(fs, file, width)
        yield from islice(pieces, first - 1, None)
    elif file.path.endswith(COMPRESSED):
        try:
            for number, (byte, line) in enumerate(compressed_lines(fs, file.path), 1):
                if number >= first:
                    yield StoredRecord(number, byte, len(line), line[:width])
        except Damaged:
            return  # `check` reports where it ends
    else:
        with LineFile(file.path, fs) as lines:
            for head in islice(lines.heads(width=width), first - 1, None):
                yield StoredRecord(head.line or 0, head.byte, head.length, head.head)


def _pieces(fs: Fs, file: StoredFile, width: int) -> Iterator[StoredRecord]:
    byte, number = 0, 1
    while data := read_range(fs, file.path, byte, width):
        cut = data.rfind(b"\n") + 1 if len(data) == width else 0
        piece = data[:cut] if cut else data
        yield StoredRecord(number, byte, len(piece), piece)
        byte, number = byte + len(piece), number + 1


def file_named(files: list[StoredFile], name: str) -> StoredFile:
    """The file of a session with a name, or that as the end of its path; the first one for an empty name.

    Raises:
        NotFound: the session has no such file.
    """
    found = next((one for one in files if name in ("", one.name, os.path.basename(one.path))), None)
    if found is None:
        raise NotFound(f"the session has no file {name}", hint="reload the session")
    return found
