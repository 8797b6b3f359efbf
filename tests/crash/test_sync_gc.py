"""A push and a garbage collection interleave at every call, and either is killed there: no session is lost.

The stages are those in which a push relies on blocks that no head reaches yet. Devices that live with it for long come
last, with clocks that jump, on a network that fails.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyrage
import pytest

from sessionary.errors import RemoteError
from sessionary.sync.gc.removal import LEAST, Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import Remote
from sessionary.sync.remotes.sealed import SealedRemote
from sessionary.sync.retry import RetryingRemote
from sessionary.testing.wrapper import UNSYNCED
from tests.crash.gc_stages import (
    STAGES,
    ByTurns,
    Hub,
    Meeting,
    Stage,
    Turns,
    at_once,
    comes_right,
    see_and_wait,
)
from tests.crash.sync_stages import BLOCK
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault, FaultFs, Killed
from tests.support.policy_world import PolicyDevice, PolicyWorld, live_on
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep
from tests.support.sync_world import EPOCH, Device, World, live

SOAK = bool(os.environ.get("SESSIONARY_SOAK"))
EVERY = 1 if SOAK else 6
"""So many meetings are passed over before one is looked at with all its devices."""

SEEDS = 1500 if SOAK else 16
TURNS = 500 if SOAK else 5
FAULTS = ("kill", "kill after", "lost", "late")
BY_NAME = {stage.name: stage for stage in STAGES}


def places(calls: int) -> range:
    """Before which calls to meet: all, where there are not too many."""
    return range(1, calls + 2, 1 if SOAK else 1 + calls // 24)


def met(at: int, meeting: Meeting, world: World) -> None:
    """What must be true after a meeting without damage."""
    try:
        at_once(world)
        if at % EVERY == 1 % EVERY:
            world.check()
    except AssertionError as error:
        raise AssertionError(f"{meeting.stage}, before call {at}: {error}") from error
    shutil.rmtree(world.root)


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_removal_in_the_middle_of_a_push_takes_nothing_away(stage: Stage, tmp_path: Path) -> None:
    meeting = Meeting(stage, tmp_path)
    pushes, _ = meeting.calls()
    assert pushes > 0, "nothing was pushed, so nothing could be met"
    for at in places(pushes):
        met(at, meeting, meeting.in_a_push(at, {}, {}))


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_push_in_the_middle_of_a_removal_is_whole_afterwards(stage: Stage, tmp_path: Path) -> None:
    meeting = Meeting(stage, tmp_path)
    _, removals = meeting.calls()
    assert removals > 0, "nothing was removed, so nothing could be met"
    for at in places(removals):
        met(at, meeting, meeting.in_a_removal(at, {}, {}))


def harms(calls: int, fate: random.Random) -> Iterator[tuple[int, dict[int, str]]]:
    """A place to meet, and what happens to one call, before or behind it."""
    every = [(at, {n: fault}) for at in range(1, calls + 1) for n in range(1, calls + 1) for fault in FAULTS]
    yield from every if SOAK else fate.sample(every, min(6, len(every)))


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_process_killed_at_such_a_meeting_begins_again_and_all_comes_right(
    stage: Stage, tmp_path: Path
) -> None:
    meeting, fate = Meeting(stage, tmp_path), random.Random(5)
    pushes, removals = meeting.calls()
    cases: list[tuple[Callable[..., World], int, dict[int, str], dict[int, str]]] = []
    for at, plan in harms(removals, fate):
        cases += [(meeting.in_a_removal, at, plan, {}), (meeting.in_a_push, min(at, pushes), {}, plan)]
    for at, plan in harms(pushes, fate):
        cases += [(meeting.in_a_push, at, plan, {}), (meeting.in_a_removal, min(at, removals), {}, plan)]
    for meet, at, plan, inner in cases:
        world = meet(at, plan, inner)
        try:
            comes_right(world)
        except AssertionError as error:
            reported = f"{stage}, {meet.__name__} before call {at}, {plan}, {inner}"
            raise AssertionError(f"{reported}: {error}") from error
        shutil.rmtree(world.root)


@pytest.mark.parametrize("looks_first", [False, True], ids=["compares", "looks first"])
@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_push_and_two_removals_by_turns_lose_nothing(
    stage: Stage, looks_first: bool, tmp_path: Path
) -> None:
    meeting = Meeting(stage, tmp_path)
    for seed in range(TURNS):
        world, turns = meeting.world(), Turns(random.Random(seed))
        a, b = world.devices
        third = Device(world.root, "third")
        third.passed = meeting.hub.passed
        seen = {
            name: ByTurns(meeting.hub, turns, name, looks_first=looks_first)
            for name in ("push", "one", "two")
        }
        turns.run(
            {
                "push": a.engine(seen["push"]).push,
                "one": b.remover(seen["one"]).remove,
                "two": third.remover(seen["two"]).remove,
            }
        )
        try:
            at_once(world)
            world.check()
        except AssertionError as error:
            raise AssertionError(f"{stage}, seed {seed}: {error}") from error
        shutil.rmtree(world.root)


class Marking:
    """A remote that notes on the disk's record when a block is gone."""

    def __init__(self, inner: Any, mark: Callable[[str], None]) -> None:
        self.inner = inner
        self.mark = mark

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        self.mark(f"{space}/{block}")  # before: from now on it may be gone
        gone: bool = self.inner.delete_block(space, block, version)
        return gone


def test_a_power_cut_at_any_moment_leaves_the_bytes_of_what_was_removed(tmp_path: Path) -> None:
    hub, before = Hub(), dict[str, bytes]()

    def setup(folder: str) -> None:
        world = World(Path(folder), hub.remote, block=BLOCK, passed=hub.passed)
        world.say(world.devices[0], "one", 4, 150)
        world.devices[0].engine(hub.remote()).push()
        world.devices[0].trash("one")
        world.devices[0].engine(hub.remote()).push()
        see_and_wait(world, hub)
        blocks = hub.server.tenants["me"].blocks
        before.update(
            {f"{space}/{name}": data for space, here in blocks.items() for name, data in here.items()}
        )

    def operation(fs: RecordingFs) -> None:
        device = Device(Path(fs.root), "device0")
        device.passed = hub.passed
        assert device.remover(Marking(hub.remote(), fs.mark), fs).remove().removed == 4

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        kept = Removed(str(Path(folder) / "device0" / "removed"))
        found = {
            f"{space}/{name}": get() for space, here in kept.blocks().items() for name, get in here.items()
        }
        removed = [
            one for one in acked if not one.endswith("0" * 32)
        ]  # that is a question whether it may be done
        for one in removed:
            assert found[one] == before[one]
            assert kept.open_run() is not None or len(removed) == 4

    report = crash_sweep(setup, operation, check, tmp_path, limit=3)
    assert report.states > 10
    assert not report.violations, report.describe()


# -- mistakes, and the stage that finds each


def no_second_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Remover, "_look_again", lambda self, run, known, done: None)


def no_second_put(patch: pytest.MonkeyPatch) -> None:
    send = Pusher._send
    patch.setattr(Pusher, "_send", lambda self, *given: (send(self, *given)[0], []))


def no_look_at_what_was_assumed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pusher, "_put_missing", lambda self, mine, intended, wanted: None)


def no_trust_in_age(patch: pytest.MonkeyPatch) -> None:
    """What is young is removed, too. It is put back; but the push that put it does not look after it."""
    patch.setattr(Remover, "_is_old", lambda self, stat, done: True)


def nothing_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Removed, "keep", lambda self, run, space, block, data: None)


def pieces_of_an_emptied_tombstone(patch: pytest.MonkeyPatch) -> None:
    """What was agreed before is taken to be there still; the look after the swap alone would make up for it."""
    no_look_at_what_was_assumed(patch)
    patch.setattr("sessionary.sync.pulling.named", lambda head, pieces: pieces)


IN_A_PUSH = test_a_removal_in_the_middle_of_a_push_takes_nothing_away
IN_A_REMOVAL = test_a_push_in_the_middle_of_a_removal_is_whole_afterwards
PLANTED = [
    (no_second_look, IN_A_REMOVAL, "left behind"),
    (no_second_look, IN_A_REMOVAL, "forked from trash"),
    (no_second_put, IN_A_PUSH, "left behind"),
    (no_look_at_what_was_assumed, IN_A_PUSH, "forked from a rewind"),
    (no_look_at_what_was_assumed, IN_A_PUSH, "asleep"),
    (no_trust_in_age, IN_A_PUSH, "growing"),
    (nothing_kept, IN_A_REMOVAL, "left behind"),
    (pieces_of_an_emptied_tombstone, IN_A_PUSH, "brought back"),
]


@pytest.mark.parametrize(
    ("plant", "test", "stage"), PLANTED, ids=lambda one: str(getattr(one, "__name__", one))
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    test: Callable[[Stage, Path], None],
    stage: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="before call"):
        test(BY_NAME[stage], tmp_path)


# -- living with it


def tidy(device: Device, hub: Hub, remote: Remote, fate: random.Random) -> None:
    """Some device tidies up over a bad network, and may be killed."""
    fs = FaultFs(UNSYNCED, Fault("any", fate.randint(1, 60), "kill") if fate.random() < 0.3 else ())
    chaos = ChaosRemote(remote, fate=fate, chance=0.03)
    try:
        device.remover(chaos, fs).remove()
    except (Killed, RemoteError):
        pass
    finally:
        fs.bury()
    chaos.settle()


@pytest.mark.parametrize("half", range(2))
def test_devices_that_tidy_up_on_a_bad_network_lose_and_double_nothing(half: int, tmp_path: Path) -> None:
    removed = 0
    for seed in range(half, SEEDS, 2):
        fate, hub = random.Random(seed), Hub()
        key = str(pyrage.x25519.Identity.generate()) if seed % 6 == 0 else None

        def remote(hub: Hub = hub, key: str | None = key) -> Any:
            return hub.remote() if key is None else SealedRemote(hub.remote(), key)

        skews = (timedelta(), timedelta(days=3), timedelta(days=-3))
        world = World(
            tmp_path / str(seed), remote, fate.choice((2, 3)), block=600, skews=skews, passed=hub.passed
        )
        for _ in range(28):
            live(world, fate, 4)
            hub.wait(fate.choice((0, 0, 0.4, 3)))
            before = hub.blocks()
            tidy(fate.choice(world.devices), hub, remote(), fate)
            removed += max(0, before - hub.blocks())
        try:
            comes_right(world)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert removed > SEEDS, "there was hardly anything to remove"


def test_whole_projects_that_are_tidied_up_lose_and_double_nothing(tmp_path: Path) -> None:
    removed = 0
    for seed in range(SEEDS // 2):
        fate, hub = random.Random(seed), Hub()
        world = PolicyWorld(tmp_path / str(seed), hub.remote, 2, block=600)

        def remover(device: PolicyDevice, remote: Remote, hub: Hub = hub) -> Remover:
            store = RetryingRemote(remote, sleep=lambda seconds: None)
            blocks = Removed(str(device.root / "removed"), UNSYNCED)
            rest = getattr(remote, "rest", lambda seconds: None)
            now = EPOCH + timedelta(seconds=hub.passed())
            return Remover(store, blocks, older=LEAST, now=lambda: now, sleep=rest)

        for _ in range(8):
            live_on(world, fate, 8, chance=0.15)
            hub.wait(fate.choice((0, 0.4, 3)))
            before, chaos = hub.blocks(), ChaosRemote(hub.remote(), fate=fate, chance=0.03)
            with suppress(Killed, RemoteError):
                remover(fate.choice(world.devices), chaos).remove()
            chaos.settle()
            removed += max(0, before - hub.blocks())
        for device in world.devices:
            remover(device, hub.remote()).finish()
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert removed > 0, "there was nothing to remove"
