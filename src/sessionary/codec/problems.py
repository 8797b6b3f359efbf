"""What can be wrong with a JSON Lines file: one table of codes, the only place that says how bad each one is.

A severity is what a reader loses. Some damage weighs more for an agent that refuses a file with one bad line and
starts from an older copy: `for_strict_reader` says it in that agent's eyes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sessionary.model import Problem, Severity


class Code(NamedTuple):
    """One row of the table.

    Attributes:
        severity: how bad it is.
        stops: True if a reader that reads a file strictly, line by line, gives up because of it.
        meaning: what is there, for the docs.
        repair: what would heal it; None if nothing needs doing.
    """

    severity: Severity
    stops: bool
    meaning: str
    repair: str | None = None


_REWRITE = "rewrite the line as strict JSON; nothing is lost by that"
_REPLACED = "take the line from the backup if it is whole there, else put U+FFFD in place of the bytes"
_SET_ASIDE = "set the damaged bytes aside, fill the gap from the backup if it has the record"

CODES: Final[dict[str, Code]] = {
    "torn_tail": Code(
        Severity.lost_data,
        True,
        "the last line was never finished",
        "set the torn bytes aside",
    ),
    "bad_json": Code(Severity.lost_data, True, "a finished line that is no JSON", _SET_ASIDE),
    "bad_utf8": Code(Severity.lost_data, True, "a finished line that is no UTF-8", _REPLACED),
    # A file system that lost power after it made the file longer, and before it wrote the data, leaves zeros in the
    # place of the data: where NULs are, something was that nobody can bring back from this file.
    "nul_run": Code(
        Severity.lost_data, True, "zero bytes in the place of data, as a power cut leaves them", _SET_ASIDE
    ),
    "glued_records": Code(
        Severity.lost_data,
        True,
        "several records, or a piece and a record, on one line",
        "put each whole record on its own line",
    ),
    "control_characters": Code(
        Severity.hides_data, True, "control characters stand raw in a string", _REWRITE
    ),
    "raw_newline": Code(Severity.hides_data, True, "one record is spread over several lines", _REWRITE),
    "too_deep": Code(
        Severity.hides_data,
        True,
        "a record is nested too deeply to be read",
        "store the deep part as text within the record",
    ),
    "number_too_long": Code(
        Severity.hides_data,
        True,
        "an integer has more digits than can be read",
        "store the number as text within the record",
    ),
    "not_an_object": Code(Severity.cosmetic, False, "JSON, but not an object", "set the line aside"),
    "conflict_marker": Code(Severity.cosmetic, True, "a merge conflict marker", "set the line aside"),
    # To JSON it is a blank between two tokens; to whoever opens the file as text it ends the line.
    "carriage_return": Code(
        Severity.cosmetic,
        True,
        "a carriage return within a record, where text readers end the line",
        _REWRITE,
    ),
    "not_text": Code(Severity.hides_data, True, "the whole file is something else than JSON Lines"),
    "missing_newline": Code(Severity.note, False, "the last record is whole, but its line is not ended"),
    "unknown_record": Code(Severity.note, False, "an empty object"),
    "bom": Code(Severity.note, True, "a byte order mark; strict readers refuse the line", "remove the mark"),
    "crlf": Code(Severity.note, False, "lines end in CR LF"),
    "blank_lines": Code(Severity.note, False, "blank lines"),
    "lone_surrogate": Code(
        Severity.note, False, "half a surrogate pair in a string, which UTF-8 cannot hold"
    ),
    "odd_number": Code(Severity.note, False, "NaN, Infinity or a number too large for a float"),
    "duplicate_record": Code(Severity.note, False, "the same record again, byte for byte"),
    "changed_duplicate": Code(Severity.note, False, "another version of a record with the same id"),
}


class Place(NamedTuple):
    """Where in which file: the number of the line, or None for the whole file, and the offset of the first byte."""

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
    """The problem of this code, with the words, severity and remedy of the table where none are given."""
    row = CODES[code]
    return Problem(
        code,
        row.severity if severity is None else severity,
        place.path,
        place.line,
        place.byte,
        message or row.meaning,
        repair or row.repair,
        span,
    )


def for_strict_reader(problems: Iterable[Problem]) -> list[Problem]:
    """The same problems, for a file whose owner refuses it for one bad line.

    What stops that reader is at least `stops_resume`; data that is lost stays lost. Notes stay notes.
    """
    return [
        found._replace(severity=max(found.severity, Severity.stops_resume))
        if found.severity > Severity.note and CODES[found.code].stops
        else found
        for found in problems
    ]


def text_problems(data: bytes, path: str) -> list[Problem]:
    """What is wrong with a file of which no more is known than that it was written as text."""
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
