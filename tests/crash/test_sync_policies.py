"""Files that two devices have changed are brought together, cut off anywhere: nothing is lost, nothing is doubled."""

import os
import random
from datetime import timedelta
from pathlib import Path

import pytest

from sessionary.sync.remotes.memory import MemoryServer
from sessionary.testing.policy_world import PolicyWorld, live_on
from tests.crash.policy_stages import STAGES, Stage, sweep

SEEDS = 2000 if os.environ.get("SESSIONARY_SOAK") else 12
SKEWS = (timedelta(), timedelta(days=3), timedelta(days=-3))


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: str(stage.name))
def test_files_are_brought_together_wherever_it_is_cut_off(stage: Stage, tmp_path: Path) -> None:
    assert sweep(stage, tmp_path) > 10


@pytest.mark.parametrize("half", range(4))
def test_devices_with_all_kinds_of_sessions_and_wrong_clocks_lose_and_double_nothing(
    half: int, tmp_path: Path
) -> None:
    for seed in range(half, SEEDS, 4):
        fate = random.Random(seed)
        server = MemoryServer(page_bytes=2000, page_heads=3)
        world = PolicyWorld(tmp_path / str(seed), server.remote, fate.choice((2, 3)), block=600, skews=SKEWS)
        live_on(world, fate, 30)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
