"""Whole files: create, replace, keep aside.

The order of calls is the promise.  A temp file beside the target is written in full and flushed, then renamed
over it, then the folder is flushed: whoever looks, before or after a power cut, finds the old file or the new
one.  Without the first flush a power cut leaves an empty file on common file systems; without the last one the
acknowledged version may be gone.

A file that is new may do without a temp name: it is written and flushed before it is named at all (on ext4 without a
journal: written, named and flushed, see `mounts.flushes_links`).

Temp names begin with a dot and end in `.tmp`, never in a suffix that a reader of the folder looks for.
They are made only under the lock of the folder, so one that is found under the lock belongs to a dead writer.
"""

from __future__ import annotations

import errno
import os
import re
import stat as stat_module
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum

from sessionary.disk.fs import (
    CREATE,
    FILE_MODE,
    NAMELESS,
    O_TMPFILE,
    OS_FS,
    READ,
    Fs,
    forget_names,
    is_named,
    make_dirs,
    name_folders,
    refuse_placeholder,
    require_regular,
    storage_failed,
    sync_dir,
    write_all,
)
from sessionary.errors import AlreadyExists, NotFound, Outcome, StorageFailed

COPY_BLOCK = 1 << 20
NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP})
NO_NAMELESS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
NO_NAMING = NO_LINKS | {errno.ENOENT}  # the last where /proc is not there

_OUR_TEMP = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def temp_name(path: str) -> str:
    """A name beside `path` that no reader takes for one of its files."""
    folder, name = os.path.split(path)
    token = os.urandom(8).hex()
    return os.path.join(folder, f".{name[:50]}.{token}.tmp")


def resolve(fs: Fs, path: str) -> str:
    """Where a link at `path` leads, so that replacing a linked file keeps the link.

    Raises:
        StorageFailed: the system does not tell.
    """
    try:
        is_link = stat_module.S_ISLNK(fs.lstat(path).st_mode)
    except FileNotFoundError:
        return path
    except OSError as error:
        raise storage_failed(error, "look at", path) from error
    return os.path.realpath(path) if is_link else path


def create(path: str, data: bytes, *, fs: Fs = OS_FS, durable: bool = True, mode: int = FILE_MODE) -> None:
    """Make a file that must not exist yet, with all of its bytes, private (0600) unless `mode` says otherwise.

    Where the system can, the file is written and flushed before it has any name (Linux, O_TMPFILE): that saves the
    folder two changes, and a killed writer leaves nothing. Elsewhere it is written under a temporary name.

    Durability: when this returns, the file survives a power cut. At no moment does a reader find it in part, unless the
    file system has no hard links: there it is written under its own name. On ext4 without a journal it may be found in
    part, or empty, after a power cut that came before this returned.

    Raises:
        AlreadyExists: a file of that name is there; it was left as it is.
        StorageFailed: the disk refused; no file of that name was made, unless `outcome` is ``unknown``.
    """
    folder = os.path.dirname(path) or "."
    is_safe = is_named(fs, folder)
    refuse_placeholder(fs, path, "create")
    named = False
    try:
        made = _create_nameless(fs, folder, path, data, durable, mode) if O_TMPFILE else _Made.NOT
        if made is _Made.NOT:
            _create_linked(fs, path, data, durable, mode)
        named = True
        if made is _Made.UNFLUSHED:
            _flush(fs, path)  # on ext4 without a journal, which flushes the name of a new file along with it
        elif durable:
            sync_dir(fs, folder)
        if durable and not is_safe:
            name_folders(fs, folder)
    except FileExistsError:
        raise AlreadyExists(f"{path} exists already", operation="create", path=path) from None
    except OSError as error:
        raise storage_failed(error, "create", path, outcome=_outcome(named)) from error


class _Made(Enum):
    """What has become of a file that was to be made without a name first."""

    NOT = "it cannot be done here"
    FLUSHED = "it is on the disk, but for its name"
    UNFLUSHED = "it has its name, and both are to be flushed"


def _create_nameless(fs: Fs, folder: str, path: str, data: bytes, durable: bool, mode: int) -> _Made:
    """Write a file without a name in the folder, then name it. Raises OSError.

    Flushed before it is named, it has no name on the disk. Where the flush of the folder does not change that, the file
    is named first.
    """
    try:
        fd = fs.open(folder, NAMELESS, FILE_MODE)
    except OSError as error:
        if error.errno in NO_NAMELESS:
            return _Made.NOT
        raise
    try:
        lasts: bool | None = True
        if durable and fs is OS_FS:  # the kernel knows nothing of doubles
            from sessionary.disk.mounts import flushes_links  # here, since a list makes no files

            lasts = flushes_links(folder, fs.fstat(fd).st_dev)
        if lasts is None:
            return _Made.NOT
        write_all(fs, fd, data)
        _open_up(fs, fd, mode)
        if durable and lasts:
            fs.fsync(fd)
        try:
            fs.link_fd(fd, path)
        except OSError as error:
            if error.errno in NO_NAMING:
                return _Made.NOT
            raise
        return _Made.FLUSHED if lasts else _Made.UNFLUSHED
    finally:
        fs.close(fd)


def _create_linked(fs: Fs, path: str, data: bytes, durable: bool, mode: int) -> None:
    """Write a file under a temporary name, then link it to its own. Raises OSError."""
    temp = temp_name(path)
    try:
        write_new(fs, temp, (data,), None, durable, mode)
        try:
            fs.link(temp, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            _create_without_links(fs, path, data, durable, mode)
    finally:
        _discard(fs, temp)


def _create_without_links(fs: Fs, path: str, data: bytes, durable: bool, mode: int) -> None:
    """Without links the exclusive open is the claim on the name. Raises OSError."""
    fd = fs.open(path, CREATE, FILE_MODE)
    try:
        write_all(fs, fd, data)
        _open_up(fs, fd, mode)
        if durable:
            fs.fsync(fd)
    except BaseException:
        _discard(fs, path)
        raise
    finally:
        fs.close(fd)


def _flush(fs: Fs, path: str) -> None:
    """Flush a file. Raises OSError."""
    fd = fs.open(path, READ)
    try:
        fs.fsync(fd)
    finally:
        fs.close(fd)


def replace(
    path: str, data: Iterable[bytes], *, fs: Fs = OS_FS, backup: str | None = None, durable: bool = True
) -> os.stat_result:
    """Put new content under a name, whole or not at all, and return the stat of the new file.

    With `backup`, the file that was there is kept under that name (a hard link; a copy where links fail). Mode
    and owner of the old file are kept; a link at `path` is followed and stays. Hold the lock of the folder.

    Durability: when this returns, the new content survives a power cut; until then the old one does. Without
    `durable` the folder is not flushed: after a power cut it is the old content or the new, still never half.

    Raises:
        StorageFailed: `outcome` is ``not_committed`` (the old content stands) or, if flushing the folder failed
            after the rename, ``unknown``.
    """
    path = resolve(fs, path)
    folder = os.path.dirname(path) or "."
    is_safe = is_named(fs, folder)
    temp = temp_name(path)
    renamed = False
    try:
        old = _stat_or_none(fs, path)
        if old is None:
            refuse_placeholder(fs, path, "replace")
        new = write_new(fs, temp, data, old, True)
        if backup is not None and old is not None:
            keep_backup(path, backup, old, fs=fs)
        fs.rename(temp, path)
        renamed = True
        if durable:
            sync_dir(fs, folder)
            if not is_safe:
                name_folders(fs, folder)
    except OSError as error:
        if isinstance(error, StorageFailed):
            raise
        raise storage_failed(error, "replace", path, outcome=_outcome(renamed)) from error
    finally:
        if not renamed:
            _discard(fs, temp)
    return new


def keep_backup(path: str, backup: str, current: os.stat_result, *, fs: Fs = OS_FS) -> None:
    """Make `backup` a second name of the present file (or a flushed copy where links fail).

    Only for a file that is about to be replaced: appending to it later would write into its backup.
    """
    temp = temp_name(backup)
    try:
        link_or_copy(fs, path, temp)
        fs.rename(temp, backup)
    except BaseException:
        _discard(fs, temp)
        raise
    if current.st_nlink > 1:
        # Renaming one name of a file over another name of the same file does nothing and leaves both.
        _discard(fs, temp)


def refresh_backup(path: str, backup: str, *, fs: Fs = OS_FS, durable: bool = True) -> None:
    """Replace `backup` by an independent copy of the present file: shared extents where possible, else bytes.

    Durability: the copy is flushed before it takes the name, so the older backup stands until the newer one does.
    """
    temp = temp_name(backup)
    try:
        copy_file(path, temp, fs=fs, durable=durable)
        fs.rename(temp, backup)
    except BaseException:
        _discard(fs, temp)
        raise


def copy_file(source: str, target: str, *, fs: Fs = OS_FS, durable: bool = True) -> int:
    """Copy a file to a name that must not exist; returns the bytes copied. Raises OSError."""
    reader = fs.open(source, READ)
    try:
        found = require_regular(fs.fstat(reader))
        writer = fs.open(target, CREATE, FILE_MODE)
        try:
            try:
                fs.clone(reader, writer)
                copied = found.st_size
            except OSError:
                copied = _copy_bytes(fs, reader, writer)
            fs.chmod(writer, stat_module.S_IMODE(found.st_mode))
            if durable:
                fs.fsync(writer)
        finally:
            fs.close(writer)
    finally:
        fs.close(reader)
    return copied


def quarantine(path: str, kind: str, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """Give the present file a second, dated name (`<path>.<kind>-<time>`) before it is replaced.

    Durability: the second name survives a power cut when this returns.
    """
    for aside in _dated_names(path, kind, now):
        named = False
        try:
            link_or_copy(fs, resolve(fs, path), aside)
            named = True
            sync_dir(fs, os.path.dirname(path))
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_failed(error, "keep aside", path, outcome=_outcome(named)) from error
        return aside
    raise AssertionError("unreachable: the names never end")


def save_aside(path: str, kind: str, data: bytes, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """Store bytes that are about to be cut out of `path` under a dated name beside it. Durable on return."""
    for aside in _dated_names(path, kind, now):
        try:
            create(aside, data, fs=fs)
        except AlreadyExists:
            continue
        return aside
    raise AssertionError("unreachable: the names never end")


def free_name(path: str, kind: str, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """A dated name beside `path` that nothing has yet. It stays free while the lock of the folder is held."""
    return next(name for name in _dated_names(path, kind, now) if _stat_or_none(fs, name) is None)


def move_folder(source: str, target: str, *, fs: Fs = OS_FS) -> None:
    """Rename a folder (or a file) to a name that must not exist yet, its new parents made as needed.

    Durability: the move survives a power cut when this returns.

    Raises:
        AlreadyExists: the target is there.
        StorageFailed: the file system refused; the folder is where it was, unless `outcome` is ``unknown``.
    """
    parent = os.path.dirname(target)
    refuse_placeholder(fs, target, "move")
    moved = False
    try:
        make_dirs(fs, parent)
        if _stat_or_none(fs, target) is not None:
            raise AlreadyExists(f"{target} exists already", operation="move", path=target)
        with suppress(NotADirectoryError):
            sync_dir(fs, source)  # for the writers in there: they can no longer do it under the old name
        fs.rename(source, target)
        moved = True
        forget_names(fs)
        sync_dir(fs, parent)
        sync_dir(fs, os.path.dirname(source))
    except AlreadyExists:
        raise
    except FileNotFoundError as error:
        raise NotFound(f"{source} is not there", operation="move", path=source) from error
    except OSError as error:
        raise storage_failed(error, "move", source, outcome=_outcome(moved)) from error


def move_file(source: str, target: str, *, fs: Fs = OS_FS) -> None:
    """Give a file another name, which must not exist yet; its new parents are made as needed.

    No lock is needed: a writer that makes a file of the new name at the same moment is never overwritten.

    Durability: the move survives a power cut when this returns. Cut off, the file has one of the two names, or both;
    called again, it then loses the old one.

    Raises:
        AlreadyExists: another file has the name.
        NotFound: there is no such file.
        StorageFailed: the file system refused; the file has its old name, unless `outcome` is ``unknown``.
    """
    refuse_placeholder(fs, target, "move")
    named = False
    try:
        make_dirs(fs, os.path.dirname(target))
        try:
            link_or_copy(fs, source, target)
        except FileExistsError:
            if not _is_same(fs, source, target):
                raise
        named = True
        sync_dir(fs, os.path.dirname(target))
        fs.unlink(source)
        sync_dir(fs, os.path.dirname(source))
    except FileExistsError:
        raise AlreadyExists(f"{target} exists already", operation="move", path=target) from None
    except FileNotFoundError as error:
        raise NotFound(f"{source} is not there", operation="move", path=source) from error
    except OSError as error:
        raise storage_failed(error, "move", source, outcome=_outcome(named)) from error


def _is_same(fs: Fs, source: str, target: str) -> bool:
    """True for two names of one file."""
    one, other = fs.stat(source), fs.stat(target)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def erase_tree(path: str, *, fs: Fs = OS_FS) -> None:
    """Delete a folder and all in it for good. Links are removed, never followed.

    Raises:
        StorageFailed: something could not be deleted; the rest may be gone.
    """
    try:
        _erase(fs, path)
        forget_names(fs)
        sync_dir(fs, os.path.dirname(path))
    except OSError as error:
        raise storage_failed(error, "erase", path, outcome="unknown") from error


def forget_file(path: str, *, fs: Fs = OS_FS) -> None:
    """Remove a file that says only that something is under way, if it is there.

    Durability: none. After a power cut it may be there again, and what it says is done once more.

    Raises:
        StorageFailed: the disk refused.
    """
    try:
        fs.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_failed(error, "remove", path) from error


def sweep(folder: str, *, fs: Fs = OS_FS) -> list[str]:
    """Delete temp files of dead writers; returns their names. Hold the lock of the folder.

    Ours are orphans by construction (see the module). Those of other programs stay: their writers take no lock,
    and an unfinished save may hold messages that no other file has.
    """
    swept: list[str] = []
    for name in fs.listdir(folder):
        if not name.startswith(".") or not name.endswith(".tmp"):
            continue
        if _OUR_TEMP.fullmatch(name):
            with suppress(OSError):
                fs.unlink(os.path.join(folder, name))
                swept.append(name)
    return swept


def timestamp_name(now: datetime | None = None) -> str:
    """A time that can stand in a file name on every system: 20250131T120000.000000Z."""
    return (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _outcome(named: bool) -> Outcome:
    """Once a name is made, a failed flush of its folder leaves open whether it survives a power cut."""
    return "unknown" if named else "not_committed"


def link_or_copy(fs: Fs, source: str, target: str) -> None:
    """A second name for a file; a flushed copy where the file system has no links (FAT, some network shares)."""
    try:
        fs.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        copy_file(source, target, fs=fs)


def _dated_names(path: str, kind: str, now: datetime | None) -> Iterable[str]:
    dated = f"{path}.{kind}-{timestamp_name(now)}"
    yield dated
    number = 1
    while True:
        yield f"{dated}-{number}"
        number += 1


def write_new(
    fs: Fs,
    path: str,
    data: Iterable[bytes | memoryview],
    like: os.stat_result | None,
    durable: bool = True,
    mode: int = FILE_MODE,
) -> os.stat_result:
    """Write a file of a name that nobody knows yet, with mode and owner of `like`, or `mode`. Raises OSError."""
    fd = fs.open(path, CREATE, FILE_MODE)
    try:
        for chunk in data:
            if chunk:
                write_all(fs, fd, chunk)
        if like is not None:
            _keep_mode_and_owner(fs, fd, like)
        else:
            _open_up(fs, fd, mode)
        if durable:
            fs.fsync(fd)
        return fs.fstat(fd)
    finally:
        fs.close(fd)


def _open_up(fs: Fs, fd: int, mode: int) -> None:
    """Give a new file its mode, if others may read it; what the umask of the process says does not matter then."""
    if mode != FILE_MODE:
        fs.chmod(fd, mode)


def _keep_mode_and_owner(fs: Fs, fd: int, old: os.stat_result) -> None:
    new = fs.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only root may give files away; the content matters more
            fs.chown(fd, old.st_uid, old.st_gid)
    mode = stat_module.S_IMODE(old.st_mode)
    if mode != stat_module.S_IMODE(new.st_mode):
        fs.chmod(fd, mode)


def _copy_bytes(fs: Fs, reader: int, writer: int) -> int:
    copied = 0
    while chunk := fs.pread(reader, COPY_BLOCK, copied):
        write_all(fs, writer, chunk)
        copied += len(chunk)
    return copied


def _erase(fs: Fs, path: str) -> None:
    if not stat_module.S_ISDIR(fs.lstat(path).st_mode):
        fs.unlink(path)
        return
    for name in fs.listdir(path):
        _erase(fs, os.path.join(path, name))
    fs.rmdir(path)


def _stat_or_none(fs: Fs, path: str) -> os.stat_result | None:
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None


def _discard(fs: Fs, path: str) -> None:
    with suppress(OSError):
        fs.unlink(path)
