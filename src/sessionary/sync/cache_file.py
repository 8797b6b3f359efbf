"""Cache file: written without a lock, may be lost."""

from __future__ import annotations

import os

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes
from sessionary.errors import StorageFailed


class CacheFile:
    """A cache in a file, see `sync.remotes.head_cache.Cache`.

    Errors of the disk are ignored: callers work without the cache.

    Args:
        path: the file; its folder is made when needed.
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
        """Replace the file atomically. Durability: none."""
        try:
            make_dirs(self._fs, os.path.dirname(self.path), durable=False)
            atomic.replace(self.path, (data,), fs=self._fs, durable=False)
        except (OSError, StorageFailed):
            pass
