"""Salvage a transcript, line by line. Pure: bytes in, bytes out.

Readable lines stay byte for byte in place. Only the parts between readable records are changed: several
records on a line get a line each, a record that spans lines becomes one, raw control characters in strings
are escaped, objects in a list get a line each, invalid UTF-8 becomes U+FFFD where the rest of a line is a
record. The remaining bytes (truncated pieces, zeros, foreign bytes) are removed, and returned so that they
can be kept. If the backup has missing lines between the same neighbours, they are restored, by the rules of
`recovery`.

Of lines that both sides of a merge have changed, one side stays: both together would be a conversation that
never took place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sessionary.codec import Reading, Undecodable, decode, read_lines, reencode_line, split_glued
from sessionary.codec.conflicts import conflicts, is_marker
from sessionary.codec.damage import MAX_JOINED_LINES, bad_bytes, joined_record, lenient, replaced
from sessionary.codec.decode import BOM
from sessionary.layouts.amplifier.recovery import between, one_line
from sessionary.model import Severity

_BLANK = b" \t\r\n\0"
_BAD = "\ufffd"

REPLACED = "replaced"
_NOTHING_LOST = frozenset(
    {"conflict_marker", "not_an_object", "unknown_record", "raw_newline", "control_characters"}
)

Message = tuple[bytes, dict[str, Any]]
"""A message and its line."""


class Fix(NamedTuple):
    """One change.

    Attributes:
        line: line number in the damaged file, from 1.
        code: the code of the damage in `check`, if there is one.
        what: the change, as text.
        lost: number of bytes that could not be recovered, neither from the file nor from its backup.
    """

    line: int
    code: str
    what: str
    lost: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return self._asdict()


@dataclass(slots=True)
class Salvaged:
    """A salvaged transcript.

    Attributes:
        lines: its lines, without newlines.
        values: the messages, parallel to `lines`.
        fixes: the changes, in the order of the file.
        left_over: the removed bytes, one part a line.
        replace_bad: as in `salvage`.
    """

    lines: list[bytes] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    left_over: list[bytes] = field(default_factory=list)
    replace_bad: bool = True

    def add(self, line: bytes, value: dict[str, Any]) -> None:
        """Add one message."""
        self.lines.append(line)
        self.values.append(value)


class _Stretch(NamedTuple):
    """The data between two readable records (or before the first, or after the last)."""

    line: int
    data: bytes
    place: int


def needs_salvage(reading: Reading) -> bool:
    """True if it needs a change: damage, or a mark that strict readers refuse."""
    return any(problem.severity > Severity.note or problem.code == "bom" for problem in reading.problems)


def salvage(data: bytes, backup: Reading | None = None, *, replace_bad: bool = True) -> Salvaged:
    """Salvage a transcript.

    Args:
        backup: the content of its backup; gaps are filled from there.
        replace_bad: keep a message with invalid UTF-8, with U+FFFD in place of the bytes; else it is quarantined.
    """
    done = Salvaged(replace_bad=replace_bad)
    data = _settled(data, done)
    reading = read_lines(data)
    damaged = {problem.byte for problem in reading.problems if problem.severity > Severity.cosmetic}
    for piece in _pieces(data, reading):
        if isinstance(piece, _Stretch):
            _put_right(piece, done, reading, backup if damaged else None)
        else:
            done.add(*piece)
    for problem in reading.problems:
        if problem.code == "carriage_return":
            done.fixes.append(Fix(problem.line or 0, problem.code, "a carriage return became a blank"))
    done.fixes.sort(key=lambda fix: fix.line)
    if any(problem.code == "bom" for problem in reading.problems):
        done.fixes.insert(0, Fix(1, "bom", "a byte order mark was removed"))
    return done


def _pieces(data: bytes, reading: Reading) -> Iterator[_Stretch | Message]:
    """The readable records with the bytes of their lines, and the non-blank parts between them."""
    at, number = 0, 1
    place = 0
    for record in reading.records():
        start = data.rfind(b"\n", 0, record.byte) + 1
        if data[at:start].strip():
            yield _Stretch(number, data[at:start], place)
        behind = data.find(b"\n", record.byte)
        at = len(data) if behind < 0 else behind + 1
        number = record.line + 1
        place += 1
        yield _line_of(data[start:at].removesuffix(b"\n").removeprefix(BOM)), record.value
    if data[at:].strip():
        yield _Stretch(number, data[at:], place)


def _line_of(line: bytes) -> bytes:
    """A readable line, unchanged except for carriage returns in it, at which text readers would split it."""
    body = line.removesuffix(b"\r")
    return one_line(body) if b"\r" in body else line


def _put_right(stretch: _Stretch, done: Salvaged, reading: Reading, backup: Reading | None) -> None:
    found: list[Message] = []
    fixes: list[tuple[Fix, list[Message]]] = []
    kept = len(done.left_over)
    for line, code, records, rest, zeros in _worked(stretch, done.replace_bad):
        found += records
        if rest.strip(_BLANK):
            done.left_over.append(rest)
        fixes.append((_fix(line, code, records, rest, zeros), records))
    filled: Fix | None = None
    if backup is not None and (len(done.left_over) > kept or b"\0" in stretch.data):
        found, filled = _filled(stretch, found, reading, backup)
    for fix, records in fixes:
        done.fixes.append(fix if filled is None else _brought_back(fix, records, found))
    done.fixes += [] if filled is None else [filled]
    for record in found:
        done.add(*record)


def _brought_back(fix: Fix, records: list[Message], found: list[Message]) -> Fix:
    """The fix of a part that was filled from the backup: nothing is lost, except bytes that are still U+FFFD."""
    if fix.code == "bad_utf8" and records:
        return (
            fix if records[0] in found else fix._replace(what="the backup has the complete message", lost=0)
        )
    return fix._replace(lost=0)


def _filled(
    stretch: _Stretch, found: list[Message], reading: Reading, backup: Reading
) -> tuple[list[Message], Fix | None]:
    """Add what the backup has between the two neighbours of a part; records of `found` missing there come after."""
    first, last = between(backup.raws, reading.raws, stretch.place)
    if first >= last:
        return found, None
    back = list(zip(backup.raws[first:last], backup.values[first:last], strict=True))
    values = [value for _, value in back]
    found = [one for one in found if not any(_is_damaged(one[0], whole) for whole, _ in back)]
    new = sum(1 for value in values if value not in [value for _, value in found])
    words = f"messages restored from the backup: {new}"
    fix = Fix(stretch.line, "filled_from_backup", words) if new else None
    return back + [record for record in found if record[1] not in values], fix


def _is_damaged(line: bytes, whole: bytes) -> bool:
    """True if a line equals another one with U+FFFD in place of some bytes."""
    text = line.decode("utf-8", "replace")
    if _BAD not in text:
        return False
    parts = re.split(f"({_BAD}+)", text)
    pattern = "".join(f".{{0,{4 * len(part)}}}" if part[:1] == _BAD else re.escape(part) for part in parts)
    return re.fullmatch(pattern, _written_anew(whole).decode("utf-8", "replace"), re.DOTALL) is not None


def _written_anew(line: bytes) -> bytes:
    try:
        return reencode_line(decode(line))
    except (Undecodable, ValueError):
        return line


def _fix(line: int, code: str, records: list[Message], rest: bytes, zeros: int) -> Fix:
    if code == REPLACED:
        bad = bad_bytes(rest)
        return Fix(line, "bad_utf8", f"bytes of invalid UTF-8 that became U+FFFD: {bad:,}", bad)
    lost = 0 if code in _NOTHING_LOST else zeros + len(rest.replace(b"\0", b""))
    return Fix(line, code, _words(len(records), len(rest)), lost)


def _settled(data: bytes, done: Salvaged) -> bytes:
    """The file with one side of each merge conflict in which both sides have changed the same lines.

    That is known if the conflict contains the lines before the change (the style `diff3`). Otherwise both
    sides may have only added lines, and all of them stay. Removed lines become blank, so that line numbers do
    not change.
    """
    lines = data.split(b"\n")
    for one in conflicts(lines):
        if one.base is None or not any(line.strip() for line in lines[one.base + 1 : one.middle]):
            continue
        sides = [range(one.first + 1, one.base), range(one.middle + 1, one.last)]
        counts = [sum(1 for row in rows if lines[row].strip()) for rows in sides]
        longer = counts[1] > counts[0]  # a longer side wins over a rewind
        gone = [row for row in range(one.first, one.last + 1) if row not in sides[longer]]
        done.left_over.append(b"\n".join(lines[row] for row in gone))
        for row in gone:
            lines[row] = b""
        words = (
            f"the {'second' if longer else 'first'} side stays (messages: {counts[longer]}); the other side "
        )
        done.fixes.append(
            Fix(one.first + 1, "conflict_marker", words + "and the lines before the merge were quarantined")
        )
    return b"\n".join(lines)


def _words(records: int, rest: int) -> str:
    parts = []
    if records:
        parts.append(f"messages that got a line of their own: {records}")
    if rest:
        parts.append(f"{rest:,} bytes were quarantined")
    return ", ".join(parts) or "a line without content was removed"


def _worked(stretch: _Stretch, replace_bad: bool) -> Iterator[tuple[int, str, list[Message], bytes, int]]:
    """Line by line: its number, its damage, the records in it, the rest of its bytes, and NUL bytes."""
    lines = stretch.data.split(b"\n")
    row = 0
    while row < len(lines):
        number, line = stretch.line + row, lines[row].removesuffix(b"\r")
        row += 1
        if not line.strip():
            continue
        count = joined_record(lines[row - 1 : row - 1 + MAX_JOINED_LINES])
        if count:
            text = b"\n".join(lines[row - 1 : row - 1 + count])
            row += count - 1
            record = _record(text)
            yield number, "raw_newline", [record] if record else [], b"" if record else text, 0
        elif (items := _listed(line)) is not None:
            yield number, "not_an_object", items, b"", 0
        elif (whole := _record(line)) is not None:
            yield number, _refusal(line), [whole], b"", 0
        elif replace_bad and (saved := replaced(line)) is not None:
            yield number, REPLACED, [(reencode_line(saved), saved)], line, 0
        else:
            read = [(span, _record(line[slice(*span)])) for span in split_glued(line)]
            records = [record for _, record in read if record is not None]
            rest = _rest(line, [span for span, record in read if record is not None])
            yield number, _name_of(line, len(records)), records, rest, line.count(b"\0")


def _name_of(line: bytes, records: int) -> str:
    if b"\0" in line:
        return "nul_run"
    return "glued_records" if records else _refusal(line)


def _refusal(line: bytes) -> str:
    """The code of the damage of a refused line."""
    if is_marker(line):
        return "conflict_marker"
    try:
        value = decode(line)
    except Undecodable as cause:
        return cause.code
    return "unknown_record" if isinstance(value, dict) else "not_an_object"


def _record(piece: bytes) -> Message | None:
    """The record in a part of a line: unchanged if it is strict JSON on one line, else rewritten."""
    try:
        value = decode(piece)
        strict = b"\n" not in piece
    except Undecodable:
        value, strict = lenient(piece), False
    if not isinstance(value, dict):
        return None
    return (piece if strict else reencode_line(value)), value


def _listed(line: bytes) -> list[Message] | None:
    """The messages in a line that is a list of messages; None for any other line."""
    try:
        value = decode(line)
    except Undecodable:
        return None
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(item, dict) and "role" in item for item in value):
        return None
    return [(reencode_line(item), item) for item in value]


def _rest(line: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """The bytes outside of the records, if they are more than blanks and zeros."""
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    rest = [line[start:end].strip(_BLANK) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return b"\n".join(filter(None, rest))
