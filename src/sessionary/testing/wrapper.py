"""An `Fs` around another `Fs`: doubles override only what differs.

Every method goes through `call`, so a double that treats all calls alike (count them, fail the n-th)
overrides that one, and a double of some calls overrides those.
"""

from __future__ import annotations

import os
from typing import Any

from sessionary.disk.fs import DIR_MODE, FILE_MODE, OS_FS, Fs


class WrappedFs:
    """Forwards to `inner`."""

    def __init__(self, inner: Fs = OS_FS) -> None:
        self.inner = inner

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Forward the call `name` to the inner `Fs`."""
        return getattr(self.inner, name)(*arguments, **options)

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        fd: int = self.call("open", path, flags, mode)
        return fd

    def close(self, fd: int) -> None:
        self.call("close", fd)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        data: bytes = self.call("pread", fd, length, offset)
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        written: int = self.call("write", fd, data)
        return written

    def truncate(self, fd: int, size: int) -> None:
        self.call("truncate", fd, size)

    def fsync(self, fd: int) -> None:
        self.call("fsync", fd)

    def fdatasync(self, fd: int) -> None:
        self.call("fdatasync", fd)

    def stat(self, path: str) -> os.stat_result:
        found: os.stat_result = self.call("stat", path)
        return found

    def lstat(self, path: str) -> os.stat_result:
        found: os.stat_result = self.call("lstat", path)
        return found

    def fstat(self, fd: int) -> os.stat_result:
        found: os.stat_result = self.call("fstat", fd)
        return found

    def rename(self, source: str, target: str) -> None:
        self.call("rename", source, target)

    def link(self, source: str, target: str) -> None:
        self.call("link", source, target)

    def link_fd(self, fd: int, target: str) -> None:
        self.call("link_fd", fd, target)

    def unlink(self, path: str) -> None:
        self.call("unlink", path)

    def mkdir(self, path: str, mode: int = DIR_MODE) -> None:
        self.call("mkdir", path, mode)

    def rmdir(self, path: str) -> None:
        self.call("rmdir", path)

    def listdir(self, path: str) -> list[str]:
        names: list[str] = self.call("listdir", path)
        return names

    def utime(self, path: str, mtime_ns: int | None = None) -> None:
        self.call("utime", path, mtime_ns)

    def chmod(self, fd: int, mode: int) -> None:
        self.call("chmod", fd, mode)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        self.call("chown", fd, uid, gid)

    def clone(self, source: int, target: int) -> None:
        self.call("clone", source, target)

    def lock(self, fd: int, how: int) -> None:
        self.call("lock", fd, how)


class UnsyncedFs(WrappedFs):
    """The file system without real flushes: a flush only checks that the descriptor is open.

    For sweeps. There a model decides what survives, and a hundred thousand real flushes would prove nothing
    more. Data written through it is not safe from a power cut.
    """

    def fsync(self, fd: int) -> None:
        self.call("fstat", fd)

    def fdatasync(self, fd: int) -> None:
        self.call("fstat", fd)


UNSYNCED: Fs = UnsyncedFs()
