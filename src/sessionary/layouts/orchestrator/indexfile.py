"""active-features.yaml: the list of features.

The folders are authoritative; the list is for users and version control. If it contains a merge conflict, or
two rows that disagree, it is neither merged nor overwritten: writers refuse, readers use the folders.

The contract's own scripts write a list that is not valid YAML (rows below ``[]``), and leave half rows when
they delete features. That form is read line by line and reported; it is repaired only on request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from sessionary.codec.conflicts import is_marker, name_of
from sessionary.codec.yaml_edit import edit_yaml
from sessionary.codec.yaml_faults import lines_of
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.errors import Conflict, Corrupt, SessionaryError
from sessionary.layouts.orchestrator.rules import FEATURE_STATUSES
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Problem, Severity

KEY: Final = "active_features"
Row = dict[str, Any]

_ROW = (
    rb'  - feature_id: "([ !#-\[\]-~]*)"\n    started_at: "([ !#-\[\]-~]*)"\n'
    rb'    last_active: "([ !#-\[\]-~]*)"\n    status: "([a-z]*)"\n'
)
_CANONICAL: Final = re.compile(rb"active_features:\n((?:" + re.sub(rb"\(|\)", b"", _ROW) + rb")+)")
_ROWS: Final = re.compile(_ROW)
_SCRIPT_HEAD: Final = re.compile(rf"{KEY}:[ \t]*\[\][ \t]*$")
_SCRIPT_LINE: Final = re.compile(r"""[ \t]+(- )?(\w+):[ \t]*["']?([^"'\n]*?)["']?[ \t]*$""")


class IndexFile(NamedTuple):
    """The list, as read.

    Attributes:
        data: its bytes; None if there is none.
        document: its parsed content.
        rows: by feature id, in file order.
        problems: damage, and oddities.
        error: why it must not be overwritten; None if it may be.
    """

    data: bytes | None
    document: dict[str, Any]
    rows: dict[str, Row]
    problems: list[Problem]
    error: SessionaryError | None = None


def parse_index(data: bytes | None, path: str) -> IndexFile:
    """Parse the bytes of a list. Never raises: problems are returned."""
    if data is None:
        return IndexFile(None, {KEY: []}, {}, [])
    found = _CANONICAL.fullmatch(data)
    if found is not None:
        names = ("feature_id", "started_at", "last_active", "status")
        rows: list[Row] = [
            dict(zip(names, map(bytes.decode, row), strict=True)) for row in _ROWS.findall(data, len(KEY) + 2)
        ]
        return _of_rows(data, {KEY: rows}, rows, path)
    return _parse_slowly(data, path)


def _parse_slowly(data: bytes, path: str) -> IndexFile:
    text = data.decode("utf-8", "replace")
    lines = data.split(b"\n")
    markers = [number for number, line in enumerate(lines, 1) if is_marker(line)]
    if markers:
        words = f"{path}, line {markers[0]}: {name_of(lines[markers[0] - 1])}"
        return _refused(data, "index_conflict", words, path, markers, Conflict)
    try:
        document = load_yaml(data, path=path)
    except Corrupt as error:
        return _of_scripts(data, text, path) or _refused(
            data, "bad_index", error.message, path, [error.details.get("line") or 1], Corrupt
        )
    if document is None:
        document = {KEY: []}
    rows = document.get(KEY, []) if isinstance(document, dict) else None
    if rows is None and isinstance(document, dict):
        rows = []
    well_formed = isinstance(rows, list) and all(
        isinstance(row, dict) and isinstance(row.get("feature_id"), str) for row in rows
    )
    if not well_formed:
        words = f"{path} is not a list of features with feature_ids"
        return _refused(data, "bad_index", words, path, [1], Corrupt)
    assert isinstance(rows, list)
    return _of_rows(data, {**document, KEY: rows}, rows, path)


def _of_rows(data: bytes, document: dict[str, Any], rows: list[Row], path: str) -> IndexFile:
    by_id: dict[str, Row] = {}
    problems: list[Problem] = []
    faults: list[tuple[str, str]] = []
    for number, row in enumerate(rows, 1):
        name = row["feature_id"]
        if name not in by_id:
            by_id[name] = row
            faults += _row_faults(row, number)
        elif row == by_id[name]:
            words = f"{name} is listed twice with equal rows"
            problems.append(_note("index_duplicate", path, words, "the next write of the list drops one"))
        else:
            words = f"{path} lists {name} twice, and the rows disagree (row {number})"
            return _refused(data, "index_conflict", words, path, _lines_of(data, name), Conflict)
    lines = lines_of(data, [place for place, _ in faults])
    remedy = "`sessionary feature repair --rebuild-index` corrects it and keeps the old list"
    problems += [
        Problem("index_schema", Severity.cosmetic, path, line, None, fault, remedy)
        for (_, fault), line in zip(faults, lines, strict=True)
    ]
    return IndexFile(data, document, by_id, problems)


def faulty_fields(row: Row) -> list[str]:
    """The fields of a row that break the contract."""
    return [place.rpartition(".")[2] for place, _ in _row_faults(row, 1)]


def _row_faults(row: Row, number: int) -> list[tuple[str, str]]:
    """The faults of a row, each with its place."""
    faults = [
        (name, f"is {row.get(name)!r}, not an ISO 8601 timestamp")
        for name in ("started_at", "last_active")
        if parse(row.get(name)) is None
    ]
    if row.get("status") not in FEATURE_STATUSES:
        faults.append(("status", f"is {row.get('status')!r}, not one of {', '.join(FEATURE_STATUSES)}"))
    return [(f"{KEY}[{number - 1}].{name}", f"row {number}: {name} {words}") for name, words in faults]


def _of_scripts(data: bytes, text: str, path: str) -> IndexFile | None:
    """The list in the form of the contract's scripts, read line by line; None if it is something else."""
    lines = text.rstrip("\n").split("\n")
    if not _SCRIPT_HEAD.match(lines[0].rstrip()):
        return None
    rows: list[Row] = []
    stray = 0
    for line in lines[1:]:
        found = _SCRIPT_LINE.match(line)
        if found is None:
            return None
        dash, name, value = found.groups()
        if dash:
            rows.append({name: value})
        elif not rows or name in rows[-1]:
            stray += 1
        else:
            rows[-1][name] = value
    if not all("feature_id" in row for row in rows):
        return None
    read = _of_rows(data, {KEY: rows}, rows, path)
    words = f"{len(rows)} rows are below an empty list, as written by the contract's scripts, which is not valid YAML"
    if stray:
        words += f"; {stray} lines of deleted rows remain, and are skipped"
    remedy = "`sessionary feature repair --rebuild-index` writes it as YAML and keeps the old file"
    problem = Problem("index_of_scripts", Severity.stops_resume, path, 2, None, words, remedy)
    error = read.error or Corrupt(f"{path} is not valid YAML: {words}", path=path, hint=remedy)
    return IndexFile(data, read.document, read.rows, [problem, *read.problems], error)


def _refused(
    data: bytes, code: str, words: str, path: str, lines: list[int], kind: type[Conflict] | type[Corrupt]
) -> IndexFile:
    remedy = "resolve it by hand; `sessionary feature repair --rebuild-index` writes a proposal beside it"
    problem = Problem(code, Severity.stops_resume, path, lines[0] if lines else None, None, words, remedy)
    error = kind(words, path=path, details={"lines": lines}, hint=remedy)
    return IndexFile(data, {}, {}, [problem], error)


def _lines_of(data: bytes, name: str) -> list[int]:
    lines = data.decode("utf-8", "replace").split("\n")
    return [number for number, line in enumerate(lines, 1) if "feature_id" in line and name in line]


def with_row(found: IndexFile, feature_id: str, changes: Mapping[str, Any]) -> bytes:
    """The list with a row changed, or inserted at the top. Everything else is kept, comments too.

    Raises:
        Conflict, Corrupt: the list must not be overwritten.
    """
    if found.error is not None:
        raise found.error
    rows = list(found.rows.values())
    if feature_id in found.rows:
        rows = [{**row, **changes} if row["feature_id"] == feature_id else row for row in rows]
    else:
        rows.insert(0, {"feature_id": feature_id, **changes})
    return written(found, rows)


def written(found: IndexFile, rows: Iterable[Row]) -> bytes:
    """The list with these rows."""
    document = {**found.document, KEY: list(rows)}
    if found.data is None or _CANONICAL.fullmatch(found.data):
        return dump_yaml(document)
    return edit_yaml(found.data, document)


def _note(code: str, path: str, message: str, remedy: str | None) -> Problem:
    return Problem(code, Severity.note, path, None, None, message, remedy)
