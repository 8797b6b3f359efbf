"""Lines about which there is nothing to say but what is in them, told apart from all others as cheaply as can be.

Most files are clean throughout. In those a line is a record, and the index of a record follows from the newlines
before it. Whoever finds anything else here goes through the file with patience instead, so what is refused only costs
time, and what is let pass must be a record to every reader.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import stringzilla

from sessionary.codec import object_lines
from sessionary.codec.decode import REFUSED
from sessionary.layouts.amplifier.messages import parse_time, timestamp_of

_decode = msgspec.json.Decoder().decode


class NotClean(Exception):
    """Something that takes a reader with patience."""


class _Anything(msgspec.Struct, gc=False):
    """A record of which nothing is wanted but that it is one."""


_skip_lines = msgspec.json.Decoder(_Anything).decode_lines


def plain_record(data: bytes, begin: int, stop: int) -> dict[str, Any]:
    """The record of a line about which there is nothing to say but what is in it.

    Raises:
        NotClean: it is another line.
    """
    if stop == len(data):
        raise NotClean  # no newline ends it: it may be torn
    try:
        value = _decode(data[begin:stop])
    except REFUSED:
        raise NotClean from None
    if type(value) is not dict:
        raise NotClean
    return value


def count_clean(data: bytes) -> int:
    """How many records whole lines hold, each of which is plainly one; nothing of them is built.

    What msgspec does not look at in a value that it passes over is looked at here: that text is UTF-8, and that no
    integer is too long for Python.

    Raises:
        NotClean: they are not all like that.
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
    """True if there may be more than 4,300 digits in a row: then at least two of these places are among them."""
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
