"""Breadcrumb files: write one without overwriting another, read one tolerantly, list those of a session.

A breadcrumb is a file that is created once and never changed. It is complete before it gets its name, and
naming it fails if the name is taken; the breadcrumb is then renamed to the next microsecond, in name and
field. So no sender needs a lock, and none can overwrite the message of another.

A file that cannot be parsed may be one that a sender in another language is still writing: for five seconds
it counts as incomplete, afterwards as damaged.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode, encode_document, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import (
    NO_FILE,
    OS_FS,
    READ,
    Fs,
    make_dirs,
    not_found,
    read_all,
    read_bytes,
    reason_of,
    stat_or_none,
    storage_errors,
    storage_failed,
)
from sessionary.errors import AlreadyExists, Corrupt, Invalid, SchemaError
from sessionary.layouts.maestro.names import (
    BREADCRUMBS,
    LARGEST,
    check_depth,
    depth_of,
    is_crumb_name,
    new_id,
)
from sessionary.layouts.maestro.records import CRUMB_KEYS, Breadcrumb, breadcrumb_of, crumb_document, sort_key
from sessionary.layouts.maestro.sharing import inherit, message_mode
from sessionary.layouts.maestro.times import Stamp, is_instant, next_stamp, parse_time, stamp_of, utc_now
from sessionary.model import Problem, Severity

YOUNG = 5.0
"""Seconds for which a file that cannot be parsed counts as incomplete."""

DateRange = tuple[datetime | str | None, datetime | str | None]


class CrumbFile(NamedTuple):
    """One file that may be a breadcrumb, known by its name alone.

    Attributes:
        name: the file name, with its suffix.
        depth: the depth of its folder.
        path: its path.
    """

    name: str
    depth: int
    path: str

    @property
    def file(self) -> str:
        """`<depth>/<name>`: its name within its session."""
        return f"{self.depth}/{self.name}"


class Crumb(NamedTuple):
    """The result of reading one file.

    Attributes:
        breadcrumb: the record; None if there is none.
        problems: damage, and oddities.
        unfinished: True if it cannot be parsed but is so young that its writer may still be active.
        missing: True if it was removed.
        data: the bytes of the file.
    """

    breadcrumb: Breadcrumb | None
    problems: tuple[Problem, ...] = ()
    unfinished: bool = False
    missing: bool = False
    data: bytes = b""


@dataclass(slots=True)
class Breadcrumbs:
    """The breadcrumbs of a session.

    Attributes:
        breadcrumbs: the readable ones, ordered by time, depth and id.
        problems: damage, and oddities.
    """

    breadcrumbs: list[Breadcrumb] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def create_breadcrumb(
    prompt: str,
    response: str,
    tools_called: list[dict[str, Any]],
    files_modified: list[dict[str, Any]],
    parent_session_id: str | None,
    depth_level: int,
    model_used: str,
    token_count: dict[str, int],
    cost: float | None = None,
    error: str | None = None,
    kind: str = "note",
    tags: list[str] | None = None,
    payload: dict[str, Any] | None = None,
) -> Breadcrumb:
    """Return a new breadcrumb of now, with an id of its own. Nothing is written; see `write_breadcrumb`.

    The fields are those of `Breadcrumb`. Both `timestamp` and `breadcrumb_id` may be set afterwards.
    """
    return Breadcrumb(
        Stamp(stamp_of(utc_now())),
        new_id(),
        prompt,
        response,
        tools_called,
        files_modified,
        parent_session_id,
        depth_level,
        model_used,
        token_count,
        cost,
        error,
        kind,
        [] if tags is None else tags,
        payload,
    )


def write_crumb(
    folder: str,
    crumb: Breadcrumb,
    *,
    fs: Fs = OS_FS,
    durable: bool = True,
    in_existing: bool = False,
    zone: tzinfo = UTC,
) -> str:
    """Write a breadcrumb below the session folder `folder`; return the path of its file.

    If a file with that time exists, the breadcrumb is moved on by microseconds: its `timestamp` then changes.
    Missing folders are created; with `in_existing` not that of the session: if it was moved away, this fails
    with ENOENT and writes nothing. A time generated here, or one with a zone, is written in `zone`, that of
    the session (see `times.session_zone`); any other unchanged.

    Durability: when this returns, the file survives a power cut. If it does not return, a reader finds the
    whole file or none, never a part of it (except perhaps on ext4 without a journal, after a power cut).

    Raises:
        Invalid: the time or the depth is not valid.
        SchemaError: a field has the wrong type, or the id is empty, so that no reader would accept it (ValueError).
        StorageFailed: the disk refused; with `outcome` ``unknown`` the file may be there: write the same breadcrumb
            again, its id stays the same.
    """
    parent = f"{folder}/{BREADCRUMBS}/{check_depth(crumb.depth_level)}"
    crumb.timestamp = _stamp_in(zone, crumb.timestamp)
    document = sanitize(crumb_document(crumb))
    breadcrumb_of(document)  # one that readers refuse would be acknowledged, and lost
    found = stat_or_none(fs, parent)
    if found is None:
        with storage_errors("create", parent):
            if make_dirs(fs, parent, durable=durable, within=folder if in_existing else None):
                inherit(fs, parent)
            found = fs.stat(parent)
    mode = message_mode(found.st_mode)
    while True:
        path = f"{parent}/{crumb.timestamp}.json"
        try:
            atomic.create(path, encode_document(document), fs=fs, durable=durable, mode=mode)
            return path
        except AlreadyExists:
            document["timestamp"] = crumb.timestamp = next_stamp(crumb.timestamp)


def _stamp_in(zone: tzinfo, text: Any) -> str:
    """The breadcrumb time to write. Raises Invalid if the text is not a time."""
    if zone is UTC if isinstance(text, Stamp) else is_instant(text):
        return str(text)
    moment = parse_time(text)
    if moment is None:
        raise Invalid(
            f"the timestamp {text!r} is not valid",
            hint="use YYYYMMDD_HHMMSS_microseconds in UTC, or ISO 8601",
        )
    return stamp_of(moment, zone)


def load_crumb(path: str, *, fs: Fs = OS_FS) -> Breadcrumb:
    """Return the breadcrumb in a file.

    Raises:
        NotFound: the file does not exist.
        Corrupt: it cannot be parsed.
        SchemaError: it is JSON, but not a breadcrumb.
    """
    data = read_bytes(fs, path, limit=LARGEST)
    if data is None:
        raise not_found(path, f"no breadcrumb {path}")
    try:
        return breadcrumb_of(decode(data), name=os.path.basename(path))
    except Undecodable as error:
        raise Corrupt(
            f"{path} cannot be read: {error}",
            operation="load",
            path=path,
            hint="it was written in part or damaged since; its bytes are unchanged",
        ) from error
    except SchemaError as error:
        error.path = path
        error.message = error.args[0]
        raise


def crumb_files(fs: Fs, folder: str, closed: list[Problem] | None = None) -> list[CrumbFile]:
    """Every file below the session folder that may be a breadcrumb, in the order of names, then depths.

    For names that are times, as the specification requires, this is the order of writing.

    Args:
        closed: gets a problem for each folder that cannot be read; without it the first one is raised.
    """
    found: list[CrumbFile] = []
    base = f"{folder}/{BREADCRUMBS}"
    for name in _names(fs, base, closed):
        depth = depth_of(name)
        if depth is not None:
            below = f"{base}/{name}"
            names = sorted(filter(is_crumb_name, _names(fs, below, closed)))
            found += [CrumbFile(file, depth, f"{below}/{file}") for file in names]
    found.sort()  # merges lists that are sorted by depth
    return found


def _names(fs: Fs, folder: str, closed: list[Problem] | None) -> list[str]:
    try:
        return fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if closed is None:
            raise storage_failed(error, "read", folder) from error
        closed.append(unreadable(folder, error))
        return []


def read_crumb(fs: Fs, found: CrumbFile, *, now: float | None = None, fd: int | None = None) -> Crumb:
    """Read one file; damage is returned as a problem, never raised.

    Args:
        now: the time in seconds since 1970, for the age of a file that cannot be parsed; by default the current time.
        fd: the open file, if there is one; it is left open.
    """
    opened = fd
    try:
        opened = fs.open(found.path, READ) if fd is None else fd
        data = read_all(fs, opened, LARGEST)
        written = fs.fstat(opened).st_mtime
    except FileNotFoundError:
        return Crumb(None, missing=True)
    except OSError as error:
        return Crumb(None, (unreadable_crumb(found.path, error),))
    finally:
        if fd is None and opened is not None:
            fs.close(opened)
    return crumb_of(found, data, age=(time.time() if now is None else now) - written)


def crumb_of(found: CrumbFile, data: bytes, *, age: float) -> Crumb:
    """The result for the bytes of a file, `age` seconds after it was last written; see `read_crumb`."""
    crumb, problems, path = None, [], found.path
    try:
        crumb = breadcrumb_of(decode(data), name=found.name)
    except Undecodable as error:
        if age < YOUNG:
            return Crumb(None, unfinished=True, data=data)
        words = f"the breadcrumb cannot be parsed: {error}"
        remedy = "send it again, and move the damaged file to `breadcrumbs/error/`"
        problems.append(Problem("bad_breadcrumb", Severity.lost_data, path, None, error.at, words, remedy))
    except SchemaError as error:
        remedy = "send it again with the keys of the specification"
        problems.append(Problem.of_file("no_breadcrumb", Severity.hides_data, path, str(error), remedy))
    if crumb is not None and crumb.depth_level != found.depth:
        words = f"the folder has depth {found.depth}, the breadcrumb {crumb.depth_level}, which is used"
        problems.append(Problem.of_file("depth_differs", Severity.note, path, words))
    return Crumb(crumb, tuple(problems), data=data)


def read_boxes(
    fs: Fs, folders: Iterable[str], closed: list[Problem], *, now: float | None = None
) -> Iterator[tuple[CrumbFile, Crumb]]:
    """Read every file below these session folders that may be a breadcrumb, by folder, name and depth.

    Args:
        folders: the folders, see `paths.mailboxes`.
        closed: gets a problem for each folder that cannot be read.
        now: as for `read_crumb`.
    """
    for folder in folders:
        for file in crumb_files(fs, folder, closed):
            yield file, read_crumb(fs, file, now=now)


def in_order(reads: Iterable[tuple[CrumbFile, Crumb]]) -> list[tuple[CrumbFile, Breadcrumb]]:
    """The readable breadcrumbs by time, depth and id. Of exact duplicates, such as a synchroniser's copies, one."""
    seen: dict[str, list[Breadcrumb]] = {}
    found: list[tuple[CrumbFile, Breadcrumb]] = []
    for file, read in reads:
        crumb = read.breadcrumb
        if crumb is not None and crumb not in (same := seen.setdefault(crumb.breadcrumb_id, [])):
            same.append(crumb)
            found.append((file, crumb))
    return sorted(found, key=lambda pair: sort_key(pair[1]))


def gather(
    fs: Fs,
    folders: Iterable[str],
    *,
    depth: int | None = None,
    date_range: DateRange | None = None,
    zone: tzinfo = UTC,
) -> Breadcrumbs:
    """Read the breadcrumbs below these session folders; a damaged one, or an unreadable folder, hides no other.

    Args:
        folders: the folders, see `paths.mailboxes`.
        depth: only those of this depth, as stated in the breadcrumb.
        date_range: only those from the first instant to the second, to the second; either may be None.
        zone: the zone of their times; see `times.session_zone`.

    Raises:
        Invalid: an end of the range is not a time.
    """
    first, last = (None, None) if date_range is None else (_instant(end) for end in date_range)
    problems: list[Problem] = []
    reads = list(read_boxes(fs, folders, problems))
    problems += [problem for _, read in reads for problem in read.problems]
    found = [crumb for _, crumb in in_order(reads)]
    if depth is not None:
        found = [crumb for crumb in found if crumb.depth_level == depth]
    if first is not None or last is not None:
        found = [crumb for crumb in found if _is_within(crumb, zone, first, last)]
    return Breadcrumbs(found, problems)


def _is_within(crumb: Breadcrumb, zone: tzinfo, first: datetime | None, last: datetime | None) -> bool:
    moment = parse_time(crumb.timestamp, zone)
    if moment is None:
        return False
    moment = moment.replace(microsecond=0)  # the original program compares whole seconds
    return (first is None or moment >= first) and (last is None or moment <= last)


def _instant(end: datetime | str | None) -> datetime | None:
    if end is None:
        return None
    moment = parse_time(end)  # the original program compares with local time
    if moment is None:
        raise Invalid(f"{end!r} is not a time", hint="use ISO 8601, or a datetime")
    return moment


def oddities(found: CrumbFile, data: bytes) -> Iterator[Problem]:
    """Notes on a readable file and its bytes, for `check`."""
    document = decode(data)
    missing = [key for key in CRUMB_KEYS[:12] if key not in document]  # later ones are optional
    if missing:
        words = f"the breadcrumb lacks {', '.join(missing)}"
        yield Problem.of_file("missing_keys", Severity.note, found.path, words)
    unknown = [key for key in document if key not in CRUMB_KEYS]
    if unknown:
        words = f"keys unknown to Maestro ({', '.join(unknown)}), which does not show this breadcrumb"
        yield Problem.of_file("unknown_keys", Severity.note, found.path, words)


def unreadable(path: str, error: OSError) -> Problem:
    """The problem for a file or folder that the system refuses to read."""
    words, remedy = f"cannot be read: {reason_of(error)}", "check owner, mode and disk"
    return Problem.of_file("unreadable_file", Severity.hides_data, path, words, remedy)


def unreadable_crumb(path: str, error: OSError) -> Problem:
    """The problem for an object with the name of a breadcrumb that cannot be one: a pipe, a device or a folder."""
    if error.errno == errno.EFBIG:
        words = f"not a breadcrumb: larger than {LARGEST:,} bytes, so not read"
        return Problem.of_file("too_large", Severity.hides_data, path, words, "move it away")
    if error.errno not in NO_FILE:
        return unreadable(path, error)
    words = f"not a breadcrumb: {reason_of(error)}"
    return Problem.of_file("no_file", Severity.hides_data, path, words, "move it away")
