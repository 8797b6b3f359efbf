"""The list of features on disk: read it, and write it under a lock of its own.

The lock is always taken after that of a feature, which excludes a deadlock of two writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import StorageFailed
from sessionary.layouts.orchestrator import names
from sessionary.layouts.orchestrator.indexfile import IndexFile, Row, parse_index, with_row, written
from sessionary.layouts.orchestrator.reading import unreadable
from sessionary.layouts.orchestrator.rules import ACTIVE


class Index:
    """`active-features.yaml` of one `.ai-session`.

    Attributes:
        home: the folder `.ai-session`.
        path: the file.
        timeout: seconds to wait for the lock.
    """

    def __init__(self, fs: Fs, home: str, timeout: float) -> None:
        self.home = home
        self.path = f"{home}/{names.INDEX}"
        self.timeout = timeout
        self._fs = fs
        self._lock = FileLock(f"{home}/{names.INDEX_LOCK}", fs)

    def load(self) -> IndexFile:
        """The current list, for a write. Takes no lock: the file is replaced as a whole.

        Raises:
            StorageFailed: it exists and cannot be read.
        """
        return parse_index(read_bytes(self._fs, self.path), self.path)

    def read(self) -> IndexFile:
        """As `load`, for readers: a read failure is in its `error`."""
        try:
            return self.load()
        except StorageFailed as error:
            return IndexFile(None, {}, {}, [unreadable(error)], error)

    @contextmanager
    def held(self, *, make: bool = False) -> Iterator[None]:
        """Hold the lock for a ``with`` block.

        Args:
            make: create the folder if it is missing.

        Raises:
            Locked: another process held it all the time.
            FileNotFoundError: the folder is missing.
        """
        try:
            self._lock.acquire(self.timeout)
        except FileNotFoundError:
            if not make:
                raise
            make_folder(self._fs, self.home)
            self._lock.acquire(self.timeout)
        try:
            yield
        finally:
            self._lock.release()

    def put(self, feature_id: str, changes: Mapping[str, Any], began: str) -> None:
        """Change the row of a feature, or add one. Takes the lock.

        Durability: the list is the old one or the new one; the new one survives a power cut on return.

        Raises:
            Conflict, Corrupt: the list must not be overwritten.
            StorageFailed, Locked: it cannot be written.
        """
        with self.held():
            self.put_locked(self.load(), feature_id, changes, began)

    def put_locked(self, found: IndexFile, feature_id: str, changes: Mapping[str, Any], began: str) -> None:
        """As `put`, with the lock held and the list just read."""
        if feature_id not in found.rows:
            changes = {"started_at": began, "last_active": began, "status": ACTIVE, **changes}
        self._replace(found, with_row(found, feature_id, changes))

    def write(self, found: IndexFile, rows: list[Row]) -> None:
        """Replace all rows. The caller holds the lock and has checked that the list may be overwritten."""
        self._replace(found, written(found, rows))

    def _replace(self, found: IndexFile, data: bytes) -> None:
        if data != found.data:
            atomic.replace(self.path, (data,), fs=self._fs)
