"""A file of what this machine may forget: written without a lock, and read by whoever comes next."""

from __future__ import annotations

import os

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes
from sessionary.errors import StorageFailed


class CacheFile:
    """Bytes in a file of their own, see `sync.remotes.head_cache.Cache`.

    A disk that refuses is no reason to fail: whoever keeps something here can do without it.

    Args:
        path: the file; its folder is made when it is needed.
        fs: the file system.
    """

    def __init__(self, path: str, fs: Fs = OS_FS) -> None:
        self.path = path
        self._fs = fs

    def read(self) -> bytes | None:
        try:
            return read_bytes(self._fs, self.path)
        except StorageFailed:
            return None

    def keep(self, data: bytes) -> None:
        """Replace the file. Durability: none; whole or not at all, whoever writes it at the same time."""
        try:
            make_dirs(self._fs, os.path.dirname(self.path), durable=False)
            atomic.replace(self.path, (data,), fs=self._fs, durable=False)
        except (OSError, StorageFailed):
            pass
