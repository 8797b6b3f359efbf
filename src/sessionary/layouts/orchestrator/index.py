"""active-features.yaml: the list of features; read it, and write it under a lock of its own.

The folders are authoritative; the list is for users and version control. If it contains a merge conflict, or
two rows that disagree, it is neither merged nor overwritten: writers refuse, readers use the folders.

The contract's own scripts write a list that is not valid YAML (rows below ``[]``), and leave half rows when
they delete features. That form is read line by line and reported; it is repaired only on request.

The lock of the list is always taken after that of a feature, which excludes a deadlock of two writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from sessionary.codec.conflicts import is_marker, name_of
from sessionary.codec.yaml_edit import edit_yaml
from sessionary.codec.yaml_faults import lines_of
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Conflict, Corrupt, SessionaryError, StorageFailed
from sessionary.layouts.orchestrator import names
from sessionary.layouts.orchestrator.rules import ACTIVE, FEATURE_STATUSES, note, unreadable
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Problem, Severity

KEY: Final = "active_features"
Row = dict[str, Any]

# A row as we write it. A list of nothing else is read ten times faster than by the YAML reader.
_ROW = (
    rb'  - feature_id: "([ !#-\[\]-~]*)"\n    started_at: "([ !#-\[\]-~]*)"\n'
    rb'    last_active: "([ !#-\[\]-~]*)"\n    status: "([a-z]*)"\n'
)
_ROWS: Final = re.compile(_ROW)
_CANONICAL: Final = re.compile(rb"active_features:\n((?:" + re.sub(rb"\(|\)", b"", _ROW) + rb")+)")
_SCRIPT_HEAD: Final = re.compile(rf"{KEY}:[ \t]*\[\][ \t]*$")
_SCRIPT_LINE: Final = re.compile(r"""[ \t]+(- )?(\w+):[ \t]*["']?([^"'\n]*?)["']?[ \t]*$""")


class IndexFile(NamedTuple):
    """The list, as read.

    Attributes:
        data: its bytes; None if there is none.
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
    if _CANONICAL.fullmatch(data) is not None:
        fields = ("feature_id", "started_at", "last_active", "status")
        found = (map(bytes.decode, row) for row in _ROWS.findall(data, len(KEY) + 2))
        ours: list[Row] = [dict(zip(fields, row, strict=True)) for row in found]
        return _of_rows(data, {KEY: ours}, ours, path)
    lines = data.split(b"\n")
    markers = [number for number, line in enumerate(lines, 1) if is_marker(line)]
    if markers:
        words = f"{path}, line {markers[0]}: {name_of(lines[markers[0] - 1])}"
        return _refused(data, "index_conflict", words, path, markers, Conflict)
    try:
        document = load_yaml(data, path=path)
    except Corrupt as error:
        return _of_scripts(data, path) or _refused(
            data, "bad_index", error.message, path, [error.details.get("line") or 1], Corrupt
        )
    document = {} if document is None else document
    rows = document.get(KEY) if isinstance(document, dict) else None
    rows = [] if rows is None else rows
    if not (isinstance(document, dict) and isinstance(rows, list)) or not all(
        isinstance(row, dict) and isinstance(row.get("feature_id"), str) for row in rows
    ):
        words = f"{path} is not a list of features with feature_ids"
        return _refused(data, "bad_index", words, path, [1], Corrupt)
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
            problems.append(note("index_duplicate", path, words, "the next write of the list drops one"))
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


def _of_scripts(data: bytes, path: str) -> IndexFile | None:
    """The list in the form of the contract's scripts, read line by line; None if it is something else."""
    lines = data.decode("utf-8", "replace").rstrip("\n").split("\n")
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


class Index:
    """`active-features.yaml` of one `.ai-session`.

    Attributes:
        home: the folder `.ai-session`.
        timeout: seconds to wait for the lock.
    """

    def __init__(self, fs: Fs, home: str, timeout: float) -> None:
        self.home = home
        self.path = f"{home}/{names.INDEX}"
        self.timeout = timeout
        self._fs = fs
        self._lock = FileLock(f"{home}/{names.INDEX_LOCK}", fs)

    def load(self) -> IndexFile:
        """The current list, for a write. Takes no lock: the file is replaced as a whole."""
        return parse_index(read_bytes(self._fs, self.path), self.path)

    def read(self) -> IndexFile:
        """As `load`, for readers: a read failure is in its `error`."""
        try:
            return self.load()
        except StorageFailed as error:
            return IndexFile(None, {}, {}, [unreadable(error)], error)

    @contextmanager
    def held(self, *, make: bool = False) -> Iterator[None]:
        """Hold the lock for a ``with`` block.

        Args:
            make: create the folder if it is missing.

        Raises:
            FileNotFoundError: the folder is missing.
        """
        try:
            self._lock.acquire(self.timeout)
        except FileNotFoundError:
            if not make:
                raise
            make_folder(self._fs, self.home)
            self._lock.acquire(self.timeout)
        try:
            yield
        finally:
            self._lock.release()

    def put(self, feature_id: str, changes: Mapping[str, Any], began: str) -> None:
        """Change the row of a feature, or add one. Takes the lock.

        Durability: the list is the old one or the new one; the new one survives a power cut on return.

        Raises:
            Conflict, Corrupt: the list must not be overwritten.
        """
        with self.held():
            self.put_locked(self.load(), feature_id, changes, began)

    def put_locked(self, found: IndexFile, feature_id: str, changes: Mapping[str, Any], began: str) -> None:
        """As `put`, with the lock held and the list just read. A new row comes first."""
        if found.error is not None:
            raise found.error
        new = {"feature_id": feature_id, "started_at": began, "last_active": began, "status": ACTIVE}
        rows = {feature_id: new} | found.rows if feature_id not in found.rows else dict(found.rows)
        rows[feature_id] = {**rows[feature_id], **changes}
        self.write(found, list(rows.values()))

    def write(self, found: IndexFile, rows: list[Row]) -> None:
        """Replace all rows; everything else is kept, comments too. The caller holds the lock.

        The caller has checked that the list may be overwritten.
        """
        document = {**found.document, KEY: rows}
        data = dump_yaml(document) if found.data is None else edit_yaml(found.data, document)
        if data != found.data:
            atomic.replace(self.path, (data,), fs=self._fs)
