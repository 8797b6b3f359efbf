"""Devices that share a Cosmos DB: on a service that fails in every way it can, nothing is lost and nothing doubled."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.engine import Engine
from sessionary.sync.retry import RetryingRemote
from tests.crash.sync_stages import BLOCK, STAGES, Stage, moved_states
from tests.servers.cosmos import Bench, Double, Npm, Server
from tests.support.cosmos_double import CosmosDouble, Fault
from tests.support.cosmos_http import Kind
from tests.support.sync_world import World, attempt, live

SOAK = bool(os.environ.get("SESSIONARY_SOAK"))
DOUBLE_SEEDS = 200 if SOAK else 4
NPM_SEEDS = 40 if SOAK else 2
STEPS = 30

PASSING = (408, 410, 429, 449, 500, 503)


def placed(server: Server, fate: random.Random, place: Path, **options: Any) -> tuple[Bench, World]:
    """A world of devices at a server."""
    pages = {"page_blocks": fate.choice((2, 5, 100)), "page_heads": fate.choice((2, 400))}
    bench = Bench(server, **pages, **options)
    world = World(place, bench.remote, fate.choice((2, 3)), block=600, logs=fate.random() < 0.4)
    return bench, world


class Weather:
    """What goes wrong with the requests to a service, now and then."""

    def __init__(self, fate: random.Random, chance: float) -> None:
        self.fate = fate
        self.chance = chance
        self.struck: set[str] = set()

    def __call__(self, kind: Kind) -> Fault | None:
        if self.fate.random() >= self.chance:
            return None
        fault = self.fate.choice(
            [
                Fault("drop before"),
                Fault("drop after"),
                Fault("cut"),
                Fault("portal"),
                Fault("status", status=self.fate.choice(PASSING), retry_after=0.001),
                Fault("status after", status=self.fate.choice((408, 500, 503))),
                Fault("hang") if self.fate.random() < 0.2 else Fault("hang after", on="write"),
            ]
        )
        self.struck.add(fault.action)
        return fault


@pytest.mark.parametrize("half", range(2))
def test_devices_at_a_failing_service_lose_and_double_nothing(half: int, tmp_path: Path) -> None:
    struck: set[str] = set()
    for seed in range(half, DOUBLE_SEEDS, 2):
        fate = random.Random(seed)
        server = Double(clock_offset=fate.choice((0.0, 600.0, -600.0)), lag=fate.choice((0.0, 0.05)))
        bench, world = placed(server, fate, tmp_path / str(seed), patience=1.5)
        weather = server.double.fate = Weather(fate, 0.08)
        live(world, fate, STEPS)
        weather.chance = 0.0
        server.double.store.container("db", "box").lag = 0.0
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            bench.close()
        struck |= weather.struck
    assert len(struck) > 3


def test_devices_at_a_throttled_service_lose_and_double_nothing(tmp_path: Path) -> None:
    fate = random.Random(7)
    server = Double(budget=25.0)
    bench, world = placed(server, fate, tmp_path)
    world.remote = lambda: RetryingRemote(bench.remote(), tries=100)  # the devices themselves do not wait
    live(world, fate, STEPS, chance=0.0)
    refused = server.double.requests["429"]
    server.double.budget = None
    world.check()
    bench.close()
    assert refused > 0


@pytest.mark.lane("cosmos-npm")
@pytest.mark.parametrize("seed", range(NPM_SEEDS))
def test_devices_at_the_server_of_others_lose_and_double_nothing(seed: int, tmp_path: Path) -> None:
    fate = random.Random(100 + seed)
    bench, world = placed(Npm(), fate, tmp_path)
    live(world, fate, STEPS)
    world.check()
    bench.close()
    assert world.said > 0


SWEPT = [stage.name for stage in STAGES] if SOAK else ["grown here", "grown on both", "trashed here"]


@pytest.mark.parametrize("name", SWEPT)
def test_a_request_that_fails_anywhere_comes_right(name: str, tmp_path: Path) -> None:
    stage = next(stage for stage in STAGES if stage.name == name)
    server = Double()
    bench = Bench(server)
    prepared = World(tmp_path / "prepared", bench.remote, block=BLOCK)
    stage.prepare(prepared)
    box = server.double.store.container("db", "box")
    kept = box.kept()
    count = failing(
        stage, server.double, Fault("status", count=0), again_from(bench, prepared, tmp_path, "counted")
    )
    runs = 0
    for skip in range(count):
        for fault in (
            Fault("drop before", skip=skip),
            Fault("drop after", skip=skip),
            # So often that the caller gives up, and the next synchronisation has to go on from there.
            Fault("status", skip=skip, count=20, status=503),
            Fault("status after", skip=skip, count=20, status=503),
        ):
            box.put_back(kept)
            world = again_from(bench, prepared, tmp_path, f"run{runs}")
            failing(stage, server.double, fault, world)
            server.double.faults.clear()
            world.check()
            stage.verify(world)
            runs += 1
    bench.close()
    assert runs >= 4


def again_from(bench: Bench, prepared: World, root: Path, name: str) -> World:
    """A copy of the devices, at the same service."""
    shutil.copytree(prepared.root, root / name)
    moved_states(root / name, prepared.root)
    connection = bench.connect()  # of its own: the others remember a later state of the service
    world = World(root / name, lambda: connection, block=BLOCK)
    world.written, world.taken_back = dict(prepared.written), set(prepared.taken_back)
    world.shortened, world.said = set(prepared.shortened), prepared.said
    return world


def failing(stage: Stage, double: CosmosDouble, fault: Fault, world: World) -> int:
    """Let a stage's work be done while something goes wrong; returns how many requests it made."""
    before = double.requests["read"] + double.requests["write"]
    double.faults[:] = [fault]
    attempt(world.devices[0], world.remote(), lambda engine: reported(stage, engine))
    return double.requests["read"] + double.requests["write"] - before


def reported(stage: Stage, engine: Engine) -> Any:
    """The work of a stage; that the heads cannot be listed is an error of the call itself."""
    try:
        return stage.work(engine)
    except RemoteError:
        return None
