"""What can be cut off in the middle where files are brought together: a stage for each policy, and what must follow."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sessionary.sync.engine import Engine
from sessionary.testing.wrapper import UNSYNCED
from tests.crash.sync_stages import Hub, changing, cut_off, move_state
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault, FaultFs
from tests.support.policy_world import (
    BRAINSTORM,
    EPOCH,
    FEATURE,
    LIST,
    WORK,
    PolicyDevice,
    PolicyWorld,
    attempt_all,
)

BLOCK = 400
KILLS = 10**9 if os.environ.get("SESSIONARY_SOAK") else 16
"""At so many calls of the file system, evenly spread, the process is killed."""

F = "feature-2025-01-31"


def nothing(world: PolicyWorld) -> None:
    """Nothing more."""


@dataclass
class Stage:
    """A state of one kind of session, and the work that is about to begin in it on the first device."""

    name: str
    kind: str
    prepare: Callable[[PolicyWorld], None]
    work: Callable[[Engine], Any]
    verify: Callable[[PolicyWorld], None] = nothing
    then: Callable[[PolicyWorld], None] = nothing


def push(device: PolicyDevice, world: PolicyWorld) -> None:
    for engine in device.engines(world.remote()):
        engine.push()


def pull(device: PolicyDevice, world: PolicyWorld) -> None:
    for engine in device.engines(world.remote()):
        engine.pull()


def after(seconds: float) -> Any:
    return EPOCH + timedelta(seconds=seconds)


# -- messages


def one_session(world: PolicyWorld) -> tuple[PolicyDevice, PolicyDevice]:
    """Both devices have a session with two messages."""
    a, b = world.devices
    a.begin("one")
    world.drop(a, "one", "20250131_120000")
    world.drop(a, "one", "20250131_120001", depth=1)
    push(a, world)
    pull(b, world)
    return a, b


def messages_here(world: PolicyWorld) -> None:
    a, _ = one_session(world)
    world.drop(a, "one", "20250131_120002")
    world.drop(a, "one", "20250131_115959")


def messages_there(world: PolicyWorld) -> None:
    messages_on_both(world, here=False)


def messages_on_both(world: PolicyWorld, here: bool = True) -> None:
    a, b = one_session(world)
    if here:
        world.drop(a, "one", "20250131_120003")
    world.drop(b, "one", "20250131_120002")
    world.drop(b, "one", "20250131_115959")
    push(b, world)


def one_name_on_both(world: PolicyWorld) -> None:
    """Senders on both devices wrote in the same microsecond, and one message was consumed already."""
    a, b = one_session(world)
    world.drop(a, "one", "20250131_120009")
    world.apply(a, "one")
    world.drop(b, "one", "20250131_120009")
    push(b, world)


def all_can_be_consumed(world: PolicyWorld) -> None:
    """By names and ids, as a mailbox does: a name that a ledger holds is never that of another message."""
    for device in world.devices:
        folder = device.work_folder("one")
        assert len(device.crumbs("one")) == 4
        assert not (folder / "breadcrumbs/0/20250131_120009_000000.json").exists()


def family_there(world: PolicyWorld) -> None:
    b = world.devices[1]
    b.begin("a-parent")
    b.begin("b-child", "a-parent")
    b.begin("0-grandchild", "b-child")
    for session in ("a-parent", "b-child", "0-grandchild"):
        world.drop(b, session)
    push(b, world)


def family_stands(world: PolicyWorld) -> None:
    place = world.devices[0].work_folder("0-grandchild").relative_to(world.devices[0].work)
    assert place.as_posix() == "a-parent/b-child/0-grandchild"


# -- ledgers


def applied_on_both(world: PolicyWorld) -> None:
    """Before either knew of the other."""
    a, b = one_session(world)
    world.apply(a, "one")
    world.apply(b, "one")
    push(b, world)


def one_line_for_each(world: PolicyWorld) -> None:
    for device in world.devices:
        assert sorted(device.ledger("one")) == ["word1", "word2"]


def applied_there(world: PolicyWorld) -> None:
    _, b = one_session(world)
    world.apply(b, "one")
    push(b, world)


def more_messages(world: PolicyWorld) -> None:
    """One comes here before all is settled: if this device knows of the ledger, it leaves it to the other one."""
    a, b = world.devices
    world.drop(a, "one", "20250131_130000")
    world.sync(a)
    pull(b, world)
    if a.ledger("one"):
        world.apply(a, "one")
    world.apply(b, "one")


def applied_once(world: PolicyWorld) -> None:
    assert max(world.applied.values()) == 1, "two devices consume one mailbox"


def taken_over_here(world: PolicyWorld) -> None:
    a, b = one_session(world)
    world.apply(b, "one")
    push(b, world)
    pull(a, world)
    world.drop(a, "one", "20250131_130000")
    world.apply(a, "one", take_over=True)


def the_other_stops(world: PolicyWorld) -> None:
    world.drop(world.devices[0], "one", "20250131_140000")
    world.settle()
    world.apply(world.devices[1], "one")
    assert len(world.applied) == 3, "the device that had consumed before goes on"
    world.apply(world.devices[0], "one")
    assert len(world.applied) == 4


# -- features


def one_feature(world: PolicyWorld) -> tuple[PolicyDevice, PolicyDevice]:
    a, b = world.devices
    a.plan(F)
    world.log(a, F)
    push(a, world)
    pull(b, world)
    return a, b


def logged_on_both(world: PolicyWorld) -> None:
    """In the same moments, and in others; one command was run twice in one moment."""
    a, b = one_feature(world)
    world.log(a, F, after(1))
    world.log(a, F, after(3), 2)
    for at in (1, 2, 3):
        world.log(b, F, after(at))
    push(b, world)


def in_order(world: PolicyWorld) -> None:
    for device in world.devices:
        reported = [json.loads(line) for line in device.history(F)]
        assert len(reported) == 7
        times = [entry["timestamp"] for entry in reported]
        assert times == sorted(times)


def other_fields_on_both(world: PolicyWorld) -> None:
    a, b = one_feature(world)
    a.set(F, after(5), active_task="from-here")
    b.set(F, after(9), model_in_use="opus")
    push(b, world)


def both_fields(world: PolicyWorld) -> None:
    for device in world.devices:
        state = device.state(F)
        assert (state["active_task"], state["model_in_use"]) == ("from-here", "opus")
        assert state["last_updated"].startswith("2025-01-31T12:00:09")


def one_field_later_here(world: PolicyWorld) -> None:
    a, b = one_feature(world)
    a.set(F, after(9), active_task="later")
    b.set(F, after(5), active_task="earlier")
    push(b, world)


def one_field_later_there(world: PolicyWorld) -> None:
    a, b = one_feature(world)
    a.set(F, after(5), active_task="earlier")
    b.set(F, after(9), active_task="later")
    push(b, world)


def the_later_one(world: PolicyWorld) -> None:
    assert [device.state(F)["active_task"] for device in world.devices] == ["later", "later"]


def listed_on_both(world: PolicyWorld) -> None:
    a, b = world.devices
    (a.features / LIST).write_text("active_features: []\n")
    push(a, world)
    pull(b, world)
    (a.features / LIST).write_text("active_features: [] # here\n")
    (b.features / LIST).write_text("active_features: [] # there\n")
    push(b, world)


def left_to_a_person(world: PolicyWorld) -> None:
    a, b = world.devices
    fresh = PolicyDevice(world.root, "another", (FEATURE,))
    pull(fresh, world)
    reported = [(device.features / LIST).read_text() for device in (a, b, fresh)]
    assert reported == [f"active_features: [] # {where}\n" for where in ("here", "there", "there")]
    beside = [path.read_text() for path in a.features.glob(f"{LIST}.conflict-*")]
    assert beside == ["active_features: [] # there\n"]


def archived_there(world: PolicyWorld) -> None:
    _, b = one_feature(world)
    (b.features / ".archive").mkdir()
    (b.features / F).rename(b.features / ".archive" / F)
    world.logged.clear()
    push(b, world)


def archived(world: PolicyWorld) -> None:
    for device in world.devices:
        assert device.feature_names() == []
        assert (device.features / ".archive" / F / "state.yaml").exists()


# -- documents, brainstorms


def reported_on_both(world: PolicyWorld) -> None:
    a, b = one_session(world)
    a.tell("one", at=after(3), purpose="here")
    b.tell("one", at=after(5), status="paused")
    push(b, world)


def both_reported(world: PolicyWorld) -> None:
    for device in world.devices:
        reported = json.loads((device.work_folder("one") / "session.json").read_text())
        assert (reported["purpose"], reported["status"]) == ("here", "paused")


def answered_on_both(world: PolicyWorld) -> None:
    a, b = world.devices
    world.storm(a, "ideas")
    push(a, world)
    pull(b, world)
    world.storm(a, "ideas")
    world.storm(b, "ideas")
    push(b, world)


def two_sessions(world: PolicyWorld) -> None:
    for device in world.devices:
        slugs = device.storms_there()
        assert len(slugs) == 2
        assert all(len(device.answers(slug)) == 2 for slug in slugs)
        sibling = next(slug for slug in slugs if slug != "ideas")
        reported = (device.storms / f"{sibling}.yaml").read_text()
        assert f'slug: "{sibling}"' in reported.replace("'", '"') or f"slug: {sibling}" in reported
        assert "parent_id" in reported


def answered_there(world: PolicyWorld) -> None:
    world.storm(world.devices[1], "ideas")
    push(world.devices[1], world)


def answered_again_here(world: PolicyWorld) -> None:
    a, b = world.devices
    world.storm(a, "ideas")
    push(a, world)
    pull(b, world)
    world.storm(a, "ideas")


def first_answer_can_be_restored(world: PolicyWorld) -> None:
    device = world.devices[1]
    engine = device.engine(BRAINSTORM, world.remote())
    (ref,) = engine.layout.discover()
    first = engine.earlier.generations(ref)[-1]
    assert (first.first, first.is_gone) == (0, False)
    engine.earlier.restore(ref, 0)
    assert len(device.answers("ideas")) == 1


STAGES = [
    Stage("messages here", WORK, messages_here, Engine.push),
    Stage("messages there", WORK, messages_there, Engine.pull),
    Stage("messages on both", WORK, messages_on_both, Engine.pull),
    Stage("one name on both", WORK, one_name_on_both, Engine.pull, all_can_be_consumed),
    Stage("a family there", WORK, family_there, Engine.pull, family_stands),
    Stage("applied on both", WORK, applied_on_both, Engine.pull, one_line_for_each),
    Stage("applied there", WORK, applied_there, Engine.pull, applied_once, more_messages),
    Stage("taken over here", WORK, taken_over_here, Engine.push, the_other_stops),
    Stage("reported on both", WORK, reported_on_both, Engine.pull, both_reported),
    Stage("logged on both", FEATURE, logged_on_both, Engine.pull, in_order),
    Stage("other fields on both", FEATURE, other_fields_on_both, Engine.pull, both_fields),
    Stage("one field, later here", FEATURE, one_field_later_here, Engine.pull, the_later_one),
    Stage("one field, later there", FEATURE, one_field_later_there, Engine.pull, the_later_one),
    Stage("listed on both", FEATURE, listed_on_both, Engine.pull, left_to_a_person),
    Stage("archived there", FEATURE, archived_there, Engine.pull, archived),
    Stage("answered on both", BRAINSTORM, answered_on_both, Engine.pull, two_sessions),
    Stage("answered there", BRAINSTORM, answered_there, Engine.pull),
    Stage("answered again here", BRAINSTORM, answered_again_here, Engine.push, first_answer_can_be_restored),
]


def kills(stage: Stage, root: Path) -> Iterator[tuple[dict[int, str], Fault | None]]:
    """Places at which the work of a stage can be cut off: all on the way to the remote, some on the disk."""
    hub = Hub()
    world = PolicyWorld(root / "counted", hub.remote, kinds=(stage.kind,), block=BLOCK)
    stage.prepare(world)
    remote, fs = ChaosRemote(hub.remote()), FaultFs(UNSYNCED)
    for engine in world.devices[0].engines(remote, fs):
        stage.work(engine)
    yield {}, None
    for n in range(1, remote.calls + 1):
        for effect in ("kill", "kill after", "lost"):
            yield {n: effect}, None
    places = changing(fs)
    for n in places[:: max(1, len(places) // KILLS)]:
        yield {}, Fault("any", n, "kill")
    fs.bury()


def sweep(stage: Stage, root: Path) -> int:
    """Cut the work of a stage off in many places, and check after each cut; returns how many there were."""
    hub = Hub()
    prepared = PolicyWorld(root / "prepared", hub.remote, kinds=(stage.kind,), block=BLOCK)
    stage.prepare(prepared)
    kept = hub.kept()
    count = 0
    for plan, fault in kills(stage, root):
        count += 1
        place = root / f"run{count}"
        shutil.copytree(root / "prepared", place)
        hub.put_back(kept)
        moved(place, root / "prepared")
        world = PolicyWorld(place, hub.remote, kinds=(stage.kind,), block=BLOCK).like(prepared)
        cut_off(world, stage, plan, fault, attempt_all)
        shutil.rmtree(place)
    return count


def moved(place: Path, before: Path) -> None:
    """What the devices remember names folders; the copies lie elsewhere."""
    for path in place.glob("*/state/*/*.json"):
        move_state(path, before, place)
