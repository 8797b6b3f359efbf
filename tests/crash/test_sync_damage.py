"""One device is damaged while others go on, over a bad network, with processes that are killed: nothing is lost."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.errors import Invalid
from sessionary.layouts.amplifier.repairing import repair
from sessionary.sync.engine import Engine
from sessionary.sync.report import Report, SyncStatus
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import METADATA, TRANSCRIPT, Device, World, attempt

SEEDS = 1000 if os.environ.get("SESSIONARY_SOAK") else 40
ID = "one"


DAMAGE = ("emptied", "cut off", "zeros", "flipped")


def spoil(path: Path, fate: random.Random, way: str) -> None:
    """Damage a file in one of the ways in which disks and power cuts do."""
    data = bytearray(path.read_bytes())
    if way == "zeros":
        at = fate.randrange(len(data) // 2)
        data[at : at + 16] = bytes(16)
    elif way == "flipped":
        at = data.find(b"{", fate.randrange(len(data) // 2))
        data[max(0, at)] ^= 0x80
    else:
        del data[0 if way == "emptied" else len(data) // 2 + 7 :]
    path.write_bytes(bytes(data))


def with_faults(device: Device, world: World, fate: random.Random, work: Callable[[Engine], Report]) -> None:
    """Let a process do some work over a bad network; it may be killed."""
    remote = ChaosRemote(world.remote(), fate=fate, chance=0.06)
    attempt(device, remote, work, Fault("any", fate.randint(1, 60), "kill") if fate.random() < 0.3 else None)
    remote.settle()


def settle(engine: Engine) -> Report:
    (ref,) = [ref for ref in engine.layout.discover() if ref.session_id == ID]
    try:
        return engine.resolve(ref, "theirs")
    except Invalid:  # an earlier try has done it, whose end was not heard of
        return Report()


@pytest.mark.parametrize("name", [TRANSCRIPT, METADATA])
@pytest.mark.parametrize("way", ["resolve", "repair"])
def test_a_damaged_device_spoils_no_other_and_gets_everything_back(
    way: str, name: str, tmp_path: Path
) -> None:
    for seed in range(SEEDS):
        fate = random.Random(f"{seed} {name} {way}")
        server = MemoryServer(page_bytes=2000, page_heads=3)
        world = World(tmp_path / str(seed), server.remote, fate.choice((2, 3)), block=600)
        damaged = world.devices[0]
        world.say(damaged, ID, fate.randint(4, 12), fate.choice((5, 300)))
        world.settle()
        path = damaged.sessions / ID / name
        path.with_name(name + ".backup").write_bytes(path.read_bytes())
        # A repair may keep what it could read of a damaged line: a line that was never written.
        spoil(path, fate, "emptied" if way == "repair" else fate.choice(DAMAGE))
        bad = path.read_bytes()
        for _ in range(12):
            device = fate.choice(world.devices)
            if device is not damaged and fate.random() < 0.5:
                world.say(device, ID, fate.randint(1, 3))
            with_faults(device, world, fate, fate.choice((Engine.push, Engine.pull)))
            assert path.read_bytes() == bad, f"seed {seed}: what waits for the user was changed"
        reported = {
            one.standing for one in damaged.engine(world.remote()).push().outcomes if one.session_id == ID
        }
        assert reported == {SyncStatus.HELD_BACK}, f"seed {seed}: {reported}"
        if way == "repair":
            repair(path.parent)
        else:
            with_faults(damaged, world, fate, settle)
            settle(damaged.engine(world.remote()))
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
