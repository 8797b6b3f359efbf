"""Sync cut off everywhere, and lived with for long: nothing is lost, nothing doubled, and all devices come to agree."""

import os
import random
from pathlib import Path

import pytest

from sessionary.sync.remotes.memory import MemoryServer
from sessionary.testing.sync_world import World, live
from tests.crash.sync_stages import STAGES, Stage, sweep

SEEDS = 4000 if os.environ.get("SESSIONARY_SOAK") else 60


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: str(stage.name))
def test_work_that_is_cut_off_anywhere_comes_right(stage: Stage, tmp_path: Path) -> None:
    assert sweep(stage, tmp_path) > 20


@pytest.mark.parametrize("half", range(4))
def test_devices_on_a_bad_network_lose_and_double_nothing(half: int, tmp_path: Path) -> None:
    for seed in range(half, SEEDS, 4):
        fate = random.Random(seed)
        server = MemoryServer(page_bytes=2000, page_heads=3)
        logs = fate.random() < 0.4
        world = World(tmp_path / str(seed), server.remote, fate.choice((2, 3)), block=600, logs=logs)
        live(world, fate, 40)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
