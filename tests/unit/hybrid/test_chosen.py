"""What was chosen with `sync init` holds for a store too: what is left out, what is blacked out, and encryption."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary import CosmosConfig, HybridSessionStore
from sessionary.errors import Invalid, NotFound
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.settings import Settings, save_settings
from tests.support.cosmos_double import CosmosDouble
from tests.support.memory_remote import MemoryServer
from tests.unit.hybrid.conftest import META, Machine, say

Make = Callable[..., Machine]
SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Choose, as `sync init` does; where it is kept."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "sessionary" / "sync.json"

    def chosen(remote: str = "s3://elsewhere/all", **settings: Any) -> Path:
        save_settings(path, Settings(remote, "ada", "here", **settings))
        return path

    return chosen


def stored(server: MemoryServer) -> bytes:
    """All that a server holds."""
    remote = server.remote()
    heads = remote.list_heads().heads
    spaces = [remote.read_range(head.name, "", "~").blocks for head in heads]
    return b"".join([head.data for head in heads] + [block.data for blocks in spaces for block in blocks])


def test_what_is_blacked_out_is_blacked_out_for_every_remote(
    machine: Make, server: MemoryServer, choose: Callable[..., Path]
) -> None:
    one = machine("one")
    one.write(f"my key is {SECRET}")
    choose(redact=True)
    assert one.sync().pushed == 1
    assert SECRET.encode() not in stored(server)
    assert b"my key is" in stored(server)
    two = machine("two")
    assert two.pull().pulled == 1
    assert SECRET not in two.texts()[0]
    assert SECRET in one.texts()[0]
    assert one.store.unsent == []


def test_what_is_chosen_while_a_program_runs_holds_from_then_on(
    machine: Make, server: MemoryServer, choose: Callable[..., Path]
) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    choose(redact_rules={"pet": "mur+phy"})
    one.write("the cat is called murrphy")
    one.sync()
    assert b"murrphy" not in stored(server)


@pytest.mark.parametrize("rules", [{"exclude": ("*secret*",)}, {"include": ("git:*",)}])
def test_a_project_that_is_left_out_is_left_out_by_the_store(
    machine: Make, server: MemoryServer, choose: Callable[..., Path], rules: Any
) -> None:
    choose(**rules)
    one = machine("one", project="folder:secret-plans")
    one.write("hello")
    assert (one.sync().pushed, one.sync().failed) == (0, 0)
    one.store.close(20)
    assert server.remote().list_heads().heads == ()
    assert one.store.unsent == [], "there is nothing that is to be sent"
    other = machine("other", project="git:example.org/plans")
    other.write("hello")
    assert other.sync().pushed == 1


def test_a_choice_that_cannot_be_read_stops_what_would_be_sent_and_no_save(
    machine: Make, server: MemoryServer, choose: Callable[..., Path]
) -> None:
    path = choose()
    path.write_text('{"remote": "s3://')
    one = machine("one")
    one.write("hello")
    sent, got = one.sync(), one.pull()
    assert [type(error) for error in (*sent.errors, *got.errors)] == [Invalid, Invalid]
    assert (sent.pushed, sent.failed) == (0, 1)
    assert str(path) in str(sent.errors[0])
    one.store.close(20)
    assert one.store.last_sync is not None
    assert [type(error) for error in one.store.last_sync.errors] == [Invalid]
    assert stored(server) == b""
    choose()
    one.restart()
    assert one.sync().pushed == 1


def test_a_file_that_was_named_must_be_there(
    machine: Make, choose: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONARY_SYNC_SETTINGS", str(tmp_path / "typo.json"))
    one = machine("one")
    one.write("hello")
    assert [type(error) for error in one.sync().errors] == [NotFound]
    choose(exclude=("*",)).rename(tmp_path / "typo.json")
    assert (one.sync().pushed, one.sync().errors) == (0, [])


# -- encryption


def key_file(folder: Path) -> str:
    from pyrage import x25519

    path = folder / "key.txt"
    path.write_text(f"# the key\n{x25519.Identity.generate()}\n")
    return str(path)


def store_of(root: Path, config: CosmosConfig) -> HybridSessionStore:
    sessions = root / "projects" / "-work" / "sessions"
    return HybridSessionStore(sessions, config, state_dir=root / "state", project="p", tenant="ada")


def containers(double: CosmosDouble, *names: str) -> list[CosmosConfig]:
    made = [CosmosConfig(double.endpoint, "db", name, key=double.key) for name in names]
    for config in made:
        first = CosmosRemote(config, tenant="ada")
        first.prepare()
        first.close()
    return made


def holds(config: CosmosConfig) -> tuple[bool, bool]:
    """Whether a container holds anything, and whether it can be read without a key."""
    remote = CosmosRemote(config, tenant="ada")
    heads = remote.list_heads().heads
    remote.close()
    return bool(heads), any(b'"amplifier"' in head.data for head in heads)


def test_encryption_holds_for_the_remote_that_it_was_chosen_for(
    tmp_path: Path, choose: Callable[..., Path]
) -> None:
    with CosmosDouble() as double:
        sealed, plain = containers(double, "sealed", "plain")
        choose(sealed.address, encrypt=key_file(tmp_path))
        for config, readable in ((sealed, False), (plain, True)):
            with store_of(tmp_path / config.container, config) as one:
                one.save("s", say("hello"), META)
                sent = asyncio.run(one.sync())
                assert (sent.pushed, sent.errors) == (1, [])
            assert holds(config) == (True, readable)
            with store_of(tmp_path / f"{config.container}-two", config) as two:
                assert asyncio.run(two.pull()).pulled == 1
                assert two.load("s")[0] == say("hello")


def test_without_its_key_nothing_is_sent_in_plain(tmp_path: Path, choose: Callable[..., Path]) -> None:
    with CosmosDouble() as double:
        (config,) = containers(double, "sealed")
        choose(config.address, encrypt=str(tmp_path / "gone.txt"))
        with store_of(tmp_path / "one", config) as one:
            one.save("s", say("hello"), META)
            sent = asyncio.run(one.sync())
            assert sent.pushed == 0
            assert "copy it from a machine that has it" in str(sent.errors[0].hint)
        assert holds(config) == (False, False)
