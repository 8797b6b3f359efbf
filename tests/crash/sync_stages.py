"""What can be cut off in the middle: each stage is a world, one process at work in it, and what must follow."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sessionary.errors import Invalid
from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode, encode
from sessionary.sync.remote import heads_of
from sessionary.sync.state import with_proof
from sessionary.testing.wrapper import UNSYNCED
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault, FaultFs
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device, World, attempt

BLOCK = 200


class Hub:
    """A server that can be put back to what it was."""

    def __init__(self) -> None:
        self.server = MemoryServer(page_bytes=1000, page_heads=2)

    def remote(self) -> MemoryRemote:
        return self.server.remote()

    def kept(self) -> Any:
        return deepcopy(dict(self.server.tenants)), self.server.versions

    def put_back(self, kept: Any) -> None:
        self.server = MemoryServer(page_bytes=1000, page_heads=2)
        self.server.tenants.update(deepcopy(kept[0]))
        self.server.versions = kept[1]


@dataclass
class Stage:
    """A state, and the work that is about to begin in it."""

    name: str
    prepare: Callable[[World], None]
    work: Callable[[Engine], Any]
    verify: Callable[[World], None] = lambda world: None
    then: Callable[[World], None] = lambda world: None


def push(device: Device, world: World) -> None:
    device.engine(world.remote()).push()


def pull(device: Device, world: World) -> None:
    device.engine(world.remote()).pull()


def shared(world: World) -> tuple[Device, Device]:
    """Both devices have one session, in step."""
    a, b = world.devices
    world.say(a, "one", 4)
    push(a, world)
    pull(b, world)
    return a, b


def grown_here(world: World) -> None:
    a, _ = shared(world)
    world.say(a, "one", 3, 300)


def new_here(world: World) -> None:
    world.say(world.devices[0], "one", 3)
    world.say(world.devices[0], "two", 2)


def rewound_here(world: World) -> None:
    a, _ = shared(world)
    world.take_back(a.rewind("one", 1))
    world.shortened.add("one")
    world.say(a, "one", 1)


def trashed_here(world: World) -> None:
    a, _ = shared(world)
    world.take_back(a.trash("one"))


def forked_here(world: World) -> None:
    a, _ = shared(world)
    world.fork(a, "one", "fork", 3)


def new_there(world: World) -> None:
    world.say(world.devices[1], "one", 4)
    world.say(world.devices[1], "two", 2, 300)
    push(world.devices[1], world)


def grown_there(world: World) -> None:
    _, b = shared(world)
    world.say(b, "one", 3, 300)
    b.describe("one", title="a title")
    push(b, world)


def rewound_there(world: World) -> None:
    _, b = shared(world)
    world.take_back(b.rewind("one", 2))
    world.shortened.add("one")
    push(b, world)


def trashed_there(world: World) -> None:
    _, b = shared(world)
    world.take_back(b.trash("one"))
    push(b, world)


def grown_on_both(world: World) -> None:
    a, b = shared(world)
    world.say(a, "one", 2)
    world.say(b, "one", 2, 300)
    push(b, world)


def described_on_both(world: World) -> None:
    a, b = shared(world)
    a.describe("one", title="from here")
    b.describe("one", title="from there")
    push(b, world)


def trashed_here_grown_there(world: World) -> None:
    a, b = shared(world)
    a.trash("one")
    world.say(b, "one", 2)
    push(b, world)


def grown_here_trashed_there(world: World) -> None:
    a, b = shared(world)
    world.say(a, "one", 2)
    b.trash("one")
    push(b, world)


def rewound_here_grown_there(world: World) -> None:
    a, b = shared(world)
    world.take_back(a.rewind("one", 2))
    world.shortened.add("one")
    world.say(b, "one", 2)
    push(b, world)


def goes_on(world: World) -> None:
    """After the kill the user continues at the place of the session."""
    device = world.devices[0]
    for session in device.names()[:1]:
        world.say(device, session)


def rewound_everywhere(world: World) -> None:
    a, b = shared(world)
    world.take_back(a.rewind("one", 2))
    world.shortened.add("one")
    push(a, world)
    pull(b, world)


def restore_first(engine: Engine) -> None:
    (ref,) = engine.layout.discover()
    if len((ref.path / "transcript.jsonl").read_bytes().splitlines()) < 4:
        engine.earlier.restore(ref, 0)


def damaged_here(world: World) -> None:
    a, b = shared(world)
    world.say(b, "one", 2)
    push(b, world)
    path = a.sessions / "one" / "transcript.jsonl"
    path.with_name(path.name + ".backup").write_bytes(path.read_bytes())
    path.write_bytes(b"")


def held_back_here(world: World) -> None:
    damaged_here(world)
    push(world.devices[0], world)


def damaged_there(world: World) -> None:
    """The remote has a version that a client without such care has sent."""
    a, b = shared(world)
    path = b.sessions / "one" / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(b"{", b"}", 1))
    push(b, world)
    keep("mine")(b.engine(world.remote()))
    (record,) = heads_of(world.remote())
    head = msgspec.structs.replace(decode(record.name, record.data), accepted={})
    world.remote().swap_head(record.name, encode(head), record.etag)
    world.say(a, "one", 2)


def refused_here(world: World) -> None:
    damaged_there(world)
    pull(world.devices[0], world)


def keep(version: str) -> Callable[[Engine], None]:
    """The user resolves the conflict, again if the first attempt was interrupted with an unknown outcome."""

    def decide(engine: Engine) -> None:
        (ref,) = engine.layout.discover()
        with suppress(Invalid):
            engine.resolve(ref, version)

    return decide


def decided(version: str) -> Callable[[World], None]:
    def decide(world: World) -> None:
        pull(world.devices[0], world)
        keep(version)(world.devices[0].engine(world.remote()))

    return decide


def all_or_nothing(world: World) -> None:
    found = [len(device.lines("one")) for device in world.devices]
    assert found in ([2, 2], [4, 4])


def one_length(length: int) -> Callable[[World], None]:
    def verify(world: World) -> None:
        found = [len(device.lines("one")) for device in world.devices]
        assert found == [length] * len(found)

    return verify


def trashed(world: World) -> None:
    assert all("one" not in device.names() for device in world.devices)


def two_ways(world: World) -> None:
    for device in world.devices:
        assert len(device.names()) == 2
        assert {len(device.lines(name)) for name in device.names()} == {6}


STAGES = [
    Stage("new here", new_here, Engine.push),
    Stage("new here, then more", new_here, Engine.push, then=goes_on),
    Stage("grown here", grown_here, Engine.push, one_length(7)),
    Stage("grown here, then more", grown_here, Engine.push, one_length(8), then=goes_on),
    Stage("rewound here", rewound_here, Engine.push, one_length(2)),
    Stage("trashed here", trashed_here, Engine.push, trashed),
    Stage("forked here", forked_here, Engine.push),
    Stage("new there", new_there, Engine.pull),
    Stage("grown there", grown_there, Engine.pull, one_length(7)),
    Stage("rewound there", rewound_there, Engine.pull, one_length(2)),
    Stage("trashed there", trashed_there, Engine.pull, trashed),
    Stage("grown on both", grown_on_both, Engine.pull, two_ways),
    Stage("grown on both, then more", grown_on_both, Engine.pull, then=goes_on),
    Stage("grown on both, pushed", grown_on_both, Engine.push, two_ways),
    Stage("described on both", described_on_both, Engine.pull, one_length(4)),
    Stage("trashed here, grown there, pushed", trashed_here_grown_there, Engine.push, one_length(6)),
    Stage("trashed here, grown there", trashed_here_grown_there, Engine.pull, one_length(6)),
    Stage("grown here, trashed there", grown_here_trashed_there, Engine.pull, one_length(6)),
    Stage("rewound everywhere, restored", rewound_everywhere, restore_first, all_or_nothing),
    Stage("damaged here, pushed", damaged_here, Engine.push, one_length(6), then=decided("theirs")),
    Stage("damaged here", held_back_here, Engine.pull, one_length(6), then=decided("theirs")),
    Stage("damaged here, decided", held_back_here, keep("theirs"), one_length(6), then=decided("theirs")),
    Stage("damaged there", damaged_there, Engine.pull, one_length(6), then=decided("mine")),
    Stage("damaged there, decided", refused_here, keep("mine"), one_length(6), then=decided("mine")),
    Stage("rewound here, grown there", rewound_here_grown_there, Engine.pull, one_length(6)),
]


def kills(stage: Stage, root: Path) -> Iterator[tuple[dict[int, str], Fault | None]]:
    """Every place at which the work of a stage can be cut off, on the way to the remote and on the disk."""
    hub = Hub()
    world = World(root / "counted", hub.remote, block=BLOCK)
    stage.prepare(world)
    remote = ChaosRemote(hub.remote())
    fs = FaultFs(UNSYNCED)
    stage.work(world.devices[0].engine(remote, fs))
    for n in range(1, remote.calls + 1):
        for effect in ("kill", "kill after", "lost", "dropped", "late", "throttled"):
            yield {n: effect}, None
    for n in changing(fs):
        yield {}, Fault("any", n, "kill")
    fs.bury()


def changing(fs: FaultFs) -> list[int]:
    """The calls that change what a later process finds: flushes do not, nor does what is opened to be read."""
    return [
        n
        for n, call in enumerate(fs.log, 1)
        if not call.startswith(("fsync", "fdatasync"))
        and (not call.startswith("open") or call.endswith((".tmp", ".lock")))
    ]


def sweep(stage: Stage, root: Path) -> int:
    """Cut the work of a stage off everywhere, and check after each cut; returns how many there were."""
    hub = Hub()
    prepared = World(root / "prepared", hub.remote, block=BLOCK)
    stage.prepare(prepared)
    kept = hub.kept()
    count = 0
    for plan, fault in kills(stage, root):
        count += 1
        place = root / f"run{count}"
        shutil.copytree(root / "prepared", place)
        hub.put_back(kept)
        moved_states(place, root / "prepared")
        cut_off(again(prepared, place, hub), stage, plan, fault)
        shutil.rmtree(place)
    return count


def again(prepared: World, place: Path, hub: Hub) -> World:
    """A copy of a world in another place, with the memory of what its users wrote."""
    world = World(place, hub.remote, block=BLOCK)
    world.written, world.taken_back = dict(prepared.written), set(prepared.taken_back)
    world.shortened, world.said = set(prepared.shortened), prepared.said
    return world


def cut_off(
    world: Any,
    stage: Any,
    plan: dict[int, str],
    fault: Fault | None,
    attempted: Callable[..., object] = attempt,
) -> None:
    """Let the first device do its work over a remote that fails as planned; then all must come right.

    Worlds of conversations and of whole projects, and their stages, have the same shape.
    """
    remote = ChaosRemote(world.remote(), plan)
    attempted(world.devices[0], remote, stage.work, fault)
    try:
        stage.then(world)
        remote.settle()
        world.check()
        stage.verify(world)
    except AssertionError as error:
        raise AssertionError(f"{stage.name}, {plan or fault}: {error}\n" + "\n".join(remote.log)) from error


def moved_states(place: Path, before: Path) -> None:
    """What the devices remember names folders; the copies lie elsewhere."""
    for path in place.glob("*/state/*.json"):
        move_state(path, before, place)


def move_state(path: Path, before: Path, place: Path) -> None:
    """Let one file of what is remembered name another place."""
    reported = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(with_proof(reported.replace(str(before).encode(), str(place).encode())))
