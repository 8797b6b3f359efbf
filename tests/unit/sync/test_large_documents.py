"""A document goes whole into the last round, of however many blocks it is."""

import random
from pathlib import Path

import pytest

from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.policy_world import BRAINSTORM, PolicyWorld
from tests.support.sync_world import World


class Counted(MemoryRemote):
    """A store that gives up where a push comes to no end."""

    swaps = again = 0

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        new = super().put_block(space, block, data)
        self.again += not new
        return new

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        self.swaps += 1
        assert self.swaps < 100
        return super().swap_head(name, data, etag)


@pytest.mark.parametrize("turns", [2, 200])
def test_a_document_larger_than_a_round_is_pushed_whole(tmp_path: Path, turns: int) -> None:
    server = MemoryServer()
    world = World(tmp_path, server.remote, 2, block=200)
    a, b = world.devices
    world.say(a, "one", turns, 150)
    lines = "".join(f"{random.Random(n).getrandbits(400):x}\n" for n in range(300))
    (a.sessions / "one" / "config.md").write_text(lines)
    counted = Counted(server, "me")
    (outcome,) = a.engine(counted).push().outcomes
    assert outcome.standing is SyncStatus.PUSHED
    assert counted.again == 0, "no block is sent twice"
    assert [one.standing for one in a.engine(server.remote()).push().outcomes] == [SyncStatus.IN_STEP]
    b.engine(server.remote()).pull()
    assert (b.sessions / "one" / "config.md").read_text() == lines


def test_a_brainstorm_larger_than_a_round_is_pushed_whole(tmp_path: Path) -> None:
    server = MemoryServer()
    world = PolicyWorld(tmp_path, server.remote, kinds=(BRAINSTORM,), block=200)
    a, b = world.devices
    for n in range(300):
        a.storm("idea", f"{random.Random(n).getrandbits(400):x}")
    (outcome,) = a.engine(BRAINSTORM, Counted(server, "me")).push().outcomes
    assert outcome.standing is SyncStatus.PUSHED
    b.engine(BRAINSTORM, server.remote()).pull()
    assert b.answers("idea") == a.answers("idea")
