"""A store with a database: an ``http://`` endpoint, as emulators have it, works without further options."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary import CosmosConfig, HybridSessionStore
from sessionary.sync.remotes import _cosmos, check_address
from sessionary.sync.settings import Settings, cache_path, state_folder
from tests.servers.cosmos import Bench, Double
from tests.servers.process import free_port
from tests.unit.hybrid.conftest import META, say

WORDS = say("hello")


@pytest.fixture
def config() -> Iterator[CosmosConfig]:
    """A container on a strict double of the service."""
    bench = Bench(Double())
    yield bench.server.config
    bench.close()


def store_of(root: Path, config: CosmosConfig, **options: str) -> HybridSessionStore:
    sessions = root / "projects" / "-work" / "sessions"
    return HybridSessionStore(sessions, config, state_dir=root / "state", **options)  # type: ignore[arg-type]


def test_sessions_go_through_a_database_at_an_http_endpoint(tmp_path: Path, config: CosmosConfig) -> None:
    plain = CosmosConfig(config.endpoint, config.database, config.container)
    assert plain.endpoint.startswith("http://")
    with store_of(tmp_path / "one", plain) as one, store_of(tmp_path / "two", plain) as two:
        one.save("s", WORDS, META)
        sent = asyncio.run(one.sync())
        assert (sent.pushed, sent.errors) == (1, [])
        assert asyncio.run(two.pull()).pulled == 1
        assert two.load("s") == one.load("s") == (WORDS, META)


def test_other_people_in_one_database_are_others(tmp_path: Path, config: CosmosConfig) -> None:
    with (
        store_of(tmp_path / "one", config, tenant="ana") as one,
        store_of(tmp_path / "two", config, tenant="ben") as two,
    ):
        one.save("s", WORDS, META)
        asyncio.run(one.sync())
        got = asyncio.run(two.pull())
        assert (got.pulled, got.unchanged, got.errors) == (0, 0, [])


def test_a_database_that_does_not_answer_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    config = CosmosConfig(f"http://127.0.0.1:{free_port()}/", "db", "box")
    with store_of(tmp_path, config) as store:
        store.save("s", WORDS, META)
        sent = asyncio.run(store.sync())
        assert (sent.pushed, sent.failed, len(sent.errors)) == (0, 1, 1)
        assert store.load("s")[0] == WORDS
        store.close(0)


WITHOUT = """
import sys
sys.modules["azure"] = sys.modules["azure.cosmos"] = None
import asyncio
from sessionary import CosmosConfig, HybridSessionStore, Unsupported
config = CosmosConfig("https://x.documents.azure.com:443/", "db", "box", key="ZHVtbXk=")
with HybridSessionStore(sys.argv[1], config, state_dir=sys.argv[2]) as store:
    store.save("s", [{"role": "user", "content": "hello"}], {"session_id": "s"})
    print(asyncio.run(store.sync()).errors[0].hint)
    try:
        asyncio.run(store.pull())
    except Unsupported as error:
        print(error.hint)
"""


def test_without_the_driver_saving_works_and_the_remedy_is_reported(tmp_path: Path) -> None:
    code = [sys.executable, "-c", WITHOUT, str(tmp_path / "a"), str(tmp_path / "state")]
    reported = subprocess.run(code, capture_output=True, text=True, check=True, timeout=60).stdout
    assert reported == "pip install 'sessionary[cosmos]'\n" * 2


@pytest.mark.parametrize(
    "config",
    [
        CosmosConfig("https://x.documents.azure.com:443/", "db", "box", key="ZHVtbXk="),
        CosmosConfig("http://127.0.0.1:8081", "my db", "the box"),
    ],
    ids=lambda config: str(config.endpoint),
)
def test_what_is_remembered_is_found_under_the_address_that_the_commands_take(config: CosmosConfig) -> None:
    meant = _cosmos(check_address(config.address), {})
    assert meant.address == config.address
    assert (meant.database, meant.container, meant.is_plain) == (
        config.database,
        config.container,
        config.is_plain,
    )


def test_all_spellings_of_a_container_are_remembered_in_one_place() -> None:
    spellings = ("https://x.documents.azure.com:443/db/box", "https://X.documents.azure.com/db/box")
    one, other = (Settings(address, "ada", "here") for address in spellings)
    assert state_folder("/s", one, "/h", "amplifier") == state_folder("/s", other, "/h", "amplifier")
    assert cache_path("/s", one) == cache_path("/s", other)
    assert cache_path("/s", one) != cache_path("/s", Settings(spellings[0] + "2", "ada", "here"))
