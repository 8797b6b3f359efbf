"""Atomic operations on whole files: create, replace, move, quarantine, delete.

The order of system calls makes a write durable. A temporary file beside the target is written in full and flushed,
then renamed over the target, then the folder is flushed. A reader finds the old file or the new one, also after a
power cut. Without the first flush a power cut leaves an empty file on common file systems; without the last one the
acknowledged version may be lost.

A new file needs no temporary name where the system offers O_TMPFILE: it is written and flushed before it is linked
into the folder. On ext4 without a journal it is written, linked and then flushed, see `mounts.flushes_links`.

Temporary names begin with a dot and end in `.tmp`, a suffix that readers of the folder ignore. They are made only
under the lock of the folder, so a temporary file found under the lock belongs to a dead writer.
"""

from __future__ import annotations

import errno
import os
import re
import stat as stat_module
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from itertools import count
from typing import Any

from sessionary.disk.fs import (
    CREATE,
    FILE_MODE,
    NAMELESS,
    O_TMPFILE,
    OS_FS,
    READ,
    Fs,
    descriptor,
    forget_names,
    is_named,
    is_there,
    make_dirs,
    name_folders,
    refuse_placeholder,
    require_regular,
    storage_errors,
    storage_failed,
    sync_dir,
    write_all,
)
from sessionary.errors import AlreadyExists, NotFound, Outcome, SessionaryError

COPY_BLOCK = 1 << 20
NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP})
NO_NAMELESS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
NO_NAMING = NO_LINKS | {errno.ENOENT}  # ENOENT: /proc is not mounted

_OUR_TEMP = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def temp_name(path: str) -> str:
    """Return a random temporary name beside `path` that readers ignore."""
    folder, name = os.path.split(path)
    token = os.urandom(8).hex()
    return os.path.join(folder, f".{name[:50]}.{token}.tmp")


def resolve(fs: Fs, path: str) -> str:
    """Return the real path behind a symbolic link, so that replacing a linked file keeps the link."""
    try:
        is_link = stat_module.S_ISLNK(fs.lstat(path).st_mode)
    except FileNotFoundError:
        return path
    except OSError as error:
        raise storage_failed(error, "look at", path) from error
    return os.path.realpath(path) if is_link else path


def create(path: str, data: bytes, *, fs: Fs = OS_FS, durable: bool = True, mode: int = FILE_MODE) -> None:
    """Create a file with all of its bytes; it must not exist yet. Private (0600) unless `mode` is given.

    On Linux the file is written and flushed before it has a name (O_TMPFILE). That saves two changes to the folder,
    and a killed writer leaves nothing behind. Elsewhere the file is written under a temporary name.

    Durability: when this returns, the file survives a power cut. Readers never see a partial file, unless the file
    system has no hard links: there the file is written under its final name. On ext4 without a journal, a power cut
    before this returns may leave a partial or empty file.

    Raises:
        AlreadyExists: the name is taken; the existing file is unchanged.
        StorageFailed: the write failed; the file was not created, unless `outcome` is ``unknown``.
    """

    def make(folder: str) -> _Made:
        made = _create_nameless(fs, folder, path, data, durable, mode) if O_TMPFILE else _Made.NOT
        return _create_linked(fs, path, (data,), durable, mode) if made is _Made.NOT else made

    _create(fs, path, durable, make)


def create_streamed(path: str, data: Iterable[bytes], *, fs: Fs = OS_FS, durable: bool = True) -> None:
    """Create a private file from pieces, which are never in memory together; it must not exist yet.

    Durability: when this returns, the file survives a power cut, unless `durable` is False. Readers never see a
    partial file, unless the file system has no hard links. A killed writer leaves a hidden temporary file beside it.

    Raises:
        AlreadyExists: the name is taken; the existing file is unchanged.
        StorageFailed: the write failed; the file was not created, unless `outcome` is ``unknown``.
        SessionaryError: what `data` raises; the file was not created.
    """
    _create(fs, path, durable, lambda folder: _create_linked(fs, path, data, durable, FILE_MODE))


def _create(fs: Fs, path: str, durable: bool, make: Callable[[str], _Made]) -> None:
    folder = os.path.dirname(path) or "."
    is_safe = is_named(fs, folder)
    refuse_placeholder(fs, path, "create")
    named = False
    try:
        made = make(folder)
        named = True
        if made is _Made.UNFLUSHED:
            with descriptor(fs, path) as fd:
                fs.fsync(fd)  # ext4 without a journal: this flushes the new name too
        elif durable:
            sync_dir(fs, folder)
        if durable and not is_safe:
            name_folders(fs, folder)
    except SessionaryError:  # from the data
        raise
    except FileExistsError:
        raise AlreadyExists(f"{path} already exists", operation="create", path=path) from None
    except OSError as error:
        raise storage_failed(error, "create", path, outcome=_outcome(named)) from error


class _Made(Enum):
    """Result of creating a file without a name first."""

    NOT = "not supported on this file system"
    FLUSHED = "content flushed, name not yet flushed"
    UNFLUSHED = "linked, content and name not yet flushed"


def _create_nameless(fs: Fs, folder: str, path: str, data: bytes, durable: bool, mode: int) -> _Made:
    """Write an unnamed file in the folder, then link it. Raises OSError.

    A file that is flushed before it is linked has no name on disk yet. Where flushing the folder does not add the
    name, the file is linked first and flushed afterwards.
    """
    try:
        fd = fs.open(folder, NAMELESS, FILE_MODE)
    except OSError as error:
        if error.errno in NO_NAMELESS:
            return _Made.NOT
        raise
    try:
        lasts: bool | None = True
        if durable and fs is OS_FS:  # test doubles are unknown to the kernel
            from sessionary.disk.mounts import flushes_links  # imported late: `list` creates no files

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


def _create_linked(fs: Fs, path: str, data: Iterable[bytes], durable: bool, mode: int) -> _Made:
    """Write a file under a temporary name, then give it its final one. Raises OSError."""
    temp = temp_name(path)
    try:
        write_new(fs, temp, data, None, durable, mode)
        link_or_copy(fs, temp, path)
    finally:
        _discard(fs, temp)
    return _Made.FLUSHED


def replace(
    path: str, data: Iterable[bytes], *, fs: Fs = OS_FS, backup: str | None = None, durable: bool = True
) -> os.stat_result:
    """Replace the content of a file atomically; return the stat of the new file.

    With `backup`, the old file is kept under that name: a hard link, or a copy where links fail. Mode and owner of
    the old file are kept. A symbolic link at `path` is followed and kept. The caller holds the lock of the folder.

    Durability: when this returns, the new content survives a power cut; until then the old content does. Without
    `durable` the folder is not flushed: a power cut leaves the old content or the new, never a mixture.

    Raises:
        StorageFailed: `outcome` is ``not_committed`` (the old content is unchanged), or ``unknown`` if flushing the
            folder failed after the rename.
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
        if isinstance(error, SessionaryError):  # from `data`
            raise
        raise storage_failed(error, "replace", path, outcome=_outcome(renamed)) from error
    finally:
        if not renamed:
            _discard(fs, temp)
    return new


def keep_backup(path: str, backup: str, current: os.stat_result, *, fs: Fs = OS_FS) -> None:
    """Link `backup` to the current file, or write a flushed copy where links fail.

    Only for a file that is about to be replaced: a later append to it would also change the backup.
    """
    temp = temp_name(backup)
    try:
        link_or_copy(fs, path, temp)
        fs.rename(temp, backup)
    except BaseException:
        _discard(fs, temp)
        raise
    if current.st_nlink > 1:
        # rename() between two names of one inode does nothing and leaves both.
        _discard(fs, temp)


def refresh_backup(path: str, backup: str, *, fs: Fs = OS_FS, durable: bool = True) -> None:
    """Replace `backup` by an independent copy of the current file, with shared extents where possible.

    Durability: the copy is flushed before it takes the name, so the older backup is kept until the newer one is
    complete.
    """
    temp = temp_name(backup)
    try:
        copy_file(path, temp, fs=fs, durable=durable)
        fs.rename(temp, backup)
    except BaseException:
        _discard(fs, temp)
        raise


def copy_file(source: str, target: str, *, fs: Fs = OS_FS, durable: bool = True) -> int:
    """Copy a file to a name that must not exist; return the number of bytes. A copy that fails is removed.

    Raises:
        OSError: it failed.
    """
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
        except BaseException:
            _discard(fs, target)
            raise
        finally:
            fs.close(writer)
    finally:
        fs.close(reader)
    return copied


def quarantine(path: str, kind: str, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """Give the current file a second, dated name (`<path>.<kind>-<time>`) before it is replaced; return that name.

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
            raise storage_failed(error, "quarantine", path, outcome=_outcome(named)) from error
        return aside
    raise AssertionError("unreachable: the names never end")


def save_aside(path: str, kind: str, data: bytes, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """Store bytes that will be cut out of `path` in a dated file beside it; return its name. Durable on return."""
    for aside in _dated_names(path, kind, now):
        try:
            create(aside, data, fs=fs)
        except AlreadyExists:
            continue
        return aside
    raise AssertionError("unreachable: the names never end")


def free_name(path: str, kind: str, *, fs: Fs = OS_FS, now: datetime | None = None) -> str:
    """Return an unused dated name beside `path`. It stays unused while the lock of the folder is held."""
    return unused(fs, _dated_names(path, kind, now))


def move_folder(source: str, target: str, *, fs: Fs = OS_FS, durable: bool = True) -> None:
    """Rename a folder (or a file) to a name that must not exist yet; missing parents of the target are made.

    Durability: the move survives a power cut when this returns, unless `durable` is False.

    Raises:
        AlreadyExists: the target exists.
        NotFound: the source does not exist.
        StorageFailed: the rename failed; the folder was not moved, unless `outcome` is ``unknown``.
    """
    parent = os.path.dirname(target)
    refuse_placeholder(fs, target, "move")
    moved = False
    try:
        make_dirs(fs, parent, durable=durable)
        if _stat_or_none(fs, target) is not None:
            raise AlreadyExists(f"{target} already exists", operation="move", path=target)
        with suppress(NotADirectoryError):
            if durable:
                sync_dir(
                    fs, source
                )  # for other writers inside: they cannot flush it under the old name any more
        fs.rename(source, target)
        moved = True
        forget_names(fs)
        if durable:
            sync_dir(fs, parent)
            sync_dir(fs, os.path.dirname(source))
    except AlreadyExists:
        raise
    except FileNotFoundError as error:
        raise NotFound(f"{source} does not exist", operation="move", path=source) from error
    except OSError as error:
        raise storage_failed(error, "move", source, outcome=_outcome(moved)) from error


def move_file(source: str, target: str, *, fs: Fs = OS_FS) -> None:
    """Rename a file to a name that must not exist yet; missing parents of the target are made.

    No lock is needed: a file that another writer creates under the new name at the same time is never overwritten.

    Durability: the move survives a power cut when this returns. An interrupted move leaves the file under one of the
    two names, or under both; calling this again then removes the old one.

    Raises:
        AlreadyExists: another file has the name.
        NotFound: the source does not exist.
        StorageFailed: the rename failed; the file has its old name, unless `outcome` is ``unknown``.
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
        raise AlreadyExists(f"{target} already exists", operation="move", path=target) from None
    except FileNotFoundError as error:
        raise NotFound(f"{source} does not exist", operation="move", path=source) from error
    except OSError as error:
        raise storage_failed(error, "move", source, outcome=_outcome(named)) from error


def _is_same(fs: Fs, source: str, target: str) -> bool:
    """True if both names lead to the same inode."""
    one, other = fs.stat(source), fs.stat(target)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def erase_tree(path: str, *, fs: Fs = OS_FS) -> None:
    """Delete a folder and its content. Symbolic links are removed, not followed.

    Raises:
        StorageFailed: something could not be deleted; the rest may be gone.
    """
    with storage_errors("erase", path, outcome="unknown"):
        _erase(fs, path)
        forget_names(fs)
        sync_dir(fs, os.path.dirname(path))


@contextmanager
def building(place: str, doing: str, *, fs: Fs = OS_FS, **fields: Any) -> Iterator[None]:
    """Make a hidden folder to build in, which the block moves away when it is complete; else it is erased.

    Args:
        doing: what is done in the parent folder, for errors.
        fields: further fields of errors.

    Raises:
        StorageFailed: it cannot be made, or an OSError ends the block.
    """
    try:
        with storage_errors(doing, os.path.dirname(place), **fields):
            fs.mkdir(place)
            yield
    except BaseException:
        with suppress(OSError):
            erase_tree(place, fs=fs)
        raise


def forget_file(path: str, *, fs: Fs = OS_FS) -> None:
    """Remove a marker file that records an operation in progress; a missing file is accepted.

    Durability: none. After a power cut the marker may be back, and the operation is repeated.
    """
    try:
        fs.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_failed(error, "remove", path) from error


def sweep(folder: str, *, fs: Fs = OS_FS) -> list[str]:
    """Delete temporary files of dead writers; return their names. The caller holds the lock of the folder.

    Only names in our own pattern are deleted (see the module docstring). Temporary files of other programs are kept:
    their writers take no lock, and an unfinished save may hold messages that no other file has.
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
    """Format a time for use in a file name on any system: 20250131T120000.000000Z."""
    return (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _outcome(named: bool) -> Outcome:
    """Outcome of a failure: after a rename or link it is unknown whether the name survives a power cut."""
    return "unknown" if named else "not_committed"


def link_or_copy(fs: Fs, source: str, target: str) -> None:
    """Link a file to a second name; write a flushed copy where hard links are not supported."""
    try:
        fs.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        copy_file(source, target, fs=fs)


def _dated_names(path: str, kind: str, now: datetime | None) -> Iterator[str]:
    return numbered(f"{path}.{kind}-{timestamp_name(now)}", start=1)


def numbered(stem: str, suffix: str = "", *, mark: str = "-", start: int = 2) -> Iterator[str]:
    """Yield a name and endless alternatives to it: ``stem``, ``stem-2``, ``stem-3``, each with the suffix."""
    yield f"{stem}{suffix}"
    yield from (f"{stem}{mark}{number}{suffix}" for number in count(start))


def unused(fs: Fs, names: Iterable[str]) -> str:
    """Return the first of these names that does not exist, not even as a dangling link. Raises StorageFailed."""
    return next(name for name in names if not is_there(fs, name))


def write_new(
    fs: Fs,
    path: str,
    data: Iterable[bytes | memoryview],
    like: os.stat_result | None,
    durable: bool = True,
    mode: int = FILE_MODE,
) -> os.stat_result:
    """Write a new file with mode and owner of `like`, or with `mode`; return its stat. Raises OSError."""
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
    """Set the mode of a new file if it is not the private default; the umask is not applied."""
    if mode != FILE_MODE:
        fs.chmod(fd, mode)


def _keep_mode_and_owner(fs: Fs, fd: int, old: os.stat_result) -> None:
    new = fs.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only root may change the owner; keeping the content matters more
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
