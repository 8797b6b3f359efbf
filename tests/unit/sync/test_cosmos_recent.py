"""A second list is cheap, and still has every head as it is."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessionary.sync.remote import HeadRecord, heads_of
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.remotes.head_cache import OVERLAP, CachedHead, RecentHeads
from sessionary.sync.settings import CacheFile
from tests.servers.cosmos import Bench, Double

NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)


def head(name: str, at: int, data: bytes = b"x") -> CachedHead:
    return CachedHead(at, HeadRecord(name, data, f"etag {at}"))


def names(heads: tuple[HeadRecord, ...] | None) -> list[str]:
    assert heads is not None
    return [one.name for one in heads]


def test_everything_is_listed_first() -> None:
    assert RecentHeads().since(NOW) is None


def test_only_a_list_that_was_followed_to_its_end_counts() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000)], "a", NOW)
    assert recent.since(NOW) is None
    recent.listed("z", [head("q", 9000)], None, NOW)  # somebody else's list
    assert recent.since(NOW) is None
    recent.listed("a", [head("b", 2000)], None, NOW)
    assert recent.since(NOW) == 1000 - OVERLAP
    assert names(recent.merge(0, [])) == ["a", "b"]


def test_a_list_is_as_new_as_its_first_page() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000)], "a", NOW, 1500.9)
    # the machine sleeps for an hour; `a` is changed at 2000, and not looked at again by this list
    recent.listed("a", [head("b", 5000)], None, NOW, 5001.0)
    assert recent.since(NOW) == 1500 - OVERLAP
    assert names(
        recent.merge(1500 - OVERLAP, [head("a", 2000, b"new"), head("b", 5000)], answered=5100.0)
    ) == ["a", "b"]
    assert recent.since(NOW) == 5100 - OVERLAP


def test_what_has_changed_is_as_new_as_the_first_page_of_it() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000)], None, NOW)
    recent.merge(400, [head("b", 1500)], [head("c", 9000)])
    assert recent.since(NOW) == 1500 - OVERLAP


def test_a_list_that_begins_anew_forgets_the_other() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("gone", 1000)], "gone", NOW)
    recent.listed(None, [head("a", 1000)], None, NOW)
    assert names(recent.merge(0, [])) == ["a"]


def test_a_newer_head_replaces_the_cached_one_and_not_the_reverse() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000), head("b", 1000)], None, NOW)
    found = recent.merge(0, [head("c", 1500), head("a", 2000, b"new")])
    assert found is not None
    assert names(found) == ["a", "b", "c"]
    assert found[0].data == b"new"
    assert recent.since(NOW) == 2000 - OVERLAP


def test_another_version_that_is_stamped_earlier_means_that_everything_is_listed_again() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000), head("b", 2000)], None, NOW)
    assert recent.merge(1400, [head("b", 1999, b"new, by a clock that is behind")]) is None
    assert recent.since(NOW) is None


def test_a_cache_cleared_during_a_list_is_not_taken_as_complete() -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000), head("b", 2000)], None, NOW)
    since = recent.since(NOW)
    assert since is not None
    recent.miss("a")  # another thread finds the database restored
    assert recent.merge(since, [head("b", 2000)]) is None
    recent.listed(None, [head("b", 300)], None, NOW)  # and lists everything
    assert recent.merge(since, [head("b", 300)]) is None, "what is between the two was not asked for"


@pytest.mark.parametrize("later", [timedelta(days=1), -timedelta(days=2)])
def test_after_a_day_everything_is_listed_again(later: timedelta) -> None:
    recent = RecentHeads()
    recent.listed(None, [head("a", 1000)], None, NOW)
    assert recent.since(NOW + timedelta(hours=23)) is not None
    assert recent.since(NOW + later) is None


def test_an_empty_list_is_asked_for_again() -> None:
    recent = RecentHeads()
    recent.listed(None, [], None, NOW)
    assert recent.since(NOW) is None


# -- from one process to the next


def test_the_next_process_continues_from_what_was_listed(tmp_path: Path) -> None:
    cache = CacheFile(str(tmp_path / "heads"))
    RecentHeads(("me",), cache).listed(None, [head("a", 1000), head("b", 2000)], None, NOW)
    second = RecentHeads(("me",), cache)
    assert second.since(NOW + timedelta(minutes=1)) == 2000 - OVERLAP
    second.merge(0, [head("a", 3000, b"new")])
    third = RecentHeads(("me",), cache)
    assert third.since(NOW + timedelta(hours=23)) == 3000 - OVERLAP
    assert [one.data for one in third.merge(0, []) or ()] == [b"new", b"x"]
    assert RecentHeads(("me",), cache).since(NOW + timedelta(days=1)) is None, "it begins with the whole list"


def test_a_damaged_or_foreign_cache_leads_to_a_full_list(tmp_path: Path) -> None:
    cache = CacheFile(str(tmp_path / "heads"))
    RecentHeads(("me",), cache).listed(None, [head("a", 1000)], None, NOW)
    assert RecentHeads(("you",), cache).since(NOW) is None
    whole = (tmp_path / "heads").read_bytes()
    for at in range(len(whole)):
        cache.keep(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert RecentHeads(("me",), cache).since(NOW) is None
    cache.keep(whole)
    assert RecentHeads(("me",), cache).since(NOW) == 1000 - OVERLAP


def test_nothing_is_written_where_nothing_has_changed(tmp_path: Path) -> None:
    cache = CacheFile(str(tmp_path / "heads"))
    RecentHeads(("me",), cache).listed(None, [head("a", 1000)], None, NOW)
    before = (tmp_path / "heads").stat().st_mtime_ns, (tmp_path / "heads").stat().st_ino
    second = RecentHeads(("me",), cache)
    assert second.since(NOW) is not None
    second.merge(0, [head("a", 1000)])
    assert ((tmp_path / "heads").stat().st_mtime_ns, (tmp_path / "heads").stat().st_ino) == before


# -- at a service


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(Double(), page_heads=7)
    yield bench
    bench.close()


def double_of(bench: Bench) -> Double:
    assert isinstance(bench.server, Double)
    return bench.server


def test_a_second_list_is_one_request_for_what_has_changed(bench: Bench) -> None:
    mine, theirs = bench.connect(), bench.connect()
    double = double_of(bench).double
    double.clock_offset = -OVERLAP - 100.0
    etags = {f"h{n:02}": mine.swap_head(f"h{n:02}", b"old", None) for n in range(20)}
    double.clock_offset = 0.0
    theirs.swap_head("h03", b"new", etags["h03"])
    assert len(list(heads_of(mine))) == 20
    requests, ru = double.requests["read"], mine.ru
    theirs.swap_head("h04", b"new", etags["h04"])
    theirs.swap_head("later", b"new", None)
    found = {one.name: one.data for one in heads_of(mine)}
    assert double.requests["read"] == requests + 1
    assert mine.ru - ru == pytest.approx(2.3 + 3)
    assert len(found) == 21
    assert {name for name, data in found.items() if data == b"new"} == {"h03", "h04", "later"}


def test_the_first_list_of_a_new_process_is_one_request_for_what_has_changed(
    bench: Bench, tmp_path: Path
) -> None:
    cache = CacheFile(str(tmp_path / "heads"))

    def process() -> CosmosRemote:
        remote = CosmosRemote(bench.server.config, tenant=bench.tenant("me"), page_heads=7, cache=cache)
        opened.append(remote)
        return remote

    opened: list[CosmosRemote] = []
    double = double_of(bench).double
    double.clock_offset = -OVERLAP - 100.0
    etags = {f"h{n:02}": process().swap_head(f"h{n:02}", b"old", None) for n in range(20)}
    double.clock_offset = 0.0
    process().swap_head("later", b"new", None)
    assert len(list(heads_of(process()))) == 21
    process().swap_head("h03", b"new", etags["h03"])
    requests, remote = double.requests["read"], process()
    found = list(heads_of(remote))
    assert double.requests["read"] == requests + 1
    assert remote.ru == pytest.approx(2.3 + 2)
    assert [one.name for one in found if one.data == b"new"] == ["h03", "later"]
    assert found == [process().read_head(one.name) for one in found]
    for one in opened:
        one.close()


def test_a_thousand_heads_come_in_three_requests_and_then_in_one() -> None:
    bench = Bench(Double())
    double = double_of(bench).double
    double.clock_offset = -OVERLAP - 100.0
    for n in range(1000):
        bench.server.put({"id": f"h{n:04}", "pk": f"h!{bench.tenant('me')}", "t": "x" * 500})
    double.clock_offset = 0.0
    remote = bench.connect()
    remote.swap_head("new", b"x", None)
    for requests in (3, 1):
        before = double.requests["read"]
        assert len(list(heads_of(remote))) == 1001
        assert double.requests["read"] - before == requests
    bench.close()


def test_the_time_decides_when_everything_is_listed_again(bench: Bench) -> None:
    now = [NOW]
    remote = CosmosRemote(bench.server.config, tenant=bench.tenant("me"), now=lambda: now[0])
    remote.swap_head("a", b"1", None)
    assert names(tuple(heads_of(remote))) == ["a"]
    box = double_of(bench).double.store.container("db", "box")
    box.put_back(({}, 0, []))  # the database was restored to a state before
    assert names(tuple(heads_of(remote))) == ["a"]
    now[0] += timedelta(days=1)
    assert names(tuple(heads_of(remote))) == []
    remote.close()


def test_a_head_that_is_found_missing_means_that_everything_is_listed_again(
    bench: Bench, tmp_path: Path
) -> None:
    cache = CacheFile(str(tmp_path / "heads"))

    def process() -> CosmosRemote:
        return CosmosRemote(bench.server.config, tenant=bench.tenant("me"), cache=cache)

    remote = process()
    remote.swap_head("a", b"1", None)
    assert names(tuple(heads_of(remote))) == ["a"]
    double_of(bench).double.store.container("db", "box").put_back(({}, 0, []))
    assert remote.read_head("never there") is None
    assert names(tuple(heads_of(remote))) == ["a"], "that says nothing"
    assert remote.read_head("a") is None
    later = process()
    assert names(tuple(heads_of(later))) == []
    assert names(tuple(heads_of(remote))) == []
    remote.close()
    later.close()


def test_a_full_refresh_reads_from_the_service_and_not_from_the_cache(bench: Bench) -> None:
    remote, theirs, double = bench.connect(), bench.connect(), double_of(bench).double
    etag = remote.swap_head("a", b"old", None)
    assert [one.data for one in heads_of(remote)] == [b"old"]
    double.clock_offset = -OVERLAP - 100.0  # a server that is far behind stamps what is new
    theirs.swap_head("a", b"new", etag)
    double.clock_offset = 0.0
    assert [one.data for one in heads_of(remote)] == [b"old"], "that is what a list may miss"
    assert [one.data for one in heads_of(remote, anew=True)] == [b"new"]
    assert [one.data for one in heads_of(remote)] == [b"new"]


def test_what_changes_on_a_page_that_was_read_while_the_list_continues_is_found_by_the_next(
    bench: Bench,
) -> None:
    mine, theirs, double = bench.connect(), bench.connect(), double_of(bench).double
    etags = {f"h{n:02}": theirs.swap_head(f"h{n:02}", b"old", None) for n in range(8)}
    first = mine.list_heads()
    theirs.swap_head("h00", b"new", etags["h00"])
    double.clock_offset = 800.0
    theirs.swap_head("h07", b"new", etags["h07"])
    assert [one.data for one in mine.list_heads(first.following).heads] == [b"new"]
    assert {one.name for one in heads_of(mine) if one.data == b"new"} == {"h00", "h07"}
