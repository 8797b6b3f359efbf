"""Fast recognition of lines that are plainly valid records.

Most files are clean throughout: each line is a record, and the index of a record is the number of newlines before it.
Any other line is left to the patient reader. So refusing a line only costs time, but an accepted line must be a
record for every reader.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import stringzilla

from sessionary.codec import object_lines
from sessionary.codec.decode import REFUSED
from sessionary.codec.times import parse_time, timestamp_of

_decode = msgspec.json.Decoder().decode


class NotClean(Exception):
    """A line that needs the patient reader."""


class _Anything(msgspec.Struct, gc=False):
    """A record whose fields are not decoded."""


_skip_lines = msgspec.json.Decoder(_Anything).decode_lines


def plain_record(data: bytes, begin: int, stop: int) -> dict[str, Any]:
    """Decode the record of a plainly valid line.

    Raises:
        NotClean: the line needs the patient reader.
    """
    if stop == len(data):
        raise NotClean  # without its newline the line may be torn
    try:
        value = _decode(data[begin:stop])
    except REFUSED:
        raise NotClean from None
    if type(value) is not dict:
        raise NotClean
    return value


def count_clean(data: bytes) -> int:
    """Count the records in whole, plainly valid lines without decoding them.

    Checks what msgspec does not check in skipped values: text is valid UTF-8, and no integer is too long for Python.

    Raises:
        NotClean: a line needs the patient reader.
    """
    lines = object_lines(data)
    if not lines or _has_long_number(data):
        raise NotClean
    try:
        values = len(_skip_lines(data))
        if not data.isascii():
            stringzilla.utf8_uncased_search(data, b"\0", validate=True)
    except (*REFUSED, ValueError):
        raise NotClean from None
    if values != lines:
        raise NotClean
    return values


def _has_long_number(data: bytes) -> bool:
    """True if a run of more than 4,300 digits is possible: such a run covers at least two of the tested positions."""
    return any(data[at : at + 64].isdigit() for at in range(0, len(data), 2048))


def last_time(data: bytes) -> datetime | None:
    """The last time that a record bears, in lines that are clean."""
    end = len(data) - 1
    while end > 0:
        begin = data.rfind(b"\n", 0, end) + 1
        try:
            if time := time_of(_decode(data[begin:end])):
                return time
        except REFUSED:
            raise NotClean from None
        end = begin - 1
    return None


def time_of(message: dict[str, Any]) -> datetime | None:
    """When a message was said, as far as it says so itself."""
    return parse_time(timestamp_of(message))
