"""The double of Cosmos DB is as strict as the documentation: it must not let pass what the service would refuse."""

import base64
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from tests.support.cosmos_double import CosmosDouble, Fault
from tests.support.cosmos_query import BadQuery, parse
from tests.support.request_units import create_ru, item_bytes, query_ru, read_ru, replace_ru, ru_of


@pytest.fixture
def double() -> Iterator[CosmosDouble]:
    with CosmosDouble() as double:
        yield double


@pytest.fixture
def box(double: CosmosDouble) -> Iterator[ContainerProxy]:
    with CosmosClient(double.endpoint, double.key, enable_endpoint_discovery=False) as client:
        database = client.create_database("db")
        yield database.create_container(
            "box", PartitionKey("/pk"), indexing_policy={"includedPaths": [{"path": "/n/?"}]}
        )


def status_of(call: Callable[[], Any]) -> int:
    with pytest.raises(CosmosHttpResponseError) as caught:
        call()
    assert caught.value.status_code is not None
    return caught.value.status_code


def item(id_: str, pk: str = "p", **rest: Any) -> dict[str, Any]:
    return {"id": id_, "pk": pk} | rest


def rows(box: ContainerProxy, query: str, pk: str = "p", **options: Any) -> list[Any]:
    return list(box.query_items(query, partition_key=pk, **options))


def test_an_unsigned_request_is_refused(double: CosmosDouble) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{double.endpoint}dbs/db", timeout=10)
    assert caught.value.code == 401
    caught.value.close()


def test_an_id_is_unique_in_its_partition(box: ContainerProxy) -> None:
    box.create_item(item("a", n=1))
    assert status_of(lambda: box.create_item(item("a"))) == 409
    box.create_item(item("a", "q", n=2))
    box.upsert_item(item("a", n=3))
    assert [box.read_item("a", pk)["n"] for pk in ("p", "q")] == [3, 2]


def test_what_is_not_there_is_not_found(box: ContainerProxy) -> None:
    assert status_of(lambda: box.read_item("a", "p")) == 404
    assert status_of(lambda: box.replace_item("a", item("a"))) == 404
    assert status_of(lambda: box.delete_item("a", "p")) == 404


def test_an_etag_that_does_not_match_changes_nothing(box: ContainerProxy) -> None:
    old = box.create_item(item("a"))["_etag"]
    new = box.replace_item("a", item("a", n=2))["_etag"]
    assert old != new
    stale: dict[str, Any] = {"etag": old, "match_condition": MatchConditions.IfNotModified}
    assert status_of(lambda: box.replace_item("a", item("a"), **stale)) == 412
    assert status_of(lambda: box.upsert_item(item("a"), **stale)) == 412
    assert status_of(lambda: box.delete_item("a", "p", **stale)) == 412
    assert box.read_item("a", "p")["n"] == 2
    box.delete_item("a", "p", etag=new, match_condition=MatchConditions.IfNotModified)
    assert status_of(lambda: box.read_item("a", "p")) == 404


def test_an_item_of_two_megabytes_is_too_large(box: ContainerProxy) -> None:
    box.create_item(item("a", b="x" * ((2 << 20) - 400)))
    assert status_of(lambda: box.create_item(item("b", b="x" * (2 << 20)))) == 413
    assert status_of(lambda: box.upsert_item(item("a", b="x" * (2 << 20)))) == 413


def test_an_id_has_a_limit_and_forbidden_characters(double: CosmosDouble, box: ContainerProxy) -> None:
    box.create_item(item("x" * 1023))
    assert status_of(lambda: box.create_item(item("x" * 1024))) == 400
    assert status_of(lambda: box.create_item(item("ü" * 512))) == 400


def test_an_item_nested_too_deep_is_refused(box: ContainerProxy) -> None:
    value: Any = 1
    for _ in range(130):
        value = [value]
    assert status_of(lambda: box.create_item(item("a", deep=value))) == 400


def test_a_batch_is_all_or_nothing(box: ContainerProxy) -> None:
    box.create_item(item("there"))
    good: list[Any] = [
        ("create", (item("a"),)),
        ("upsert", (item("there", n=1),)),
        ("replace", ("a", item("a", n=2))),
        ("read", ("a",)),
        ("create", (item("b"),)),
        ("delete", ("b",)),
    ]
    results = box.execute_item_batch(good, "p")
    assert [one["statusCode"] for one in results] == [201, 200, 200, 200, 201, 204]
    bad: list[Any] = [("create", (item("c"),)), ("create", (item("a"),)), ("create", (item("d"),))]
    with pytest.raises(CosmosBatchOperationError) as caught:
        box.execute_item_batch(bad, "p")
    assert caught.value.error_index == 1
    assert [one["statusCode"] for one in caught.value.operation_responses] == [424, 409, 424]
    assert {row["id"] for row in rows(box, "SELECT c.id FROM c")} == {"a", "there"}
    many: list[Any] = [("create", (item(f"m{n}"),)) for n in range(101)]
    assert status_of(lambda: box.execute_item_batch(many, "p")) == 400


def test_a_query_sees_its_partition_alone(box: ContainerProxy) -> None:
    for n in range(3):
        box.create_item(item(f"a{n}", "p", n=n))
        box.create_item(item(f"b{n}", "q", n=n))
    assert [row["id"] for row in rows(box, "SELECT * FROM c ORDER BY c.n DESC")] == ["a2", "a1", "a0"]
    assert rows(
        box, "SELECT c.id, c.none FROM c WHERE c.n >= @n", parameters=[{"name": "@n", "value": 2}]
    ) == [{"id": "a2"}]
    assert rows(box, "SELECT VALUE COUNT(1) FROM c", "q") == [3]
    assert rows(box, "SELECT TOP 2 c.id FROM c ORDER BY c.id") == [{"id": "a0"}, {"id": "a1"}]


def test_to_sort_by_what_has_no_index_is_refused(box: ContainerProxy) -> None:
    box.create_item(item("a", m=1))
    assert status_of(lambda: rows(box, "SELECT * FROM c ORDER BY c.m")) == 400


@pytest.mark.parametrize(
    "query",
    [
        "SELEC * FROM c",
        "SELECT * FROM c WHERE c.n LIKE @n",
        "SELECT * FROM c WHERE c.n = @unknown",
        "SELECT * FROM c WHERE c.n = 1 OR c.n = 2",
        "SELECT * FROM c; DROP",
    ],
)
def test_a_query_that_is_not_understood_is_refused(query: str) -> None:
    with pytest.raises(BadQuery):
        parse(query, [{"name": "@n", "value": 1}])


def test_what_is_added_meanwhile_shifts_no_page(box: ContainerProxy) -> None:
    for n in range(6):
        box.create_item(item(f"a{n}"))
    pages: Any = box.query_items(
        "SELECT c.id FROM c ORDER BY c.id", partition_key="p", max_item_count=2
    ).by_page()
    seen = [row["id"] for row in next(pages)]
    box.create_item(item("a"))
    for page in pages:
        seen += [row["id"] for row in page]
    assert seen == [f"a{n}" for n in range(6)]


def test_a_page_has_four_megabytes_at_most(box: ContainerProxy) -> None:
    for n in range(5):
        box.create_item(item(f"a{n}", b="x" * 1_500_000))
    pages: Any = box.query_items("SELECT * FROM c ORDER BY c.id", partition_key="p").by_page()
    assert [len(list(page)) for page in pages] == [2, 2, 1]


def test_a_budget_of_units_is_kept_and_asks_to_wait(double: CosmosDouble, box: ContainerProxy) -> None:
    double.budget = 1.0
    double.faults.append(Fault("status", count=0))
    headers: list[Any] = []
    for n in range(3):
        box.create_item(item(f"a{n}"), response_hook=lambda got, _: headers.append(got))
    assert double.requests["429"] >= 2
    assert [float(one["x-ms-request-charge"]) for one in headers] == [pytest.approx(5.15)] * 3


def test_a_fault_strikes_as_often_as_it_says(double: CosmosDouble, box: ContainerProxy) -> None:
    double.faults.append(Fault("status", on="write", skip=1, count=2, status=400))
    assert box.create_item(item("a"))
    assert rows(box, "SELECT c.id FROM c") == [{"id": "a"}]
    for _ in range(2):
        assert status_of(lambda: box.create_item(item("b"))) == 400
    assert box.create_item(item("b"))


# -- prices


def test_prices_are_those_of_the_table_and_between_them() -> None:
    assert [read_ru(kb * 1024) for kb in (1, 64, 2048)] == [1.00, 4.76, 291.80]
    assert [create_ru(kb * 1024) for kb in (1, 64, 2048)] == [4.95, 22.67, 1250.0]
    assert read_ru(10) == 1.0
    assert create_ru(3 * 1024) == pytest.approx((6.29 + 6.67) / 2)
    assert create_ru(1024, terms=2) == pytest.approx(5.35)
    assert replace_ru(1024, 2048) == pytest.approx(4.95 + 6.29)
    assert query_ru([1024, 1024]) == pytest.approx(4.3)
    with pytest.raises(ValueError, match="refused"):
        create_ru(2048 * 1024 + 1)


def test_a_verb_costs_what_its_item_costs() -> None:
    assert ru_of("put_block", 700) == pytest.approx(create_ru(item_bytes(700), 1))
    assert ru_of("swap_head", 700) == ru_of("put_block", 700)
    assert ru_of("swap_head", 700, 500) == pytest.approx(replace_ru(item_bytes(500), item_bytes(700), 1))
    assert ru_of("read_head", 700) == ru_of("list_heads", 700) == ru_of("read_range", 700) == query_ru([1156])
    assert item_bytes(700) == 1156
    with pytest.raises(ValueError, match="none of the five"):
        ru_of("delete", 1)


def test_the_estimate_of_an_items_size_is_near_the_truth() -> None:
    block = {
        "id": "0" * 50,
        "pk": "b!" + "t" * 36 + "!" + "0" * 40,
        "b": base64.b64encode(bytes(700)).decode(),
    }
    size = len(str(block).replace(" ", ""))
    assert abs(item_bytes(700) - size) < 100
