"""Diagnosis of a line that is not a record, and recovery of the whole records on it.

Lines are scanned as Latin-1: one character is one byte, offsets are exact even in invalid UTF-8, and JSON, whose
structure is ASCII, is scanned at the speed of the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from sessionary.codec.conflicts import is_marker, name_of
from sessionary.codec.decode import Undecodable, decode
from sessionary.codec.problems import CODES
from sessionary.model import Severity

Span = tuple[int, int]

_scan = json.JSONDecoder(strict=False).raw_decode
# Fewer NULs within a line were written by a program; a hole in a file is longer, or touches its edge.
_HOLE = re.compile(rb"\A\0+|\0{8,}|\0+\Z")
_BLANK: Final = " \t\r\n\0"
_NEAR: Final = 64
MAX_PIECES: Final = 1000
MAX_JOINED_LINES: Final = 64
MAX_JOINED_BYTES: Final = 1 << 20


class Damage(NamedTuple):
    """A damaged range of a line: code, start and end offset, message, severity."""

    code: str
    start: int
    end: int
    message: str
    severity: Severity


def diagnose(raw: bytes, cause: Undecodable) -> list[Damage]:
    """Return the damaged ranges of a line that `decode` refused with `cause`: at least one, in order.

    A hole in the middle of a line also damages the parts before and behind it: three ranges.
    """
    if is_marker(raw):
        return [_damage("conflict_marker", 0, len(raw), name_of(raw))]
    if b"\0" in raw and _HOLE.search(raw):
        return _around_holes(raw)
    if cause.code in ("too_deep", "number_too_long", "control_characters"):
        return [_damage(cause.code, 0, len(raw), CODES[cause.code].meaning)]
    return [_broken(raw, 0, cause)]


def split_glued(raw: bytes) -> list[Span]:
    """Return (start, end) of the whole records on a damaged line, in order.

    Only records count: not an object nested in another one (torn or whole), nothing inside a string, no empty object.
    Raw control characters in strings are accepted. Bytes between the spans are the rest of lost records. An object
    that may have been nested in a torn one (torn right behind a colon or a bracket) is not returned: a missing record
    is better than an invented one. The search ends after 1,000 failed attempts.
    """
    text = raw.decode("latin-1")
    spans: list[Span] = []
    start, torn_here, tries = text.find("{"), False, 0
    while start >= 0 and tries < MAX_PIECES:
        try:
            value, end = _scan(text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string"):
                break  # everything that follows is inside it
            start, torn_here = _next_start(text, start, error.pos)
            tries += (
                1  # each attempt costs a count of the newlines before it, for the line number of the error
            )
        except (ValueError, RecursionError):
            break
        else:
            if value and (torn_here or _stands_alone(text, start)) and _ends_alone(text, end):
                spans.append((start, end))
            start, torn_here = text.find("{", end), False
    return [span for span in spans if _is_utf8(raw[slice(*span)])]


def lenient(raw: bytes) -> dict[str, Any] | None:
    """Parse an object; None if it is not one.

    Raw control characters in strings and integers of any length are accepted.
    """
    try:
        value = json.loads(raw.decode("utf-8"), strict=False, parse_int=_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def replaced(raw: bytes) -> dict[str, Any] | None:
    """Return the record of a line with invalid UTF-8, the invalid bytes replaced by U+FFFD.

    None if the line is valid UTF-8, or not a record even so.
    """
    if _is_utf8(raw):
        return None
    text = raw.decode("utf-8", "replace").encode()
    try:
        value = decode(text)
    except Undecodable:
        value = lenient(text)
    return value if value and isinstance(value, dict) else None


def bad_bytes(raw: bytes) -> int:
    """Return the number of bytes that are not valid UTF-8."""
    return len(raw) - len(raw.decode("utf-8", "ignore").encode())


def covers(raw: bytes, spans: Sequence[Span]) -> bool:
    """True if only blanks and NULs are outside the spans."""
    edges = [0, *(edge for span in spans for edge in span), len(raw)]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return not any(raw[start:end].decode("latin-1").strip(_BLANK) for start, end in gaps)


def joined_record(lines: Sequence[bytes]) -> int:
    """Return how many of these lines, from the first on, form one record spread over several lines; 0 if none.

    Caused by a raw newline in a string, or by a pretty-printed file. At most 64 lines and 1 MiB are examined.
    """
    text = lines[0].decode("latin-1")
    if _state(text) != "open":
        return 0
    for count, line in enumerate(lines[1:MAX_JOINED_LINES], 2):
        text += "\n" + line.decode("latin-1")
        state = "broken" if len(text) > MAX_JOINED_BYTES else _state(text)
        if state != "open":
            return count if state == "whole" and _is_utf8(text.encode("latin-1")) else 0
    return 0


def _state(text: str) -> Literal["whole", "open", "broken"]:
    """Classify a text: a whole object, the beginning of one, or neither."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "{":
        return "broken"
    try:
        _, end = _scan(text, start)
    except json.JSONDecodeError as error:
        wants_more = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
        return "open" if wants_more else "broken"
    except (ValueError, RecursionError):
        return "broken"
    return "broken" if text[end:].strip() else "whole"


def _next_start(text: str, start: int, broken: int) -> tuple[int, bool]:
    """Return the next possible start of a record after a break at `broken`, and whether it is exactly there.

    A record torn inside a string swallows the brace and the first quote of the following record, so parsing breaks
    one key later.
    """
    found = text.rfind("{", start + 1, broken + 1)
    if found >= 0 and not text[found + 1 : broken].strip(_BLANK + '"'):
        return found, True
    return text.find("{", max(broken, start + 1)), False


def _stands_alone(text: str, start: int) -> bool:
    return text[max(0, start - _NEAR) : start].rstrip(_BLANK)[-1:] not in (":", ",", "[")


def _ends_alone(text: str, end: int) -> bool:
    return text[end : end + _NEAR].lstrip(_BLANK)[:1] not in ("]", "}", ",", ":")


def _number(digits: str) -> int | str:
    """Parse an integer; one with more digits than Python parses stays text."""
    try:
        return int(digits)
    except ValueError:
        return digits


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _damage(code: str, start: int, end: int, message: str, severity: Severity | None = None) -> Damage:
    return Damage(code, start, end, message, CODES[code].severity if severity is None else severity)


def _broken(raw: bytes, offset: int, cause: Undecodable | None) -> Damage:
    end = offset + len(raw)
    spans = split_glued(raw)
    if spans:
        rest = len(raw) - sum(stop - start for start, stop in spans)
        if covers(raw, spans):
            words = f"{_count(len(spans), 'whole record')} without a newline between them"
            return _damage("glued_records", offset, end, words, Severity.hides_data)
        words = (
            f"{_count(len(spans), 'whole record')} and {_count(rest, 'byte')} that belong to none on one line"
        )
        return _damage("glued_records", offset, end, words)
    if cause is None:
        return _damage("bad_json", offset, end, "a fragment of a record")
    code = "bad_utf8" if cause.code == "bad_utf8" else "bad_json"
    return _damage(code, offset, end, f"{CODES[code].meaning} (it breaks at byte {cause.at} of the line)")


def _refusal(raw: bytes) -> Undecodable | None:
    try:
        decode(raw)
    except Undecodable as cause:
        return cause
    return None


def _around_holes(raw: bytes) -> list[Damage]:
    holes = [match.span() for match in _HOLE.finditer(raw)]
    edges = [0, *(edge for hole in holes for edge in hole), len(raw)]
    torn: list[Damage] = []
    records = 0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        piece = raw[start:end]
        spans = split_glued(piece)
        if covers(piece, spans):
            records += len(spans)
        else:
            torn.append(_broken(piece, start, _refusal(piece)))
    if torn:
        torn += [_hole(start, end, end - start) for start, end in holes]
        return sorted(torn, key=lambda damage: damage.start)
    return [_hole(0, len(raw), sum(end - start for start, end in holes), records)]


def _hole(start: int, end: int, zeros: int, records: int = 0) -> Damage:
    words = f"{_count(zeros, 'NUL byte')} in the place of data"
    if records:
        words += f", and {_count(records, 'whole record')} on the same line"
    return _damage("nul_run", start, end, words)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
