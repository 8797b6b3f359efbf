"""Stages in which a push relies on unreferenced blocks while another client collects garbage."""

import base64
import random
import shutil
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessionary.errors import RemoteError
from sessionary.sync.engine import Engine
from sessionary.sync.gc.removal import Removal
from sessionary.sync.remote import Remote
from tests.crash.sync_stages import BLOCK, moved_states, pull, push, shared
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Killed
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device, World, attempt, note_what_is_there

HOUR = 3600.0


class Hub:
    """A server with a clock, that can be put back to what it was."""

    def __init__(self) -> None:
        self.time = 0.0
        self.server = self._new()

    def _new(self) -> MemoryServer:
        return MemoryServer(page_bytes=1000, page_heads=2, clock=self.passed)

    def passed(self) -> float:
        return self.time

    def wait(self, hours: float = 2) -> None:
        self.time += hours * HOUR

    def remote(self) -> MemoryRemote:
        return self.server.remote()

    def blocks(self) -> int:
        """How many blocks there are."""
        return sum(len(blocks) for blocks in self.server.tenants["me"].blocks.values())

    def kept(self) -> Any:
        return deepcopy(dict(self.server.tenants)), self.server.versions, self.time

    def put_back(self, kept: Any) -> None:
        self.server = self._new()
        self.server.tenants.update(deepcopy(kept[0]))
        self.server.versions, self.time = kept[1:]


def see_and_wait(world: World, hub: Hub) -> None:
    """Let time pass, after the removing process has seen which tombstones and earlier generations there are."""
    for device in (*world.devices, Device(world.root, "third")):
        device.passed = hub.passed
        note_what_is_there(device.remover(hub.remote()))
    hub.wait()


class Between:
    """A remote at whose n-th call something else happens first."""

    def __init__(self, inner: Remote, at: int, work: Callable[[], Any]) -> None:
        self.inner = inner
        self.left = at
        self.work = work

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                self.work()
            return found(*arguments)

        return call


class Turns:
    """Lets several actors go on by turns, each a call to the remote long, as fate will have it."""

    def __init__(self, fate: random.Random) -> None:
        self.fate = fate
        self.news = threading.Condition()
        self.alive: list[str] = []
        self.turn = ""
        self.troubles: list[BaseException] = []

    def run(self, works: dict[str, Callable[[], Any]]) -> None:
        """Let all of them work, until each has ended."""
        self.alive = sorted(works)
        self.turn = self.fate.choice(self.alive)
        threads = [threading.Thread(target=self._work, args=one) for one in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.troubles:
            raise self.troubles[0]

    def call(self, actor: str, call: Callable[[], Any]) -> Any:
        """Wait for a turn, and do that in it."""
        with self.news:
            self.news.wait_for(lambda: self.turn == actor)
            try:
                return call()
            finally:
                self._next()

    def _work(self, actor: str, work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the thread of the test
            self.troubles.append(error)
        with self.news:
            self.alive.remove(actor)
            if self.turn == actor:
                self._next()

    def _next(self) -> None:
        self.turn = self.fate.choice(self.alive) if self.alive else ""
        self.news.notify_all()


class ByTurns:
    """A remote as one actor sees it. An actor that waits lets time pass for all.

    With `looks_first`, a block is looked at in one turn and removed in another, whatever came in between.
    """

    def __init__(self, hub: Hub, turns: Turns, actor: str, *, looks_first: bool = False) -> None:
        self.hub = hub
        self.turns = turns
        self.actor = actor
        self.looks_first = looks_first
        self.settled_after = 30.0

    def rest(self, seconds: float) -> None:
        def pass_() -> None:
            self.hub.time += seconds

        self.turns.call(self.actor, pass_)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.hub.remote(), name)
        return lambda *given: self.turns.call(self.actor, lambda: found(*given))

    def delete_block(self, space: str, block: str, version: str) -> bool:
        remote = self.hub.remote()
        if not self.looks_first:
            return bool(self.turns.call(self.actor, lambda: remote.delete_block(space, block, version)))

        def present() -> str | None:
            there = [stat.version for stat in remote.list_blocks(space, block, block + "~").stats]
            return there[0] if there else None

        if self.turns.call(self.actor, present) != version:
            return False

        def remove_any() -> bool:
            now = present()
            return now is not None and remote.delete_block(space, block, now)

        return bool(self.turns.call(self.actor, remove_any))


@dataclass
class Stage:
    """A state in which the first device is about to push, the second one to tidy up."""

    name: str
    prepare: Callable[[World, Hub], None]
    sleeps: bool = False

    def __str__(self) -> str:
        return self.name


def left_behind(world: World, hub: Hub) -> None:
    """A push was killed after it had put its blocks; now the same is pushed again."""
    a, _ = shared(world)
    world.say(a, "one", 3, 150)
    counting = ChaosRemote(hub.remote())
    kept = hub.kept()
    state = {path: path.read_bytes() for path in a.state.iterdir() if path.is_file()}
    a.engine(counting).push()
    hub.put_back(kept)
    for path, data in state.items():
        path.write_bytes(data)
    at = next(n for n, reported in enumerate(counting.log, 1) if reported.startswith("swap_head"))
    attempt(a, ChaosRemote(hub.remote(), {at: "kill"}), Engine.push)
    see_and_wait(world, hub)


def left_behind_new(world: World, hub: Hub) -> None:
    """As `left_behind`, of a session that there was none of."""
    a, b = world.devices
    world.say(b, "other", 2)
    push(b, world)
    world.say(a, "one", 4, 150)
    attempt(a, ChaosRemote(hub.remote(), {6: "kill"}), Engine.push)
    see_and_wait(world, hub)


def forked_from_trash(world: World, hub: Hub) -> None:
    """A fork that was not pushed yet, of a session that was trashed elsewhere."""
    a, b = shared(world)
    world.fork(a, "one", "fork", 3)
    world.take_back(b.trash("one"))
    push(b, world)
    see_and_wait(world, hub)


def forked_from_a_rewind(world: World, hub: Hub) -> None:
    """A fork that was not pushed yet, of a session that was rewound elsewhere."""
    a, b = shared(world)
    world.fork(a, "one", "fork", 4)
    world.shortened.add("one")
    world.take_back(b.rewind("one", 1))
    push(b, world)
    see_and_wait(world, hub)


def brought_back(world: World, hub: Hub) -> None:
    """A session that was trashed, and is taken out of the trash again."""
    a, b = shared(world)
    a.trash("one")
    push(a, world)
    pull(b, world)
    see_and_wait(world, hub)
    a.restore()


def said_again(world: World, hub: Hub) -> None:
    """Rewound lines are restored, byte for byte."""
    a, b = shared(world)
    path = a.sessions / "one" / "transcript.jsonl"
    whole = path.read_bytes()
    a.rewind("one", 1)
    push(a, world)
    pull(b, world)
    see_and_wait(world, hub)
    path.write_bytes(whole)
    a.describe("one")


def described_again(world: World, hub: Hub) -> None:
    """A document that is too large for a head has an earlier content again."""
    a, b = shared(world)
    path = a.sessions / "one" / "metadata.json"
    a.describe("one", title=noise(1))
    whole = path.read_bytes()
    push(a, world)
    a.describe("one", title=noise(2))
    push(a, world)
    pull(b, world)
    see_and_wait(world, hub)
    path.write_bytes(whole)


def asleep(world: World, hub: Hub) -> None:
    """The machine sleeps in the middle of its push."""
    a, _ = shared(world)
    world.say(a, "one", 3, 150)


def growing(world: World, hub: Hub) -> None:
    """Nothing is left behind, and no actor sleeps."""
    asleep(world, hub)


def noise(seed: int) -> str:
    """A text that hardly becomes smaller when it is compressed."""
    return base64.b64encode(random.Random(seed).randbytes(4500)).decode()


STAGES = [
    Stage("left behind", left_behind),
    Stage("left behind, new", left_behind_new),
    Stage("forked from trash", forked_from_trash),
    Stage("forked from a rewind", forked_from_a_rewind),
    Stage("brought back", brought_back),
    Stage("said again", said_again),
    Stage("described again", described_again),
    Stage("asleep", asleep, sleeps=True),
    Stage("growing", growing),
]


def remove(device: Device, remote: Remote) -> Removal | None:
    """Tidy up; None if the process is killed, or the other side fails."""
    try:
        return device.remover(remote).remove()
    except (Killed, RemoteError):
        return None


@dataclass
class Meeting:
    """A stage, prepared once and copied for each run."""

    stage: Stage
    root: Path

    def __post_init__(self) -> None:
        self.hub = Hub()
        self.prepared = World(self.root / "prepared", self.hub.remote, block=BLOCK, passed=self.hub.passed)
        self.stage.prepare(self.prepared, self.hub)
        self.kept = self.hub.kept()
        self.runs = 0

    def world(self) -> World:
        """The world as it was prepared."""
        self.hub.put_back(self.kept)
        self.runs += 1
        place = self.root / f"run{self.runs}"
        shutil.copytree(self.prepared.root, place)
        moved_states(place, self.prepared.root)
        world = World(place, self.hub.remote, block=BLOCK, passed=self.hub.passed)
        world.written, world.taken_back = dict(self.prepared.written), set(self.prepared.taken_back)
        world.shortened, world.said = set(self.prepared.shortened), self.prepared.said
        return world

    def calls(self) -> tuple[int, int]:
        """How many calls a push makes, and how many a removal does."""
        world = self.world()
        pushing, removing = ChaosRemote(self.hub.remote()), ChaosRemote(self.hub.remote())
        push_only(world.devices[0], pushing)
        self.sleep()
        world = self.world()
        remove(world.devices[1], removing)
        shutil.rmtree(world.root)
        return pushing.calls, removing.calls

    def sleep(self) -> None:
        if self.stage.sleeps:
            self.hub.wait()

    def in_a_push(self, at: int, plan: dict[int, str], of_removal: dict[int, str]) -> World:
        """A removal before the n-th call of a push, each with what happens to its calls."""
        world = self.world()

        def tidy() -> None:
            self.sleep()
            chaos = ChaosRemote(self.hub.remote(), of_removal)
            remove(world.devices[1], chaos)
            chaos.settle()

        chaos = ChaosRemote(self.hub.remote(), plan)
        attempt(world.devices[0], Between(chaos, at, tidy), pushed)
        chaos.settle()
        return world

    def in_a_removal(self, at: int, plan: dict[int, str], of_push: dict[int, str]) -> World:
        """A push before the n-th call of a removal."""
        world = self.world()

        def go() -> None:
            chaos = ChaosRemote(self.hub.remote(), of_push)
            attempt(world.devices[0], chaos, pushed)
            chaos.settle()

        self.sleep()
        chaos = ChaosRemote(self.hub.remote(), plan)
        remove(world.devices[1], Between(chaos, at, go))
        chaos.settle()
        return world


def pushed(engine: Engine) -> Any:
    return engine.push()


def push_only(device: Device, remote: Remote) -> None:
    device.engine(remote).push()


def at_once(world: World) -> None:
    """A device that was never there gets all that the first device has pushed, without anything being repaired."""
    fresh = Device(world.root, "at-once")
    report = fresh.engine(world.remote()).pull()
    failed = [(one.session_id, one.note) for one in report.outcomes if one.error]
    assert not failed, failed


def comes_right(world: World) -> None:
    """After the killed process has begun again, all is as it should be."""
    for device in world.devices:
        device.remover(world.remote()).finish()
    world.check()
