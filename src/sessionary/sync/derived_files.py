"""What is carried of a session where that is not simply one of its files: bundles, and text that was blacked out.

Such bytes are laid down once, beside what this machine remembers, and compared and cut like any file. They are derived
from the files of the session and from nothing else: a copy is known by the state of what it was made from, and made
again when that changes.
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
        folder: where they lie; it is made when it is needed.
    """

    def __init__(self, fs: Fs, folder: str) -> None:
        self._fs = fs
        self._folder = folder

    def get(self, session: str, name: str, state: bytes, make: Make) -> str:
        """Where the copy lies that belongs to this state of its origin; made if it is not there.

        Args:
            session: the folder of the session.
            name: the part.
            state: all that its bytes depend on.
            make: gives the bytes.

        Durability: none is needed; at no moment is a copy there in part.

        Raises:
            StorageFailed: the disk refused.
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
            pass  # it is made again if it is wanted, and replaced by the next one
