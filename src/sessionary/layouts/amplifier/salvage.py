"""A transcript put right, line by line. Pure: bytes in, bytes out.

Whatever can be read stays byte for byte where it is. Only the stretches between readable records are worked on: records
that stand side by side get a line each, a record that is spread over lines becomes one, raw control characters in
strings are written as escapes, objects in a list get a line each. What is left over (torn pieces, zeros where data
was, foreign bytes) goes, and is handed back so that it can be kept. Where something is missing and the backup holds
it between the same neighbours, it is put back, by the rules of `recovery`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sessionary.codec import Reading, Undecodable, decode, encode_line, read_lines, split_glued
from sessionary.codec.damage import MAX_JOINED_LINES, joined_record
from sessionary.codec.decode import BOM
from sessionary.layouts.amplifier.recovery import between, one_line
from sessionary.model import Severity

_BLANK = b" \t\r\n\0"

Message = tuple[bytes, dict[str, Any]]
"""A message and its line."""


class Fix(NamedTuple):
    """One thing that was put right.

    Attributes:
        line: number of the line in the damaged file, from 1.
        code: what the damage is called, as `check` calls it where it has a name for it.
        what: what was done, in words.
    """

    line: int
    code: str
    what: str

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return self._asdict()


@dataclass(slots=True)
class Salvaged:
    """A transcript put right.

    Attributes:
        lines: its lines, without newlines.
        values: the messages, parallel to `lines`.
        fixes: what was put right, in the order of the file.
        left_over: the bytes that are no longer in it, one stretch a line.
    """

    lines: list[bytes] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    left_over: list[bytes] = field(default_factory=list)

    def add(self, line: bytes, value: dict[str, Any]) -> None:
        """Add one message."""
        self.lines.append(line)
        self.values.append(value)


class _Stretch(NamedTuple):
    """What lies between two readable records (or before the first, or behind the last)."""

    line: int
    data: bytes
    place: int


def needs_salvage(reading: Reading) -> bool:
    """True if there is anything to put right: damage, or a mark that strict readers refuse."""
    return any(problem.severity > Severity.note or problem.code == "bom" for problem in reading.problems)


def salvage(data: bytes, backup: Reading | None = None) -> Salvaged:
    """Put a transcript right.

    Args:
        data: its bytes.
        backup: what its backup holds; gaps are filled from there.
    """
    reading = read_lines(data)
    done = Salvaged()
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
    """The readable records with the bytes of their lines, and the stretches between them that are not blank."""
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
    """A readable line as it is, but for carriage returns within it, at which text readers would cut it."""
    body = line.removesuffix(b"\r")
    return one_line(body) if b"\r" in body else line


def _put_right(stretch: _Stretch, done: Salvaged, reading: Reading, backup: Reading | None) -> None:
    found: list[Message] = []
    lost = len(done.left_over)
    for line, code, records, rest in _worked(stretch):
        found += records
        if rest.strip(_BLANK):
            done.left_over.append(rest)
        done.fixes.append(Fix(line, code, _words(len(records), len(rest))))
    if backup is not None and (len(done.left_over) > lost or b"\0" in stretch.data):
        found = _filled(stretch, found, done, reading, backup)
    for record in found:
        done.add(*record)


def _filled(
    stretch: _Stretch,
    found: list[Message],
    done: Salvaged,
    reading: Reading,
    backup: Reading,
) -> list[Message]:
    """With what the backup holds between the two neighbours of the stretch; what it lacks of `found` comes behind."""
    first, last = between(backup.raws, reading.raws, stretch.place)
    if first >= last:
        return found
    back = list(zip(backup.raws[first:last], backup.values[first:last], strict=True))
    values = [value for _, value in back]
    new = sum(1 for value in values if value not in [value for _, value in found])
    if new:
        done.fixes.append(Fix(stretch.line, "filled_from_backup", f"{new} message(s) come from the backup"))
    return back + [record for record in found if record[1] not in values]


def _words(records: int, rest: int) -> str:
    parts = []
    if records:
        parts.append(f"{records} message(s) got a line of their own")
    if rest:
        parts.append(f"{rest:,} bytes were set aside")
    return ", ".join(parts) or "a line without content was left out"


def _worked(stretch: _Stretch) -> Iterator[tuple[int, str, list[Message], bytes]]:
    """Line by line: its number, the name of its damage, the records in it, and the rest of its bytes."""
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
            yield number, "raw_newline", [record] if record else [], b"" if record else text
        elif (items := _listed(line)) is not None:
            yield number, "not_an_object", items, b""
        elif (whole := _record(line)) is not None:
            yield number, _refusal(line), [whole], b""
        else:
            read = [(span, _record(line[slice(*span)])) for span in split_glued(line)]
            records = [record for _, record in read if record is not None]
            rest = _rest(line, [span for span, record in read if record is not None])
            yield number, _name_of(line, len(records)), records, rest


def _name_of(line: bytes, records: int) -> str:
    if b"\0" in line:
        return "nul_run"
    return "glued_records" if records else _refusal(line)


def _refusal(line: bytes) -> str:
    """What the reader calls the damage of a line that it refused."""
    try:
        value = decode(line)
    except Undecodable as cause:
        return cause.code
    return "unknown_record" if isinstance(value, dict) else "not_an_object"


def _number(digits: str) -> int | str:
    """An integer; one with more digits than Python reads stays text."""
    try:
        return int(digits)
    except ValueError:
        return digits


def _record(piece: bytes) -> Message | None:
    """The record in a piece of a line: as it is if it is strict JSON on one line, else written anew."""
    try:
        value = decode(piece)
        strict = b"\n" not in piece
    except Undecodable:
        try:
            value = json.loads(piece.decode("utf-8"), strict=False, parse_int=_number)
        except (ValueError, RecursionError):
            return None
        strict = False
    if not isinstance(value, dict):
        return None
    return (piece if strict else encode_line(value)), value


def _listed(line: bytes) -> list[Message] | None:
    """The messages in a line that is a list of messages; None if it is anything else."""
    try:
        value = decode(line)
    except Undecodable:
        return None
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(item, dict) and "role" in item for item in value):
        return None
    return [(encode_line(item), item) for item in value]


def _rest(line: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """What lies outside of the records, if it is more than blanks and zeros."""
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    rest = [line[start:end].strip(_BLANK) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return b"\n".join(filter(None, rest))
