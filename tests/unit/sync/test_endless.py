"""A remote whose pages never end is given up; one that is merely slow to get anywhere is not."""

from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.remote import (
    IDLE_PAGES,
    Block,
    BlockPage,
    HeadPage,
    HeadRecord,
    blocks_of,
    heads_of,
)
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device

Next = Callable[[str | None], str | None]
NEW = count()


def new_token(after: str | None) -> str:
    """One that was never given before."""
    return f"token-{next(NEW)}"


def same_token(after: str | None) -> str:
    return "token"


class Endless(MemoryRemote):
    """Begins as it should, and then gives the same page again and again."""

    def __init__(self, server: MemoryServer, following: Next, *, empty: bool = False) -> None:
        super().__init__(server, "me")
        self.following = following
        self.empty = empty
        self.calls = 0

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        self.calls += 1
        page = super().read_range(space, first, stop)
        return BlockPage(() if self.empty else page.blocks, self.following(after))

    def list_heads(self, after: str | None = None) -> HeadPage:
        self.calls += 1
        page = super().list_heads()
        return HeadPage(() if self.empty else page.heads, self.following(after))


@pytest.fixture
def server() -> MemoryServer:
    found = MemoryServer()
    for name in ("a", "b"):
        found.remote().put_block("s", name, b"x")
        found.remote().swap_head(name, b"x", None)
    return found


def both(remote: Any) -> list[Callable[[], object]]:
    return [lambda: list(blocks_of(remote, "s", "", "~")), lambda: list(heads_of(remote))]


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("verb", [0, 1])
def test_pages_that_bring_nothing_new_are_given_up(server: MemoryServer, empty: bool, verb: int) -> None:
    remote = Endless(server, new_token, empty=empty)
    with pytest.raises(RemoteError, match="without anything new") as caught:
        both(remote)[verb]()
    assert not caught.value.retryable
    assert remote.calls <= IDLE_PAGES + 2


@pytest.mark.parametrize("verb", [0, 1])
def test_a_page_that_leads_to_itself_is_given_up_at_once(server: MemoryServer, verb: int) -> None:
    remote = Endless(server, same_token)
    with pytest.raises(RemoteError, match="without anything new"):
        both(remote)[verb]()
    assert remote.calls == 2


class Slow(MemoryRemote):
    """Gives as many empty pages as it may before each page with something in it."""

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        at = int(after or 0)
        block = (Block(str(at), b"x"),) if at % (IDLE_PAGES + 1) == 0 else ()
        return BlockPage(block, str(at + 1) if at < 3 * IDLE_PAGES else None)

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = self.read_range("s", "", "~", after)
        return HeadPage(tuple(HeadRecord(one.id, b"x", "1") for one in page.blocks), page.following)


def test_a_remote_that_gets_somewhere_is_followed_to_its_end() -> None:
    remote = Slow(MemoryServer(), "me")
    ids = [str(n * (IDLE_PAGES + 1)) for n in range(3)]
    assert [block.id for block in blocks_of(remote, "s", "", "~")] == ids
    assert [head.name for head in heads_of(remote)] == ids


def test_a_caller_that_stops_early_requests_no_further_page(server: MemoryServer) -> None:
    remote = Endless(server, new_token)
    assert len(list(islice(heads_of(remote), 2))) == 2
    assert remote.calls == 1


@pytest.mark.parametrize("following", [new_token, same_token])
def test_a_pull_from_a_remote_without_end_fails_and_changes_nothing(tmp_path: Path, following: Next) -> None:
    server = MemoryServer()
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    a.write("one", ["x"])
    a.engine(server.remote()).push()
    b.write("two", ["y"])
    files = b.files()
    with pytest.raises(RemoteError, match="without anything new"):
        b.engine(Endless(server, following)).pull()
    assert b.files() == files


def test_a_sealed_remote_without_end_is_given_up_too() -> None:
    pyrage = pytest.importorskip("pyrage", reason="the extra encryption is not installed")
    from sessionary.sync.remotes.sealed import SealedRemote

    key = str(pyrage.x25519.Identity.generate())
    server = MemoryServer()
    SealedRemote(server.remote(), key).put_block("s", "a-00000000-f", b"x")
    for following in (new_token, same_token):
        for empty in (False, True):
            remote = SealedRemote(Endless(server, following, empty=empty), key)
            with pytest.raises(RemoteError, match="without anything new"):
                list(blocks_of(remote, "s", "a-00000000", "a-00000009"))
