"""A session that is one JSON document with a list of messages; of a damaged one what is whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import decode as decode_as

from sessionary.codec import Place, Undecodable, decode, problem
from sessionary.disk.fs import Fs, not_found, read_bytes
from sessionary.layouts.agents.fields import object_of, object_or_value
from sessionary.model import Problem, Record, SessionRef


class Shape(NamedTuple):
    """The shape of a document.

    Attributes:
        begin: matches what is before an element of the list, for a damaged document.
        title_text: matches the title in a damaged document, with its JSON as the first group.
    """

    key: str
    begin: re.Pattern[bytes]
    title: str
    title_text: re.Pattern[bytes]


class Head(NamedTuple):
    """The fields of a document without the list."""

    fields: dict[str, Any]


def pieces(fs: Fs, ref: SessionRef, shape: Shape) -> Iterator[Record | Problem | Head]:
    """The elements of the list in the document of a session, then its other fields.

    Raises:
        NotFound: the session is gone.
        StorageFailed: it cannot be read.
    """
    path, data = ref.locator, read_bytes(fs, ref.locator)
    if data is None:
        raise not_found(path, f"Session '{ref.session_id}' not found")
    try:
        raw = decode_as(data, type=dict[str, Raw])
        elements = decode_as(raw.pop(shape.key, b""), type=list[Raw])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        yield from _of_unusual(data, path, shape)
        return
    at, line = 0, 1
    for element in map(bytes, elements):
        begin = data.index(element, at)
        line, at = line + data.count(b"\n", at, begin), begin
        try:
            yield Record(object_or_value(decode(element)), line, at, element)
        except Undecodable as error:
            yield problem(error.code, Place(path, line, at), len(element))
    fields = dict[str, Any]()
    for name, value in raw.items():
        try:
            fields[name] = decode(bytes(value))
        except Undecodable as error:
            yield problem(error.code, Place(path, None, data.find(bytes(value))), len(bytes(value)))
    yield Head(fields)


def _of_unusual(data: bytes, path: str, shape: Shape) -> Iterator[Record | Problem | Head]:
    """As `pieces`, of a document that the fast parser refuses: halves of surrogate pairs, or damage."""
    try:
        value = decode(data)
    except Undecodable as error:
        words = f"the document is damaged: {error}"
        yield problem(error.code, Place(path, None, error.at or 0), len(data), words)
        yield from _whole(data, shape)
        return
    elements = object_of(value).get(shape.key)
    if not isinstance(elements, list):
        words = f"the file holds no list of {shape.key}"
        yield problem("not_an_object", Place(path, None, 0), len(data), words)
        yield from _whole(data, shape)
        return
    yield from (Record(object_or_value(one), 1, 0, b"") for one in elements)
    yield Head({name: one for name, one in value.items() if name != shape.key})


def _whole(data: bytes, shape: Shape) -> Iterator[Record | Head]:
    """The elements of a damaged document that are whole."""
    scan, text = json.JSONDecoder().raw_decode, data.decode("latin-1")  # one character for each byte
    line, at = 1, 0
    for found in shape.begin.finditer(data):
        begin = found.end()
        if begin < at:
            continue  # within the last one
        try:
            end = scan(text, begin)[1]
            value = decode(data[begin:end])
        except (ValueError, RecursionError):
            continue
        line, at = line + data.count(b"\n", at, begin), begin
        if isinstance(value, dict):
            yield Record(value, line, begin, data[begin:end])
        line, at = line + data.count(b"\n", begin, end), end
    title = shape.title_text.search(data)
    try:
        yield Head({shape.title: decode(title[1])} if title else {})
    except Undecodable:
        yield Head({})


def raw_value(fs: Fs, path: str, byte: int) -> bytes:
    """The bytes of the JSON value that begins at an offset of a file; the line, if there is none."""
    data = (read_bytes(fs, path) or b"")[byte:]
    try:
        return data[: json.JSONDecoder().raw_decode(data.decode("latin-1"))[1]]
    except (ValueError, RecursionError):
        return data.split(b"\n", 1)[0]
