"""Object stores pass the shared suite; a store that ignores conditions is refused before anything is lost in it."""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest

obstore = pytest.importorskip("obstore", reason="the extra objectstore is not installed")

from obstore.store import MemoryStore  # noqa: E402

from sessionary.errors import Invalid, RemoteError, Unsupported  # noqa: E402
from sessionary.sync.gc.leftovers import count_leftovers  # noqa: E402
from sessionary.sync.heads import Head, encode, head_name  # noqa: E402
from sessionary.sync.remote import heads_of, stats_of  # noqa: E402
from sessionary.sync.remotes.objects import ObjectStoreRemote, folder_of, open_store  # noqa: E402
from sessionary.testing.remote_suite import RemoteTests  # noqa: E402
from tests.servers import objects  # noqa: E402
from tests.servers.double_gcs import GcsDouble  # noqa: E402
from tests.servers.refusing import RefusingHttp  # noqa: E402


class TestInMemory(RemoteTests):
    """The in-memory store of obstore: quick, and as strict as S3."""

    def setup_method(self) -> None:
        self.store: Any = MemoryStore()
        self.url, self.folder = "s3://in-memory", "me"
        self.options: dict[str, Any] = {"store": self.store}

    def remote(self, tenant: str = "me") -> Any:
        return ObjectStoreRemote(self.url, tenant=tenant, **self.options)

    def path(self, space: str, block: str) -> str:
        return f"{self.folder}/blocks/{space}/{block}"

    def get_raw(self, space: str, block: str) -> Any:
        try:
            return bytes(self.store.get(self.path(space, block)).bytes())
        except FileNotFoundError:
            return None

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        self.store.put(self.path(space, block), data)

    def test_a_store_that_keeps_conditions_is_accepted(self) -> None:
        remote = self.remote()
        remote.prepare()
        remote.prepare()
        assert list(self.store.list("me/check")) == []


class TestInSmallPages(TestInMemory):
    def remote(self, tenant: str = "me") -> Any:
        return ObjectStoreRemote(self.url, tenant=tenant, page_blocks=1, page_heads=2, **self.options)


class OnAServer(TestInMemory):
    server: str

    def setup_method(self) -> None:
        start, address = objects.SERVERS[self.server]
        self.url, self.options, self.folder = address(), start(), "me"
        self.store = open_store(self.url, **self.options)


@pytest.mark.lane("s3")
class TestS3(OnAServer):
    server = "s3"


@pytest.mark.lane("azurite")
class TestAzureBlob(OnAServer):
    server = "azurite"


class TestGoogleDouble(TestInMemory):
    """Our reading of Google Cloud Storage, whose writes compare generations and not etags."""

    def setup_method(self) -> None:
        self.double = GcsDouble()
        self.url, self.options, self.folder = "gs://sessions/a/prefix", self.double.options, "me"
        self.store = open_store(self.url, **self.double.options)

    def teardown_method(self) -> None:
        self.double.close()


del OnAServer


@pytest.fixture
def double() -> Iterator[GcsDouble]:
    server = GcsDouble()
    yield server
    server.close()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_retryable_and_leaves_nothing(double: GcsDouble, status: int) -> None:
    remote = ObjectStoreRemote("gs://sessions", tenant="me", **double.options)
    double.answers.append(status)
    with pytest.raises(RemoteError, match="gs://sessions failed") as caught:
        remote.put_block("s", "a", b"x")
    assert caught.value.retryable
    assert caught.value.details == {"status": status}
    assert len(double.seen) == 1, "who calls a remote repeats, not the remote"
    assert remote.put_block("s", "a", b"x") is True


@pytest.mark.parametrize("status", [400, 401, 403, 413])
def test_what_will_not_pass_is_not_retryable(double: GcsDouble, status: int) -> None:
    remote = ObjectStoreRemote("gs://sessions", tenant="me", **double.options)
    double.answers.append(status)
    with pytest.raises(RemoteError) as caught:
        remote.swap_head("one", b"x", None)
    assert not caught.value.retryable


def refused_by(server: RefusingHttp) -> ObjectStoreRemote:
    options: dict[str, Any] = {"region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}
    return ObjectStoreRemote("s3://bucket", tenant="me", endpoint=server.endpoint, **options)


@pytest.mark.parametrize(
    ("status", "code", "retryable", "what", "hint"),
    [
        (403, "RequestTimeTooSkewed", False, "the clock of this machine", "set the clock"),
        (403, "AccessDenied", False, "lack permission", "policies"),
        (403, "SignatureDoesNotMatch", False, "refuses the credentials", "AWS_ACCESS_KEY_ID"),
        (400, "AuthorizationHeaderMalformed", False, "another region", "--option region"),
        (501, "NotImplemented", False, "conditional writes", "use a store that honours"),
        (400, "InvalidRequest", False, "failed", "sync init"),
        (500, "InternalError", True, "failed", "nothing is lost"),
        (503, "SlowDown", True, "failed", "nothing is lost"),
    ],
)
@pytest.mark.parametrize("verb", ["put_block", "list_heads"])
def test_each_refusal_says_what_leads_out_of_it(
    status: int, code: str, retryable: bool, what: str, hint: str, verb: str
) -> None:
    with RefusingHttp(status, code) as server:
        remote = refused_by(server)
        asks = partial(remote.put_block, "s", "a", b"x") if verb == "put_block" else remote.list_heads
        with pytest.raises(RemoteError, match=what) as caught:
            asks()
    assert caught.value.retryable is retryable
    assert hint in (caught.value.hint or "")
    assert ("AWS_ACCESS_KEY_ID" in str(caught.value.hint)) is (code == "SignatureDoesNotMatch")
    assert caught.value.details == {"status": status}


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        key = GcsDouble.key(silent.getsockname()[1])
        http = {"allow_http": True, "timeout": "200ms"}
        options: dict[str, Any] = {"service_account_key": key, "client_options": http}
        remote = ObjectStoreRemote("gs://sessions", tenant="me", **options)
        began = time.monotonic()
        with pytest.raises(RemoteError) as caught:
            remote.swap_head("one", b"x", None)
    assert caught.value.retryable
    assert time.monotonic() - began < 20  # else it is given up after 30


def heads_named(*names: str, tenant: str = "me") -> Any:
    remote = ObjectStoreRemote("s3://in-memory", tenant=tenant, store=MemoryStore())
    for name in names:
        remote.swap_head(name, b"x", None)
    return remote


@pytest.mark.lane("s3rver")
def test_a_server_that_ignores_conditions_is_refused() -> None:
    remote = ObjectStoreRemote(objects.s3_address(), tenant="me", **objects.s3rver())
    with pytest.raises(Unsupported, match="although the request forbids it"):
        remote.prepare()


class Lax:
    """A store that keeps conditions but for one: of which the self-check must notice each."""

    def __init__(self, fault: str) -> None:
        self.inner = MemoryStore()
        self.fault = fault

    def put(self, path: str, data: bytes, mode: Any, **rest: Any) -> Any:
        if self.fault == "create" and mode == "create":
            mode = "overwrite"
        if self.fault == "replace" and isinstance(mode, dict):
            mode = "overwrite"
        put = self.inner.put(path, data, mode=mode, **rest)
        return {**put, "e_tag": "always"} if self.fault == "etag" else put

    def get(self, path: str) -> Any:
        return self.inner.get(path)

    def head(self, path: str) -> Any:
        return self.inner.head(path)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def list(self, *arguments: Any, **rest: Any) -> Any:
        found = list(self.inner.list(*arguments, **rest))
        return iter([chunk[::-1] for chunk in found] if self.fault == "order" else found)


@pytest.mark.parametrize("fault", ["create", "replace", "etag", "order"])
def test_a_store_that_keeps_not_quite_all_is_refused(fault: str) -> None:
    with pytest.raises(Unsupported, match="cannot hold sessions"):
        ObjectStoreRemote("s3://lax", tenant="me", store=Lax(fault)).prepare()


def test_the_self_check_passes_a_store_with_nothing_amiss() -> None:
    remote = ObjectStoreRemote("s3://lax", tenant="me", store=Lax("none"))
    remote.prepare()
    assert remote.list_heads().heads == ()  # its probes are gone
    etag = remote.swap_head("one", b"x", None)
    assert remote.read_head("one") == ("one", b"x", etag)


@pytest.mark.lane("s3")
@pytest.mark.parametrize("verb", ["read_head", "swap_head", "list_heads", "prepare", "swap known"])
def test_a_bucket_that_is_missing_is_not_an_empty_remote(verb: str) -> None:
    remote = ObjectStoreRemote("s3://nowhere/at-all", tenant="me", **objects.moto())
    calls: dict[str, Callable[[], object]] = {
        "read_head": lambda: remote.read_head("one"),
        "swap_head": lambda: remote.swap_head("one", b"x", None),
        "swap known": lambda: remote.swap_head("one", b"x", '"0"'),
        "list_heads": remote.list_heads,
        "prepare": remote.prepare,
    }
    with pytest.raises(RemoteError, match="bucket or container does not exist") as caught:
        calls[verb]()
    assert not caught.value.retryable


def test_an_unreachable_store_fails_soon_and_may_be_asked_again() -> None:
    options: dict[str, Any] = {"endpoint": "http://127.0.0.1:9", "region": "us-east-1"}
    key = {"access_key_id": "x", "secret_access_key": "x"}
    remote = ObjectStoreRemote("s3://bucket", tenant="me", **{**options, **key})
    with pytest.raises(RemoteError, match="s3://bucket failed") as caught:
        remote.read_head("one")
    assert caught.value.retryable


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "bucket", "s3:bucket", "file:///tmp", "s3://", "az://account", "s3://b//c"]
)
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="not an address of an object store"):
        ObjectStoreRemote(url, tenant="me")


def test_an_option_that_the_store_does_not_have_is_refused() -> None:
    with pytest.raises(Invalid, match="nonsense"):
        ObjectStoreRemote("s3://bucket", tenant="me", nonsense="x")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "a b", "a~"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    remote = heads_named()
    with pytest.raises(Invalid, match="not a valid name of a block or head"):
        remote.read_head(name)
    with pytest.raises(Invalid, match="not a valid name of a block or head"):
        remote.put_block(name, "a", b"")


def test_tenants_have_folders_that_none_can_take_from_another() -> None:
    names = ["ada", "Ada", "ada@example.org", "a/b", "a", "..", "", "jürgen", "x" * 300, "=" + "0" * 40]
    folders = [folder_of(name) for name in names]
    assert folders[:3] == names[:3]
    assert len(set(folders)) == len(names)
    assert all("/" not in folder and folder.strip(".") for folder in folders)


def test_one_tenant_that_begins_as_another_sees_nothing_of_it() -> None:
    store = MemoryStore()
    short = ObjectStoreRemote("s3://x", tenant="ada", store=store)
    long = ObjectStoreRemote("s3://x", tenant="ada-2", store=store)
    long.swap_head("one", b"x", None)
    long.put_block("s", "a", b"x")
    assert short.list_heads().heads == ()
    assert short.read_range("s", "", "~").blocks == ()


class Counting(Lax):
    """Counts what is fetched."""

    def __init__(self) -> None:
        super().__init__("none")
        self.gets: list[str] = []

    def get(self, path: str) -> Any:
        self.gets.append(path.rpartition("/")[2])
        return super().get(path)


def test_a_second_list_fetches_only_the_heads_that_have_changed() -> None:
    store = Counting()
    writer, reader = (ObjectStoreRemote("s3://counting", tenant="me", store=store) for _ in range(2))
    etags = {name: writer.swap_head(name, b"1", None) for name in ("a", "b", "c")}
    assert len(reader.list_heads().heads) == 3
    store.gets.clear()
    writer.swap_head("b", b"2", etags["b"])
    assert [head.data for head in reader.list_heads().heads] == [b"1", b"2", b"1"]
    assert store.gets == ["b"]


class Forgetful(Lax):
    """A store whose lists begin anew where they should go on."""

    def list(self, *arguments: Any, **rest: Any) -> Any:
        found = [one for chunk in self.inner.list(*arguments) for one in chunk]
        return iter([found] * 1_000_000)


def test_a_list_that_begins_again_and_again_is_given_up() -> None:
    remote = ObjectStoreRemote("s3://forgetful", tenant="me", store=Forgetful("none"))
    remote.put_block("s", "a", b"x")
    remote.swap_head("one", b"x", None)
    for call in (remote.list_heads, lambda: remote.read_range("s", "b", "c")):
        with pytest.raises(RemoteError, match="in bytewise order"):
            call()


class Cache:
    """Keeps what a remote wants kept, as a file would."""

    data: bytes | None = None

    def read(self) -> bytes | None:
        return self.data

    def keep(self, data: bytes) -> None:
        self.data = data


@pytest.mark.parametrize("page", [2, 1000])
def test_the_first_list_of_a_new_process_fetches_only_the_heads_that_have_changed(page: int) -> None:
    store, cache = Counting(), Cache()

    def process(**more: Any) -> ObjectStoreRemote:
        return ObjectStoreRemote("s3://counting", tenant="me", store=store, page_heads=page, **more)

    etags = {name: process().swap_head(name, b"1", None) for name in ("a", "b", "c", "d", "e")}
    assert len(list(heads_of(process(cache=cache)))) == 5
    store.gets.clear()
    process().swap_head("b", b"2", etags["b"])
    store.inner.delete("me/heads/d")
    found = list(heads_of(process(cache=cache)))
    assert [head.data for head in found] == [b"1", b"2", b"1", b"1"]
    assert found == [process().read_head(name) for name in ("a", "b", "c", "e")]
    assert store.gets[:1] == ["b"]
    store.gets.clear()
    assert list(heads_of(process(cache=cache))) == found
    assert store.gets == []
    process().swap_head("d", b"1", None)
    assert [head.name for head in heads_of(process(cache=cache))] == ["a", "b", "c", "d", "e"]
    assert store.gets == ["d"]


@pytest.mark.parametrize("other", [{"tenant": "ada"}, {"url": "s3://another"}])
def test_a_cache_of_another_store_or_tenant_is_ignored(other: dict[str, str]) -> None:
    cache = Cache()
    for place, data in (({}, b"1"), (other, b"2")):
        at: dict[str, Any] = {"url": "s3://counting", "tenant": "me", **place}
        remote = ObjectStoreRemote(store=Lax("none"), cache=cache, **at)  # a new one, with the same etags
        remote.swap_head("a", data, None)
        assert [head.data for head in remote.list_heads().heads] == [data]


def test_google_reports_in_its_lists_which_heads_have_changed(double: GcsDouble) -> None:
    cache = Cache()

    def process() -> ObjectStoreRemote:
        return ObjectStoreRemote("gs://sessions", tenant="me", cache=cache, **double.options)

    etags = {name: process().swap_head(name, b"1", None) for name in ("a", "b")}
    assert len(process().list_heads().heads) == 2
    process().swap_head("b", b"2", etags["b"])
    double.seen.clear()
    listed = process().list_heads().heads
    assert [unquote(path) for _, path in double.seen] == ["/sessions", "/sessions/me/heads/b"]
    assert [head.data for head in listed] == [b"1", b"2"]
    assert process().swap_head("a", b"3", listed[0].etag) is not None, "it is swapped by its generation"


class Racing(Lax):
    """S3 as it is under contention: a conditional write may get a 409, though nothing was written."""

    def __init__(self, conflicts: int) -> None:
        super().__init__("none")
        self.conflicts: Iterator[bool] = itertools.chain(
            itertools.repeat(True, conflicts), itertools.repeat(False)
        )

    def put(self, path: str, data: bytes, mode: Any, **rest: Any) -> Any:
        if next(self.conflicts):
            raise obstore.exceptions.AlreadyExistsError("409 Conflict: ConditionalRequestConflict")
        return super().put(path, data, mode, **rest)


def test_a_409_does_not_mean_that_the_block_exists() -> None:
    remote = ObjectStoreRemote("s3://racing", tenant="me", store=Racing(2))
    assert remote.put_block("s", "a", b"x") is True
    assert [block.data for block in remote.read_range("s", "a", "b").blocks] == [b"x"]


def test_a_409_does_not_mean_that_the_head_was_swapped() -> None:
    store = Racing(0)
    remote = ObjectStoreRemote("s3://racing", tenant="me", store=store)
    etag = remote.swap_head("one", b"1", None)
    store.conflicts = iter([True, True, False])
    assert remote.swap_head("one", b"2", etag) is not None
    assert remote.read_head("one").data == b"2"  # type: ignore[union-attr]


def test_conflicts_without_end_are_reported_and_may_be_tried_later() -> None:
    remote = ObjectStoreRemote("s3://racing", tenant="me", store=Racing(1000))
    with pytest.raises(RemoteError, match="keeps being changed") as caught:
        remote.put_block("s", "a", b"x")
    assert caught.value.retryable


class Slow(Lax):
    """A store that takes its time, by a clock that moves only with it, and notes what is written."""

    def __init__(self) -> None:
        super().__init__("none")
        self.passed = 0.0
        self.puts: list[str] = []
        self.read_only = False

    def put(self, path: str, data: bytes, mode: Any = "overwrite", **rest: Any) -> Any:
        if self.read_only:
            raise obstore.exceptions.PermissionDeniedError("403: this key may only read")
        self.passed += 100
        self.puts.append(path)
        return super().put(path, data, mode, **rest)

    def head(self, path: str) -> Any:
        found = self.inner.head(path)
        self.passed += 100
        return found

    def remote(self) -> ObjectStoreRemote:
        return ObjectStoreRemote("s3://slow", tenant="me", store=self, clock=lambda: self.passed)


def test_blocks_are_counted_without_writing_anything() -> None:
    store = Slow()
    store.remote().put_block("s", "a", b"xyz")
    store.read_only = True
    (stat,) = stats_of(store.remote(), "s")
    assert (stat.id, stat.size) == ("a", 3)
    with pytest.raises(RemoteError):
        stat.age  # noqa: B018
    store.read_only = False
    assert stat.age is not None
    assert store.puts == ["me/blocks/s/a", "me/check/clock"]


def test_leftovers_are_counted_with_a_key_that_may_only_read() -> None:
    store = Slow()
    name = head_name("k", "p", "s")
    head = Head(v=1, kind="k", project="p", session="s", space=name, gen=0, count=1, device="d", at="")
    store.remote().swap_head(name, encode(head), None)
    store.remote().put_block(name, "a", b"xyz")
    store.read_only = True
    found = count_leftovers(store.remote())
    assert (found.heads, found.lost_blocks, found.lost_size) == (1, 1, 3)


def test_how_long_a_store_takes_to_answer_makes_no_block_older() -> None:
    store = Slow()
    remote = store.remote()
    remote.put_block("s", "a", b"x")
    (stat,) = stats_of(remote, "s")
    assert stat.age is not None
    assert stat.age < 60
    store.passed += 1000
    assert 999 <= stat.age < 1060


def test_an_age_stays_that_of_its_block_when_the_block_is_called_otherwise() -> None:
    store = Slow()
    remote = store.remote()
    remote.put_block("s", "a", b"x")
    (stat,) = stats_of(remote, "s")
    assert stat.age is not None
    store.passed += 1000
    renamed = stat._replace(id="b")
    assert renamed.id == "b"
    assert renamed.age == stat.age
    assert (stat._replace(age=5.0).age, stat._replace(age=None).age) == (5.0, None)
