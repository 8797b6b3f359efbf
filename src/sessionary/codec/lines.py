"""Reader of JSON Lines files that may be damaged in any way.

A record is a JSON object on its own line; lines end at byte 0x0A only. Anything else is skipped, never guessed, and
reported: one problem for each damaged range, with line and offset. Nothing here raises, whatever the bytes are, and
every record that a strict reader would return is returned.

Nearly all files are clean and decoded in one call. Otherwise clean lines are decoded one by one, and only lines that
the fast decoder refuses are examined further.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from typing import Any

import msgspec
from stringzilla import count, utf8_uncased_search

from sessionary.codec.damage import MAX_JOINED_LINES, diagnose, joined_record
from sessionary.codec.decode import (
    BOM,
    REFUSED,
    Undecodable,
    decode,
    decode_patiently,
    fast_decode,
    fast_decode_lines,
    original_accepts,
)
from sessionary.codec.detect_format import Foreign, foreign_format
from sessionary.codec.problems import Place, problem
from sessionary.model import Problem, Record, Severity


class _Anything(msgspec.Struct, gc=False):
    """A record whose fields are not decoded."""


_skip_lines = msgspec.json.Decoder(_Anything).decode_lines


@dataclass(slots=True)
class Reading:
    """Content of a JSON Lines file.

    Attributes:
        values: the records, in file order.
        raws: the bytes of each, without newline, CR and byte order mark; ``decode(raw)`` gives the value.
        problems: skipped and unusual ranges, in file order.
        end: offset behind the last newline: the start of a torn tail, if there is one.
        torn: True if bytes that are not a whole record follow `end`. Readers ignore them; a writer must not append to
            the line. Blanks do not count.
    """

    values: list[dict[str, Any]]
    raws: list[bytes]
    problems: list[Problem]
    end: int
    torn: bool
    _places: _Places = field(repr=False)
    _doubtful: bytes | None = field(default=None, repr=False)

    @property
    def strict(self) -> bool:
        """True if the original SessionStore reads all of it. Computed only if something is unusual."""
        return self._doubtful is None or original_accepts(self._doubtful)

    def records(self) -> Iterator[Record]:
        """Return the records with their positions, which are computed here to keep reading fast."""
        return map(Record, self.values, self._places.numbers(), self._places.offsets(), self.raws)


def object_lines(data: bytes) -> int:
    """Return the number of lines if each plainly holds one object; else 0.

    Inside one JSON value there is no newline between ``}`` and ``{``, and msgspec refuses newlines in strings. So if
    it finds as many values as such lines, each line is one object with at least one key.
    """
    lines: int = count(data, b"\n")
    if data.startswith(b'{"') and data.endswith(b"}\n") and count(data, b'}\n{"') == lines - 1:
        return lines
    return 0


def clean_records(data: bytes, line: int, byte: int) -> Iterator[Record] | None:
    """Decode lines that are all clean records; None if anything else may be there.

    Args:
        data: the lines. The records hold a copy of each, so that they can be freed.
        line: the number of the first one.
        byte: the offset of the first one.
    """
    values = _clean_values(data)
    if values is None:
        return None
    raws, starts, at = list[bytes](), list[int](), 0
    for _ in values:
        end = data.find(b"\n", at)
        raws.append(data[at:end])
        starts.append(byte + at)
        at = end + 1
    return map(Record, values, itertools.count(line), starts, raws)


def _clean_values(data: bytes) -> list[dict[str, Any]] | None:
    """The values of lines that are all clean records; None if anything else may be there."""
    lines = object_lines(data)
    if not lines:
        return None
    if b"\r" in data:
        return None  # a blank between tokens for JSON, a line end for other readers
    try:
        values: list[dict[str, Any]] = fast_decode_lines(data)
    except REFUSED:
        return None
    return values if len(values) == lines else None


def count_records(data: bytes) -> int | None:
    """Count the records in lines without decoding them; None if anything but plain records may be there.

    Checks what msgspec does not check in values that it skips: text is valid UTF-8, and no integer is too long for
    Python.
    """
    lines = object_lines(data)
    # A run of more than 4,300 digits covers at least two of these positions.
    if not lines or any(data[at : at + 64].isdigit() for at in range(0, len(data), 2048)):
        return None
    try:
        values = len(_skip_lines(data))
        if not data.isascii():
            utf8_uncased_search(data, b"\0", validate=True)
    except (*REFUSED, ValueError):
        return None
    return values if values == lines else None


def read_lines(data: bytes, path: str = "", *, line: int = 1, byte: int = 0) -> Reading:
    """Read the records of a JSON Lines file, or of a part of it that begins at a line.

    Args:
        data: the bytes.
        line: the number of the first line of `data`.
        byte: the offset of `data` in the file; all returned offsets are offsets in the file.
    """
    foreign = foreign_format(data) if byte == 0 else None
    if foreign is not None:
        return _not_text(data, path, foreign)
    values = _clean_values(data)  # before the lines are cut: one of them may be long
    return _Scan(data, path, line, byte).run(values)


class _Places(msgspec.Struct):
    """Positions of the records: the physical lines, and which of them are records."""

    path: str
    line: int
    byte: int
    lines: list[bytes]
    rows: list[int]
    leads: dict[int, int]  # row -> bytes before its record: a byte order mark, unusual blanks

    def starts(self) -> list[int]:
        """Return the offset of each line."""
        return list(map(add, accumulate(map(len, self.lines), initial=self.byte), itertools.count()))

    def numbers(self) -> Iterator[int]:
        """Return the line number of each record."""
        return map(self.line.__add__, self.rows)

    def offsets(self) -> Iterator[int]:
        """Return the offset of each record."""
        starts = self.starts()
        if not self.leads:
            return map(starts.__getitem__, self.rows)
        return (starts[row] + self.leads.get(row, 0) for row in self.rows)


class _Scan:
    """One pass over the lines of a file. A row is the index of a line in `data`."""

    def __init__(self, data: bytes, path: str, line: int, byte: int) -> None:
        self.data = data
        self.lines = data.split(b"\n")
        self.tail = len(self.lines) - 1  # the row without a final newline
        if not self.lines[-1]:
            self.lines.pop()
        self.has_cr = b"\r" in data
        self.trimmed = [raw.removesuffix(b"\r") for raw in self.lines] if self.has_cr else self.lines
        self.source = iter(enumerate(self.trimmed))
        self.places = _Places(path, line, byte, self.lines, [], {})
        self.values: list[dict[str, Any]] = []
        self.raws: list[bytes] = []
        self.problems: list[Problem] = []
        self.blank: list[int] = []
        self.torn = False
        self._starts: list[int] | None = None

    def run(self, values: list[dict[str, Any]] | None) -> Reading:
        """Read the lines; `values` are their records if each plainly is one."""
        if values is None:
            self.run_each()
        else:
            self.values, self.raws, self.places.rows = values, self.lines, list(range(len(values)))
        self.note_line_ends()
        self.problems.sort(key=lambda found: found.byte or 0)
        return self.reading()

    def run_each(self) -> None:
        values, raws, rows = self.values.append, self.raws.append, self.places.rows.append
        for row, raw in self.source:
            try:
                value = fast_decode(raw)
            except REFUSED:
                self.refused(row, raw)
                continue
            if type(value) is dict and value:
                values(value)
                raws(raw)
                rows(row)
            else:
                self.unusual(row, raw, value)

    def reading(self) -> Reading:
        end = self.places.byte + self.data.rfind(b"\n") + 1
        unusual = any(found.severity > Severity.note or found.code == "bom" for found in self.problems)
        doubtful = self.data if unusual or self.has_cr else None
        return Reading(self.values, self.raws, self.problems, end, self.torn, self.places, doubtful)

    def refused(self, row: int, raw: bytes) -> None:
        """Handle a line that the fast decoder refuses."""
        if not raw.strip():
            self.blank.append(row)
            return
        record, lead = raw, 0
        try:
            decoded = decode_patiently(raw)
        except Undecodable as cause:
            trimmed = _without_odd_blanks(raw)
            if trimmed is None:
                self.damaged(row, raw, cause)
                return
            record, lead = trimmed, raw.index(trimmed)
            decoded = decode_patiently(trimmed)
        if "bom" in decoded.notes:
            lead += len(BOM)
        if lead:
            self.places.leads[row] = lead
        for code in decoded.notes:
            self.add(code, row)
        self.usual(row, record.removeprefix(BOM), decoded.value)

    def usual(self, row: int, raw: bytes, value: Any) -> None:
        """Handle a line that the patient decoder accepts."""
        if type(value) is dict and value:
            self.keep(row, raw, value)
        else:
            self.unusual(row, raw, value)

    def unusual(self, row: int, raw: bytes, value: Any) -> None:
        """Handle a line of JSON that is not a record."""
        if type(value) is dict:
            self.keep(row, raw, value)
            self.add("unknown_record", row)
        elif row == self.tail:
            self.torn = True
            self.add("torn_tail", row, message="the last line has no newline and is not a record")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            words = "a list of objects, each of which may be a record"
            self.add("not_an_object", row, message=words, severity=Severity.hides_data)
        else:
            self.add("not_an_object", row)

    def damaged(self, row: int, raw: bytes, cause: Undecodable) -> None:
        """Handle a line that no decoder accepts."""
        count = joined_record(self.lines[row : row + MAX_JOINED_LINES])
        last = row + max(count, 1) - 1
        self.torn = last == self.tail
        if count:
            end = sum(map(len, self.lines[row : last + 1])) + count - 1
            self.add("raw_newline", row, end=end, message=f"one record is spread over {count} lines")
            for _ in range(count - 1):
                next(self.source)
            return
        for found in diagnose(raw, cause):
            unfinished = row == self.tail and found.code in ("bad_json", "bad_utf8")
            code, words = ("torn_tail", "") if unfinished else (found.code, found.message)
            self.add(code, row, found.start, found.end, words, found.severity)

    def note_line_ends(self) -> None:
        """Add problems about line ends: CR, blank lines, a last line without a newline."""
        if self.has_cr and (with_cr := [row for row, raw in enumerate(self.lines) if raw.endswith(b"\r")]):
            self.add("crlf", with_cr[0], message=f"{len(with_cr):,} lines end in CR LF")
        for row, raw in zip(self.places.rows, self.raws, strict=True) if self.has_cr else ():
            if b"\r" in raw:
                self.add("carriage_return", row)
        if self.blank:
            words = f"{len(self.blank):,} blank lines, the first one is here"
            self.add("blank_lines", self.blank[0], message=words)
        if self.places.rows[-1:] == [self.tail]:
            self.add("missing_newline", self.tail)

    def keep(self, row: int, raw: bytes, value: dict[str, Any]) -> None:
        self.values.append(value)
        self.raws.append(raw)
        self.places.rows.append(row)

    def add(
        self,
        code: str,
        row: int,
        start: int = 0,
        end: int | None = None,
        message: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Add a problem about the bytes from `start` to `end` of a row, or about the whole row."""
        if self._starts is None:
            self._starts = self.places.starts()
        place = Place(self.places.path, self.places.line + row, self._starts[row] + start)
        span = (len(self.lines[row]) if end is None else end) - start
        self.problems.append(problem(code, place, span, message, severity=severity))


def _without_odd_blanks(raw: bytes) -> bytes | None:
    """Return the record of a line without blanks unknown to JSON (form feed, no-break space); None if it has none.

    The original strips them, so the record must not be lost.
    """
    try:
        trimmed = raw.decode("utf-8").strip().encode("utf-8")
        if len(trimmed) == len(raw.strip(b" \t\r")):
            return None
        decode(trimmed)
    except (Undecodable, UnicodeDecodeError):
        return None
    return trimmed


def _not_text(data: bytes, path: str, foreign: Foreign) -> Reading:
    """Return an empty reading with one problem for a file of another format; no tail, so no writer cuts it off."""
    words = f"the file is not JSON Lines but {foreign.name}"
    found = problem("not_text", Place(path, None, 0), len(data), words, repair=foreign.remedy)
    return Reading([], [], [found], len(data), False, _Places(path, 1, 0, [], [], {}), data)
