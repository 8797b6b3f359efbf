"""The one seam to the file system.

Everything that Sessionary does to a disk goes through an `Fs`: about twenty calls, each one system call wide, so
that a test can stand in its place, record the order of calls, and fail or kill at the n-th of them.
`OsFs` binds the methods straight to the functions of `os`: on the hot path the seam costs nothing.

An `Fs` raises plain `OSError`. It becomes `StorageFailed` in one place, `storage_failed` below, called by the
rooms of `disk` at their faces, because only they know what the failure means for the caller's data.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat as stat_module
import sys
import time
from collections.abc import Sequence
from sys import maxsize
from typing import Any, Protocol

from sessionary.errors import Invalid, NotFound, Outcome, StorageFailed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
O_BINARY = getattr(os, "O_BINARY", 0)
O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
O_TMPFILE = getattr(os, "O_TMPFILE", 0)
# Opening a named pipe waits for its other end, for ever if need be: whoever can make a file in a folder that we read
# could stop all readers. Of regular files this flag changes nothing.
O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)

READ = os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_BINARY
APPEND = os.O_RDWR | os.O_APPEND | O_NONBLOCK | O_CLOEXEC | O_BINARY
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY
NAMELESS = os.O_RDWR | O_TMPFILE | O_CLOEXEC
"""Opens a folder for a file in it that has no name yet; only where `O_TMPFILE` is not 0."""

FILE_MODE = 0o600
DIR_MODE = 0o700

# How to lock, never waiting: the numbers of flock, which Windows has not.
SHARED, EXCLUSIVE, UNLOCK = 1 | 4, 2 | 4, 8

FICLONE = 0x40049409  # linux/fs.h: share the extents of another file
LOCKED_BYTE = 1 << 30  # locks of Windows keep others from reading the bytes: one far behind the note is taken


class Fs(Protocol):
    """What `disk` needs of a file system. Each call MUST do what the function of that name in `os` does.

    Paths are str. `write` may be short; callers loop. `rename` MUST replace atomically. `lock` takes `SHARED`,
    `EXCLUSIVE` or `UNLOCK` and MUST NOT block: it raises BlockingIOError when another open file description holds it.
    `utime` sets both times of a file to `mtime_ns`, by default to now. `name` gives a name, which MUST be free, to a
    file that was opened as `NAMELESS`.
    """

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, length: int, offset: int) -> bytes: ...
    def write(self, fd: int, data: bytes | memoryview) -> int: ...
    def truncate(self, fd: int, size: int) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def stat(self, path: str, *, dir_fd: int | None = None) -> os.stat_result: ...
    def lstat(self, path: str) -> os.stat_result: ...
    def fstat(self, fd: int) -> os.stat_result: ...
    def rename(self, source: str, target: str) -> None: ...
    def link(self, source: str, target: str) -> None: ...
    def link_fd(self, fd: int, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def mkdir(self, path: str, mode: int = DIR_MODE) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def listdir(self, path: str) -> list[str]: ...
    def utime(self, path: str, mtime_ns: int | None = None) -> None: ...
    def chmod(self, fd: int, mode: int) -> None: ...
    def chown(self, fd: int, uid: int, gid: int) -> None: ...
    def clone(self, source: int, target: int) -> None: ...
    def lock(self, fd: int, how: int) -> None: ...


def _full_fsync(fd: int) -> None:  # pragma: no cover - macOS
    """On macOS fsync stops at the drive's cache; F_FULLFSYNC goes through it."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
        except OSError:
            pass  # network volumes refuse F_FULLFSYNC
    os.fsync(fd)


def patient_rename(source: str, target: str) -> None:
    """os.replace with a bounded retry, for Windows.

    Virus scanners and indexers hold files open for moments there (WinError 5, 32, 33: PermissionError). Anything
    else, a full disk above all, fails at once.
    """
    for pause in (0.001, 0.005, 0.02, 0.1, 0.3):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


def _windows_pread(fd: int, length: int, offset: int) -> bytes:
    """Windows has no pread. Descriptors that we read at offsets are never shared between threads without a lock."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, length)


def _windows_lock(fd: int, how: int) -> None:
    """Windows knows only exclusive locks."""
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
        """As os.open, but what is made is private."""
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
        """Linux names the file behind a descriptor by a link to it, if /proc is there; the folder is not looked at."""
        os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)

    @staticmethod
    def mkdir(path: str, mode: int = DIR_MODE) -> None:
        """As os.mkdir, but what is made is private."""
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
        """Share the bytes of `source` (btrfs, xfs, bcachefs). Raises OSError where the file system cannot."""
        if sys.platform != "linux":
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        fcntl.ioctl(target, FICLONE, source)


OS_FS: Fs = OsFs()

_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and try again",
    errno.EDQUOT: "your disk quota is used up: free some space and try again",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "you may not do that there: check owner and mode of the file and of its folder",
    errno.EPERM: "you may not do that there: check owner and mode of the file and of its folder",
    errno.EIO: "the device reports an I/O error: check the disk before going on",
    errno.ENAMETOOLONG: "the name is longer than this file system allows",
    errno.ENOTDIR: "a file stands where a folder is wanted: move it away, or name another place",
    errno.EMFILE: "this process has too many files open: raise its limit (ulimit -n)",
}


# What the kernel says of things that are no files, in words that help. ESPIPE is its answer to reading at an offset.
_REASONS = {
    errno.ESPIPE: "it is no file but a pipe or a device",
    errno.ENXIO: "it is no file but a socket or a device",
}
NO_FILE = frozenset({*_REASONS, errno.EISDIR})


def expanded(path: str | os.PathLike[str]) -> str:
    """The path that a caller means: a ``~`` in front of it is a home.

    Where there is no such home the functions of `os` leave the ``~`` as it is, and what is written next lies in a new
    folder of that name, wherever the process happens to stand.

    Raises:
        Invalid: there is no such home.
    """
    meant = os.path.expanduser(text := os.fspath(path))
    if meant == text and text.startswith("~"):
        home = text.split(os.sep, 1)[0]
        raise Invalid(
            f"{text}: there is no home {home} here",
            path=text,
            hint=f"set HOME, or give an absolute path; ./{home} is a folder of that name",
        )
    return meant


def reason_of(error: OSError) -> str:
    """Why a call failed, in words."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


def storage_failed(
    error: OSError, operation: str, path: str, *, outcome: Outcome = "not_committed", **fields: Any
) -> StorageFailed:
    """The one translation of OSError: keeps errno, names the file, and says what became of the write."""
    reason = reason_of(error)
    doing = "write atomically to" if operation == "replace" else operation  # the words of the original store
    return StorageFailed(
        f"Failed to {doing} {path}: {reason}",
        errno=error.errno,
        outcome=outcome,
        operation=operation,
        path=path,
        hint=_HINTS.get(error.errno or 0),
        **fields,
    )


def stat_or_none(fs: Fs, path: str) -> os.stat_result | None:
    """What the file under a name is; None if there is none.

    Raises:
        StorageFailed: the system does not tell.
    """
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_failed(error, "look at", path) from error


def is_there(fs: Fs, path: str) -> bool:
    """True if something has this name, be it a link that leads nowhere.

    Raises:
        StorageFailed: the system does not tell.
    """
    try:
        fs.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_failed(error, "look at", path) from error
    return True


def size_of(fs: Fs, path: str) -> int | None:
    """The bytes of a file; those of a link that leads nowhere are its own. None if it is gone. Raises OSError."""
    try:
        return fs.stat(path).st_size
    except FileNotFoundError:
        try:
            return fs.lstat(path).st_size
        except FileNotFoundError:
            return None


def write_all(fs: Fs, fd: int, data: bytes | memoryview) -> None:
    """Write every byte. One `write` call unless the kernel takes less, which it may near a full disk."""
    written = fs.write(fd, data)
    if written == len(data):
        return
    view = memoryview(data)
    while written < len(view):
        written += fs.write(fd, view[written:])


def require_regular(found: os.stat_result) -> os.stat_result:
    """The stat of an open file, if it is one: a device may have no end, and a pipe no beginning.

    Raises:
        OSError: it is something else, see `reason_of`.
    """
    if not stat_module.S_ISREG(found.st_mode):
        number = errno.EISDIR if stat_module.S_ISDIR(found.st_mode) else errno.ESPIPE
        raise OSError(number, os.strerror(number))
    return found


def read_all(fs: Fs, fd: int, limit: int = maxsize) -> bytes:
    """The bytes of an open file up to the size that it has now; what is appended meanwhile comes with the next look.

    Raises:
        OSError: it cannot be read, is no regular file, or has more bytes than `limit` (EFBIG).
    """
    size = require_regular(fs.fstat(fd)).st_size
    if size > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return read_at(fs, fd, size, 0)


def read_at(fs: Fs, fd: int, length: int, offset: int) -> bytes:
    """The bytes at an offset of an open file; fewer only where the file ends.

    Raises:
        OSError: it cannot be read.
    """
    data = fs.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts, have = [data], len(data)  # pread stops at 2 GiB on Linux, and may be short on others
    while have < length and (more := fs.pread(fd, length - have, offset + have)):
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def placeholder_name(name: str) -> str:
    """The name that iCloud Drive gives to the placeholder of a file whose content is not on this device."""
    return f".{name}.icloud"


def refuse_placeholder(fs: Fs, path: str, operation: str) -> None:
    """Refuse to make a file whose content is on another device: one of the two versions would be lost.

    Raises:
        StorageFailed: the placeholder of the file is there; nothing was written.
    """
    folder, name = os.path.split(path)
    placeholder = os.path.join(folder, placeholder_name(name))
    try:
        fs.lstat(placeholder)
    except OSError:
        return
    raise StorageFailed(
        f"{path} is not on this device: iCloud Drive has left a placeholder for it",
        operation=operation,
        path=path,
        outcome="not_committed",
        hint=f"download it first: open the folder in the Finder, or run `brctl download {shlex.quote(folder)}`",
    )


def read_bytes(fs: Fs, path: str, *, operation: str = "read", limit: int = maxsize) -> bytes | None:
    """The content of a file, or None where there is none.

    Raises:
        StorageFailed: it is there but cannot be read (a folder, no permission, an I/O error, more bytes than `limit`).
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
    """Make the names in a folder durable. A file system that cannot sync folders (EINVAL) has nothing to promise."""
    if sys.platform == "win32":  # pragma: no cover - a folder cannot be opened there; NTFS journals its names
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
    """Make the name of a folder that is there durable, and the names of those that it lies in.

    Whoever made it may have been killed before its name was flushed, and a power cut takes a folder without a name
    along with all that lies in it. So who promises what he wrote into a folder sees to its name: once in a process.
    A folder that another process removes and makes anew in the meantime, with all that we write into, is not noticed.

    Raises:
        OSError: the system refused. Folders above it that may not be read are left to those who may.
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
    """True if `name_folders` has nothing to do. To be asked before a flush: after it the caches are cold."""
    return folder in vars(fs).get(_NAMED, ())


def forget_names(fs: Fs) -> None:
    """A folder was moved or removed: another one that gets its name, or one below it, is not named yet."""
    _named(fs).clear()


def _named(fs: Fs) -> set[str]:
    """The folders of which this process has flushed the names; it hangs on the file system and goes with it."""
    named: set[str] = vars(fs).setdefault(_NAMED, set())
    return named


def make_dirs(fs: Fs, path: str, *, durable: bool = True, within: str | None = None) -> bool:
    """Make a folder and its missing parents, private (0700). True if anything was made.

    With `within`, a folder above it, only those below that one are made.

    Durability: the folder and every folder made is named durably in its parent before this returns (unless `durable`
    is False).

    Raises:
        OSError: the system refused; also where a link on the way leads nowhere, as to a disk that is not there, and
            where `within` is not there.
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
            if above in seen or above == within:  # it takes no folder: a link that leads nowhere, or /proc
                raise
            seen.add(above)
            wanted.append(above)
    if not _named(fs).isdisjoint(made):  # somebody has removed it, or one of those above it
        forget_names(fs)
    if durable:
        name_folders(fs, path)
    return bool(made)


def make_folder(fs: Fs, path: str) -> bool:
    """As `make_dirs`, durably, for callers that report it.

    Raises:
        StorageFailed: it cannot be made.
    """
    try:
        return make_dirs(fs, path)
    except OSError as error:
        raise storage_failed(error, "make", path) from error


def not_found(path: str, message: str, hints: Sequence[str] = ()) -> NotFound:
    """A NotFound that names the path."""
    return NotFound(message, path=path, hint="; ".join(hints) or None)
