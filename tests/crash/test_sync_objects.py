"""Devices on a bad network that share an object store: nothing lost, nothing doubled, and all come to agree.

Here are the stores that need no server; `test_sync_remotes` has those that do.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="the extra objectstore is not installed")

from obstore.store import MemoryStore

from sessionary.sync.remotes.objects import ObjectStoreRemote
from tests.servers.double_gcs import GcsDouble
from tests.support.sync_world import World, live

SEEDS = 300 if os.environ.get("SESSIONARY_SOAK") else 3
Connect = Callable[[], Any]


def survives(tmp_path: Path, connect: Connect, seeds: int) -> int:
    """Live through this many histories, each with a tenant of its own; how many had anything to lose."""
    reported = 0
    for seed in range(seeds):
        fate = random.Random(seed)
        world = World(tmp_path / str(seed), connect(), fate.choice((2, 3)), block=600, logs=seed % 2 == 0)
        live(world, fate, 30)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        reported += world.said > 0
    return reported


def small_pages(url: str, **options: Any) -> Callable[[], Any]:
    """One connection that all devices use, to a place of its own."""
    remote = ObjectStoreRemote(url, tenant="me", page_blocks=3, page_heads=2, **options)
    return lambda: remote


@pytest.fixture
def double() -> Iterator[GcsDouble]:
    server = GcsDouble()
    yield server
    server.close()


def test_in_memory(tmp_path: Path) -> None:
    assert (
        survives(tmp_path, lambda: small_pages("s3://in-memory", store=MemoryStore()), 5 * SEEDS) == 5 * SEEDS
    )


def test_on_the_double_of_google(tmp_path: Path, double: GcsDouble) -> None:
    places = iter(range(SEEDS))
    reported = survives(
        tmp_path, lambda: small_pages(f"gs://sessions/{next(places)}", **double.options), SEEDS
    )
    assert reported == SEEDS
