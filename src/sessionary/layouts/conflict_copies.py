"""Files that file synchronisers leave in the folder of a session: conflict copies, and placeholders.

If two devices change a file, a synchroniser keeps one version under its name and the other beside it, under a
name derived from it: a *conflict copy*. If it frees the space of a file, it leaves an empty *placeholder*
with its name.

    transcript.sync-conflict-20250131-120000-ABCDEFG.jsonl   Syncthing
    transcript (Ada's conflicted copy 2025-01-31).jsonl      Dropbox, Nextcloud
    transcript (1).jsonl, transcript 2.jsonl                 Google Drive, OneDrive in a browser, iCloud
    transcript-LAPTOP.jsonl                                  OneDrive, with the name of the device
    .transcript.jsonl.icloud                                 the placeholder of iCloud Drive

Nothing here writes. `sync.conflict_copies` merges conflict copies.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.codec.yaml_read import load_yaml
from sessionary.disk.fs import Fs, placeholder_name, read_bytes, reason_of
from sessionary.errors import SessionaryError
from sessionary.model import Problem, Severity

CONFLICT_COPY = "conflict_copy"
NOT_DOWNLOADED = "not_downloaded"

_MARKED = re.compile(
    r"(?s)(?P<stem>.+?)"
    r"(?:\.sync-conflict-\d{8}-\d{6}(?:-[0-9A-Z]{7})?"
    r"| \(.*(?:conflicted copy|conflict|Conflict).*\)"
    r"|_conflict-\d{8}-\d{6}"
    r"| \(\d{1,3}\)"
    r"| \d{1,3})"
    r"(?P<suffix>\.[A-Za-z]+)?"
)
_DEVICE = re.compile(
    r"(?P<stem>[^-.]+(?:-plan)?)-(?P<device>[A-Za-z0-9][A-Za-z0-9-]{0,62})(?P<suffix>\.[a-z]+)"
)


class Copy(NamedTuple):
    """A conflict copy.

    Attributes:
        name: its file name.
        original: the file name of its original.
        label: what the synchroniser added to the name; the same for all files that it copied at once.
    """

    name: str
    original: str
    label: str


class Compared(NamedTuple):
    """The content of a conflict copy compared with its original.

    Attributes:
        more: number of lines, or fields of a document, that the original lacks; 0 if it has all.
        extends: True if the copy begins with all of the original.
    """

    more: int
    extends: bool


def copy_of(name: str, originals: Collection[str] | None = None, *, devices: bool = True) -> Copy | None:
    """Parse a file name as that of a conflict copy; None if it is not one.

    Args:
        originals: the names of files that can have copies; None for any.
        devices: also accept a name that ends in a device name. Only if `originals` are given, and never where
        the user chooses file names.
    """
    found = _MARKED.fullmatch(name)
    if found is not None:
        original = found["stem"] + (found["suffix"] or "")
        if originals is None or original in originals:
            label = name[len(found["stem"]) : len(name) - len(found["suffix"] or "")]
            return Copy(name, original, label.strip())
    found = _DEVICE.fullmatch(name) if devices else None
    if found is not None and found["stem"] + found["suffix"] in (originals or ()):
        return Copy(name, found["stem"] + found["suffix"], found["device"])
    return None


def copies_in(names: Iterable[str], originals: Collection[str], *, devices: bool = True) -> list[Copy]:
    """The conflict copies of these files among the names in a folder, in the order of the names; see `copy_of`."""
    found = (copy_of(name, originals, devices=devices) for name in sorted(names))
    return [copy for copy in found if copy is not None]


def placeholders_in(names: Collection[str], originals: Collection[str]) -> list[str]:
    """The files that are missing in a folder and have a placeholder there."""
    return [name for name in sorted(originals) if name not in names and placeholder_name(name) in names]


def compare(fs: Fs, original: str, copy: str) -> Compared:
    """Compare a conflict copy with the file at `original`. A missing original is empty.

    JSON Lines are compared by lines, documents by their top-level fields; unreadable documents by lines, too.

    Raises:
        OSError: one of them cannot be read.
    """
    if not copy.endswith(".jsonl"):
        mine, other = _document(fs, original), _document(fs, copy)
        if mine is not None and other is not None:
            more = [key for key, value in other.items() if key not in mine or mine[key] != value]
            return Compared(len(more), all(key in other for key in mine))
    return compare_lines(_lines(fs, original), _lines(fs, copy))


def compare_lines(original: Iterable[bytes], copy: Iterable[bytes]) -> Compared:
    """As `compare`, for lines without newlines. Blank lines are ignored. Memory: a hash of each line."""
    order = [hash(line) for line in original if line.strip()]
    had, more, at, begins = set(order), 0, 0, True
    for line in copy:
        if not line.strip():
            continue
        line_hash = hash(line)
        more += line_hash not in had
        if at < len(order):
            begins = begins and order[at] == line_hash
        at += 1
    return Compared(more, begins and at >= len(order))


def problems(
    fs: Fs, folder: str, names: Collection[str], originals: Collection[str], session: str
) -> Iterator[Problem]:
    """The problems for conflict copies and placeholders in the folder of a session.

    Args:
        originals: the files of the session that can have copies or placeholders.
    """
    for name in placeholders_in(names, originals):
        yield not_downloaded(f"{folder}/{placeholder_name(name)}", name)
    for copy in copies_in(names, originals):
        yield copy_problem(fs, f"{folder}/{copy.name}", f"{folder}/{copy.original}", session)


def copy_problem(fs: Fs, path: str, original: str, session: str) -> Problem:
    """The problem for one conflict copy."""
    name = original.rpartition("/")[2]
    try:
        compared = compare(fs, original, path)
    except OSError as error:
        message = f"a synchroniser's copy of {name} cannot be read: {reason_of(error)}"
        return Problem.of_file(CONFLICT_COPY, Severity.hides_data, path, message, "check its owner and mode")
    if not compared.more:
        message = f"a synchroniser's copy of {name} that adds nothing to it"
        return Problem.of_file(CONFLICT_COPY, Severity.note, path, message, "delete it")
    unit = "line" if path.endswith(".jsonl") else "field"
    count = f"{compared.more:,} {unit}{'s' * (compared.more > 1)}"
    message = f"a synchroniser's copy of {name} has {count} missing from {name}"
    remedy = f"`sessionary repair {shlex.quote(session)}` merges them"
    return Problem.of_file(CONFLICT_COPY, Severity.hides_data, path, message, remedy)


def is_there(fs: Fs, path: str) -> bool:
    """True if a file of that name exists, even if it cannot be read."""
    try:
        fs.lstat(path)
    except OSError:
        return False
    return True


def not_downloaded(path: str, name: str) -> Problem:
    """The problem for a placeholder."""
    message = f"{name} is not on this device: iCloud Drive has left a placeholder"
    remedy = "download it: open its folder in the Finder, or run `brctl download` on the folder"
    return Problem.of_file(NOT_DOWNLOADED, Severity.hides_data, path, message, remedy)


def _lines(fs: Fs, path: str) -> Iterator[bytes]:
    from sessionary.disk.journal import lines_of  # imported here: only needed for a copy

    try:
        yield from lines_of(fs, path)
    except FileNotFoundError:
        return


def _document(fs: Fs, path: str) -> dict[str, object] | None:
    """The fields of a document; None if it cannot be read."""
    data = read_bytes(fs, path)
    if data is None:
        return {}
    try:
        value = load_yaml(data, path=path) if path.endswith((".yaml", ".yml")) else decode(data)
    except (Undecodable, SessionaryError):
        return None
    return value if isinstance(value, dict) else None
