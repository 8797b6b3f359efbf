"""The test suite for every `Remote`.

A subclass connects to an empty store, and reads and writes it **without** the remote under test, so that a
mistake in one direction cannot be hidden by the same mistake in the other::

    class TestMyRemote(RemoteTests):
        def remote(self, tenant="me"): ...      # another connection to the same store
        def get_raw(self, space, block): ...
        def put_raw(self, space, block, data): ...

"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar
from unittest import SkipTest

from sessionary.errors import RemoteError
from sessionary.sync.remote import LARGEST_BLOCK, BlockStat, Remote, blocks_of, heads_of, stats_of

_T = TypeVar("_T")
ALL_BYTES = bytes(range(256)) * 3 + b'\0\xff{"\xed\xa0\x80'
SPACE = "space-1"


def ids(remote: Remote, first: str = "", stop: str = "~", space: str = SPACE) -> list[str]:
    """The ids of a range, over all pages."""
    return [block.id for block in blocks_of(remote, space, first, stop)]


def at_once(count: int, work: Callable[[int], _T]) -> list[_T]:
    """Run the same call in several threads at once."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


class RemoteTests(ABC):
    """The rules of `sync.remote.Remote` as tests.

    Attributes:
        largest: maximum size of a block or head in bytes; less than `LARGEST_BLOCK` only for a remote that
        wraps another one and needs room of its own.
    """

    largest = LARGEST_BLOCK

    @abstractmethod
    def remote(self, tenant: str = "me") -> Remote:
        """A connection to the store of this test, which is empty at first."""

    @abstractmethod
    def get_raw(self, space: str, block: str) -> bytes | None:
        """The stored bytes of a block of tenant ``me``, without the remote."""

    @abstractmethod
    def put_raw(self, space: str, block: str, data: bytes) -> None:
        """Store a block of tenant ``me``, without the remote."""

    # -- blocks

    def test_a_block_is_stored_as_it_is(self) -> None:
        assert self.remote().put_block(SPACE, "a-00000000-ff", ALL_BYTES) is True
        assert self.get_raw(SPACE, "a-00000000-ff") == ALL_BYTES

    def test_a_block_is_read_as_it_was_stored(self) -> None:
        self.put_raw(SPACE, "a-00000000-ff", ALL_BYTES)
        assert list(blocks_of(self.remote(), SPACE, "a", "b")) == [("a-00000000-ff", ALL_BYTES)]

    def test_an_empty_block_is_a_block(self) -> None:
        self.remote().put_block(SPACE, "a", b"")
        assert list(blocks_of(self.remote(), SPACE, "a", "b")) == [("a", b"")]

    def test_the_largest_block_is_taken(self) -> None:
        data = (ALL_BYTES * (self.largest // len(ALL_BYTES) + 1))[: self.largest]
        assert self.remote().put_block(SPACE, "a", data)
        assert [block.data for block in blocks_of(self.remote(), SPACE, "a", "b")] == [data]

    def test_a_block_that_is_there_stays_as_it_is(self) -> None:
        remote = self.remote()
        assert remote.put_block(SPACE, "a", b"first")
        assert remote.put_block(SPACE, "a", b"second") is False
        assert self.get_raw(SPACE, "a") == b"first"

    def test_of_many_that_put_one_block_one_stores_it_and_none_fails(self) -> None:
        stored = at_once(8, lambda n: self.remote().put_block(SPACE, "a", b"the same"))
        assert stored.count(True) == 1
        assert self.get_raw(SPACE, "a") == b"the same"

    def test_one_id_in_two_spaces_is_two_blocks(self) -> None:
        self.remote().put_block("space-1", "a", b"1")
        self.remote().put_block("space-2", "a", b"2")
        assert self.get_raw("space-1", "a") == b"1"
        assert [block.data for block in blocks_of(self.remote(), "space-2", "", "~")] == [b"2"]

    def test_a_range_has_its_first_id_and_not_its_last(self) -> None:
        for name in ("a", "b", "b-1", "c", "d"):
            self.put_raw(SPACE, name, b"x")
        assert ids(self.remote(), "b", "d") == ["b", "b-1", "c"]
        assert ids(self.remote(), "e", "f") == []
        assert ids(self.remote(), "a", "z", space="nothing") == []

    def test_ids_are_sorted_by_their_bytes(self) -> None:
        names = ["a-1", "a.1", "a-10", "B", "a_1", "Z", "0", "a-00000002-b", "a-00000002-a"]
        for name in names:
            self.put_raw(SPACE, name, b"x")
        assert ids(self.remote()) == sorted(names)

    def test_a_range_of_many_large_blocks_comes_whole_and_in_order(self) -> None:
        names = [f"a-{n:08}-{n % 7:x}" for n in range(40)]
        for name in reversed(names):
            self.put_raw(SPACE, name, name.encode() + bytes(200_000))
        found = list(blocks_of(self.remote(), SPACE, "a", "b"))
        assert [block.id for block in found] == names
        assert all(block.data == block.id.encode() + bytes(200_000) for block in found)

    def test_a_page_can_be_asked_for_again_and_from_another_connection(self) -> None:
        for n in range(40):
            self.put_raw(SPACE, f"a-{n:08}", bytes(200_000))
        first = self.remote().read_range(SPACE, "a", "b")
        if first.following is None:
            raise SkipTest("this remote gives so long a range in one page")
        again = [self.remote().read_range(SPACE, "a", "b", first.following) for _ in range(2)]
        assert again[0] == again[1]
        assert not {block.id for block in first.blocks} & {block.id for block in again[0].blocks}

    # -- heads

    def test_a_head_that_is_not_there_is_none(self) -> None:
        assert self.remote().read_head("nobody") is None

    def test_a_head_is_made_only_where_there_is_none(self) -> None:
        remote = self.remote()
        etag = remote.swap_head("one", ALL_BYTES, None)
        assert etag is not None
        assert remote.swap_head("one", b"other", None) is None
        assert remote.read_head("one") == ("one", ALL_BYTES, etag)

    def test_a_head_is_replaced_only_by_who_knows_it(self) -> None:
        remote = self.remote()
        first = remote.swap_head("one", b"1", None)
        second = remote.swap_head("one", b"2", first)
        assert second not in (None, first)
        assert remote.swap_head("one", b"3", first) is None
        assert remote.swap_head("two", b"3", second) is None
        assert remote.read_head("one") == ("one", b"2", second)
        assert remote.read_head("two") is None

    def test_no_etag_comes_back_with_the_same_bytes(self) -> None:
        remote = self.remote()
        etags = [remote.swap_head("one", b"a", None)]
        for data in (b"b", b"a", b"b", b"a"):
            etags.append(remote.swap_head("one", data, etags[-1]))
        assert None not in etags
        assert len(set(etags)) == 5

    def test_of_many_that_make_a_head_one_wins(self) -> None:
        won = at_once(8, lambda n: self.remote().swap_head("one", b"%d" % n, None))
        winners = [n for n, etag in enumerate(won) if etag is not None]
        found = self.remote().read_head("one")
        assert len(winners) == 1
        assert found == ("one", b"%d" % winners[0], won[winners[0]])

    def test_of_many_that_replace_a_head_one_wins(self) -> None:
        for turn in range(5):
            before = self.remote().read_head("one")
            etag = before.etag if before else None
            won = at_once(8, lambda n, t=turn, e=etag: self.remote().swap_head("one", b"%d %d" % (t, n), e))  # type: ignore[misc]
            assert sum(one is not None for one in won) == 1

    def test_the_largest_head_is_taken(self) -> None:
        data = bytes(self.largest)
        self.remote().swap_head("one", data, None)
        found = self.remote().read_head("one")
        assert found is not None
        assert found.data == data

    # -- lists

    def test_an_empty_store_lists_nothing(self) -> None:
        assert list(heads_of(self.remote())) == []

    def test_every_head_is_listed_once_with_its_bytes_and_etag(self) -> None:
        remote = self.remote()
        expected = set()
        for n in range(450):
            etag = remote.swap_head(f"h{n:03}", b"%d" % n, None)
            expected.add((f"h{n:03}", b"%d" % n, etag))
        found = list(heads_of(self.remote()))
        assert len(found) == 450
        assert {tuple(head) for head in found} == expected

    def test_a_list_misses_no_head_that_is_changed_while_it_runs(self) -> None:
        remote = self.remote()
        etags = {f"h{n:03}": remote.swap_head(f"h{n:03}", b"old", None) for n in range(450)}
        page = remote.list_heads()
        seen = {head.name for head in page.heads}
        turn = 0
        while page.following is not None:
            for name in (f"h{turn:03}", f"h{449 - turn:03}"):
                etags[name] = remote.swap_head(name, b"new", etags[name])
            turn += 1
            page = remote.list_heads(page.following)
            seen |= {head.name for head in page.heads}
        assert seen == set(etags)

    # -- tenants, order, errors

    def test_a_tenant_sees_and_changes_nothing_of_another(self) -> None:
        mine, theirs = self.remote("me"), self.remote("someone-else")
        etag = mine.swap_head("one", b"mine", None)
        mine.put_block(SPACE, "a", b"mine")
        assert theirs.read_head("one") is None
        assert list(heads_of(theirs)) == []
        assert ids(theirs) == []
        assert theirs.swap_head("one", b"theirs", etag) is None
        assert theirs.put_block(SPACE, "a", b"theirs") is True
        assert self.get_raw(SPACE, "a") == b"mine"
        assert mine.read_head("one") == ("one", b"mine", etag)

    def test_what_was_written_is_seen_by_the_next_call(self) -> None:
        remote = self.remote()
        etags: list[str | None] = [None]
        for n in range(20):
            remote.put_block(SPACE, f"a-{n:08}", b"x")
            assert ids(remote)[-1] == f"a-{n:08}"
            etags.append(remote.swap_head("one", b"%d" % n, etags[-1]))
            found = remote.read_head("one")
            assert found is not None
            assert found.data == b"%d" % n
        assert all(a != b for a, b in pairwise(etags))

    def test_what_is_too_large_is_refused_for_good(self) -> None:
        """A remote MAY accept more than required; what it refuses, it reports, and stores nothing of it."""
        refused: RemoteError | None = None
        try:
            self.remote().put_block(SPACE, "a", bytes(64 << 20))
        except RemoteError as error:
            refused = error
        if refused is not None:
            assert not refused.retryable
            assert self.get_raw(SPACE, "a") is None

    # -- removal

    def stat(self, block: str, space: str = SPACE) -> BlockStat:
        """The listing of one block."""
        found = [one for one in stats_of(self.remote(), space) if one.id == block]
        assert len(found) == 1, f"{block} is listed {len(found)} times"
        return found[0]

    def put(self, *names: str, space: str = SPACE) -> None:
        """Store blocks with these names."""
        for name in names:
            self.remote().put_block(space, name, name.encode() * 100)

    def test_blocks_are_listed_with_their_sizes(self) -> None:
        self.remote().put_block(SPACE, "a-00000001-f", bytes(3000))
        self.remote().put_block(SPACE, "a-00000000-f", bytes(30_000))
        first, second = stats_of(self.remote(), SPACE)
        assert (first.id, second.id) == ("a-00000000-f", "a-00000001-f")
        assert 30_000 - 2 <= first.size <= 30_000 + LARGEST_BLOCK - self.largest
        assert 3000 - 2 <= second.size <= 3000 + LARGEST_BLOCK - self.largest

    def test_a_list_has_its_first_id_and_not_its_last(self) -> None:
        self.put("a-00000000-f", "a-00000001-f", "a-00000002-f", "b-00000001-f")
        found = [one.id for one in stats_of(self.remote(), SPACE, "a-00000001", "a-00000002")]
        assert found == ["a-00000001-f"]
        assert list(stats_of(self.remote(), "nothing")) == []

    def test_a_list_that_continues_has_the_rest(self) -> None:
        names = [f"a-{n:08}-f" for n in range(12)]
        self.put(*names)
        page = self.remote().list_blocks(SPACE, "", "~", names[4])
        assert [one.id for one in page.stats] == names[5:][: len(page.stats)]
        assert page.stats

    def test_a_block_that_was_just_put_is_not_old(self) -> None:
        self.put("a-00000000-f")
        age = self.stat("a-00000000-f").age
        assert age is None or 0 <= age < 60

    def test_a_block_that_was_removed_is_gone(self) -> None:
        self.put("a-00000000-f", "a-00000001-f")
        stat = self.stat("a-00000000-f")
        assert self.remote().delete_block(SPACE, stat.id, stat.version) is True
        assert self.get_raw(SPACE, "a-00000000-f") is None
        assert ids(self.remote()) == ["a-00000001-f"]
        assert [one.id for one in stats_of(self.remote(), SPACE)] == ["a-00000001-f"]

    def test_only_that_block_is_removed(self) -> None:
        self.put("a-00000000-f", "a-00000000-fe")
        self.put("a-00000000-f", space="space-2")
        self.remote("someone-else").put_block(SPACE, "a-00000000-f", b"theirs")
        stat = self.stat("a-00000000-f")
        self.remote().delete_block(SPACE, stat.id, stat.version)
        assert ids(self.remote()) == ["a-00000000-fe"]
        assert ids(self.remote(), space="space-2") == ["a-00000000-f"]
        assert ids(self.remote("someone-else")) == ["a-00000000-f"]

    def test_a_block_that_is_not_there_cannot_be_removed(self) -> None:
        self.put("a-00000000-f")
        stat = self.stat("a-00000000-f")
        assert self.remote().delete_block(SPACE, "a-00000009-f", stat.version) is False
        assert self.remote().delete_block(SPACE, stat.id, stat.version) is True
        assert self.remote().delete_block(SPACE, stat.id, stat.version) is False

    def test_a_block_of_another_putting_stays(self) -> None:
        self.put("a-00000000-f")
        assert self.remote().delete_block(SPACE, "a-00000000-f", "17") is False
        assert ids(self.remote()) == ["a-00000000-f"]

    def test_a_block_that_was_removed_can_be_put_again(self) -> None:
        self.put("a-00000000-f")
        stat = self.stat("a-00000000-f")
        self.remote().delete_block(SPACE, stat.id, stat.version)
        assert self.remote().put_block(SPACE, "a-00000000-f", b"anew") is True
        assert [block.data for block in blocks_of(self.remote(), SPACE, "a", "b")] == [b"anew"]

    def test_to_put_a_block_again_that_is_there_does_not_make_it_older(self) -> None:
        self.put("a-00000000-f")
        before = self.stat("a-00000000-f")
        self.put("a-00000000-f")
        age = self.stat("a-00000000-f").age
        assert age is None or age < 60
        assert self.remote().delete_block(SPACE, before.id, self.stat("a-00000000-f").version) is True
