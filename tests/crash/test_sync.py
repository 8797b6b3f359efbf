"""Sync cut off everywhere, and lived with for long: nothing is lost, nothing doubled, and all devices come to agree."""

import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sync_stages import BLOCK, STAGES, Hub, Stage, again, moved_states, sweep
from tests.support.memory_remote import MemoryServer
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep
from tests.support.sync_world import World, live

SKEWS = (timedelta(), timedelta(days=3), timedelta(days=-3))
SEEDS = 4000 if os.environ.get("SESSIONARY_SOAK") else 60


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: str(stage.name))
def test_work_that_is_cut_off_anywhere_comes_right(stage: Stage, tmp_path: Path) -> None:
    assert sweep(stage, tmp_path) > 14


PULLS = ["new there", "grown there", "rewound there", "grown on both", "trashed there"]


@pytest.mark.parametrize("name", PULLS)
def test_a_power_cut_during_a_pull_loses_nothing(name: str, tmp_path: Path) -> None:
    stage = next(stage for stage in STAGES if stage.name == name)
    hub, prepared, kept = Hub(), list[World](), list[Any]()

    def setup(folder: str) -> None:
        prepared.append(World(Path(folder), hub.remote, block=BLOCK))
        stage.prepare(prepared[0])
        kept.append(hub.kept())

    def operation(fs: RecordingFs) -> None:
        stage.work(prepared[0].devices[0].engine(hub.remote(), fs))
        fs.mark("pulled")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        hub.put_back(kept[0])
        moved_states(Path(folder), prepared[0].root)
        world = again(prepared[0], Path(folder), hub)
        before = world.devices[0].files()
        world.check()
        stage.verify(world)
        if acked:
            assert world.devices[0].files() == before, "what was reported as pulled was not there"

    report = crash_sweep(setup, operation, check, tmp_path, limit=3)
    assert report.states > 30
    assert not report.violations, report.describe()


@pytest.mark.parametrize("half", range(4))
def test_devices_on_a_bad_network_lose_and_double_nothing(half: int, tmp_path: Path) -> None:
    for seed in range(half, SEEDS, 4):
        fate = random.Random(seed)
        server = MemoryServer(page_bytes=2000, page_heads=3)
        logs = fate.random() < 0.4
        world = World(
            tmp_path / str(seed), server.remote, fate.choice((2, 3)), block=600, logs=logs, skews=SKEWS
        )
        live(world, fate, 40)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
