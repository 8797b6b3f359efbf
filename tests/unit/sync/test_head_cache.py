"""What was fetched is not fetched again; what is remembered wrongly, or of another store, is as if it were not."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sessionary.sync.remote import HeadRecord
from sessionary.sync.remotes.head_cache import CachedHead, HeadCache
from sessionary.sync.settings import CacheFile

A1 = CachedHead("1", HeadRecord("a", b"first \x00 of a", '"1"'))
A2 = CachedHead("2", HeadRecord("a", b"second of a", '"2"'))
B1 = CachedHead("1", HeadRecord("b", b"first of b", "77"))


@pytest.fixture
def cache(tmp_path: Path) -> CacheFile:
    return CacheFile(str(tmp_path / "state" / "heads"))


def kept(cache: CacheFile, *heads: CachedHead, owner: str = "me") -> None:
    """As a process leaves it that has listed these heads."""
    HeadCache((owner,), cache).follow(None, heads, None)


def test_the_next_process_has_what_was_listed_to_its_end(cache: CacheFile) -> None:
    kept(cache, A1, B1)
    after = HeadCache(("me",), cache)
    assert after.get("a", "1") == A1
    assert after.get("b", "1") == B1


def test_a_cache_of_another_version_or_without_an_etag_is_ignored(cache: CacheFile) -> None:
    kept(cache, A1, B1._replace(version=""))
    after = HeadCache(("me",), cache)
    assert after.get("a", "2") is None
    assert after.get("b", "") is None


def test_what_has_vanished_from_the_list_is_forgotten(cache: CacheFile) -> None:
    kept(cache, A1, B1)
    kept(cache, B1)
    after = HeadCache(("me",), cache)
    assert after.get("a", "1") is None
    assert after.get("b", "1") == B1


def test_a_list_that_was_left_before_its_end_takes_nothing_away(cache: CacheFile) -> None:
    kept(cache, A1, B1)
    broken = HeadCache(("me",), cache)
    broken.follow(None, [A2], "a")
    broken.follow("somewhere else", [], None)
    assert broken.get("a", "2") == A2
    assert broken.get("b", "1") == B1
    assert HeadCache(("me",), cache).get("a", "1") == A1


def test_pages_that_follow_one_another_are_one_list(cache: CacheFile) -> None:
    kept(cache, A1)
    heads = HeadCache(("me",), cache)
    heads.follow(None, [A2], "a")
    heads.follow("a", [B1], None)
    after = HeadCache(("me",), cache)
    assert (after.get("a", "2"), after.get("b", "1")) == (A2, B1)


def test_nothing_is_written_where_nothing_has_changed(cache: CacheFile) -> None:
    kept(cache, A1, B1)
    before = os.stat(cache.path).st_ino, os.stat(cache.path).st_mtime_ns
    kept(cache, A1, B1)
    assert (os.stat(cache.path).st_ino, os.stat(cache.path).st_mtime_ns) == before


def test_what_another_owner_has_kept_is_not_looked_at(cache: CacheFile) -> None:
    kept(cache, A1, owner="somebody else")
    assert HeadCache(("me",), cache).get("a", "1") is None


def test_any_damage_means_that_nothing_is_known(cache: CacheFile) -> None:
    kept(cache, A1, B1)
    whole = Path(cache.path).read_bytes()
    damaged = [b"", whole[:-1], whole + b"x"]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for data in damaged:
        Path(cache.path).write_bytes(data)
        assert HeadCache(("me",), cache).get("a", "1") is None
    Path(cache.path).write_bytes(whole)
    assert HeadCache(("me",), cache).get("a", "1") == A1


@pytest.mark.parametrize("value", [[], {"v": 1}, [["a", 1]], 7, [["1", ["a", "text", "1"]]]])
def test_a_valid_cache_with_other_content_is_ignored(cache: CacheFile, value: Any) -> None:
    HeadCache(("me",), cache)._write(value)
    assert HeadCache(("me",), cache).get("a", "1") is None


def test_words_of_an_owner_do_not_run_into_one_another(cache: CacheFile) -> None:
    HeadCache(("a", "bc"), cache).follow(None, [A1], None)
    assert HeadCache(("a", "bc"), cache).get("a", "1") == A1
    assert HeadCache(("ab", "c"), cache).get("a", "1") is None


def test_a_place_that_cannot_be_read_or_written_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "folder", tmp_path / "file" / "below"):
        cache = CacheFile(str(path))
        heads = HeadCache(("me",), cache)
        heads.follow(None, [A1], None)
        assert heads.get("a", "1") == A1
        assert cache.read() is None


def test_what_is_kept_is_for_the_owner_of_the_account_only(cache: CacheFile) -> None:
    kept(cache, A1)
    assert os.stat(cache.path).st_mode & 0o077 == 0


def test_concurrent_writers_leave_one_complete_cache(cache: CacheFile) -> None:
    sets = [[A1, B1], [A2], [A2, B1], [A1]]
    barrier = threading.Barrier(len(sets))

    def work(heads: list[CachedHead]) -> None:
        barrier.wait()
        for _ in range(20):
            HeadCache((str(len(heads)),), cache).follow(None, heads, None)

    threads = [threading.Thread(target=work, args=(heads,)) for heads in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [
        heads
        for heads in sets
        if all(
            HeadCache((str(len(heads)),), cache).get(one.head.name, str(one.version)) == one for one in heads
        )
    ]
    assert found
    assert os.listdir(os.path.dirname(cache.path)) == ["heads"]
