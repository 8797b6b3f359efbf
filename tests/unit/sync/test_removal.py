"""What is old and reached by no head is removed, kept here, and put back if it was needed; nothing else is touched."""

import base64
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Invalid, RemoteError
from sessionary.sync.blocks import block_id, part_key
from sessionary.sync.gc.leftovers import count_leftovers
from sessionary.sync.gc.removal import LEAST, Removal, Remover, without_past
from sessionary.sync.gc.removed import Removed
from sessionary.sync.heads import Head, PartHead, Past, decode
from sessionary.sync.remote import StatPage
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.policy_world import FEATURE, WORK, PolicyWorld
from tests.support.sync_world import EPOCH, Device, World, note_what_is_there

BLOCK = 200
LOST = "00000000-00000000-" + 32 * "f"
DAY = 86_400.0


class Place:
    """Two devices around a server whose clock can be put forward."""

    def __init__(self, root: Path) -> None:
        self.time = 0.0
        self.server = MemoryServer(clock=self.passed)
        self.world = World(root, self.server.remote, 2, block=BLOCK, passed=self.passed)
        self.a, self.b = self.world.devices

    def passed(self) -> float:
        return self.time

    def wait(self, days: float) -> None:
        """Let time pass, after both devices have seen what is there."""
        for device in (self.a, self.b):
            note_what_is_there(device.remover(self.server.remote()))
        self.time += days * DAY

    def push(self, device: Device) -> Any:
        return device.engine(self.server.remote()).push()

    def pull(self, device: Device) -> Any:
        return device.engine(self.server.remote()).pull()

    def remove(self, device: Device | None = None, days: float = 30, remote: Any = None) -> Removal:
        device = device or self.b
        return device.remover(remote or self.server.remote(), older=timedelta(days=days)).remove()

    def blocks(self) -> dict[tuple[str, str], bytes]:
        found = self.server.tenants["me"].blocks
        return {(space, name): data for space, here in found.items() for name, data in here.items()}

    def heads(self) -> dict[str, Head]:
        return {decode(name, data).session: decode(name, data) for name, (data, _) in self._heads().items()}

    def _heads(self) -> dict[str, Any]:
        return self.server.tenants["me"].heads

    def kept(self) -> list[str]:
        return sorted(path.name.partition(".")[0] for path in (self.b.root / "removed").glob("2*/*/*"))

    def share(self, session: str = "one", lines: int = 5) -> str:
        """Both devices have a session; returns its space."""
        self.world.say(self.a, session, lines, 150)
        self.push(self.a)
        self.pull(self.b)
        return self.heads()[session].space


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_no_head_reaches_is_removed_when_it_is_old_and_kept_here(place: Place) -> None:
    space = place.share()
    before = place.blocks()
    place.server.remote().put_block(space, LOST, b"left over")
    place.wait(29)
    done = place.remove()
    assert (done.removed, done.young, done.found.lost_blocks) == (0, 1, 1)
    place.wait(2)
    done = place.remove()
    assert (done.removed, done.removed_size, done.young, done.restored) == (1, 9, 0, 0)
    assert place.blocks() == before
    (path,) = (place.b.root / "removed").glob(f"2*/{space}/{LOST}.*")
    assert path.read_bytes() == b"left over"
    assert place.remove() == Removal(
        done.found.__class__(1, 0, 0, 1, len(before), sum(map(len, before.values())))
    )
    place.world.check()


def test_what_was_removed_is_kept_for_a_month(place: Place) -> None:
    space = place.share()
    place.server.remote().put_block(space, LOST, b"left over")
    place.wait(2)
    place.remove(days=1)
    assert place.kept() == [LOST]
    place.wait(29)
    place.remove(days=1)
    assert place.kept() == [LOST]
    place.wait(2)
    place.remove(days=1)
    assert place.kept() == []


def test_what_is_called_as_no_block_is_stays(place: Place) -> None:
    space = place.share()
    for name in ("x", "..", "00000000-00000000-ff", f"{LOST}.tmp"):
        place.server.remote().put_block(space, name, b"of somebody else")
    place.wait(99)
    done = place.remove()
    assert (done.removed, done.young) == (0, 4)


def test_a_generation_is_forgotten_when_it_was_left_long_ago(place: Place) -> None:
    place.share()
    place.world.take_back(place.a.rewind("one", 1))
    place.world.say(place.a, "one", 2, 150)
    place.world.shortened.add("one")
    place.push(place.a)
    before = place.heads()["one"]
    assert len(before.history) == 1
    place.wait(29)
    assert place.remove().trimmed == 0
    place.wait(2)
    done = place.remove()
    after = place.heads()["one"]
    assert (done.trimmed, done.emptied, done.removed) == (1, 0, 4)
    assert (after.history, after.parts, after.count) == ((), before.parts, before.count + 1)
    assert count_leftovers(place.server.remote()).past_blocks == 0
    for device in (place.a, place.b):
        place.pull(device)
        assert [one.standing for one in place.push(device).outcomes] == [SyncStatus.IN_STEP]
    place.world.check()


def test_of_a_session_that_was_trashed_long_ago_only_the_name_is_left(place: Place) -> None:
    place.share()
    place.world.take_back(place.a.trash("one"))
    place.push(place.a)
    place.wait(31)
    done = place.remove(place.a)
    assert (done.emptied, done.trimmed, place.blocks()) == (1, 0, {})
    head = place.heads()["one"]
    assert (head.deleted, head.parts, head.history) == (True, (), ())
    assert [one.standing for one in place.pull(place.b).outcomes] == [SyncStatus.TRASHED]
    assert place.b.names() == []
    place.world.check()


def test_what_was_never_pushed_of_an_emptied_session_stays_and_comes_back_for_all(place: Place) -> None:
    place.share()
    place.a.trash("one")
    place.push(place.a)
    place.wait(31)
    place.remove(place.a)
    place.world.say(place.b, "one", 1)
    assert [one.standing for one in place.pull(place.b).outcomes] == [SyncStatus.HELD_BACK]
    assert [one.standing for one in place.push(place.b).outcomes] == [SyncStatus.PUSHED]
    place.world.check()
    assert len(place.a.lines("one")) == 6


def test_a_session_that_is_taken_out_of_the_trash_after_it_was_emptied_comes_back_for_all(
    place: Place,
) -> None:
    place.share()
    place.a.trash("one")
    place.push(place.a)
    place.pull(place.b)
    place.wait(31)
    place.remove()
    place.a.restore()
    place.world.check()
    assert len(place.b.lines("one")) == 5


def test_what_a_fork_shares_with_an_emptied_session_stays(place: Place) -> None:
    place.share()
    place.world.fork(place.a, "one", "fork", 3)
    place.push(place.a)
    place.world.take_back(place.a.trash("one")[3:])
    place.push(place.a)
    place.wait(31)
    done = place.remove()
    assert (done.emptied, done.removed) == (1, 2)
    place.world.check()
    assert len(place.b.lines("fork")) == 4


# -- what cannot be known


def test_a_head_that_cannot_be_read_keeps_everything(place: Place) -> None:
    space = place.share()
    place.world.say(place.a, "two", 3, 150)
    place.world.take_back(place.a.trash("one"))
    place.push(place.a)
    place.server.remote().put_block(space, LOST, b"left over")
    (name,) = (name for name, (data, _) in place._heads().items() if decode(name, data).session == "two")
    place._heads()[name] = b'{"v": 99}', 999_999
    before, heads = place.blocks(), dict(place._heads())
    place.wait(99)
    done = place.remove()
    assert (done.found.unread, done.removed, done.emptied, done.is_whole) == (1, 0, 0, False)
    assert (place.blocks(), place._heads()) == (before, heads)


class Upgrading(MemoryRemote):
    """While blocks are removed, a newer version comes and writes a head that no other device can read."""

    def delete_block(self, space: str, block: str, version: str) -> bool:
        self.swap_head("new", b'{"v": 99}', None)
        return super().delete_block(space, block, version)


def test_what_was_removed_is_put_back_if_a_head_came_that_cannot_be_read(place: Place) -> None:
    space = place.share()
    place.server.remote().put_block(space, LOST, b"left over")
    before = place.blocks()
    place.wait(31)
    done = place.remove(remote=Upgrading(place.server, "me"))
    assert (done.removed, done.restored) == (1, 1)
    assert place.blocks() == before


def test_a_block_that_is_missing_is_reported_and_nothing_beside_it_is_removed(place: Place) -> None:
    space = place.share()
    other = place.share("two")
    for one in (space, other):
        place.server.remote().put_block(one, LOST, b"left over")
    tenant = place.server.tenants["me"]
    gone = sorted(name for name in tenant.blocks[space] if name != LOST)[2]
    stat = next(one for one in place.server.remote().list_blocks(space, "", "~").stats if one.id == gone)
    place.server.remote().delete_block(space, gone, stat.version)
    place.wait(31)
    done = place.remove()
    assert (done.missing, done.removed, done.is_whole) == (1, 1, False)
    assert LOST in tenant.blocks[space]
    assert LOST not in tenant.blocks[other]


def test_a_block_that_is_missing_is_put_back_from_what_was_removed_here(place: Place) -> None:
    space = place.share()
    before = place.blocks()
    gone = sorted(place.server.tenants["me"].blocks[space])[2]
    kept = Removed(str(place.b.root / "removed"))
    run = kept.begin(EPOCH)
    kept.keep(run, space, gone, before[space, gone])
    kept.end()
    stat = next(one for one in place.server.remote().list_blocks(space, "", "~").stats if one.id == gone)
    place.server.remote().delete_block(space, gone, stat.version)
    done = place.remove()
    assert (done.restored, done.missing, done.is_whole) == (1, 0, True)
    assert place.blocks() == before


def test_a_removal_that_was_cut_off_is_finished_and_nothing_is_asked_where_none_was(place: Place) -> None:
    space = place.share()
    before = place.blocks()
    gone = sorted(place.server.tenants["me"].blocks[space])[0]
    kept = Removed(str(place.b.root / "removed"))
    kept.keep(kept.begin(EPOCH), space, gone, before[space, gone])
    stat = next(one for one in place.server.remote().list_blocks(space, "", "~").stats if one.id == gone)
    place.server.remote().delete_block(space, gone, stat.version)
    assert place.b.remover(place.server.remote()).finish().restored == 1
    assert place.blocks() == before
    assert kept.open_run() is None
    assert place.b.remover(Refusing(place.server, "me")).finish() == Removal()


class Undated(MemoryRemote):
    """A store without ages."""

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        page = super().list_blocks(space, first, stop, after)
        return page._replace(stats=tuple(stat._replace(age=None) for stat in page.stats))


def test_what_has_no_age_stays_and_is_reported(place: Place) -> None:
    space = place.share()
    place.server.remote().put_block(space, LOST, b"left over")
    place.wait(99)
    done = place.remove(remote=Undated(place.server, "me"))
    assert (done.removed, done.undated, done.is_whole) == (0, 1, False)


class Refusing(MemoryRemote):
    """A store that does not let this user remove anything, nor list in this case."""

    def delete_block(self, space: str, block: str, version: str) -> bool:
        raise RemoteError("you may not do that")


def test_a_role_that_may_not_remove_changes_nothing(place: Place) -> None:
    place.share()
    place.world.take_back(place.a.trash("one"))
    place.push(place.a)
    place.wait(31)
    before, heads = place.blocks(), dict(place._heads())
    with pytest.raises(RemoteError, match="may not"):
        place.remove(remote=Refusing(place.server, "me"))
    assert (place.blocks(), place._heads()) == (before, heads)


def test_a_role_that_may_not_remove_leftovers_leaves_nothing_to_be_finished(place: Place) -> None:
    space = place.share()
    place.server.remote().put_block(space, LOST, b"left over")
    place.wait(31)
    with pytest.raises(RemoteError, match="may not"):
        place.remove(remote=Refusing(place.server, "me"))
    assert (space, LOST) in place.blocks()
    assert place.b.remover(place.server.remote()).finish() == Removal()
    assert Removed(str(place.b.root / "removed")).open_run() is None


class Failing(MemoryRemote):
    """A store that fails after it has removed a block."""

    def delete_block(self, space: str, block: str, version: str) -> bool:
        if super().delete_block(space, block, version):
            raise RemoteError("gone away")
        return False


def test_a_store_that_fails_in_the_middle_leaves_something_to_be_finished(place: Place) -> None:
    place.share()
    before = place.blocks()
    place.world.take_back(place.a.trash("one"))
    place.push(place.a)
    place.wait(31)
    with pytest.raises(RemoteError, match="gone away"):
        place.remove(remote=Failing(place.server, "me"))
    assert len(place.blocks()) == len(before) - 1
    assert Removed(str(place.b.root / "removed")).open_run() is not None
    assert place.b.remover(place.server.remote()).finish().restored == 0, "no head needs it"
    assert Removed(str(place.b.root / "removed")).open_run() is None
    assert len(place.kept()) == 1
    assert place.remove().removed == len(before) - 1


def test_what_is_younger_than_an_hour_can_never_be_asked_for(place: Place) -> None:
    with pytest.raises(Invalid, match="running push"):
        place.b.remover(place.server.remote(), older=LEAST - timedelta(seconds=1))


def test_a_fork_of_what_is_gone_from_the_remote_by_now_is_whole_there(place: Place) -> None:
    place.share()
    place.world.fork(place.a, "one", "fork", 4)
    place.world.take_back(place.b.trash("one")[4:])
    place.push(place.b)
    place.wait(31)
    assert place.remove().removed == 5
    place.push(place.a)
    place.world.check()
    assert len(place.b.lines("fork")) == 5


# -- heads


HEAD = Head(
    v=1,
    kind="k",
    project=None,
    session="s",
    space="0" * 40,
    gen=2,
    count=7,
    device="d",
    at="2025-01-31T12:00:00+00:00",
)
PART = PartHead("p", "journal", 1, 1, "0" * 64)
EARLY, LATE = "2025-01-01T00:00:00+00:00", "2025-03-01T00:00:00+00:00"
LIMIT = datetime(2025, 2, 1, tzinfo=UTC)


def replaced(**fields: Any) -> Head:
    import msgspec

    return msgspec.structs.replace(HEAD, **fields)


def test_only_what_is_early_is_forgotten() -> None:
    early, late = Past(0, EARLY, {"p": (1, "a")}), Past(1, LATE, {"p": (2, "b")})
    assert without_past(replaced(history=(early, late)), LIMIT, lambda past: True) == replaced(
        history=(late,), count=8
    )
    same = replaced(history=(late,))
    assert without_past(same, LIMIT, lambda past: True) is same


def test_a_living_session_keeps_its_parts_and_a_tombstone_until_it_is_old() -> None:
    for head in (replaced(parts=(PART,)), replaced(parts=(PART,), deleted=True, at=LATE)):
        assert without_past(head, LIMIT, lambda past: True) is head
    old = replaced(parts=(PART,), deleted=True)
    assert without_past(old, LIMIT, lambda past: True) == replaced(parts=(), deleted=True, count=8)


def test_what_this_machine_saw_only_lately_is_not_forgotten_whatever_a_head_says_of_its_time() -> None:
    past = Past(0, EARLY, {"p": (1, "a")})
    for head in (replaced(history=(past,)), replaced(parts=(PART,), deleted=True)):
        assert without_past(head, LIMIT, lambda past: False) is head


@pytest.mark.parametrize("verb", ["trash", "rewind"])
def test_a_device_whose_clock_is_years_behind_does_not_void_the_month(place: Place, verb: str) -> None:
    place.share()
    if verb == "trash":
        place.a.trash("one")
    else:
        place.a.rewind("one", 1)
    place.time = -9999 * DAY
    place.push(place.a)
    place.time = 0.0
    before = place.blocks()
    done = place.remove()
    assert (done.unripe, done.emptied, done.trimmed, place.blocks()) == (1, 0, 0, before)
    place.time = 31 * DAY
    done = place.remove()
    assert (done.unripe, done.emptied + done.trimmed) == (0, 1)


@pytest.mark.parametrize("reported", ["", "yesterday", "2025-99-99"])
def test_a_time_that_cannot_be_read_is_late(reported: str) -> None:
    head = replaced(history=(Past(0, reported, {}),))
    assert without_past(head, LIMIT, lambda past: True) is head


# -- a store that removes nothing


class Keeping(MemoryRemote):
    """A store from which nothing can be removed."""

    def delete_block(self, space: str, block: str, version: str) -> bool:
        raise RemoteError("this store removes nothing")


def test_a_push_works_as_ever_where_nothing_can_be_removed(tmp_path: Path) -> None:
    server = MemoryServer()
    world = World(tmp_path, lambda: Keeping(server, "me"), 2, block=BLOCK)
    a, _ = world.devices
    world.say(a, "one", 4, 150)
    assert [one.standing for one in a.engine(world.remote()).push().outcomes] == [SyncStatus.PUSHED]
    world.fork(a, "one", "fork", 3)
    world.check()
    assert sorted(a.names()) == ["fork", "one"]


# -- what others relied on


def noise(seed: int, size: int) -> str:
    """A text that hardly becomes smaller when it is compressed."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def test_two_versions_of_a_document_are_brought_together_where_the_agreed_one_was_removed(
    tmp_path: Path,
) -> None:
    time = [0.0]
    server = MemoryServer(clock=lambda: time[0])
    world = PolicyWorld(tmp_path, server.remote, kinds=(WORK,))
    a, b = world.devices
    a.begin("one")
    a.tell("one", purpose=noise(1, 9000))
    world.settle()
    agreed = server.remote().list_blocks(next(iter(server.tenants["me"].blocks)), "", "~").stats
    b.tell("one", EPOCH + timedelta(seconds=9), status="paused")
    for engine in b.engines(server.remote()):
        engine.push()
    time[0] = 40 * DAY
    remover = Remover(server.remote(), Removed(str(tmp_path / "removed")), now=lambda: EPOCH)
    assert remover.remove().removed == len(agreed) == 1
    a.tell("one", EPOCH + timedelta(seconds=5), owner="ada")
    world.check()
    reported = [
        json.loads((device.work_folder("one") / "session.json").read_text()) for device in world.devices
    ]
    assert [one["status"] for one in reported] == ["paused", "paused"], "the later one stands"
    beside = list(a.work_folder("one").glob("session.json.conflict-*"))
    assert [json.loads(path.read_text())["owner"] for path in beside] == ["ada"], "and the other is kept"


class Strict(MemoryRemote):
    """A store that looks at what a head points to: to blocks that are there already."""

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        head = decode(name, data)
        there = {stat.id for stat in self.list_blocks(head.space, "", "~").stats}
        for part in head.parts:
            tip = block_id(part_key(part.name), part.n - 1, part.chain)
            assert not part.n or tip in there, f"{part.name} is not there yet"
        return super().swap_head(name, data, etag)


def test_a_document_that_finds_no_room_in_the_head_any_more_is_put_into_blocks(tmp_path: Path) -> None:
    server = MemoryServer()
    world = PolicyWorld(tmp_path, lambda: Strict(server, "me"), kinds=(FEATURE,))
    a, _ = world.devices
    a.plan("feature-2025-01-31")
    notes = a.features / "feature-2025-01-31" / "notes"
    notes.mkdir()
    (notes / "z.md").write_text(noise(0, 2900))
    world.settle()
    for number in range(24):
        (notes / f"a{number:02}.md").write_text(noise(number + 1, 2900))
    world.check()
    assert len(list((world.devices[1].features / "feature-2025-01-31" / "notes").iterdir())) == 25
