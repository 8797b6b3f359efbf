"""The remote in Cosmos DB passes the suite on a server that others wrote, on a strict double, and on a real account."""

from abc import abstractmethod
from typing import Any

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.remote import heads_of
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.testing.remote_suite import RemoteTests
from tests.servers.cosmos import Bench, Double, Npm, Real, Server


class CosmosTests(RemoteTests):
    """The suite, for any server."""

    @abstractmethod
    def server(self) -> Server: ...

    def setup_method(self) -> None:
        self.bench = Bench(self.server())

    def teardown_method(self) -> None:
        self.bench.close()

    def remote(self, tenant: str = "me") -> Any:
        return self.bench.remote(tenant)

    def get_raw(self, space: str, block: str) -> bytes | None:
        return self.bench.get_raw(space, block)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        self.bench.put_raw(space, block, data)

    def test_a_second_list_returns_the_same_heads(self) -> None:
        """A second list asks for changes alone, and has all heads all the same."""
        remote = self.bench.connect()
        old = self.remote().swap_head("old", b"1", None)
        self.remote().swap_head("changing", b"1", None)
        for data in (b"2", b"3"):
            found = {head.name: (head.data, head.etag) for head in heads_of(remote)}
            assert found["old"] == (b"1", old)
            assert self.remote().swap_head("changing", data, found["changing"][1])
        assert {head.name: head.data for head in heads_of(remote)} == {"old": b"1", "changing": b"3"}


class TestDouble(CosmosTests):
    def server(self) -> Server:
        return Double()

    def test_an_age_is_measured_by_the_clock_of_the_service(self) -> None:
        server = self.bench.server
        assert isinstance(server, Double)
        self.put("a-00000000-f")
        server.double.clock_offset = 600.0
        age = self.stat("a-00000000-f").age
        assert age is not None
        assert 590 <= age <= 660


@pytest.mark.lane("cosmos-npm")
class TestNpm(CosmosTests):
    def server(self) -> Server:
        return Npm()


@pytest.mark.lane("cosmos-real")
class TestReal(CosmosTests):
    def server(self) -> Server:
        return Real()


# -- mistakes that one could make here, and the test that finds each


class Upserting(CosmosRemote):
    def _create(self, item: dict[str, str]) -> str | None:
        def work(box: Any, heard: Any) -> Any:
            box.upsert_item(item, response_hook=heard)
            return heard.etag

        return self._link.ask(work)


class Unconditional(CosmosRemote):
    def _replace(self, item: dict[str, str], etag: str) -> str | None:
        def work(box: Any, heard: Any) -> Any:
            box.replace_item(item["id"], item, response_hook=heard)
            return heard.etag

        return self._link.ask(work, 404)


class Blind(CosmosRemote):
    """Takes a missing head for an error."""

    def _replace(self, item: dict[str, str], etag: str) -> str | None:
        found = super()._replace(item, etag)
        if found is None and self.read_head(item["id"]) is None:
            raise RemoteError("not found")
        return found


class OnePage(CosmosRemote):
    def _page(self, query: str, values: Any, count: int) -> Any:
        rows, _, answered = super()._page(query, values, count)
        return rows, False, answered


class Repeating(CosmosRemote):
    def _page(self, query: str, values: Any, count: int) -> Any:
        return super()._page(query.replace("c.id > ", "c.id >= "), values, count)


class Unsorted(CosmosRemote):
    def _page(self, query: str, values: Any, count: int) -> Any:
        return super()._page(query.replace(" ORDER BY c.id", ""), values, count)


class Inclusive(CosmosRemote):
    def _page(self, query: str, values: Any, count: int) -> Any:
        return super()._page(query.replace("c.id < @stop", "c.id <= @stop"), values, count)


class ForAll(CosmosRemote):
    def _page(self, query: str, values: Any, count: int) -> Any:
        return super()._page(query.replace("c.pk = @pk", "c.pk >= @pk"), values | {"@pk": ""}, count)


class OneTenant(CosmosRemote):
    def __init__(self, *given: Any, tenant: str, **options: Any) -> None:
        super().__init__(*given, tenant="all of them", **options)


class TextOnly(CosmosRemote):
    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        return super().swap_head(name, data.decode("ascii", "replace").encode(), etag)


PLANTED = [
    (Upserting, "test_a_block_that_is_there_stays_as_it_is"),
    (Unconditional, "test_a_head_is_replaced_only_by_who_knows_it"),
    (Blind, "test_a_head_is_replaced_only_by_who_knows_it"),
    (OnePage, "test_every_head_is_listed_once_with_its_bytes_and_etag"),
    (Repeating, "test_every_head_is_listed_once_with_its_bytes_and_etag"),
    (Unsorted, "test_ids_are_sorted_by_their_bytes"),
    (Inclusive, "test_a_range_has_its_first_id_and_not_its_last"),
    (ForAll, "test_one_id_in_two_spaces_is_two_blocks"),
    (OneTenant, "test_a_tenant_sees_and_changes_nothing_of_another"),
    (TextOnly, "test_a_head_is_made_only_where_there_is_none"),
]


@pytest.mark.parametrize(("planted", "test"), PLANTED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_mistake_is_found(planted: type[CosmosRemote], test: str) -> None:
    suite = TestDouble()
    suite.setup_method()
    try:
        suite.bench.kind = planted
        with pytest.raises((AssertionError, RemoteError)):
            getattr(suite, test)()
    finally:
        suite.teardown_method()
