"""Files that two devices have changed are brought together, cut off anywhere: nothing is lost, nothing is doubled."""

import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.crash.policy_stages import BLOCK, STAGES, Stage, moved, sweep
from tests.crash.sync_stages import Hub
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import PolicyWorld, live_on
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep

SEEDS = 2000 if os.environ.get("SESSIONARY_SOAK") else 12
SKEWS = (timedelta(), timedelta(days=3), timedelta(days=-3))


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: str(stage.name))
def test_files_are_brought_together_wherever_it_is_cut_off(stage: Stage, tmp_path: Path) -> None:
    assert sweep(stage, tmp_path) > 10


PULLS = ["messages on both", "applied on both", "logged on both", "other fields on both", "answered on both"]


@pytest.mark.parametrize("name", PULLS)
def test_a_power_cut_while_files_are_brought_together_loses_nothing(name: str, tmp_path: Path) -> None:
    stage = next(stage for stage in STAGES if stage.name == name)
    hub, prepared, kept = Hub(), list[PolicyWorld](), list[Any]()

    def world_in(folder: str) -> PolicyWorld:
        return PolicyWorld(Path(folder), hub.remote, kinds=(stage.kind,), block=BLOCK)

    def setup(folder: str) -> None:
        prepared.append(world_in(folder))
        stage.prepare(prepared[0])
        kept.append(hub.kept())

    def operation(fs: RecordingFs) -> None:
        for engine in prepared[0].devices[0].engines(hub.remote(), fs):
            stage.work(engine)

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        hub.put_back(kept[0])
        moved(Path(folder), prepared[0].root)
        world = world_in(folder).like(prepared[0])
        world.check()
        stage.verify(world)

    report = crash_sweep(setup, operation, check, tmp_path, limit=2)
    assert report.states > 10
    assert not report.violations, report.describe()


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
