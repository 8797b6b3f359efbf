"""Read a history from any writer: its entries in order, and its problems.

Nothing is guessed and nothing hidden. The contract's own scripts write line breaks into errors without
escaping them, which splits one record into several lines; such a record is joined again and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.codec import read_lines, split_glued
from sessionary.codec.conflicts import conflicts
from sessionary.codec.damage import bad_bytes, covers, lenient, replaced
from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import StorageFailed
from sessionary.layouts.orchestrator import entries
from sessionary.layouts.orchestrator.names import HISTORY
from sessionary.layouts.orchestrator.rules import unreadable
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Problem, Severity

HEALED = ("raw_newline", "control_characters")
"""Damage with readable records: line ends and control characters that are not escaped."""


@dataclass(slots=True)
class History:
    """The readable entries of a history in file order, and its problems."""

    path: str
    values: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: bool = False


def read_history(fs: Fs, folder: str, *, strict: bool = False) -> History:
    """Read the whole history of a feature. A missing one is empty, and marked as missing.

    Raises:
        StorageFailed: with `strict`, it exists and cannot be read; else that is one of its problems.
    """
    path = f"{folder}/{HISTORY}"
    try:
        data = read_bytes(fs, path)
    except StorageFailed as error:
        if strict:
            raise
        return History(path, problems=[unreadable(error)])
    return History(path, missing=True) if data is None else parse_history(data, path)


def parse_history(data: bytes, path: str) -> History:
    """Parse the bytes of a history."""
    reading = read_lines(data, path)
    healed = [
        (problem.byte, value)
        for problem in reading.problems
        if problem.code in HEALED and problem.byte is not None
        if (value := lenient(data[problem.byte : problem.byte + problem.span])) is not None
    ]
    if not healed:
        return History(path, reading.values, reading.problems)
    found = [*((record.byte, record.value) for record in reading.records()), *healed]
    found.sort(key=lambda pair: pair[0])
    return History(path, [value for _, value in found], reading.problems)


def chosen(
    values: Iterable[dict[str, Any]],
    *,
    command: str | None = None,
    model: str | None = None,
    agent: str | None = None,
    since: datetime | None = None,
    failed: bool = False,
) -> Iterator[dict[str, Any]]:
    """The entries that match all filters; with `since`, those of that time and later."""
    wanted = {"command": command, "model": model, "agent": agent}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for entry in values:
        if any(entry.get(name) != value for name, value in wanted.items()):
            continue
        if failed and entry.get("status") not in (entries.FAILURE, "failed"):
            continue
        if since is not None:
            time = parse(entry.get("timestamp"))
            if time is None or time < since:
                continue
        yield entry


def odd_entries(history: History) -> Iterator[Problem]:
    """Irregularities of readable entries: each kind once, with its number and its first place.

    These are lines of the contract's scripts that are not commands, models unknown to the contract, and times
    that decrease.
    """
    places: dict[str, list[int]] = {}
    newest = ""
    for number, entry in enumerate(history.values, 1):
        time = entry.get("timestamp")
        for code in _codes(entry):
            places.setdefault(code, []).append(number)
        if isinstance(time, str) and parse(time) is not None:
            if time < newest and _earlier(time, newest):
                places.setdefault("time_goes_back", []).append(number)
            newest = max(newest, time)
    for code, numbers in places.items():
        yield odd_problem(code, numbers, history.path)


def odd_problem(code: str, numbers: list[int], path: str) -> Problem:
    """The problem for entries with one irregularity, given their numbers from 1."""
    words, remedy = _ODD[code]
    severity = Severity.cosmetic if code == "nanoseconds" else Severity.note
    message = f"{len(numbers):,} {words}, the first is entry {numbers[0]}"
    return Problem.of_file(code, severity, path, message, remedy)


def _codes(entry: Mapping[str, Any]) -> Iterator[str]:
    kind = entries.kind_of(entry)
    if kind != "command":
        yield f"{kind}_entry"
    else:
        faults = {fault.partition(":")[0] for fault in entries.faults_of(entry)}
        if "model" in faults and "model" in entry:
            yield "unknown_model"
        if faults - {"model"} or ("model" in faults and "model" not in entry):
            yield "entry_fields"


def _earlier(time: str, newest: str) -> bool:
    this, other = parse(time), parse(newest)
    return this is not None and other is not None and this < other


_ODD = {
    "event_entry": ("events among the commands, as logged by the contract's scripts", "none needed"),
    "phase_entry": ("phases among the commands, as logged by the contract's scripts", "none needed"),
    "other_entry": (
        "entries that are neither command nor event",
        "none needed: they are kept and not counted",
    ),
    "entry_fields": ("commands with missing or invalid fields", "none needed: readers accept them"),
    "nanoseconds": (
        "durations in nanoseconds instead of milliseconds",
        "`sessionary feature repair --rewrite-history` writes milliseconds and keeps the old file",
    ),
    "unknown_model": ("commands of a model unknown to the contract", "none needed"),
    "time_goes_back": (
        "entries older than one before them, which is allowed since appends need no lock",
        "none needed",
    ),
}


BROKEN = frozenset({
    "torn_tail", "bad_json", "bad_utf8", "nul_run", "glued_records", "not_an_object", "conflict_marker", "not_text",
})  # fmt: skip
"""Damage that no reader can read. Records that are only too deep or too long for us are not included."""


class Mended(NamedTuple):
    """A rewritten history.

    Attributes:
        lines: the lines, each with its newline.
        lost: the line and the number of bytes of everything that could not be recovered.
        replaced: number of entries with U+FFFD in place of invalid bytes.
        left_out: number of lines that were dropped.
    """

    lines: list[bytes]
    lost: list[tuple[int, int]]
    replaced: int
    left_out: int


def mended(data: bytes, path: str, *, replace_bad: bool = True) -> Mended:
    """Rewrite a history: each record on one line, durations in milliseconds, no truncated line.

    Sound lines keep their bytes. Unreadable data is dropped. An entry whose only damage is invalid UTF-8 is
    kept, with U+FFFD in place of the bytes, unless `replace_bad` is False. The caller keeps the old file. Of
    a merge conflict the entries of both sides are kept, each once, and the text from before the merge is
    dropped.
    """
    data = _settled(data)
    reading = read_lines(data, path)
    lines = [
        (record.byte, _in_milliseconds(record.value) or record.raw + b"\n") for record in reading.records()
    ]
    lost: list[tuple[int, int]] = []
    saved = left_out = 0
    for problem in reading.problems:
        if problem.byte is None or problem.severity <= Severity.note:
            continue
        raw = data[problem.byte : problem.byte + problem.span]
        if problem.code in HEALED or problem.code in BROKEN:
            values, gone = _saved(raw, problem.code, replace_bad)
            lines += [(problem.byte, _in_milliseconds(value) or entries.line_of(value)) for value in values]
            saved += gone == bad_bytes(raw) > 0
            left_out += gone > bad_bytes(raw)
            lost += [(problem.line or 0, gone)] if gone else []
        elif not any(problem.byte <= byte < problem.byte + problem.span for byte, _ in lines):
            lines.append((problem.byte, raw.rstrip(b"\n") + b"\n"))
    ordered = [line for _, line in sorted(lines, key=lambda pair: pair[0])]
    return Mended(ordered, lost, saved, left_out)


def _settled(data: bytes) -> bytes:
    """The history without the duplicates and the old text of a merge conflict. Such lines become blank."""
    lines = data.split(b"\n")
    for one in conflicts(lines):
        ours = set(lines[one.first + 1 : one.middle if one.base is None else one.base])
        gone = [] if one.base is None else list(range(one.base + 1, one.middle))
        gone += [row for row in range(one.middle + 1, one.last) if lines[row] in ours]
        for row in gone:
            lines[row] = b""
    return b"\n".join(lines)


def _saved(raw: bytes, code: str, replace_bad: bool) -> tuple[list[dict[str, Any]], int]:
    """The entries in a damaged part of a history, and the number of bytes that could not be recovered."""
    if code == "conflict_marker":
        return [], 0
    whole = lenient(raw) or (replaced(raw) if replace_bad else None)
    if whole:
        return [whole], bad_bytes(raw)
    spans = split_glued(raw)
    found = [value for start, end in spans if (value := lenient(raw[start:end]))]
    return found, 0 if covers(raw, spans) and b"\0" not in raw else len(raw) - sum(
        end - start for start, end in spans
    )


def _in_milliseconds(entry: dict[str, Any]) -> bytes | None:
    if not entries.in_nanoseconds(entry):
        return None
    return entries.line_of({**entry, "duration_ms": entries.milliseconds(entry)})
