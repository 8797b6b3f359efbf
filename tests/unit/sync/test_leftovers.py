"""What no head reaches is counted, each block once and under the right name, and nothing is removed."""

from pathlib import Path

from sessionary.sync.gc.leftovers import Leftovers, count_leftovers
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import Device, World

BLOCK = 200


def world(tmp_path: Path) -> tuple[World, MemoryServer, Device]:
    server = MemoryServer()
    made = World(tmp_path, server.remote, 1, block=BLOCK)
    return made, server, made.devices[0]


def push(made: World) -> None:
    made.devices[0].engine(made.remote()).push()


def stored(server: MemoryServer) -> int:
    return sum(len(blocks) for blocks in server.tenants["me"].blocks.values())


def test_a_remote_that_was_only_written_to_has_no_leftovers(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 5, 150)
    made.say(device, "two", 1)
    push(made)
    found = count_leftovers(server.remote())
    assert (found.heads, found.tombstones, found.spaces) == (2, 0, 2)
    assert found.blocks == stored(server) > 4
    assert (found.past_blocks, found.dead_blocks, found.lost_blocks) == (0, 0, 0)


def test_an_empty_remote_has_nothing() -> None:
    assert count_leftovers(MemoryServer().remote()) == Leftovers()


def test_blocks_from_before_a_rewind_are_kept_for_the_history(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 5, 150)
    push(made)
    before = stored(server)
    device.rewind("one", 1)
    made.say(device, "one", 2, 150)
    push(made)
    found = count_leftovers(server.remote())
    assert found.blocks == stored(server) == before + 2
    assert found.past_blocks == before - 1
    assert found.lost_blocks == 0


def test_a_trashed_session_holds_its_blocks_by_its_tombstone(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 3, 150)
    made.say(device, "two", 1)
    push(made)
    device.trash("one")
    push(made)
    found = count_leftovers(server.remote())
    assert (found.heads, found.tombstones) == (2, 1)
    assert found.dead_blocks == found.blocks - 1 > 1
    assert found.lost_blocks == 0


def test_what_a_living_fork_shares_is_not_dead(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 4, 150)
    push(made)
    shared = stored(server)
    made.fork(device, "one", "fork", 4)
    push(made)
    device.trash("one")
    push(made)
    found = count_leftovers(server.remote())
    assert found.spaces == 1
    assert found.dead_blocks < shared
    assert found.lost_blocks == 0


def test_a_block_that_lost_a_race_is_found(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 2)
    push(made)
    (space,) = server.tenants["me"].blocks
    server.remote().put_block(space, "00000000-00000000-ff", b"left over")
    found = count_leftovers(server.remote())
    assert (found.lost_blocks, found.lost_size) == (1, 9)
    assert server.tenants["me"].blocks[space]["00000000-00000000-ff"] == b"left over"


def test_what_a_head_of_a_newer_version_points_to_is_not_a_leftover(tmp_path: Path) -> None:
    made, server, device = world(tmp_path)
    made.say(device, "one", 2)
    push(made)
    tenant = server.tenants["me"]
    (name,) = tenant.heads
    tenant.heads[name] = b'{"v": 99}', 77
    found = count_leftovers(server.remote())
    assert (found.heads, found.unread) == (1, 1)
    assert (found.blocks, found.lost_blocks) == (0, 0)
