"""An emptied tombstone counts as a tombstone, also if a session is a single file."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from sessionary.sync.gc.removal import Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.heads import decode, encode
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, EPOCH, FEATURE, LIST, PolicyDevice, PolicyWorld
from tests.support.sync_world import note_what_is_there

DAY = 86_400.0


class Storms:
    """Two devices that have a brainstorm, which the first one threw away; the clock can be put forward."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.time = 0.0
        self.server = MemoryServer(clock=lambda: self.time)
        self.world = PolicyWorld(root, self.server.remote, kinds=(BRAINSTORM,))
        self.a, self.b = self.world.devices
        self.a.storm("idea", "first")
        self.carry(self.a)
        self.carry(self.b)
        assert self.b.storms_there() == ["idea"]
        (self.a.storms / "idea.yaml").unlink()
        assert self.carry(self.a)[-1] == ("push", SyncStatus.TRASHED)

    def carry(self, device: PolicyDevice) -> list[tuple[str, SyncStatus]]:
        """Pull and push; the standings of all sessions."""
        engine = device.engine(BRAINSTORM, self.server.remote())
        return [(verb, one.standing) for verb in ("pull", "push") for one in getattr(engine, verb)().outcomes]

    def empty(self) -> None:
        removed = Removed(str(self.root / "removed"))
        note_what_is_there(Remover(self.server.remote(), removed, now=lambda: EPOCH))
        self.time += 31 * DAY
        now = EPOCH + timedelta(seconds=self.time)
        assert Remover(self.server.remote(), removed, now=lambda: now).remove().emptied == 1


@pytest.fixture
def storms(tmp_path: Path) -> Storms:
    return Storms(tmp_path)


def test_an_emptied_brainstorm_is_trashed_on_other_devices(storms: Storms) -> None:
    storms.empty()
    assert ("pull", SyncStatus.TRASHED) in storms.carry(storms.b)
    assert storms.b.storms_there() == []


def test_an_emptied_brainstorm_is_nothing_to_a_device_that_never_had_it(storms: Storms) -> None:
    storms.empty()
    fresh = PolicyDevice(storms.root, "fresh", (BRAINSTORM,))
    assert SyncStatus.FAILED not in [standing for _, standing in storms.carry(fresh)]
    assert fresh.storms_there() == []


def test_a_brainstorm_changed_where_its_removal_is_unknown_comes_back_for_all(storms: Storms) -> None:
    storms.empty()
    storms.b.storm("idea", "second")
    assert storms.carry(storms.b) == [("pull", SyncStatus.HELD_BACK), ("push", SyncStatus.PUSHED)]
    storms.carry(storms.a)
    assert storms.a.answers("idea") == ["first", "second"]


def test_a_push_alone_of_an_emptied_brainstorm_is_reported_as_behind(storms: Storms) -> None:
    storms.empty()
    storms.b.storm("idea", "second")
    report = storms.b.engine(BRAINSTORM, storms.server.remote()).push()
    assert [one.standing for one in report.outcomes] == [SyncStatus.BEHIND]


def test_a_list_of_features_stays_where_its_head_was_emptied(tmp_path: Path) -> None:
    server = MemoryServer()
    world = PolicyWorld(tmp_path, server.remote, kinds=(FEATURE,))
    path = world.devices[0].features / LIST
    path.write_text("features: []\n")
    world.settle()
    (record,) = (
        one for one in server.remote().list_heads().heads if decode(one.name, one.data).session == LIST
    )
    head = decode(record.name, record.data)
    gone = msgspec.structs.replace(head, deleted=True, parts=(), count=head.count + 1)
    assert server.remote().swap_head(record.name, encode(gone), record.etag) is not None
    for device in world.devices:
        report = device.engine(FEATURE, server.remote()).pull()
        assert SyncStatus.FAILED not in [one.standing for one in report.outcomes]
        assert (device.features / LIST).read_text() == "features: []\n"
