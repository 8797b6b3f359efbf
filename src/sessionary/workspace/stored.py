"""The records of a session as they are stored: lines, rows of a database, pieces of a document; damaged ones too."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeGuard

from sessionary.disk.fs import Fs
from sessionary.disk.line_reader import LineFile
from sessionary.errors import NotFound
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Layout
from sessionary.layouts.compressed import SUFFIX as COMPRESSED
from sessionary.layouts.compressed import Damaged, compressed_lines
from sessionary.layouts.files import PartKind
from sessionary.layouts.jsonl import read_range
from sessionary.model import SessionRef

_ORDER = (PartKind.JOURNAL, PartKind.DOCUMENT, PartKind.LOG, PartKind.KEPT)
_LINES = (".jsonl", ".records")
_DOCUMENTS = (".json", ".yaml", ".yml")
LINE, ROW, PIECE = "line", "row", "piece"
"""What a record of a file is."""

MOST = 100
"""Rows of a database that are read at a time."""

_KEYS = ("id", "key")


class StoredFile(NamedTuple):
    """A file of a session that holds text, or its database.

    Attributes:
        name: its name, relative to the folder of the session.
        path: its path.
        size: its bytes.
        unit: what its records are: ``line``, ``row`` of the session in a database, or ``piece`` of a document.
    """

    name: str
    path: str
    size: int
    unit: str


class StoredRecord(NamedTuple):
    """A line of a file, a row of a database, or a piece of a document.

    Attributes:
        number: its number, from 1; of a line its line.
        byte: the offset of its first byte, in a compressed file that in its text; None for a row.
        size: its bytes, without the newline.
        data: its first bytes; of a row those of a JSON object with its columns.
        row: the table of a row and its key, with a slash between them, as in the places of messages; else empty.
    """

    number: int
    byte: int | None
    size: int
    data: bytes
    row: str = ""


def stored_files(layout: Layout, ref: SessionRef) -> list[StoredFile]:
    """The files of a session that hold text, that of the conversation or its database first."""
    found = list[StoredFile]()
    database = ref.locator.partition("#")[0] if _is_in_rows(layout, ref) else None
    for part in sorted(
        layout.parts(ref), key=lambda one: _ORDER.index(one.kind) if one.kind in _ORDER else 9
    ):
        name = os.path.basename(part.path)
        is_lines = any(ending in name for ending in _LINES)
        if part.path == database:
            found.insert(0, StoredFile(part.name, part.path, part.size, ROW))
        elif is_lines or any(ending in name for ending in _DOCUMENTS):
            found.append(StoredFile(part.name, part.path, part.size, LINE if is_lines else PIECE))
    return found


def _is_in_rows(layout: Layout, ref: SessionRef) -> TypeGuard[AgentLayout]:
    return isinstance(layout, AgentLayout) and layout.place_of_rows(ref) is not None


def stored_records(
    fs: Fs, layout: Layout, file: StoredFile, first: int, width: int
) -> Iterator[StoredRecord]:
    """The records of a file, from the one with a number on; of each at most `width` bytes, and of a document pieces.

    Raises:
        NotFound: the file is gone.
        StorageFailed: it cannot be read.
    """
    found = _as_stored(fs, file, first, width)
    if not isinstance(layout, AgentLayout):
        return found
    return (one._replace(data=layout.shown(one.data)) for one in found)


def _as_stored(fs: Fs, file: StoredFile, first: int, width: int) -> Iterator[StoredRecord]:
    if file.unit == PIECE:
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


def stored_rows(layout: Layout, ref: SessionRef, first: int, width: int, row: str) -> list[StoredRecord]:
    """At most `MOST` rows of a session in a database, from the one with a number on, or else from a named one on.

    Raises:
        NotFound: the session is gone.
        StorageFailed, Corrupt: the database cannot be read.
    """
    assert isinstance(layout, AgentLayout)
    found: list[StoredRecord] = []

    def take(lines: Iterator[bytes]) -> list[bytes]:
        found.clear()
        is_begun = not row
        next(lines)  # what the rows are of
        for number, (table, columns, line) in enumerate(_with_columns(lines), 1):
            if len(found) == MOST:
                break
            if number < first:
                continue
            values = dict(zip(columns, map(_as_text, json.loads(line)), strict=True))
            name = f"{table}/{next((values[key] for key in _KEYS if key in values), '')}"
            is_begun = is_begun or row in (name, name.partition("/")[2])
            if is_begun:
                data = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
                found.append(StoredRecord(number, None, len(data), data[:width], name))
        return []

    layout.rows(ref, take)
    return found


def _as_text(value: Any) -> Any:
    """A stored value; a blob of UTF-8 as text."""
    if isinstance(value, dict) and "blob" in value:
        with suppress(UnicodeDecodeError):
            return base64.b64decode(value["blob"]).decode()
    return value


def _with_columns(lines: Iterator[bytes]) -> Iterator[tuple[str, list[str], bytes]]:
    """Each row with its table and columns, which a line before the first one names."""
    table, columns = "", list[str]()
    for line in lines:
        if line.startswith(b"{"):
            head = json.loads(line)
            table, columns = head["table"], head["columns"]
        else:
            yield table, columns, line


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
