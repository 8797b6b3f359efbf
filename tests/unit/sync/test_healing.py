"""Blocks and heads that a store has lost or damaged: found by the device that has them whole, and put again there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Corrupt, RemoteError
from sessionary.sync.checking import Checked
from sessionary.sync.download import MISSING
from sessionary.sync.gc.leftovers import count_leftovers
from sessionary.sync.heads import decode
from sessionary.sync.pulling import LATE
from sessionary.sync.remote import Remote, heads_of
from sessionary.sync.remotes.sealed import SealedRemote
from sessionary.sync.report import Outcome, Report, SyncStatus
from tests.support.backed_up import BackedUp
from tests.support.memory_remote import MemoryRemote
from tests.support.policy_world import WORK, PolicyWorld
from tests.support.sync_world import Device, World

BLOCK = 300
Damage = Callable[[dict[str, bytes], str], None]


class Keeping(MemoryRemote):
    """A store from which nothing can be removed."""

    def delete_block(self, space: str, block: str, version: str) -> bool:
        raise RemoteError("this store removes nothing")


class Place:
    """Two devices, and a store whose bytes can be changed behind their backs."""

    def __init__(self, root: Path, *, removes: bool = True, key: str = "") -> None:
        self.store = BackedUp()
        self.made = MemoryRemote if removes else Keeping
        self.key = key
        self.world = World(root, self.remote, 2, block=BLOCK)
        self.a, self.b = self.world.devices

    def remote(self) -> Remote:
        made = self.made(self.store.server, "me")
        return SealedRemote(made, self.key) if self.key else made

    @property
    def tenant(self) -> Any:
        return self.store.server.tenants["me"]

    def blocks(self) -> dict[str, bytes]:
        """The blocks of the one space."""
        (found,) = self.tenant.blocks.values()
        return dict(sorted(found.items()))

    def lose(self, block: str) -> None:
        (space,) = self.tenant.blocks
        del self.tenant.blocks[space][block]
        self.tenant.ids[space].remove(block)

    def flip(self, block: str) -> None:
        (space,) = self.tenant.blocks
        data = bytearray(self.tenant.blocks[space][block])
        data[len(data) // 2] ^= 1
        self.tenant.blocks[space][block] = bytes(data)

    def overwrite(self, block: str) -> None:
        (space,) = self.tenant.blocks
        self.tenant.blocks[space][block] = b"\0" * 40

    def begin(self, lines: int = 12) -> None:
        self.world.say(self.a, "one", lines, 100)
        self.push(self.a)

    def push(self, device: Device) -> Report:
        return device.engine(self.remote()).push(look=True)

    def pull(self, device: Device) -> Outcome:
        (outcome,) = device.engine(self.remote()).pull().outcomes
        return outcome

    def check(self, device: Device, *, repair: bool = False) -> Checked:
        engine = device.engine(self.remote())
        (found,) = engine.checker.check(engine.listed(), repair=repair)
        return found

    def head(self) -> Any:
        (record,) = heads_of(self.remote())
        return decode(record.name, record.data)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_is_whole_is_said_to_be_so(place: Place) -> None:
    place.begin()
    before = place.blocks()
    found = place.check(place.a)
    assert (found.faults, found.blocks, found.note) == ((), len(before), "")
    assert place.check(place.a, repair=True) == found
    assert place.blocks() == before


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("damage", ["lose", "flip", "overwrite"])
def test_each_block_that_is_lost_or_damaged_is_found_and_put_again(
    damage: str, which: int, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    place.begin()
    before = place.blocks()
    name = list(before)[which]
    getattr(place, damage)(name)
    what = "missing" if damage == "lose" else "damaged"
    found = place.check(place.a)
    assert [(one.file, one.block, one.what, one.healed) for one in found.faults] == [
        ("transcript.jsonl", name, what, False)
    ]
    assert place.blocks() != before
    assert place.pull(place.b).standing is SyncStatus.FAILED
    assert [one.healed for one in place.check(place.a, repair=True).faults] == [True]
    assert place.blocks() == before
    assert place.check(place.a).faults == ()
    place.world.check()


def test_all_blocks_at_once(place: Place) -> None:
    place.begin()
    before = place.blocks()
    for at, name in enumerate(before):
        (place.lose, place.flip)[at % 2](name)
    found = place.check(place.a, repair=True)
    assert (len(found.faults), found.is_right) == (len(before), True)
    assert place.blocks() == before
    place.world.check()


def test_where_nothing_can_be_removed_a_damaged_block_is_reported(tmp_path: Path) -> None:
    place = Place(tmp_path, removes=False)
    place.begin()
    before = place.blocks()
    place.flip(list(before)[1])
    damaged = place.blocks()
    found = place.check(place.a, repair=True)
    assert "removes nothing" in found.note
    assert isinstance(found.error, RemoteError)
    assert place.blocks() == damaged


def test_a_missing_block_needs_no_right_to_remove(tmp_path: Path) -> None:
    place = Place(tmp_path, removes=False)
    place.begin()
    before, head = place.blocks(), place.head()
    place.lose(list(before)[1])
    assert place.check(place.a, repair=True).is_right
    assert (place.blocks(), place.head()) == (before, head)


def broken(data: bytes) -> bytes:
    return data[:-20]


def another(data: bytes) -> bytes:
    reported = json.loads(data)
    reported["gen"] += 1
    return json.dumps(reported).encode()


@pytest.mark.parametrize(("change", "new_etag"), [(broken, False), (broken, True), (another, False)])
def test_a_damaged_head_is_replaced_by_the_agreed_one(
    change: Callable[[bytes], bytes], new_etag: bool, place: Place
) -> None:
    place.begin()
    ((name, (data, version)),) = place.tenant.heads.items()
    place.store.server.versions += 1
    place.tenant.heads[name] = change(data), place.store.server.versions if new_etag else version
    (fault,) = place.check(place.a).faults
    assert (fault.file, fault.block, fault.what) == ("", "", "damaged")
    assert place.check(place.a, repair=True).is_right
    assert json.loads(place.tenant.heads[name][0])["parts"] == json.loads(data)["parts"]
    assert place.check(place.a).faults == ()
    place.world.check()


def test_a_missing_head_and_an_earlier_one_are_put_again(place: Place) -> None:
    place.begin()
    place.store.back_up()
    place.world.say(place.a, "one", 3, 100)
    place.push(place.a)
    for lose, what in ((place.store.put_back, "earlier"), (place.store.empty, "missing")):
        lose()
        assert place.check(place.a).faults[0].what == what
        assert place.check(place.a, repair=True).is_right
        assert place.check(place.a).faults == ()
    place.world.check()


def test_what_is_not_here_is_left_to_the_device_that_has_it(place: Place) -> None:
    place.begin()
    place.pull(place.b)
    place.world.shortened.add("one")
    place.world.take_back(place.b.rewind("one", 1))
    name = list(place.blocks())[3]
    place.lose(name)
    (fault,) = place.check(place.b, repair=True).faults
    assert (fault.block, fault.healed) == (name, False)
    assert "only another machine" in fault.note
    assert place.check(place.a, repair=True).is_right
    place.world.check()


def test_what_is_newer_on_the_remote_is_not_compared(place: Place) -> None:
    place.begin()
    place.pull(place.b)
    place.world.say(place.b, "one", 1)
    place.push(place.b)
    found = place.check(place.a, repair=True)
    assert (found.faults, found.error, "sync pull" in found.note) == ((), None, True)


def test_a_pull_distinguishes_lost_blocks_from_late_ones(place: Place) -> None:
    place.begin()
    passed = 0.0
    place.b.passed = lambda: passed
    place.lose(list(place.blocks())[1])
    first = place.pull(place.b)
    assert isinstance(first.error, RemoteError)
    assert (first.error.retryable, "not on the remote yet" in first.note) == (True, True)
    passed = LATE.total_seconds() / 2
    assert "not on the remote yet" in place.pull(place.b).note
    passed = LATE.total_seconds() + 1
    later = place.pull(place.b)
    assert isinstance(later.error, RemoteError)
    assert (later.error.retryable, "is missing" in later.note) == (False, True)
    assert later.error.details[MISSING] == first.error.details[MISSING]
    device = (place.a.state / "device").read_text()
    assert device[:8] in str(later.error.hint)
    assert "sync check --repair" in str(later.error.hint)
    place.check(place.a, repair=True)
    assert place.pull(place.b).standing is SyncStatus.PULLED
    assert not list(place.b.state.glob("*.hole.json"))


def test_a_pull_says_who_can_heal_what_is_damaged(place: Place) -> None:
    place.begin()
    place.flip(list(place.blocks())[1])
    reported = place.pull(place.b)
    assert isinstance(reported.error, Corrupt)
    assert (place.a.state / "device").read_text()[:8] in str(reported.error.hint)
    assert place.b.names() == []


def test_holes_are_counted(place: Place) -> None:
    place.begin()
    assert count_leftovers(place.remote()).holes == 0
    for name in list(place.blocks())[1:3]:
        place.lose(name)
    found = count_leftovers(place.remote())
    assert (found.holes, found.holed) == (2, 1)


def test_a_sealed_block_that_cannot_be_opened_is_put_again(tmp_path: Path) -> None:
    pyrage = pytest.importorskip("pyrage")
    key = str(pyrage.x25519.Identity.generate())
    place = Place(tmp_path, key=key)
    place.begin()
    before = set(place.blocks())
    for name in list(before)[:2]:
        place.flip(name)
    found = place.check(place.a)
    assert {one.what for one in found.faults} == {"damaged"}
    assert len(found.faults) == 2
    assert place.check(place.a, repair=True).is_right
    assert place.check(place.a).faults == ()
    assert set(place.blocks()) == before
    place.world.check()


def test_messages_of_work_sessions_are_put_again(tmp_path: Path) -> None:
    store = BackedUp()
    world = PolicyWorld(tmp_path, store.remote, kinds=(WORK,), block=BLOCK)
    a, _ = world.devices
    a.begin("one")
    for _ in range(9):
        world.drop(a, "one")
    world.sync(a)
    (blocks,) = store.server.tenants["me"].blocks.values()
    before = dict(blocks)
    for name in list(blocks)[::2]:
        blocks[name] = b"\0" * 40
    (engine,) = a.engines(store.remote())
    (found,) = engine.checker.check(engine.listed(), repair=True)
    assert found.faults
    assert found.is_right
    assert blocks == before
    world.check()
