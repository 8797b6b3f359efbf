"""Breadcrumb files: write one that no other can overwrite, read one whatever is in it, list those of a session.

A breadcrumb is a file that is made once and never changed. It is whole before it gets its name, and naming it fails
if the name is taken; then the breadcrumb moves on by a microsecond, in name and field. So no sender needs a lock, and
none can displace another's message.

A file that cannot be parsed may be one that a sender of another language is still writing: for five seconds it
counts as not yet written, afterwards as damaged.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any, Literal, NamedTuple

from sessionary.codec import (
    Undecodable,
    decode,
    encode_document,
    sanitize,
)
from sessionary.disk import atomic
from sessionary.disk.fs import (
    FILE_MODE,
    NO_FILE,
    OS_FS,
    READ,
    Fs,
    make_dirs,
    not_found,
    read_all,
    read_at,
    reason_of,
    storage_failed,
)
from sessionary.errors import AlreadyExists, Corrupt, Invalid, SchemaError, StorageFailed
from sessionary.layouts.maestro.names import (
    BREADCRUMBS,
    LARGEST,
    check_depth,
    depth_of,
    is_crumb_name,
    new_id,
)
from sessionary.layouts.maestro.records import (
    Breadcrumb,
    breadcrumb_of,
    check_crumb,
    crumb_document,
    missing_keys,
)
from sessionary.layouts.maestro.sharing import inherit, message_mode
from sessionary.layouts.maestro.times import Stamp, is_instant, next_stamp, parse_time, stamp_of, utc_now
from sessionary.model import Problem, Severity

YOUNG = 5.0
"""Seconds for which a file that cannot be parsed counts as not yet written."""

Makes = Literal["all", "below", "nothing"]
"""Which missing folders a writer makes: all, those below the session's own, or none."""

_BLOCK = 1 << 16


class CrumbFile(NamedTuple):
    """One file that may be a breadcrumb, known by its name alone.

    Attributes:
        name: the file name, with its suffix.
        depth: what its folder says.
        path: where it lies.
    """

    name: str
    depth: int
    path: str

    @property
    def file(self) -> str:
        """`<depth>/<name>`: how it is called within its session."""
        return f"{self.depth}/{self.name}"


class Crumb(NamedTuple):
    """What reading one file gave.

    Attributes:
        breadcrumb: the record; None if there is none to be had.
        problems: what is wrong with the file, or odd about it.
        unfinished: True if it cannot be parsed but is so young that its writer may still be at work.
        missing: True if it is gone.
    """

    breadcrumb: Breadcrumb | None
    problems: tuple[Problem, ...] = ()
    unfinished: bool = False
    missing: bool = False


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
    """A new breadcrumb of now, with an id of its own. Nothing is written; see `write_breadcrumb`.

    The fields are those of `Breadcrumb`. Both `timestamp` and `breadcrumb_id` may be set afterwards.
    """
    return Breadcrumb(
        timestamp=Stamp.of(utc_now()),
        breadcrumb_id=new_id(),
        prompt=prompt,
        response=response,
        tools_called=tools_called,
        files_modified=files_modified,
        parent_session_id=parent_session_id,
        depth_level=depth_level,
        model_used=model_used,
        token_count=token_count,
        cost=cost,
        error=error,
        kind=kind,
        tags=[] if tags is None else tags,
        payload=payload,
    )


def write_crumb(
    folder: str,
    crumb: Breadcrumb,
    *,
    fs: Fs = OS_FS,
    durable: bool = True,
    makes: Makes = "all",
    zone: tzinfo = UTC,
) -> str:
    """Write a breadcrumb below the session folder `folder`; returns the path of its file.

    Where a file of that time is there already, the breadcrumb moves on by a microsecond at a time: its `timestamp`
    then differs from what it was. Where a folder is missing that is not to be made, as one of a session that was moved
    away, this fails with ENOENT and has written nothing. A time that we made, or that names its zone, is written in
    `zone`, that of the session (see `times.session_zone`); any other as it is.

    Durability: when this returns, the file survives a power cut. If it does not return, a reader finds the whole
    file or none, and never a part of it (on ext4 without a journal perhaps a part, after a power cut).

    Raises:
        Invalid: the time or the depth is none.
        SchemaError: a field is not of its type, or the id is empty, so that no reader would take it (ValueError).
        StorageFailed: the disk refused; with `outcome` ``unknown`` the file may be there: write the same breadcrumb
            again, its id stays the same.
    """
    parent = f"{folder}/{BREADCRUMBS}/{check_depth(crumb.depth_level)}"
    if type(crumb.timestamp) is Stamp:
        crumb.timestamp = stamp_of(crumb.timestamp.moment, zone)
    elif not is_instant(crumb.timestamp):
        crumb.timestamp = _stamp_from(crumb.timestamp, zone)
    made = False
    while True:
        path = f"{parent}/{crumb.timestamp}.json"
        try:
            atomic.create(path, _encoded(crumb), fs=fs, durable=durable, mode=_mode_in(fs, parent))
        except AlreadyExists:
            crumb.timestamp = next_stamp(crumb.timestamp)
        except StorageFailed as error:
            # With a name that was made, a missing folder was moved away since, and the breadcrumb with it.
            if made or makes == "nothing" or error.errno != errno.ENOENT or error.outcome == "unknown":
                raise
            made = _make_folder(fs, parent, durable, None if makes == "all" else folder)
        else:
            return path


def _mode_in(fs: Fs, folder: str) -> int:
    try:
        return message_mode(fs, folder)
    except OSError:
        return FILE_MODE  # writing into it will say why


def _make_folder(fs: Fs, folder: str, durable: bool, within: str | None) -> bool:
    """Make the folder of a depth, which nearly always is there: so this comes after the first try to write into it."""
    try:
        if make_dirs(fs, folder, durable=durable, within=within):
            inherit(fs, folder)
    except OSError as error:
        raise storage_failed(error, "create", folder) from error
    return True


def _encoded(crumb: Breadcrumb) -> bytes:
    document = sanitize(crumb_document(crumb))
    check_crumb(document)
    return encode_document(document)


def _stamp_from(text: Any, zone: tzinfo) -> str:
    moment = parse_time(text)
    if moment is None:
        raise Invalid(
            f"the timestamp {text!r} is no time",
            hint="use YYYYMMDD_HHMMSS_microseconds in UTC, or ISO 8601",
        )
    return stamp_of(moment, zone)


def load_crumb(path: str, *, fs: Fs = OS_FS) -> Breadcrumb:
    """The breadcrumb in a file.

    Raises:
        NotFound: there is no such file.
        Corrupt: it cannot be parsed.
        SchemaError: it is JSON, but no breadcrumb.
        StorageFailed: it cannot be read.
    """
    try:
        data = _read(fs, path)
    except FileNotFoundError:
        raise not_found(path, f"there is no breadcrumb {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error
    try:
        return _breadcrumb(data, os.path.basename(path))
    except Undecodable as error:
        raise Corrupt(
            f"{path} cannot be read: {error}",
            operation="load",
            path=path,
            hint="the sender wrote it in part, or it was damaged since; the bytes are still there",
        ) from error
    except SchemaError as error:
        error.path = path
        error.message = error.args[0]
        raise


def crumb_files(fs: Fs, folder: str, closed: list[Problem] | None = None) -> list[CrumbFile]:
    """Every file below the session folder that may be a breadcrumb, in the order of names, then depths.

    For names that are times, as those of the specification are, that is the order in which they were written.

    Args:
        fs: the file system.
        folder: the session folder.
        closed: gets what is to be told of folders that cannot be looked into; without it the first one is raised.

    Raises:
        StorageFailed: a folder cannot be looked into.
    """
    found: list[CrumbFile] = []
    base = f"{folder}/{BREADCRUMBS}"
    for name in _names(fs, base, closed):
        depth = depth_of(name)
        if depth is not None:
            below = f"{base}/{name}"
            names = sorted(filter(is_crumb_name, _names(fs, below, closed)))
            found += [CrumbFile(file, depth, f"{below}/{file}") for file in names]
    found.sort()  # a merge of what is in order by depth
    return found


def _names(fs: Fs, folder: str, closed: list[Problem] | None) -> list[str]:
    try:
        return fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if closed is None:
            raise storage_failed(error, "look into", folder) from error
        closed.append(unreadable(folder, error))
        return []


def read_crumb(fs: Fs, found: CrumbFile, *, now: float | None = None, fd: int | None = None) -> Crumb:
    """Read one file, whatever is in it: what cannot be read is told, never raised.

    Args:
        fs: the file system.
        found: the file.
        now: the time in seconds since 1970, for the age of a file that cannot be parsed; by default asked when needed.
        fd: the file, if it is open already; it is left open.
    """
    try:
        data = _read(fs, found.path) if fd is None else _content(fs, fd)
    except FileNotFoundError:
        return Crumb(None, missing=True)
    except OSError as error:
        return Crumb(None, (unreadable_crumb(found.path, error),))
    return crumb_of(found, data, age=_age(fs, found.path, now))


def crumb_of(found: CrumbFile, data: bytes, *, age: float) -> Crumb:
    """What the bytes of a file give, `age` seconds after it was last written; see `read_crumb`."""
    try:
        crumb = _breadcrumb(data, found.name)
    except Undecodable as error:
        if age < YOUNG:
            return Crumb(None, unfinished=True)
        return Crumb(None, (_torn(found.path, error),))
    except SchemaError as error:
        return Crumb(None, (_no_crumb(found.path, error),))
    return Crumb(crumb, (_elsewhere(found, crumb),) if crumb.depth_level != found.depth else ())


class Distinct:
    """Tells breadcrumbs from exact duplicates of others, as a synchroniser's copy of a file is one."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Breadcrumb]] = {}

    def is_new(self, crumb: Breadcrumb) -> bool:
        """False for a breadcrumb that equals one that was given before, its id included."""
        seen = self._seen.setdefault(crumb.breadcrumb_id, [])
        if crumb in seen:
            return False
        seen.append(crumb)
        return True


def oddities(fs: Fs, found: CrumbFile) -> Iterator[Problem]:
    """Notes on a file that can be read; only `check` wants to know."""
    try:
        document = decode(_read(fs, found.path))
    except (OSError, Undecodable):
        return
    missing = missing_keys(document)
    if missing:
        words = f"the breadcrumb lacks {', '.join(missing)}"
        yield Problem("missing_keys", Severity.note, found.path, None, None, words)
    unknown = [key for key in document if key not in Breadcrumb.__dataclass_fields__]
    if unknown:
        words = (
            f"keys that the original does not know ({', '.join(unknown)}); it does not show this breadcrumb"
        )
        yield Problem("unknown_keys", Severity.note, found.path, None, None, words)


def _breadcrumb(data: bytes, name: str) -> Breadcrumb:
    """The breadcrumb in the bytes of a file of that name. Raises Undecodable and SchemaError."""
    return breadcrumb_of(decode(data), name=name)


def unreadable(path: str, error: OSError) -> Problem:
    """What to tell of a file or folder that the system does not let us read."""
    words = f"cannot be read: {reason_of(error)}"
    return Problem(
        "unreadable_file", Severity.hides_data, path, None, None, words, "check owner, mode and disk"
    )


def unreadable_crumb(path: str, error: OSError) -> Problem:
    """The same of what has the name of a breadcrumb; a pipe, a device or a folder will never become one."""
    if error.errno == errno.EFBIG:
        words = f"no breadcrumb: more than {LARGEST:,} bytes; it was not read"
        return Problem("too_large", Severity.hides_data, path, None, None, words, "move it away")
    if error.errno not in NO_FILE:
        return unreadable(path, error)
    words = f"no breadcrumb: {reason_of(error)}"
    return Problem("no_file", Severity.hides_data, path, None, None, words, "move it away")


def _read(fs: Fs, path: str) -> bytes:
    """The bytes of a file. Raises OSError."""
    fd = fs.open(path, READ)
    try:
        return _content(fs, fd)
    finally:
        fs.close(fd)


def _content(fs: Fs, fd: int) -> bytes:
    data = read_at(fs, fd, _BLOCK, 0)
    return data if len(data) < _BLOCK else read_all(fs, fd, LARGEST)


def _age(fs: Fs, path: str, now: float | None) -> float:
    """Seconds since a file was last written; a file of the future is as young as can be."""
    try:
        return (time.time() if now is None else now) - fs.stat(path).st_mtime
    except OSError:
        return 0.0


def _torn(path: str, error: Undecodable) -> Problem:
    return Problem(
        "bad_breadcrumb",
        Severity.lost_data,
        path,
        None,
        error.at,
        f"the breadcrumb cannot be parsed: {error}",
        "send it again; `breadcrumbs/error/` is the place for the damaged file",
    )


def _no_crumb(path: str, error: SchemaError) -> Problem:
    return Problem(
        "no_breadcrumb",
        Severity.hides_data,
        path,
        None,
        None,
        str(error),
        "send it again with the keys of the specification",
    )


def _elsewhere(found: CrumbFile, crumb: Breadcrumb) -> Problem:
    return Problem(
        "depth_differs",
        Severity.note,
        found.path,
        None,
        None,
        f"the folder says depth {found.depth}, the breadcrumb {crumb.depth_level}; the breadcrumb counts",
    )
