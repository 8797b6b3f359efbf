"""Who does not encrypt keeps the rules of all remotes, and lays nothing between what others have encrypted."""

from pathlib import Path
from typing import Any

import pyrage
import pytest

from sessionary.errors import RemoteError
from sessionary.sync.remote import HeadPage
from sessionary.sync.remotes.sealed import MARK, PlainRemote, SealedRemote
from sessionary.sync.report import SyncStatus
from sessionary.testing.remote_suite import SPACE, RemoteTests, ids
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device

KEY = str(pyrage.x25519.Identity.generate())


class Opened(MemoryRemote):
    """A remote in memory with what every store has beside the verbs; counts how often heads are read."""

    reads = 0
    ru = 7.0

    def prepare(self) -> bool:
        return True

    def close(self) -> None:
        self.reads = -1

    def read_head(self, name: str) -> Any:
        self.reads += 1
        return super().read_head(name)


def plain(server: MemoryServer, tenant: str = "me") -> PlainRemote:
    return PlainRemote(Opened(server, tenant))


def sealed(server: MemoryServer) -> SealedRemote:
    return SealedRemote(server.remote(), KEY)


class TestPlainMemory(RemoteTests):
    def setup_method(self) -> None:
        self.server = MemoryServer(page_bytes=1, page_heads=1)

    def remote(self, tenant: str = "me") -> PlainRemote:
        return plain(self.server, tenant)

    def get_raw(self, space: str, block: str) -> bytes | None:
        return self.server.tenants["me"].blocks[space].get(block)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        self.server.remote().put_block(space, block, data)


def contents(server: MemoryServer) -> tuple[dict[str, Any], dict[str, Any]]:
    tenant = server.tenants["me"]
    return dict(tenant.heads), {space: dict(found) for space, found in tenant.blocks.items() if found}


VERBS = {
    "put_block": lambda remote: remote.put_block(SPACE, "a", b"plain"),
    "swap_head": lambda remote: remote.swap_head("one", b"plain", None),
    "list_heads": lambda remote: remote.list_heads(),
    "prepare": lambda remote: remote.prepare(),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("used", [False, True])
def test_a_sealed_remote_is_refused_before_anything_is_put(verb: str, used: bool) -> None:
    server = MemoryServer()
    if used:
        sealed(server).put_block(SPACE, "a", b"secret")
        sealed(server).swap_head("one", b"secret", None)
    else:
        assert ids(sealed(server)) == []  # set up, and nothing more
    before = contents(server)
    remote = plain(server)
    for _ in range(2):
        with pytest.raises(RemoteError, match="the remote is encrypted") as caught:
            VERBS[verb](remote)
    assert not caught.value.retryable
    assert "--encrypt FILE" in (caught.value.hint or "")
    assert contents(server) == before


def test_the_mark_is_found_on_whatever_page_of_a_list_it_is() -> None:
    server = MemoryServer(page_heads=1)
    for name in ("a", "b", "z"):
        sealed(server).swap_head(name, b"x", None)
    before = sorted(server.tenants["me"].heads).index(MARK)
    remote, after = plain(server), None
    for _ in range(before):
        after = remote.list_heads(after).following
    assert after is not None
    with pytest.raises(RemoteError, match="the remote is encrypted"):
        remote.list_heads(after)


def test_a_device_without_the_key_neither_pushes_nor_pulls_nor_reports(tmp_path: Path) -> None:
    server = MemoryServer()
    with_key, without = Device(tmp_path, "with"), Device(tmp_path, "without")
    with_key.write("one", ["a"])
    with_key.engine(sealed(server)).push()
    without.write("two", ["b"])
    before, files = contents(server), without.files()
    report = without.engine(plain(server)).push()
    assert [outcome.standing for outcome in report.outcomes] == [SyncStatus.FAILED]
    assert "the remote is encrypted" in report.outcomes[0].note
    for verb in ("pull", "status"):
        with pytest.raises(RemoteError, match="the remote is encrypted"):
            getattr(without.engine(plain(server)), verb)()
    assert contents(server) == before
    assert without.files() == files


def test_a_device_with_a_key_does_not_continue_what_is_plain(tmp_path: Path) -> None:
    server = MemoryServer()
    without, with_key = Device(tmp_path, "without"), Device(tmp_path, "with")
    without.write("one", ["a"])
    without.engine(plain(server)).push()
    with_key.write("two", ["b"])
    before = contents(server)
    report = with_key.engine(sealed(server)).push()
    assert [outcome.standing for outcome in report.outcomes] == [SyncStatus.FAILED]
    assert "not encrypted" in report.outcomes[0].note
    assert contents(server) == before


def test_plain_heads_behind_an_empty_page_are_found_before_a_store_is_sealed() -> None:
    """A page may hold nothing and still not be the last one."""

    class Reluctant(MemoryRemote):
        def list_heads(self, after: str | None = None) -> HeadPage:
            return HeadPage((), "0") if after is None else super().list_heads(after)

    server = MemoryServer()
    server.remote().swap_head("one", b"plain", None)
    with pytest.raises(RemoteError, match="not encrypted"):
        SealedRemote(Reluctant(server, "me"), KEY).put_block(SPACE, "a", b"secret")
    assert set(contents(server)[0]) == {"one"}


def test_the_mark_is_looked_for_once_and_not_by_readers() -> None:
    inner = Opened(MemoryServer(), "me")
    remote = PlainRemote(inner)
    assert remote.list_heads().heads == ()
    assert ids(remote) == []
    assert inner.reads == 0
    for n in range(3):
        remote.put_block(SPACE, str(n), b"x")
        remote.swap_head(str(n), b"x", None)
    assert inner.reads == 1


def test_what_stands_beside_the_verbs_is_that_of_the_store() -> None:
    inner = Opened(MemoryServer(), "me")
    remote = PlainRemote(inner)
    assert remote.prepare() is True
    assert remote.ru == 7.0
    assert not hasattr(remote, "something_that_no_store_has")
    remote.close()
    assert inner.reads == -1
