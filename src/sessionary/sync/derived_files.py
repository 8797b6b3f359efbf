"""Derived files: parts that are not sent as they are on disk, that is bundles and redacted text.

Their bytes are stored once, in the folder of the sync state, and compared and split like any file. They depend only
on the files of the session: a derived file is identified by the state of its source, and rebuilt when that changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_dirs, stat_or_none, storage_failed
from sessionary.sync.blocks import part_key

Make = Callable[[], Iterator[bytes]]


class Copies:
    """Derived files below one folder.

    Args:
        fs: the file system.
        folder: the folder; it is made when needed.
    """

    def __init__(self, fs: Fs, folder: str) -> None:
        self._fs = fs
        self._folder = folder

    def get(self, session: str, name: str, state: bytes, make: Make) -> str:
        """Return the path of the derived file for this state of its source; made if missing.

        Args:
            session: the folder of the session.
            name: the part.
            state: everything that its bytes depend on.
            make: yields the bytes.

        Durability: none needed; a derived file is never visible in part.

        Raises:
            StorageFailed: it cannot be written.
        """
        folder = os.path.join(
            self._folder, sha256(session.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        )
        key = part_key(name)
        path = os.path.join(folder, f"{key}-{sha256(state).hexdigest()[:24]}")
        if stat_or_none(self._fs, path) is None:
            old = self._old(folder, key)
            atomic.replace(path, make(), fs=self._fs, durable=False)
            for name in old:
                self._remove(os.path.join(folder, name))
        return path

    def _old(self, folder: str, key: str) -> list[str]:
        try:
            make_dirs(self._fs, folder, durable=False)
            return [name for name in self._fs.listdir(folder) if name.startswith(key)]
        except OSError as error:
            raise storage_failed(error, "make", folder) from error

    def _remove(self, path: str) -> None:
        try:
            self._fs.unlink(path)
        except OSError:
            pass  # a leftover is replaced by the next one
