"""Damage that must not travel, in everything of a project: work sessions, features, brainstorms."""

import json
import os
from pathlib import Path

import pytest

from sessionary.sync.report import Outcome, Report, SyncStatus, Where
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, LIST, WORK, PolicyDevice, PolicyWorld

F = "f-2025-01-31"


@pytest.fixture
def world(tmp_path: Path) -> PolicyWorld:
    """Two devices that have one of everything, in step."""
    world = PolicyWorld(tmp_path, MemoryServer().remote)
    a = world.devices[0]
    a.begin("one")
    for _ in range(3):
        world.drop(a, "one")
    world.apply(a, "one")
    a.plan(F)
    for _ in range(4):
        world.log(a, F)
    (a.features / F / "artifacts").mkdir()
    (a.features / F / "artifacts" / "notes.md").write_text("some notes\n" * 9)
    world.storm(a, "ideas")
    for device in world.devices:
        world.sync(device)
    return world


def files_of(device: PolicyDevice) -> dict[str, tuple[str, Path]]:
    """A file of each name, with the kind of its session."""
    return {
        "session.json": (WORK, device.work / "one" / "session.json"),
        "log.jsonl": (WORK, device.work / "one" / "log.jsonl"),
        "crumb": (WORK, min((device.work / "one" / "breadcrumbs" / "0").iterdir())),
        "state.yaml": (FEATURE, device.features / F / "state.yaml"),
        "history.jsonl": (FEATURE, device.features / F / "history.jsonl"),
        "artifact": (FEATURE, device.features / F / "artifacts" / "notes.md"),
        "session.yaml": (BRAINSTORM, device.storms / "ideas.yaml"),
    }


NAMES = ["session.json", "log.jsonl", "crumb", "state.yaml", "history.jsonl", "artifact", "session.yaml"]


def outcome(world: PolicyWorld, at: int, kind: str, verb: str) -> Outcome:
    report: Report = getattr(world.devices[at].engine(kind, world.remote()), verb)()
    (found,) = [one for one in report.outcomes if one.session_id != LIST]
    return found


def resolve(world: PolicyWorld, at: int, kind: str, keep: str) -> None:
    engine = world.devices[at].engine(kind, world.remote())
    (ref,) = [ref for ref in engine.layout.discover() if ref.session_id != LIST]
    engine.resolve(ref, keep)


def emptied(path: Path) -> None:
    os.truncate(path, 0)
    age(path)


def zeroed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:10] + bytes(len(data) - 15) + data[-5:])
    age(path)


def age(path: Path) -> None:
    """As if the power had been cut a while ago: a young file without an end is one that is being sent."""
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 3600))


@pytest.mark.parametrize("damage", [emptied, zeroed], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_held_back_until_it_is_settled(name: str, damage, world: PolicyWorld) -> None:  # type: ignore[no-untyped-def]
    kind, mine = files_of(world.devices[0])[name]
    _, theirs = files_of(world.devices[1])[name]
    good = theirs.read_bytes()
    assert mine.read_bytes() == good
    damage(mine)
    bad = mine.read_bytes()
    pushed = outcome(world, 0, kind, "push")
    assert (pushed.standing, [hold.where for hold in pushed.held]) == (SyncStatus.HELD_BACK, [Where.HERE])
    for at, verb in ((1, "pull"), (1, "push"), (1, "status"), (0, "pull"), (0, "push"), (0, "status")):
        assert outcome(world, at, kind, verb).standing is SyncStatus.HELD_BACK, (at, verb)
    assert (mine.read_bytes(), theirs.read_bytes()) == (bad, good)
    resolve(world, 0, kind, "theirs")
    assert mine.read_bytes() == good
    assert bad in [path.read_bytes() for path in mine.parent.glob(f"{mine.name}.conflict-*")]
    world.check()


def test_messages_go_on_beside_a_damaged_one(world: PolicyWorld) -> None:
    a, b = world.devices
    _, crumb = files_of(a)["crumb"]
    emptied(crumb)
    world.drop(a, "one", "20250201_120000")
    pushed = outcome(world, 0, WORK, "push")
    assert pushed.standing is SyncStatus.HELD_BACK
    assert [hold.file for hold in pushed.held] == [f"breadcrumbs/0/{crumb.name}"]
    outcome(world, 1, WORK, "pull")
    assert len(b.crumbs("one")) == 4
    world.drop(b, "one", "20250202_120000")
    outcome(world, 1, WORK, "push")
    assert outcome(world, 0, WORK, "pull").standing is SyncStatus.HELD_BACK
    assert len(list(crumb.parent.glob("*.json"))) == 5
    assert crumb.read_bytes() == b""
    resolve(world, 0, WORK, "theirs")
    world.check()


def test_a_damaged_message_that_a_user_sends_is_beside_the_good_one(world: PolicyWorld) -> None:
    a, b = world.devices
    _, crumb = files_of(a)["crumb"]
    good = crumb.read_bytes()
    emptied(crumb)
    outcome(world, 0, WORK, "push")
    resolve(world, 0, WORK, "mine")
    outcome(world, 1, WORK, "pull")
    _, other = files_of(b)["crumb"]
    found = [path.read_bytes() for path in other.parent.glob(f"{crumb.stem}~*.json")]
    assert sorted(found) == [b"", good]


def test_the_list_of_features_is_held_back_too(world: PolicyWorld) -> None:
    a, b = world.devices
    good = b'active_features:\n  - feature_id: "x"\n    status: "active"\n'
    (a.features / LIST).write_bytes(good)
    for device in world.devices:
        world.sync(device)
    os.truncate(a.features / LIST, 0)
    engine = a.engine(FEATURE, world.remote())
    (held,) = [one for one in engine.push().outcomes if one.session_id == LIST]
    assert (held.standing, held.held[0].where) == (SyncStatus.HELD_BACK, Where.HERE)
    b.engine(FEATURE, world.remote()).pull()
    assert (b.features / LIST).read_bytes() == good
    (waiting,) = engine.awaiting().outcomes
    assert (waiting.session_id, waiting.held[0].file) == (LIST, LIST)
    (ref,) = [ref for ref in engine.layout.discover() if ref.session_id == LIST]
    engine.resolve(ref, "theirs")
    assert (a.features / LIST).read_bytes() == good


def test_an_edit_by_hand_of_a_document_goes_through(world: PolicyWorld) -> None:
    _, mine = files_of(world.devices[0])["session.json"]
    _, theirs = files_of(world.devices[1])["session.json"]
    mine.write_text(json.dumps({**json.loads(mine.read_text()), "purpose": "another"}))
    assert outcome(world, 0, WORK, "push").standing is SyncStatus.PUSHED
    assert outcome(world, 1, WORK, "pull").standing is SyncStatus.PULLED
    assert mine.read_bytes() == theirs.read_bytes()
