"""A folder of this machine as a remote: a file for each block and each head.

The folder has the layout of an object store (docs/formats/sync.md): `blocks/<space>/<id>`, and `heads/<name>` with 16
random bytes before the head, which are its etag. A block is created under its name in one step, a head is replaced
under the lock of the folder. So several processes may write at once, and a killed one leaves nothing partial.
"""

from __future__ import annotations

import os
import secrets
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from sessionary.disk import atomic
from sessionary.disk.fs import (
    OS_FS,
    Fs,
    is_there,
    make_folder,
    names_in,
    read_bytes,
    storage_failed,
    sync_dir,
)
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, RemoteError, StorageFailed
from sessionary.sync.remote import (
    Block,
    BlockPage,
    BlockStat,
    HeadPage,
    HeadRecord,
    StatPage,
    check_name,
    refuse_large,
)

NONCE = 16
PAGE_BLOCKS, PAGE_HEADS, PAGE_STATS = 16, 1000, 1000


class FolderRemote:
    """The blocks and heads in a folder, which is made when something is put."""

    settled_after = 0.0

    def __init__(self, folder: str, fs: Fs = OS_FS) -> None:
        self._folder = folder
        self._fs = fs

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        refuse_large(block, data)
        path = self._block(space, block)
        with _failures(path):
            make_folder(self._fs, os.path.dirname(path))
            try:
                atomic.create(path, data, fs=self._fs)
            except AlreadyExists:
                return False
        return True

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        names = self._between(space, first, stop, after)
        found = ((name, self._read(self._block(space, name))) for name in names[:PAGE_BLOCKS])
        blocks = tuple(Block(name, data) for name, data in found if data is not None)
        return BlockPage(blocks, names[PAGE_BLOCKS - 1] if len(names) > PAGE_BLOCKS else None)

    def read_head(self, name: str) -> HeadRecord | None:
        data = self._read(self._head(name))
        return None if data is None else HeadRecord(name, data[NONCE:], data[:NONCE].hex())

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        refuse_large(name, data)
        path = self._head(name)
        with _failures(path), self._locked():
            present = self.read_head(name)
            if (present and present.etag) != etag:
                return None
            nonce = secrets.token_bytes(NONCE)
            atomic.replace(path, (nonce, data), fs=self._fs)
            return nonce.hex()

    def list_heads(self, after: str | None = None) -> HeadPage:
        names = self._names("heads")
        names = names[bisect_right(names, after or "") :]
        found = tuple(filter(None, map(self.read_head, names[:PAGE_HEADS])))
        return HeadPage(found, names[PAGE_HEADS - 1] if len(names) > PAGE_HEADS else None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        names = self._between(space, first, stop, after)
        stats = tuple(filter(None, (self._stat(space, name) for name in names[:PAGE_STATS])))
        return StatPage(stats, names[PAGE_STATS - 1] if len(names) > PAGE_STATS else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        path = self._block(space, block)
        with _failures(path):
            there = self._stat(space, block)
            if there is None or there.version != version:
                return False
            atomic.forget_file(path, fs=self._fs)
            sync_dir(self._fs, os.path.dirname(path))
        return True

    def names(self) -> list[str]:
        """Return the names of all heads, sorted. Reads none of them. Raises RemoteError."""
        return self._names("heads")

    def erase(self, name: str) -> None:
        """Remove a head, and all blocks of the space with its name. No other head may use that space.

        Durability: when this returns, both are gone after a power cut, too. If it does not return, the head is there
        with all of its blocks, or it is gone; `erase` again removes the rest.

        Raises:
            RemoteError: something cannot be removed.
        """
        head = self._head(name)
        with _failures(head), self._locked():
            if self.read_head(name) is not None:
                atomic.forget_file(head, fs=self._fs)
                sync_dir(self._fs, os.path.dirname(head))
            blocks = os.path.join(self._folder, "blocks", name)
            if is_there(self._fs, blocks):
                atomic.erase_tree(blocks, fs=self._fs)

    # -- files

    def _block(self, space: str, block: str) -> str:
        return os.path.join(self._folder, "blocks", check_name(space), check_name(block))

    def _head(self, name: str) -> str:
        return os.path.join(self._folder, "heads", check_name(name))

    def _read(self, path: str) -> bytes | None:
        with _failures(path):
            return read_bytes(self._fs, path)

    def _names(self, *folder: str) -> list[str]:
        path = os.path.join(self._folder, *folder)
        with _failures(path):
            return sorted(name for name in names_in(self._fs, path) or () if not name.startswith("."))

    def _between(self, space: str, first: str, stop: str, after: str | None) -> list[str]:
        """The names of the blocks of a range, behind `after`."""
        names = self._names("blocks", check_name(space))
        begin = bisect_left(names, first) if after is None else bisect_right(names, after)
        return names[begin : bisect_left(names, stop)]

    def _stat(self, space: str, block: str) -> BlockStat | None:
        try:
            found = self._fs.stat(self._block(space, block))
        except FileNotFoundError:
            return None
        age = max(0.0, time.time() - found.st_mtime)
        return BlockStat(block, found.st_size, age, str(found.st_mtime_ns))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folder(self._fs, os.path.join(self._folder, "heads"))
        with FileLock(os.path.join(self._folder, "heads", ".lock"), self._fs).once():
            yield


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """Raise failures of the disk as failures of the remote."""
    try:
        yield
    except StorageFailed as error:
        raise RemoteError(error.message, hint=error.hint) from error
    except OSError as error:
        raise RemoteError(storage_failed(error, "use", path).message) from error
