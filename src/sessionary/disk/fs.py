"""File system interface: every system call that Sessionary makes on files goes through an `Fs`.

`Fs` has about twenty methods, each one system call wide. Tests replace it to record the order of calls, and to fail
or kill at the n-th call. `OsFs` binds the methods directly to functions of `os`, so the indirection costs nothing on
the hot path.

An `Fs` raises plain `OSError`. `storage_failed` is the only place that turns it into `StorageFailed`. The modules of
`disk` call it in their public functions, because only they know what the failure means for the caller's data.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat as stat_module
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from sys import maxsize
from typing import Any, Protocol

from sessionary.errors import Invalid, NotFound, Outcome, SessionaryError, StorageFailed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
O_BINARY = getattr(os, "O_BINARY", 0)
O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
O_TMPFILE = getattr(os, "O_TMPFILE", 0)
# Opening a named pipe blocks until its other end opens: without this flag, a pipe in one of our folders would block
# every reader. Regular files are not affected.
O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)

READ = os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_BINARY
APPEND = os.O_RDWR | os.O_APPEND | O_NONBLOCK | O_CLOEXEC | O_BINARY
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY
NAMELESS = os.O_RDWR | O_TMPFILE | O_CLOEXEC
"""Flags for opening an unnamed file in a folder; only valid where `O_TMPFILE` is not 0."""

FILE_MODE = 0o600
DIR_MODE = 0o700

# Lock modes, all non-blocking. The numbers are those of flock(2), which Windows lacks.
SHARED, EXCLUSIVE, UNLOCK = 1 | 4, 2 | 4, 8

FICLONE = 0x40049409  # linux/fs.h: share the extents of another file
LOCKED_BYTE = 1 << 30  # Windows locks block reading of the locked bytes: lock one far behind the note


class Fs(Protocol):
    """The file system calls that `disk` uses. Each method MUST behave like the function of that name in `os`.

    Paths are str. `write` may be short; callers loop. `rename` MUST replace atomically. `lock` takes `SHARED`,
    `EXCLUSIVE` or `UNLOCK` and MUST NOT block: it raises BlockingIOError when another open file description holds the
    lock. `utime` sets both times of a file to `mtime_ns`, by default to now. `link_fd` links a file that was opened
    as `NAMELESS` to a name, which MUST be unused.
    """

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, length: int, offset: int) -> bytes: ...
    def write(self, fd: int, data: bytes | memoryview, /) -> int: ...
    def truncate(self, fd: int, size: int, /) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def stat(self, path: str) -> os.stat_result: ...
    def lstat(self, path: str) -> os.stat_result: ...
    def fstat(self, fd: int) -> os.stat_result: ...
    def rename(self, source: str, target: str, /) -> None: ...
    def link(self, source: str, target: str, /) -> None: ...
    def link_fd(self, fd: int, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def mkdir(self, path: str, mode: int = DIR_MODE) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def listdir(self, path: str) -> list[str]: ...
    def utime(self, path: str, mtime_ns: int | None = None) -> None: ...
    def chmod(self, fd: int, mode: int) -> None: ...
    def chown(self, fd: int, uid: int, gid: int) -> None: ...
    def clone(self, source: int, target: int) -> None: ...
    def lock(self, fd: int, how: int, /) -> None: ...


def _full_fsync(fd: int) -> None:  # pragma: no cover - macOS
    """Flush on macOS: fsync stops at the drive's cache, F_FULLFSYNC does not."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
        except OSError:
            pass  # network volumes refuse F_FULLFSYNC
    os.fsync(fd)


def patient_rename(source: str, target: str) -> None:
    """os.replace with a bounded retry, for Windows.

    On Windows, virus scanners and indexers keep files open for moments (WinError 5, 32, 33: PermissionError). Any
    other error, such as a full disk, is raised at once.
    """
    for pause in (0.001, 0.005, 0.02, 0.1, 0.3):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


def _windows_pread(fd: int, length: int, offset: int) -> bytes:
    """Pread for Windows. Descriptors read at offsets are never shared between threads without a lock."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, length)


def _windows_lock(fd: int, how: int) -> None:
    """Flock for Windows, which has exclusive locks only."""
    if sys.platform == "win32":
        os.lseek(fd, LOCKED_BYTE, os.SEEK_SET)
        if how == UNLOCK:
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
            return
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(errno.EWOULDBLOCK, str(error)) from error


class OsFs:
    """The file system of this machine."""

    close = staticmethod(os.close)
    write = staticmethod(os.write)
    truncate = staticmethod(os.ftruncate)
    stat = staticmethod(os.stat)
    lstat = staticmethod(os.lstat)
    fstat = staticmethod(os.fstat)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)
    rmdir = staticmethod(os.rmdir)
    listdir = staticmethod(os.listdir)
    pread = staticmethod(getattr(os, "pread", _windows_pread))
    lock = staticmethod(_windows_lock if sys.platform == "win32" else fcntl.flock)
    rename = staticmethod(patient_rename if sys.platform == "win32" else os.replace)
    fsync = staticmethod(_full_fsync if sys.platform == "darwin" else os.fsync)
    fdatasync = staticmethod(_full_fsync if sys.platform == "darwin" else getattr(os, "fdatasync", os.fsync))

    @staticmethod
    def open(path: str, flags: int, mode: int = FILE_MODE) -> int:
        """As os.open, but new files are private."""
        return os.open(path, flags, mode)

    @staticmethod
    def utime(path: str, mtime_ns: int | None = None) -> None:
        """Set both times of a file or folder, in nanoseconds since 1970; by default to now."""
        if mtime_ns is None:
            os.utime(path)
        else:
            os.utime(path, ns=(mtime_ns, mtime_ns))

    @staticmethod
    def link_fd(fd: int, target: str) -> None:
        """Link an open file to a name through /proc (Linux only); `src_dir_fd` is ignored for an absolute path."""
        os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)

    @staticmethod
    def mkdir(path: str, mode: int = DIR_MODE) -> None:
        """As os.mkdir, but new folders are private."""
        os.mkdir(path, mode)

    @staticmethod
    def chmod(fd: int, mode: int) -> None:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, mode)

    @staticmethod
    def chown(fd: int, uid: int, gid: int) -> None:
        if hasattr(os, "fchown"):
            os.fchown(fd, uid, gid)

    @staticmethod
    def clone(source: int, target: int) -> None:
        """Share the extents of `source` (btrfs, xfs, bcachefs). Raises OSError where unsupported."""
        if sys.platform != "linux":
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        fcntl.ioctl(target, FICLONE, source)


OS_FS: Fs = OsFs()

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and try again",
    errno.EDQUOT: "your disk quota is used up: free some space and try again",
    errno.EROFS: "the file system is mounted read-only: use a folder on another one",
    errno.EACCES: "permission denied: check owner and mode of the file and of its folder",
    errno.EPERM: "permission denied: check owner and mode of the file and of its folder",
    errno.EIO: "the device reports an I/O error: check the disk before going on",
    errno.ENAMETOOLONG: "the name is longer than this file system allows",
    errno.EISDIR: "a folder is in the place of a file: move it away, or choose another path",
    errno.ENOTDIR: "a file is in the place of a folder: move it away, or choose another path",
    errno.ELOOP: "its symbolic link leads to itself: remove the link",
    errno.ESPIPE: "remove it, or move it elsewhere",
    errno.ENXIO: "remove it, or move it elsewhere",
    errno.EMFILE: "this process has too many files open: raise its limit (ulimit -n)",
}


# Clearer texts for what the kernel reports about pipes and devices. ESPIPE: it cannot be read at an offset.
_REASONS = {
    errno.ESPIPE: "not a regular file but a pipe or a device",
    errno.ENXIO: "not a regular file but a socket or a device",
}
NO_FILE = frozenset({*_REASONS, errno.EISDIR})


def expanded(path: str | os.PathLike[str]) -> str:
    """Return a path with a leading ``~`` expanded to the home directory.

    Functions of `os` leave an unknown ``~`` as it is, so that a later write would create a folder of that name in the
    current directory.

    Raises:
        Invalid: the home directory is unknown.
    """
    meant = os.path.expanduser(text := os.fspath(path))
    if meant == text and text.startswith("~"):
        home = text.split(os.sep, 1)[0]
        raise Invalid(
            f"{text}: unknown home directory {home}",
            path=text,
            hint=f"set HOME, or give an absolute path; ./{home} is a folder named {home} in the current directory",
        )
    return meant


def reason_of(error: OSError) -> str:
    """Return the reason of a failed call as text."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


def storage_failed(
    error: OSError, operation: str, path: str, *, outcome: Outcome = "not_committed", **fields: Any
) -> StorageFailed:
    """Convert an OSError to StorageFailed: keeps errno, names the file, and states the outcome of the write."""
    reason = reason_of(error)
    doing = "write atomically to" if operation == "replace" else operation  # message of the original store
    return StorageFailed(
        f"Failed to {doing} {path}: {reason}",
        errno=error.errno,
        outcome=outcome,
        operation=operation,
        path=path,
        hint=_HINTS.get(error.errno or 0),
        **fields,
    )


@contextmanager
def storage_errors(operation: str, path: str, **fields: Any) -> Iterator[None]:
    """A block whose OSErrors are raised as `storage_failed` converts them; errors of our own pass unchanged."""
    try:
        yield
    except SessionaryError:
        raise
    except OSError as error:
        raise storage_failed(error, operation, path, **fields) from error


@contextmanager
def descriptor(fs: Fs, path: str, flags: int = READ) -> Iterator[int]:
    """A block with the descriptor of a file. Raises OSError."""
    fd = fs.open(path, flags)
    try:
        yield fd
    finally:
        fs.close(fd)


def stat_or_none(fs: Fs, path: str) -> os.stat_result | None:
    """Return the stat of a path; None if it does not exist."""
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_failed(error, "look at", path) from error


def is_there(fs: Fs, path: str) -> bool:
    """True if the path exists, also as a dangling symbolic link."""
    try:
        fs.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_failed(error, "look at", path) from error
    return True


def names_in(fs: Fs, folder: str, closed: list[StorageFailed] | None = None) -> list[str] | None:
    """The names in a folder; None if it does not exist, or is not a folder.

    Args:
        closed: if given, the error of a folder that cannot be read is added there, and it counts as missing.
    """
    try:
        return fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        failed = storage_failed(error, "read", folder)
        if closed is None:
            raise failed from error
        closed.append(failed)
        return None


def is_folder(fs: Fs, path: str) -> bool:
    """True if a folder, or a link to one, has this name; as os.path.isdir also False if the system gives no answer."""
    return _has_mode(fs, path, stat_module.S_ISDIR)


def is_file(fs: Fs, path: str) -> bool:
    """True if a regular file, or a link to one, has this name; False also if the system gives no answer."""
    return _has_mode(fs, path, stat_module.S_ISREG)


def _has_mode(fs: Fs, path: str, is_mode: Callable[[int], bool]) -> bool:
    try:
        return is_mode(fs.stat(path).st_mode)
    except (OSError, ValueError):  # a name with a null character
        return False


def size_of(fs: Fs, path: str) -> int | None:
    """Return the size of a file in bytes; None if it is missing. Raises OSError.

    A dangling link has the size of the link itself.
    """
    try:
        return fs.stat(path).st_size
    except FileNotFoundError:
        try:
            return fs.lstat(path).st_size
        except FileNotFoundError:
            return None


def write_all(fs: Fs, fd: int, data: bytes | memoryview) -> None:
    """Write all bytes. One `write` call, unless the kernel accepts fewer bytes, as it may near a full disk."""
    written = fs.write(fd, data)
    if written == len(data):
        return
    view = memoryview(data)
    while written < len(view):
        written += fs.write(fd, view[written:])


def require_regular(found: os.stat_result) -> os.stat_result:
    """Return the stat of an open file if it is a regular file: devices may be endless, pipes cannot seek.

    Raises:
        OSError: it is not a regular file, see `reason_of`.
    """
    if not stat_module.S_ISREG(found.st_mode):
        number = errno.EISDIR if stat_module.S_ISDIR(found.st_mode) else errno.ESPIPE
        raise OSError(number, os.strerror(number))
    return found


def read_all(fs: Fs, fd: int, limit: int = maxsize) -> bytes:
    """Read an open file up to its current size; bytes appended meanwhile are left for the next read.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than `limit` bytes (EFBIG).
    """
    size = require_regular(fs.fstat(fd)).st_size
    if size > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return read_at(fs, fd, size, 0)


def read_at(fs: Fs, fd: int, length: int, offset: int) -> bytes:
    """Read `length` bytes at `offset` of an open file; fewer only at the end of the file.

    Raises:
        OSError: it cannot be read.
    """
    data = fs.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts, have = [data], len(data)  # pread stops at 2 GiB on Linux, and may return less elsewhere
    while have < length and (more := fs.pread(fd, length - have, offset + have)):
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def placeholder_name(name: str) -> str:
    """Return the name of the placeholder that iCloud Drive leaves for a file whose content is not on this device."""
    return f".{name}.icloud"


def refuse_placeholder(fs: Fs, path: str, operation: str) -> None:
    """Refuse to create a file whose content iCloud Drive keeps elsewhere: one of the two versions would be lost.

    Raises:
        StorageFailed: a placeholder of the file exists; nothing was written.
    """
    folder, name = os.path.split(path)
    placeholder = os.path.join(folder, placeholder_name(name))
    try:
        fs.lstat(placeholder)
    except OSError:
        return
    raise StorageFailed(
        f"{path} is not on this device: iCloud Drive left a placeholder for it",
        operation=operation,
        path=path,
        outcome="not_committed",
        hint=f"download it first: open the folder in the Finder, or run `brctl download {shlex.quote(folder)}`",
    )


def read_bytes(fs: Fs, path: str, *, operation: str = "read", limit: int = maxsize) -> bytes | None:
    """Return the content of a file; None if it does not exist.

    Raises:
        StorageFailed: it exists but cannot be read (a folder, no permission, an I/O error, more bytes than `limit`).
    """
    try:
        fd = fs.open(path, READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_failed(error, operation, path) from error
    try:
        return read_all(fs, fd, limit)
    except OSError as error:
        raise storage_failed(error, operation, path) from error
    finally:
        fs.close(fd)


def sync_dir(fs: Fs, path: str) -> None:
    """Make the names in a folder durable. File systems that cannot flush folders (EINVAL) are accepted."""
    if sys.platform == "win32":  # pragma: no cover - folders cannot be opened; NTFS journals its names
        return
    fd = fs.open(path, READ | O_DIRECTORY)
    try:
        fs.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        fs.close(fd)


_NAMED = "_sessionary_named"
_MOST_NAMED = 10_000


def name_folders(fs: Fs, folder: str) -> None:
    """Make the names of an existing folder and of its parents durable, once per process.

    The process that made the folder may have been killed before its name was flushed, and a power cut would then
    remove the folder with its content. So a writer that acknowledges data in a folder must flush the folder's name.
    Not detected: another process removes and recreates the folder in the meantime.

    Raises:
        OSError: a folder could not be flushed. Parents that this user may not read are skipped.
    """
    named = _named(fs)
    found = []
    while folder not in named:
        above = os.path.dirname(folder) or "."
        if above == folder:
            break
        try:
            sync_dir(fs, above)
        except PermissionError:
            break
        found.append(folder)
        folder = above
    if len(named) > _MOST_NAMED:
        named.clear()
    named.update(found)


def is_named(fs: Fs, folder: str) -> bool:
    """True if `name_folders` has nothing to do. Ask before a flush: afterwards the caches are cold."""
    return folder in vars(fs).get(_NAMED, ())


def forget_names(fs: Fs) -> None:
    """Forget which folder names are flushed, after a folder was moved or removed: its name may be reused."""
    _named(fs).clear()


def _named(fs: Fs) -> set[str]:
    """The folders whose names this process has flushed; stored on the `Fs`, so it has the same lifetime."""
    named: set[str] = vars(fs).setdefault(_NAMED, set())
    return named


def make_dirs(fs: Fs, path: str, *, durable: bool = True, within: str | None = None) -> bool:
    """Make a folder and its missing parents, private (0700); True if any was made.

    With `within`, a parent folder, only folders below that one are made.

    Durability: the names of the folder and of all folders made are durable when this returns (unless `durable` is
    False).

    Raises:
        OSError: a folder could not be made; a link on the way is dangling, for instance to an unmounted disk; or
            `within` does not exist.
    """
    wanted = [path]
    seen: set[str] = set()
    made: list[str] = []
    while wanted:
        try:
            fs.mkdir(wanted[-1], DIR_MODE)
            made.append(wanted.pop())
        except FileExistsError:
            wanted.pop()
        except FileNotFoundError:
            above = os.path.dirname(wanted[-1])
            if above in seen or above == within:  # it cannot contain folders: a dangling link, or /proc
                raise
            seen.add(above)
            wanted.append(above)
    if not _named(fs).isdisjoint(made):  # the folder or one of its parents was removed by another process
        forget_names(fs)
    if durable:
        name_folders(fs, path)
    return bool(made)


def make_folder(fs: Fs, path: str) -> bool:
    """As `make_dirs`, durable, with StorageFailed instead of OSError."""
    with storage_errors("make", path):
        return make_dirs(fs, path)


def not_found(path: str, message: str, hints: Sequence[str] = ()) -> NotFound:
    """Return a NotFound error that names the path."""
    return NotFound(message, path=path, hint="; ".join(hints) or None)
