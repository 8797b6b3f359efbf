"""A store with replicas may show a state that was: nothing here is taken back for it."""

import os
import random
from pathlib import Path
from typing import Any

from sessionary.sync.remote import HeadPage, HeadRecord
from sessionary.sync.report import SyncStatus
from tests.crash.sync_stages import BLOCK, pull, push, shared
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import World, live

SEEDS = 1000 if os.environ.get("SESSIONARY_SOAK") else 24


class Replicas:
    """A server whose heads are read from replicas that lag behind; what is swapped is decided at one place."""

    def __init__(self, fate: random.Random) -> None:
        self.server = MemoryServer(page_bytes=2000, page_heads=3)
        self.past: dict[str, list[HeadRecord]] = {}
        self.fate = fate
        self.lags = True

    def remote(self) -> "LaggingRemote":
        return LaggingRemote(self)

    def shown(self, head: HeadRecord) -> HeadRecord:
        return self.fate.choice(self.past[head.name][-3:]) if self.lags else head


class LaggingRemote(MemoryRemote):
    def __init__(self, replicas: Replicas) -> None:
        super().__init__(replicas.server, "me")
        self._replicas = replicas

    def read_head(self, name: str) -> HeadRecord | None:
        head = super().read_head(name)
        return None if head is None else self._replicas.shown(head)

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = super().list_heads(after)
        return page._replace(heads=tuple(map(self._replicas.shown, page.heads)))

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        won = super().swap_head(name, data, etag)
        if won is not None:
            self._replicas.past.setdefault(name, []).append(HeadRecord(name, data, won))
        return won


class Oldest(random.Random):
    """Always shows the oldest state that may be shown."""

    def choice(self, seq: Any) -> Any:
        return seq[0]


def test_an_older_head_takes_nothing_back(tmp_path: Path) -> None:
    replicas = Replicas(Oldest())
    world = World(tmp_path, replicas.remote, block=BLOCK)
    a, b = shared(world)
    world.say(a, "one", 3)
    push(a, world)
    before = a.files()
    pull(a, world)
    assert a.files() == before
    replicas.lags = False
    assert [one.standing for one in a.engine(world.remote()).pull().outcomes] == [SyncStatus.IN_STEP]
    pull(b, world)
    assert b.files() == before


def test_an_older_head_brings_no_trash_back(tmp_path: Path) -> None:
    replicas = Replicas(Oldest())
    world = World(tmp_path, replicas.remote, block=BLOCK)
    a, _ = shared(world)
    a.trash("one")
    push(a, world)
    pull(a, world)
    assert a.names() == []


def test_devices_at_lagging_replicas_lose_and_double_nothing(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        fate = random.Random(seed)
        replicas = Replicas(fate)
        world = World(tmp_path / str(seed), replicas.remote, fate.choice((2, 3)), block=600)
        live(world, fate, 40)
        replicas.lags = False
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_status_at_a_replica_that_lags_says_that_it_may_lag_and_a_push_finds_out(tmp_path: Path) -> None:
    replicas = Replicas(Oldest())
    world = World(tmp_path, replicas.remote, block=BLOCK)
    a, _ = shared(world)
    world.say(a, "one", 1)
    push(a, world)
    (reported,) = a.engine(world.remote()).status().outcomes
    assert (reported.standing, "only late" in reported.note) == (SyncStatus.AHEAD, True)
    before = dict(replicas.server.tenants["me"].heads)
    (reported,) = a.engine(world.remote()).push(look=True).outcomes
    assert (reported.standing, reported.note) == (SyncStatus.IN_STEP, "")
    assert replicas.server.tenants["me"].heads == before
