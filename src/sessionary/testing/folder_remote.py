"""A remote in a folder, for tests in which the machines are real processes. Nothing in it is made durable."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from contextlib import suppress
from pathlib import Path

from sessionary.disk.lock import FileLock
from sessionary.errors import RemoteError
from sessionary.sync.remote import LARGEST_BLOCK, Block, BlockPage, HeadPage, HeadRecord


class FolderRemote:
    """One tenant's blocks and heads below a folder that several processes share.

    Args:
        root: the folder.
        tenant: whose.
        page: how many blocks or heads a page holds.
    """

    def __init__(self, root: Path, tenant: str = "me", *, page: int = 50) -> None:
        self._blocks = root / tenant / "blocks"
        self._heads = root / tenant / "heads"
        self._page = page
        for folder in (self._blocks, self._heads):
            folder.mkdir(parents=True, exist_ok=True)

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        _refuse_large(block, data)
        folder = self._blocks / space
        folder.mkdir(exist_ok=True)
        return self._name(data, folder / block)

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        folder = self._blocks / space
        ids = sorted(name for name in os.listdir(folder) if name[0] != ".") if folder.exists() else []
        start = bisect_left(ids, first) if after is None else bisect_right(ids, after)
        end = bisect_left(ids, stop)
        chosen = ids[start : min(end, start + self._page)]
        blocks = tuple(Block(name, (folder / name).read_bytes()) for name in chosen)
        return BlockPage(blocks, chosen[-1] if start + len(chosen) < end else None)

    def read_head(self, name: str) -> HeadRecord | None:
        try:
            version, _, data = (self._heads / name).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        return HeadRecord(name, data, version.decode())

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        _refuse_large(name, data)
        with FileLock(str(self._heads / ".lock")).held():
            present = self.read_head(name)
            if (present.etag if present else None) != etag:
                return None
            version = str(int(present.etag) + 1 if present else 1)
            new = self._heads / f".{name}.{os.getpid()}"
            new.write_bytes(version.encode() + b"\n" + data)
            new.replace(self._heads / name)
            return version

    def list_heads(self, after: str | None = None) -> HeadPage:
        names = sorted(name for name in os.listdir(self._heads) if name[0] != ".")
        start = 0 if after is None else bisect_right(names, after)
        chosen = names[start : start + self._page]
        heads = tuple(head for head in map(self.read_head, chosen) if head is not None)
        return HeadPage(heads, chosen[-1] if start + len(chosen) < len(names) else None)

    def _name(self, data: bytes, path: Path) -> bool:
        """Give bytes a name that is free: they appear under it whole, or it was taken."""
        new = path.parent / f".{os.urandom(8).hex()}"
        new.write_bytes(data)
        try:
            os.link(new, path)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                new.unlink()
        return True


def _refuse_large(name: str, data: bytes) -> None:
    if len(data) > LARGEST_BLOCK:
        raise RemoteError(f"{name} has {len(data)} bytes; a block or head may have {LARGEST_BLOCK}")
