"""A block that cannot be opened keeps what is beside it, and nothing else."""

from datetime import timedelta
from pathlib import Path

import pytest

pyrage = pytest.importorskip("pyrage")

from sessionary.errors import RemoteError  # noqa: E402
from sessionary.sync.gc.leftovers import count_leftovers  # noqa: E402
from sessionary.sync.remotes.sealed import SealedRemote  # noqa: E402
from tests.support.memory_remote import MemoryServer  # noqa: E402
from tests.support.sync_world import World  # noqa: E402


class Cut(SealedRemote):
    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        raise RemoteError("the line is cut")


def test_a_block_that_cannot_be_opened_keeps_only_its_own_space(tmp_path: Path) -> None:
    time = [0.0]
    server, key = MemoryServer(clock=lambda: time[0]), str(pyrage.x25519.Identity.generate())
    world = World(tmp_path, lambda: SealedRemote(server.remote(), key), 2, block=200, passed=lambda: time[0])
    a, b = world.devices
    for session in ("one", "two"):
        world.say(a, session, 5, 150)
    a.engine(world.remote()).push()
    b.engine(world.remote()).pull()
    for session in ("one", "two"):  # a push that was cut off, and then lost against another one
        world.say(a, session, 3, 150)
    a.engine(Cut(server.remote(), key)).push()
    for session in ("one", "two"):
        world.say(b, session, 3, 150)
    b.engine(world.remote()).push()
    assert count_leftovers(world.remote()).lost_blocks == 6
    blocks = server.tenants["me"].blocks
    space = sorted(blocks)[0]
    last = sorted(blocks[space])[-1]
    server.remote().put_block(space, last[:26] + "f" * 32, b"junk")
    before = dict(blocks[space])
    time[0] = 40 * 86_400.0
    counted = count_leftovers(world.remote())
    assert (counted.closed, counted.lost_blocks) == (1, 3)
    done = b.remover(world.remote(), older=timedelta(days=30)).remove()
    assert (done.removed, done.found.closed, done.is_whole) == (3, 1, False)
    assert blocks[space] == before
