"""What is wrong with one line that is no record, and which whole records lie on it.

Everything works on the bytes of the line, decoded as Latin-1: then one character is one byte, offsets are exact even
in bytes that are no UTF-8, and JSON, whose structure is ASCII, is scanned at the speed of the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sessionary.codec.decode import Undecodable, decode, decode_leniently
from sessionary.codec.problems import CODES, Severity

Span = tuple[int, int]

_scan = json.JSONDecoder(strict=False).raw_decode
_MARKER = re.compile(rb"(?:<{7}|={7}|>{7}|\|{7})(?: .*)?", re.DOTALL)
# Fewer NULs within a line are characters that a program wrote; a hole in a file is longer, or reaches its edge.
_HOLE = re.compile(rb"\A\0+|\0{8,}|\0+\Z")
_BLANK: Final = " \t\r\0"
MAX_JOINED_LINES: Final = 64
MAX_JOINED_BYTES: Final = 1 << 20


class Damage(NamedTuple):
    """One damaged stretch of a line: its code, its bytes from `start` to `end`, and the words for it."""

    code: str
    start: int
    end: int
    message: str
    severity: Severity


def diagnose(raw: bytes, cause: Undecodable) -> list[Damage]:
    """The damage of a line that `decode` refused with `cause`: at least one stretch, in order.

    A hole in the file that lies inside a line damages what is before and what is behind it as well: three stretches.
    """
    if _MARKER.fullmatch(raw):
        return [_damage("conflict_marker", 0, len(raw), f"a line that a merge left behind: {raw[:7].decode()}")]
    if _HOLE.search(raw):
        return list(_around_holes(raw))
    if cause.code in ("too_deep", "number_too_long", "control_characters"):
        return [_damage(cause.code, 0, len(raw), str(cause))]
    return [_broken(raw, 0, cause)]


def split_glued(raw: bytes) -> list[Span]:
    """The whole JSON objects that stand side by side on a damaged line, as (start, end) offsets in order.

    Only records count: an object that is a part of another one, torn or whole, is none, nor is text inside of a
    string, nor an empty object. Control characters may stand raw in their strings. Bytes between the spans are
    the rest of records that are gone. Where it cannot be told whether an object stood alone or inside of a torn
    one (torn right behind a colon, a comma or a bracket), it is not returned.
    """
    text = raw.decode("latin-1")
    spans: list[Span] = []
    start, inside = text.find("{"), False
    while start >= 0:
        try:
            value, end = _scan(text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string"):
                break
            start, inside = _next_start(text, start, error.pos), True
            continue
        except (ValueError, RecursionError):
            break
        before = text[spans[-1][1] if spans else 0 : start].rstrip(_BLANK)
        nested = text[end:].lstrip(_BLANK)[:1] in ("]", "}", ",", ":") or (not inside and before[-1:] in (":", ",", "["))
        if value and not nested and _is_utf8(raw[start:end]):
            spans.append((start, end))
        start, inside = text.find("{", end), False
    return spans


def joined_record(lines: Sequence[bytes]) -> int:
    """How many of these lines, from the first on, make up one record that was spread over them; 0 if none do.

    That happens where a newline stands raw in a string, and in files that somebody has pretty-printed.
    """
    text = ""
    for count, line in enumerate(lines[:MAX_JOINED_LINES], 1):
        text += ("\n" if text else "") + line.decode("latin-1")
        if len(text) > MAX_JOINED_BYTES or not _is_open(text):
            break
        if count < len(lines) and (whole := _closes(text + "\n" + lines[count].decode("latin-1"))):
            return count + 1 if whole else 0
    return 0
