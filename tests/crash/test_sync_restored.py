"""Devices that live with a store that is put back to earlier states, or emptied: nothing is lost, nothing doubled."""

import os
import random
from pathlib import Path

from tests.support.backed_up import BackedUp
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import World, live

SEEDS = 1500 if os.environ.get("SESSIONARY_SOAK") else 40


def test_devices_at_a_store_that_is_put_back_lose_and_double_nothing(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        fate = random.Random(seed)
        store = BackedUp(MemoryServer(page_bytes=2000, page_heads=3))
        world = World(tmp_path / str(seed), store.remote, fate.choice((2, 3)), block=600)
        world.put_back = True
        for _ in range(6):
            live(world, fate, 8)
            fate.choice((store.back_up, store.put_back, store.put_back, store.empty, lambda: None))()
        for device in (
            world.devices
        ):  # a backup may be from the moment between a head and the blocks that a fork shares
            engine = device.engine(store.remote())
            engine.checker.check(engine.listed(), repair=True)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
