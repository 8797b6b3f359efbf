"""How long a removal waits before it looks again."""

from pathlib import Path

import pytest

from sessionary.sync.gc.removal import LEAST, Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.upload_plan import REST
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import World

LOST = "00000000-00000000-" + 32 * "f"


class Slow(MemoryRemote):
    settled_after = 30.0


@pytest.mark.parametrize(("kind", "waited"), [(MemoryRemote, []), (Slow, [30.0 + REST])])
def test_a_removal_waits_until_the_store_is_settled(
    tmp_path: Path, kind: type[MemoryRemote], waited: list[float]
) -> None:
    time = [0.0]
    server, slept = MemoryServer(clock=lambda: time[0]), list[float]()
    world = World(tmp_path, server.remote, 1)
    world.say(world.devices[0], "one", 2)
    world.devices[0].engine(server.remote()).push()
    server.remote().put_block(next(iter(server.tenants["me"].blocks)), LOST, b"left over")
    time[0] = 7200.0
    removed = Removed(str(tmp_path / "removed"))
    remover = Remover(kind(server, "me"), removed, older=LEAST, sleep=slept.append)
    assert (remover.remove().removed, slept) == (1, waited)
    removed.begin(remover._now())
    remover.finish()
    assert slept == 2 * waited
