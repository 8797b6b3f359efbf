"""Tidying up on real stores: what is left over goes, what a head reaches stays, and a new device gets all of it."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.engine import Engine
from sessionary.sync.heads import Head, decode
from sessionary.sync.remote import StatPage, heads_of
from tests.crash.gc_stages import Between, at_once, comes_right, remove
from tests.crash.sync_stages import BLOCK, pull, push, shared
from tests.remotes import REMOTES
from tests.servers.cosmos import Bench, Double, Npm
from tests.support.chaos_remote import ChaosRemote
from tests.support.sync_torture import Address, connected
from tests.support.sync_world import World, attempt, live, note_what_is_there

SEEDS = 60 if os.environ.get("SESSIONARY_SOAK") else 2
LOST = "00000000-00000000-" + 32 * "f"
Store = Callable[[], AbstractContextManager[Any]]


class Aged:
    """A store in which everything is as much older as one cannot wait for. It is settled at once."""

    def __init__(self, inner: Any, by: float = 7200.0) -> None:
        self.inner = inner
        self.by = by

    def __getattr__(self, name: str) -> Any:
        return 0.0 if name == "settled_after" else getattr(self.inner, name)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        page: StatPage = self.inner.list_blocks(space, first, stop, after)
        stats = (stat if stat.age is None else stat._replace(age=stat.age + self.by) for stat in page.stats)
        return StatPage(tuple(stats), page.following)


def at(address: Callable[[], Address]) -> AbstractContextManager[Any]:
    return connected(address())


@contextmanager
def cosmos(server: Callable[[], Any]) -> Iterator[Any]:
    bench = Bench(server(), page_blocks=5, page_heads=2)
    try:
        yield bench.connect()
    finally:
        bench.close()


STORES = [
    *(pytest.param(partial(at, one.values[0]), id=one.id, marks=one.marks) for one in REMOTES),
    pytest.param(partial(cosmos, Double), id="cosmos-double"),
    pytest.param(partial(cosmos, Npm), id="cosmos-npm", marks=pytest.mark.lane("cosmos-npm")),
]


def world_at(store: Any, root: Path) -> World:
    return World(root, lambda: store, block=BLOCK)


def later(world: World, hours: int = 2) -> None:
    for device in world.devices:
        device.passed = lambda: hours * 3600.0


@pytest.mark.parametrize("store", STORES)
def test_only_unreferenced_blocks_are_removed(store: Store, tmp_path: Path) -> None:
    with store() as remote:
        world = world_at(remote, tmp_path)
        a, b = shared(world)
        world.fork(a, "one", "fork", 2)
        push(a, world)
        world.say(b, "two", 3, 150)
        push(b, world)
        world.take_back(b.rewind("two", 1))
        world.shortened |= {"one", "two"}
        push(b, world)
        world.take_back(a.trash("one")[2:])
        push(a, world)
        space = next(head for head in _heads(remote) if head.session == "two").space
        remote.put_block(space, LOST, b"left over")
        note_what_is_there(a.remover(remote))
        later(world)
        done = a.remover(Aged(remote)).remove()
        assert (done.emptied, done.trimmed, done.found.unread, done.missing, done.undated) == (1, 1, 0, 0, 0)
        assert done.removed == 1 + 2 + 1, (
            "what was left over, two lines of `two`, and what the fork does not share"
        )
        assert done.restored == 0
        assert a.remover(Aged(remote)).remove().removed == 0
        at_once(world)
        pull(a, world)
        world.check()
        assert sorted(a.names()) == ["fork", "two"]


def _heads(remote: Any) -> list[Head]:
    return [decode(record.name, record.data) for record in heads_of(remote)]


@pytest.mark.parametrize("store", STORES)
def test_a_removal_and_a_push_that_meet_lose_nothing(store: Store, tmp_path: Path) -> None:
    """A push that was killed is begun again, and meets the removal of what it had left behind."""
    for at_call in (1, 3, 5):
        for inner in ("push", "removal"):
            with store() as remote:
                world = world_at(remote, tmp_path / f"{at_call}-{inner}")
                a, b = shared(world)
                world.say(a, "one", 2, 150)
                attempt(a, ChaosRemote(remote, {3: "kill"}), Engine.push)
                later(world)
                if inner == "removal":
                    meeting = Between(remote, at_call, partial(remove, b, Aged(remote)))
                    attempt(a, meeting, Engine.push)
                else:
                    remove(b, Between(Aged(remote), at_call + 2, partial(attempt, a, remote, Engine.push)))
                at_once(world)
                world.check()
                assert a.names() == b.names() == ["one"]
                shutil.rmtree(world.root)


@pytest.mark.parametrize("store", STORES)
def test_devices_that_tidy_up_on_a_bad_network_lose_and_double_nothing(store: Store, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        fate = random.Random(seed)
        with store() as remote:
            world = World(tmp_path / str(seed), partial(ChaosRemote, remote), 2, block=600)
            for turn in range(4):
                live(world, fate, 8)
                later(world, 2 * turn)
                chaos = ChaosRemote(Aged(remote), fate=fate, chance=0.03)
                remove(fate.choice(world.devices), chaos)
                chaos.settle()
            try:
                comes_right(world)
            except (AssertionError, RemoteError) as error:
                raise AssertionError(f"seed {seed}: {error}") from error
