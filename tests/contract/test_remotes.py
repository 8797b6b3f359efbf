"""Every remote passes the shared suite; and the suite fails remotes that do not keep the rules."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.folder_remote import FolderRemote
from sessionary.sync.remote import BlockPage, HeadPage, StatPage
from sessionary.testing.remote_suite import RemoteTests
from tests.support.chaos_remote import ChaosRemote
from tests.support.file_remote import FileRemote
from tests.support.memory_remote import MemoryRemote, MemoryServer


class TestMemory(RemoteTests):
    def setup_method(self) -> None:
        self.server = MemoryServer()

    def remote(self, tenant: str = "me") -> Any:
        return self.server.remote(tenant)

    def get_raw(self, space: str, block: str) -> Any:
        return self.server.tenants["me"].blocks[space].get(block)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        tenant = self.server.tenants["me"]
        tenant.blocks[space][block] = data
        tenant.ids[space] = sorted(tenant.blocks[space])


class TestMemoryInSmallPages(TestMemory):
    def setup_method(self) -> None:
        self.server = MemoryServer(page_bytes=1, page_heads=1)


class TestFile(RemoteTests):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "remote"
        FileRemote(self.path)

    def remote(self, tenant: str = "me") -> Any:
        return FileRemote(self.path, tenant)

    def get_raw(self, space: str, block: str) -> Any:
        with closing(sqlite3.connect(self.path)) as base:
            query = "SELECT data FROM blocks WHERE tenant = 'me' AND space = ? AND id = ?"
            return next((row[0] for row in base.execute(query, (space, block))), None)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        with closing(sqlite3.connect(self.path)) as base, base:
            base.execute("INSERT OR REPLACE INTO blocks VALUES ('me', ?, ?, ?, 0)", (space, block, data))


class TestFolder(RemoteTests):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path

    def remote(self, tenant: str = "me") -> Any:
        return FolderRemote(str(self.path / tenant))

    def get_raw(self, space: str, block: str) -> Any:
        path = self.path / "me" / "blocks" / space / block
        return path.read_bytes() if path.exists() else None

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        path = self.path / "me" / "blocks" / space / block
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class TestChaosAtRest(TestMemory):
    """A remote that does nothing bad yet is none other than the one inside."""

    def remote(self, tenant: str = "me") -> Any:
        return ChaosRemote(self.server.remote(tenant))


class Overwriting(MemoryRemote):
    def put_block(self, space: str, block: str, data: bytes) -> bool:
        new = super().put_block(space, block, data)
        self._mine.blocks[space][block] = data
        return new


class AlwaysNew(MemoryRemote):
    def put_block(self, space: str, block: str, data: bytes) -> bool:
        super().put_block(space, block, data)
        return True


class Unconditional(MemoryRemote):
    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        present = self.read_head(name)
        return super().swap_head(name, data, present.etag if present else None)


class CreatingOver(MemoryRemote):
    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        present = self.read_head(name)
        return super().swap_head(name, data, present.etag if present and etag is None else etag)


class EtagOfContent(MemoryRemote):
    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        present = self.read_head(name)
        if (present.data.hex() if present else None) != etag:
            return None
        super().swap_head(name, data, present.etag if present else None)
        return data.hex()


class LosingTheLastOfAPage(MemoryRemote):
    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        return page._replace(blocks=page.blocks[:-1]) if page.following else page


class Inclusive(MemoryRemote):
    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        return super().read_range(space, first, stop + "\0", after)


class Unsorted(MemoryRemote):
    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        return page._replace(blocks=page.blocks[::-1])


class OnePageOfHeads(MemoryRemote):
    def list_heads(self, after: str | None = None) -> HeadPage:
        return super().list_heads(after)._replace(following=None)


class OneTenant(MemoryRemote):
    def __init__(self, server: MemoryServer, tenant: str) -> None:
        super().__init__(server, "me")


class TextOnly(MemoryRemote):
    def put_block(self, space: str, block: str, data: bytes) -> bool:
        return super().put_block(space, block, data.decode("utf-8", "replace").encode())


class RemovingAnyPutting(MemoryRemote):
    def delete_block(self, space: str, block: str, version: str) -> bool:
        found = [stat for stat in self.list_blocks(space, "", "~").stats if stat.id == block]
        return bool(found) and super().delete_block(space, block, found[0].version)


class RemovingNothing(MemoryRemote):
    def delete_block(self, space: str, block: str, version: str) -> bool:
        return any(
            stat.id == block and stat.version == version for stat in self.list_blocks(space, "", "~").stats
        )


class RemovingWhatBeginsSo(MemoryRemote):
    def delete_block(self, space: str, block: str, version: str) -> bool:
        removed = super().delete_block(space, block, version)
        for stat in self.list_blocks(space, block, block + "~").stats if removed else ():
            super().delete_block(space, stat.id, stat.version)
        return removed


class OldFromTheFirst(MemoryRemote):
    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        page = super().list_blocks(space, first, stop, after)
        return page._replace(stats=tuple(stat._replace(age=1e6) for stat in page.stats))


class ListingAll(MemoryRemote):
    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        return super().list_blocks(space, "", "~", after)


class BuryingForGood(MemoryRemote):
    def put_block(self, space: str, block: str, data: bytes) -> bool:
        return (space, block) not in self._graves() and super().put_block(space, block, data)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        removed = super().delete_block(space, block, version)
        if removed:
            self._graves().add((space, block))
        return removed

    def _graves(self) -> set[tuple[str, str]]:
        """Of all connections to this server."""
        graves: set[tuple[str, str]] = vars(self._server).setdefault("graves", set())
        return graves


BROKEN = [
    RemovingAnyPutting,
    RemovingNothing,
    RemovingWhatBeginsSo,
    OldFromTheFirst,
    ListingAll,
    Overwriting,
    AlwaysNew,
    Unconditional,
    CreatingOver,
    EtagOfContent,
    LosingTheLastOfAPage,
    Inclusive,
    Unsorted,
    OnePageOfHeads,
    OneTenant,
    TextOnly,
    BuryingForGood,
]


def failures(make: Callable[[MemoryServer, str], Any]) -> list[str]:
    """The tests of the suite that a remote does not pass."""

    class Suite(TestMemory):
        def remote(self, tenant: str = "me") -> Any:
            return make(self.server, tenant)

    failed = []
    for name in (name for name in dir(Suite) if name.startswith("test_")):
        suite = Suite()
        suite.setup_method()
        try:
            getattr(suite, name)()
        except (AssertionError, RemoteError):
            failed.append(name)
    return failed


def test_the_suite_passes_a_remote_that_keeps_the_rules() -> None:
    assert failures(MemoryRemote) == []


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: str(broken.__name__))
def test_the_suite_fails_a_remote_that_breaks_a_rule(broken: Any) -> None:
    assert failures(broken) != []
