"""Problem codes of JSON Lines files, with severity, meaning and repair: the only table of severities.

A severity states what a reader loses. Some damage is worse for an agent that refuses a file with one bad line and
starts from an older copy: `for_strict_reader` returns the severities for that agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sessionary.model import Problem, Severity


class Code(NamedTuple):
    """A row of the table.

    Attributes:
        stops: True if a strict line-by-line reader refuses the file because of it.
        repair: the remedy; None if none is needed.
    """

    severity: Severity
    stops: bool
    meaning: str
    repair: str | None = None


_REWRITE = "rewrite the line as strict JSON; this loses nothing"
_REPLACED = "take the line from the backup if it is intact there, else replace the bytes by U+FFFD"
_SET_ASIDE = "save the damaged bytes aside, and take the record from the backup if it has it"

CODES: Final[dict[str, Code]] = {
    "torn_tail": Code(Severity.lost_data, True, "the last line is incomplete", "save the torn bytes aside"),
    "bad_json": Code(Severity.lost_data, True, "a complete line that is not JSON", _SET_ASIDE),
    "bad_utf8": Code(Severity.lost_data, True, "a complete line that is not valid UTF-8", _REPLACED),
    # A file system that lost power after extending the file and before writing the data leaves zeros in place of the
    # data: it cannot be recovered from this file.
    "nul_run": Code(
        Severity.lost_data, True, "zero bytes in place of data, as a power cut leaves them", _SET_ASIDE
    ),
    "glued_records": Code(
        Severity.lost_data,
        True,
        "several records, or a fragment and a record, on one line",
        "put each whole record on its own line",
    ),
    "control_characters": Code(Severity.hides_data, True, "raw control characters in a string", _REWRITE),
    "raw_newline": Code(Severity.hides_data, True, "one record is spread over several lines", _REWRITE),
    "too_deep": Code(
        Severity.hides_data,
        True,
        "a record is nested too deeply",
        "store the deep part as text in the record",
    ),
    "number_too_long": Code(
        Severity.hides_data,
        True,
        "an integer has more digits than Python can parse",
        "store the number as text in the record",
    ),
    "not_an_object": Code(Severity.cosmetic, False, "JSON, but not an object", "save the line aside"),
    "conflict_marker": Code(Severity.cosmetic, True, "a merge conflict marker", "save the line aside"),
    # JSON treats it as a blank between two tokens; text readers end the line there.
    "carriage_return": Code(
        Severity.cosmetic,
        True,
        "a carriage return within a record, where text readers end the line",
        _REWRITE,
    ),
    "not_text": Code(Severity.hides_data, True, "the whole file is not JSON Lines"),
    "missing_newline": Code(Severity.note, False, "the last record is complete, but its line has no newline"),
    "unknown_record": Code(Severity.note, False, "an empty object"),
    "bom": Code(Severity.note, True, "a byte order mark; strict readers refuse the line", "remove the mark"),
    "crlf": Code(Severity.note, False, "lines end in CR LF"),
    "blank_lines": Code(Severity.note, False, "blank lines"),
    "lone_surrogate": Code(Severity.note, False, "a lone surrogate in a string, which UTF-8 cannot hold"),
    "odd_number": Code(Severity.note, False, "NaN, Infinity or a number too large for a float"),
    "duplicate_record": Code(Severity.note, False, "the same record again, byte for byte"),
    "changed_duplicate": Code(Severity.note, False, "another version of a record with the same id"),
}


class Place(NamedTuple):
    """A position in a file: line number (None for the whole file) and offset of the first byte."""

    path: str
    line: int | None
    byte: int


def problem(
    code: str,
    place: Place,
    span: int,
    message: str = "",
    *,
    severity: Severity | None = None,
    repair: str | None = None,
) -> Problem:
    """Return the problem of a code; message, severity and remedy default to those of the table."""
    row = CODES[code]
    severity = row.severity if severity is None else severity
    return Problem(code, severity, *place, message or row.meaning, repair or row.repair, span)


def for_strict_reader(problems: Iterable[Problem]) -> list[Problem]:
    """Return the same problems as seen by a reader that refuses the file for one bad line.

    What stops that reader is at least `stops_resume`; lost data stays lost; notes stay notes.
    """
    return [
        found._replace(severity=max(found.severity, Severity.stops_resume))
        if found.severity > Severity.note and CODES[found.code].stops
        else found
        for found in problems
    ]


def text_problems(data: bytes, path: str) -> list[Problem]:
    """Return the problems of a file of which only its text encoding is known."""
    if (at := data.find(b"\0")) >= 0:
        span = len(data) - len(data.replace(b"\0", b""))
        return [problem("nul_run", Place(path, None, at), span, repair="restore the file from a copy")]
    try:
        data.decode()
    except UnicodeDecodeError as error:
        place = Place(path, None, error.start)
        words = "the file is not valid UTF-8"
        return [problem("bad_utf8", place, error.end - error.start, words, repair="restore it from a copy")]
    return []
