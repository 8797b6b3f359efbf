"""The remote in Cosmos DB when all is not well: what passes is distinguished from what lasts, and every call ends."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sessionary.errors import Invalid, RemoteError
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remote import LARGEST_BLOCK, blocks_of, heads_of
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.retry import RetryingRemote
from tests.servers.cosmos import Bench, Double
from tests.servers.process import free_port
from tests.support.cosmos_double import CosmosDouble, Fault

FAULTS = [
    Fault("drop before"),
    Fault("drop after"),
    Fault("hang"),
    Fault("hang after"),
    Fault("cut"),
    Fault("drip"),
    Fault("portal"),
    *(Fault("status", status=status) for status in (408, 410, 429, 449, 500, 503)),
    *(Fault("status after", status=status) for status in (408, 500, 503)),
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(Double())
    yield bench
    bench.close()


def double_of(bench: Bench) -> CosmosDouble:
    assert isinstance(bench.server, Double)
    return bench.server.double


def refused(call: Callable[[], Any]) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        call()
    return caught.value


# -- before the first call


def test_no_question_is_asked_before_the_first_call_and_nothing_is_printed() -> None:
    port = free_port()
    code = f"""
import sys
from sessionary.errors import RemoteError
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remotes.cosmos import CosmosRemote
remote = CosmosRemote(CosmosConfig("http://127.0.0.1:{port}", "db", "box"), tenant="me", patience=20)
assert not [name for name in sys.modules if name.partition(".")[0] in ("azure", "requests", "msal")]
remote.close()
try:
    remote.read_head("one")
except RemoteError as error:
    assert error.retryable, error
else:
    raise AssertionError("no listener there")
remote.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    code = """
import sys
sys.modules["azure.core"] = sys.modules["azure.cosmos"] = None
from sessionary.errors import Unsupported
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remotes.cosmos import CosmosRemote
remote = CosmosRemote(CosmosConfig("http://127.0.0.1:1", "db", "box"), tenant="me")
for call in (lambda: remote.read_head("one"), lambda: remote.swap_head("one", b"", "etag"), remote.prepare):
    try:
        call()
    except Unsupported as error:
        print(error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "pip install 'sessionary[cosmos]'\n" * 3


@pytest.mark.parametrize("tenant", ["", "a!b", "x" * 513])
def test_an_ambiguous_tenant_is_refused(tenant: str) -> None:
    with pytest.raises(Invalid, match="tenant"):
        CosmosRemote(CosmosConfig("http://127.0.0.1:1", "db", "box"), tenant=tenant)


def test_the_key_is_not_shown() -> None:
    remote = CosmosRemote(CosmosConfig("http://127.0.0.1:1", "db", "box", key="c2VjcmV0"), tenant="me")
    assert "c2VjcmV0" not in repr(remote)
    assert "tenant='me'" in repr(remote)


# -- database and container


def test_nothing_is_made_by_using_it() -> None:
    with CosmosDouble() as double:
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box"), tenant="me")
        for call in (lambda: remote.put_block("s", "a", b""), remote.list_heads):
            error = refused(call)
            assert not error.retryable
            assert "does not exist" in str(error)
            assert "sync init" in str(error.hint)
        assert double.store.databases == {}
        remote.close()


def test_what_is_prepared_has_the_documented_settings_and_is_left_alone_afterwards(bench: Bench) -> None:
    box = double_of(bench).store.databases["db"]["box"]
    assert box.properties["partitionKey"]["paths"] == ["/pk"]
    assert box.properties["indexingPolicy"] == {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/pk/?"}],
        "excludedPaths": [{"path": "/*"}],
    }
    bench.remote().put_block("s", "a", b"x")
    bench.connect().prepare()
    assert double_of(bench).store.databases["db"]["box"] is box
    assert bench.get_raw("s", "a") == b"x"


@pytest.mark.parametrize("passing", [0, 1])
def test_a_container_that_may_only_be_read_is_reported_when_it_is_prepared(
    bench: Bench, passing: int
) -> None:
    """A role that may create items may still not replace them: a head could be put once, and never again."""
    double_of(bench).faults.append(Fault("status", status=403, on="write", skip=passing, count=100))
    error = refused(bench.connect().prepare)
    assert not error.retryable
    assert "data role" in str(error.hint)


def test_preparing_leaves_nothing_behind(bench: Bench) -> None:
    bench.connect().prepare()
    box = double_of(bench).store.container("db", "box")
    assert list(box.seen(f"c!{bench.tenant('me')}", box.lsn)) == []
    assert bench.remote().list_heads().heads == ()


def test_the_container_of_another_application_is_refused() -> None:
    with CosmosDouble() as double:
        theirs = CosmosRemote(CosmosConfig(double.endpoint, "db", "box"), tenant="me")
        theirs.prepare()
        double.store.databases["db"]["box"].properties["partitionKey"]["paths"] = ["/user_id"]
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box"), tenant="me")
        for call in (remote.prepare, lambda: remote.read_head("one")):
            error = refused(call)
            assert "/user_id" in str(error)
            assert not error.retryable
        theirs.close()
        remote.close()


def test_an_account_that_writes_in_several_regions_is_refused() -> None:
    with CosmosDouble(writes_everywhere=True) as double:
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box"), tenant="me")
        for call in (remote.prepare, lambda: remote.swap_head("one", b"", None)):
            error = refused(call)
            assert "several regions" in str(error)
            assert "multiple-write-locations" in str(error.hint)
        assert double.store.databases == {}
        remote.close()


# -- the way in


def test_a_wrong_key_is_reported_and_not_shown() -> None:
    with CosmosDouble() as double:
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", key="c2VjcmV0"), tenant="me")
        error = refused(lambda: remote.read_head("one"))
        assert (error.retryable, error.details["status"]) == (False, 401)
        assert "key" in str(error)
        assert "c2VjcmV0" not in str(error.as_dict())
        remote.close()


@pytest.mark.parametrize(("offset", "said"), [(3600, "60 minutes behind"), (-7200, "120 minutes ahead of")])
def test_a_wrong_clock_is_reported_and_by_how_much(offset: float, said: str) -> None:
    with CosmosDouble(clock_offset=offset) as double:
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box"), tenant="me")
        error = refused(lambda: remote.read_head("one"))
        assert f"the local clock is {said} the service's" in str(error)
        assert not error.retryable
        remote.close()


def test_a_clock_that_is_a_little_wrong_does_no_harm() -> None:
    bench = Bench(Double(clock_offset=-600))
    etag = bench.remote().swap_head("one", b"1", None)
    assert bench.remote().swap_head("one", b"2", etag)
    bench.close()


def test_a_user_who_is_not_signed_in_sees_what_to_do() -> None:
    from azure.core.exceptions import ClientAuthenticationError

    class FakeCredential:
        asked: tuple[str, ...] = ()

        def get_token(self, *scopes: str, **rest: Any) -> Any:
            self.asked = scopes
            raise ClientAuthenticationError("no account")

    fake = FakeCredential()
    config = CosmosConfig(f"https://127.0.0.1:{free_port()}/", "db", "box", credential=fake)
    remote = CosmosRemote(config, tenant="me", patience=10)
    error = refused(lambda: remote.read_head("one"))
    assert "az login" in str(error.hint)
    assert not error.retryable
    assert fake.asked == ("https://127.0.0.1/.default",)
    remote.close()


# -- what goes wrong for a moment


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.action} {fault.status}")
def test_what_passes_is_reported_in_time_and_every_verb_may_be_repeated(fault: Fault, bench: Bench) -> None:
    faults = double_of(bench).faults
    patient = RetryingRemote(bench.remote())
    hasty = CosmosRemote(bench.server.config, tenant=bench.tenant("me"), patience=0.8)
    RetryingRemote(hasty, tries=20).read_head("head")
    etag = patient.swap_head("head", b"1", None)
    patient.put_block("s", "a", b"a" * 50)
    answers: list[Any] = []
    errors: list[RemoteError] = []

    def struck(call: Callable[[], Any]) -> None:
        faults[:] = [Fault(fault.action, fault.on, count=20, status=fault.status)]
        started = time.monotonic()
        try:
            answers.append(call())
        except RemoteError as error:
            errors.append(error)
        assert time.monotonic() - started < 30
        faults.clear()

    struck(lambda: hasty.put_block("s", "b", b"b"))
    patient.put_block("s", "b", b"b")
    struck(lambda: hasty.swap_head("head", b"2", etag))
    if patient.swap_head("head", b"2", etag) is None:
        found = patient.read_head("head")
        assert found is not None
        assert found.data == b"2"
    answers.clear()
    struck(lambda: hasty.read_range("s", "", "~"))
    assert answers == []
    assert all(error.retryable for error in errors), errors
    assert [block.data for block in blocks_of(patient, "s", "", "~")] == [b"a" * 50, b"b"]
    hasty.close()


def test_a_pause_that_the_service_asks_for_is_kept(bench: Bench) -> None:
    waited: list[float] = []
    remote = RetryingRemote(bench.remote(), sleep=waited.append)
    # The SDK asks once again by itself.
    double_of(bench).faults.append(Fault("status", status=429, retry_after=0.02, count=4))
    assert remote.put_block("s", "a", b"x")
    assert waited == [0.02, 0.02]
    assert remote.cost.requests == 3


def test_a_backlog_passes_through_a_small_budget(bench: Bench) -> None:
    double_of(bench).budget = 20
    remote = RetryingRemote(bench.remote(), tries=20)
    for n in range(10):
        assert remote.put_block("s", f"a-{n:02}", bytes(100))
    assert double_of(bench).requests["429"] > 0
    double_of(bench).budget = None
    assert len(list(blocks_of(remote, "s", "", "~"))) == 10


# -- what lasts


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_what_lasts_is_not_asked_for_again(bench: Bench, status: int) -> None:
    double_of(bench).faults.append(Fault("status", status=status, count=100))
    error = refused(lambda: bench.remote().put_block("s", "a", b"x"))
    assert (error.retryable, error.details["status"]) == (False, status)
    assert error.details["activity_id"]
    assert double_of(bench).requests["write"] == 1


def test_what_no_item_can_hold_is_refused_without_sending_it(bench: Bench) -> None:
    assert bench.remote().put_block("s", "a", bytes(LARGEST_BLOCK))
    largest = ((2 << 20) - (4 << 10)) // 4 * 3
    assert bench.remote().put_block("s", "b", bytes(largest))
    assert not refused(lambda: bench.remote().put_block("s", "c", bytes(largest + 1))).retryable
    assert not refused(lambda: bench.remote().swap_head("h", bytes(2 << 20), None)).retryable
    assert double_of(bench).requests["write"] == 2


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "a/b", "a\\b", "a?b", "a#b", "a b", "ä", "a\n", "x" * 256]
)
def test_a_name_that_would_not_survive_an_address_is_refused(bench: Bench, name: str) -> None:
    remote = bench.remote()
    for call in (
        lambda: remote.put_block("s", name, b""),
        lambda: remote.put_block(name, "a", b""),
        lambda: remote.swap_head(name, b"", None),
    ):
        with pytest.raises(Invalid, match="is not a valid name of a block or head"):
            call()


@pytest.mark.parametrize("name", ["a.", ".a", "a..b", "-", "_", "0", "x" * 255])
def test_every_other_name_is_kept(bench: Bench, name: str) -> None:
    remote = bench.remote()
    assert remote.put_block(name, name, b"x")
    etag = remote.swap_head(name, b"1", None)
    assert remote.swap_head(name, b"2", etag)
    assert [head.name for head in heads_of(remote)] == [name]
    assert [block.id for block in blocks_of(remote, name, "", "~")] == [name]


@pytest.mark.parametrize("item", [{}, {"b": "no base64"}, {"b": 7}, {"t": "ü"}, {"t": None}])
def test_an_item_that_is_none_of_ours_is_reported(bench: Bench, item: dict[str, Any]) -> None:
    bench.server.put({"id": "odd", "pk": f"h!{bench.tenant('me')}"} | item)
    error = refused(lambda: bench.remote().list_heads())
    assert "'odd'" in str(error)
    assert not error.retryable


# -- what is stored, and what it costs


def test_a_head_is_stored_as_text_if_it_is_one(bench: Bench) -> None:
    remote, pk = bench.remote(), f"h!{bench.tenant('me')}"
    for name, data, field in [
        ("text", b'{"v":1,"x":"\\u00e9"}', "t"),
        ("utf8", '{"v":"é"}'.encode(), "b"),
        ("nul", b"a\0b", "b"),
        ("line", b"a\nb", "b"),
        ("empty", b"", "b"),
    ]:
        remote.swap_head(name, data, None)
        item = bench.server.get(pk, name)
        assert item is not None
        assert {"t", "b"} & item.keys() == {field}
        found = remote.read_head(name)
        assert found is not None
        assert found.data == data
    item = bench.server.get(pk, "text")
    assert item is not None
    assert json.loads(item["t"]) == {"v": 1, "x": "é"}


def test_what_the_service_charges_is_added_up(bench: Bench) -> None:
    double = double_of(bench)
    inner = bench.remote()
    inner.read_head("none")
    before, charged = inner.ru, double.charged
    remote = RetryingRemote(inner)
    etag = remote.swap_head("one", b"1", None)
    remote.swap_head("one", b"2", "stale")
    remote.swap_head("one", b"2", etag)
    remote.put_block("s", "a", b"x")
    remote.put_block("s", "a", b"x")
    list(blocks_of(remote, "s", "", "~"))
    list(heads_of(remote))
    assert inner.ru - before == pytest.approx(double.charged - charged)
    assert remote.cost.ru == pytest.approx(inner.ru - before)
    # Two creations and a replacement, each of one indexed term, two refusals, two queries for one item.
    assert remote.cost.ru == pytest.approx(4 * 4.95 + 3 * 0.2 + 2 * 1 + 2 * 3.3)


def test_small_pages_come_whole(bench: Bench) -> None:
    small = bench.server.config
    remote = CosmosRemote(small, tenant=bench.tenant("me"), page_blocks=2, page_heads=3)
    for n in range(7):
        remote.put_block("s", f"a-{n}", b"%d" % n)
        remote.swap_head(f"h-{n}", b"%d" % n, None)
    assert len(remote.read_range("s", "", "~").blocks) == 2
    assert len(remote.list_heads().heads) == 3
    assert [block.data for block in blocks_of(remote, "s", "", "~")] == [b"%d" % n for n in range(7)]
    assert [head.data for head in heads_of(remote)] == [b"%d" % n for n in range(7)]
    remote.close()


@pytest.mark.parametrize("ending", ["", "/"])
def test_an_endpoint_may_end_with_a_slash_or_not(bench: Bench, ending: str) -> None:
    config = CosmosConfig(bench.server.config.endpoint.rstrip("/") + ending, "db", "box")
    remote = CosmosRemote(config, tenant=bench.tenant("me"))
    assert remote.put_block("s", "a", b"x")
    assert [block.data for block in blocks_of(remote, "s", "", "~")] == [b"x"]
    remote.close()


def test_it_can_be_used_again_after_it_was_closed(bench: Bench) -> None:
    remote = bench.connect()
    remote.put_block("s", "a", b"x")
    remote.close()
    remote.close()
    assert remote.put_block("s", "a", b"x") is False


def test_a_replica_that_lags_shows_no_writer_less_than_it_wrote() -> None:
    bench = Bench(Double(lag=3600))
    writer, other = bench.connect(), bench.connect()
    etag = writer.swap_head("one", b"1", None)
    writer.put_block("s", "a", b"x")
    assert other.read_head("one") is None
    found = writer.read_head("one")
    assert found is not None
    assert (found.data, found.etag) == (b"1", etag)
    assert [block.id for block in blocks_of(writer, "s", "", "~")] == ["a"]
    assert other.swap_head("one", b"2", None) is None
    found = other.read_head("one")
    assert found is not None, "a refused writer gets what it lost against"
    bench.close()


def test_the_time_is_a_parameter() -> None:
    with CosmosDouble(clock_offset=3600) as double:
        config = CosmosConfig(double.endpoint, "db", "box")
        theirs = datetime.fromtimestamp(double.now(), UTC)
        remote = CosmosRemote(config, tenant="me", now=lambda: theirs)
        assert "clock" not in str(refused(lambda: remote.read_head("one")).hint)
        remote.close()
