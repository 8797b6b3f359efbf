"""A pull keeps the age of a session: its order in lists, and its age for a clean-up."""

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from sessionary import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.summary import summary_of
from sessionary.sync.heads import Head, decode, encode
from sessionary.sync.remote import heads_of
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import Rules
from tests.support.faults import Fault
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, WORK, PolicyWorld, recipient
from tests.support.sync_world import EPOCH, Device, World, attempt


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def world(tmp_path: Path, server: MemoryServer) -> World:
    return World(tmp_path, server.remote)


def ago(**time: float) -> datetime:
    return EPOCH - timedelta(**time)


def age(device: Device, session: str, at: datetime) -> None:
    folder = device.sessions / session
    for path in (*folder.iterdir(), folder):
        os.utime(path, (at.timestamp(), at.timestamp()))


def newest(folder: Path) -> datetime:
    """What a clean-up goes by."""
    times = [path.stat().st_mtime for path in (folder, *folder.rglob("*")) if path.name != ".lock"]
    return datetime.fromtimestamp(max(times), UTC)


def modified(device: Device, session: str) -> datetime | None:
    """What a list shows."""
    layout = AmplifierSyncLayout(device.root / "home")
    return summary_of(layout, layout.place("-work", session)).updated


def push(world: World, at: int) -> None:
    world.devices[at].engine(world.remote()).push()


def pull(world: World, at: int) -> None:
    world.devices[at].engine(world.remote()).pull()


def head_of(server: MemoryServer) -> Head:
    (record,) = heads_of(server.remote())
    return decode(record.name, record.data)


def test_pulled_sessions_keep_their_order_and_their_age(world: World) -> None:
    desk, laptop = world.devices
    for session, days in (("middle", 20), ("oldest", 40), ("newest", 1)):
        world.say(desk, session)
        age(desk, session, ago(days=days))
    push(world, 0)
    pull(world, 1)
    assert SessionStore(laptop.sessions).list_sessions() == ["newest", "middle", "oldest"]
    for session, days in (("middle", 20), ("oldest", 40), ("newest", 1)):
        assert newest(laptop.sessions / session) == ago(days=days)
        assert modified(laptop, session) == modified(desk, session) == ago(days=days)


def test_a_pulled_session_keeps_its_time(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    age(desk, "one", ago(days=9))
    push(world, 0)
    pull(world, 1)
    world.say(desk, "one")
    age(desk, "one", ago(days=5))
    push(world, 0)
    pull(world, 1)
    assert newest(laptop.sessions / "one") == modified(laptop, "one") == ago(days=5)
    assert (laptop.sessions / "one" / "transcript.jsonl.backup").exists(), "no file of the pull is newer"


def test_what_is_in_step_keeps_its_times(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    push(world, 0)
    pull(world, 1)
    age(laptop, "one", ago(days=3))
    pull(world, 1)
    push(world, 1)
    assert newest(laptop.sessions / "one") == ago(days=3)


def test_a_time_after_the_clock_is_that_of_the_push(world: World, server: MemoryServer) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    age(desk, "one", EPOCH + timedelta(days=400))
    push(world, 0)
    reported = datetime.fromisoformat(head_of(server).active)
    assert EPOCH <= reported < EPOCH + timedelta(minutes=1)
    pull(world, 1)
    assert newest(laptop.sessions / "one") == reported


def test_no_session_is_newer_than_the_clock_of_the_device_that_pulls_it(tmp_path: Path) -> None:
    world = World(tmp_path, MemoryServer().remote, skews=(timedelta(days=300),))
    desk, laptop = world.devices
    world.say(desk, "one")
    age(desk, "one", EPOCH + timedelta(days=200))
    push(world, 0)
    pull(world, 1)
    assert EPOCH <= newest(laptop.sessions / "one") < EPOCH + timedelta(minutes=1)


@pytest.mark.parametrize("active", ["", "no time"])
def test_a_head_that_does_not_say_it_is_as_old_as_its_push(
    active: str, world: World, server: MemoryServer
) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    push(world, 0)
    (record,) = heads_of(server.remote())
    head = msgspec.structs.replace(head_of(server), active=active, at=ago(days=7).isoformat())
    assert server.remote().swap_head(record.name, encode(head), record.etag)
    before = datetime.now(UTC)
    pull(world, 1)
    found = newest(laptop.sessions / "one")
    assert found == ago(days=7) if not active else found >= before - timedelta(seconds=1)


@pytest.mark.parametrize("gone_on", [False, True], ids=["new", "known"])
def test_a_pull_that_is_cut_off_before_it_sets_the_times_sets_them_the_next_time(
    gone_on: bool, world: World
) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    age(desk, "one", ago(days=9))
    push(world, 0)
    if gone_on:
        pull(world, 1)
        world.say(desk, "one")
        age(desk, "one", ago(days=5))
        push(world, 0)
    whole = attempt(laptop, world.remote(), lambda engine: engine.pull(), Fault("utime", 1, "kill"))
    assert not whole, "it was killed"
    assert newest(laptop.sessions / "one") > EPOCH, "as new as it can be, and whole"
    assert laptop.files() == desk.files()
    pull(world, 1)
    assert newest(laptop.sessions / "one") == (ago(days=5) if gone_on else ago(days=9))


def test_times_that_cannot_be_set_stop_no_pull(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    push(world, 0)
    assert attempt(laptop, world.remote(), lambda engine: engine.pull(), Fault("utime", 1, errno.EPERM))
    assert laptop.files() == desk.files()


def test_both_continuations_keep_their_times(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    push(world, 0)
    pull(world, 1)
    world.say(desk, "one")
    world.say(laptop, "one")
    age(desk, "one", ago(days=4))
    age(laptop, "one", ago(days=6))
    push(world, 0)
    (parted,) = laptop.engine(world.remote()).pull().of(SyncStatus.DIVERGED)
    assert parted.sibling is not None
    assert newest(laptop.sessions / "one") == ago(days=4)
    assert newest(laptop.sessions / parted.sibling) == ago(days=6)


def test_a_document_that_both_changed_is_as_new_as_the_newer_change(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    push(world, 0)
    pull(world, 1)
    desk.describe("one", title="of the desk")
    laptop.describe("one", title="of the laptop")
    age(desk, "one", ago(days=4))
    age(laptop, "one", ago(days=2))
    push(world, 0)
    pull(world, 1)
    folder = laptop.sessions / "one"
    assert datetime.fromtimestamp(folder.stat().st_mtime, UTC) == ago(days=2)
    assert newest(folder) == ago(days=2)


def test_an_event_log_that_is_not_carried_keeps_its_time(world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    age(desk, "one", ago(days=9))
    push(world, 0)
    pull(world, 1)
    laptop.log("one", "an event")
    age(laptop, "one", ago(days=1))
    world.say(desk, "one")
    age(desk, "one", ago(days=5))
    push(world, 0)
    pull(world, 1)
    folder = laptop.sessions / "one"
    times = {name: (folder / name).stat().st_mtime for name in ("transcript.jsonl", "events.jsonl", "")}
    assert {name: datetime.fromtimestamp(time, UTC) for name, time in times.items()} == {
        "transcript.jsonl": ago(days=5),
        "events.jsonl": ago(days=1),
        "": ago(days=1),
    }


def test_an_event_log_that_is_carried_is_a_file_like_the_others(world: World) -> None:
    desk, laptop = world.devices
    for device in world.devices:
        device.rules = Rules(logs=True)
    world.say(desk, "one")
    desk.log("one", "an event")
    age(desk, "one", ago(days=9))
    push(world, 0)
    pull(world, 1)
    assert newest(laptop.sessions / "one") == ago(days=9)


# -- the other layouts


def set_all(folder: Path, at: datetime) -> None:
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (at.timestamp(), at.timestamp()))


def time_of(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def test_a_work_session_keeps_its_age_and_the_folders_of_its_mailbox_say_that_something_came(
    tmp_path: Path,
) -> None:
    world = PolicyWorld(tmp_path, MemoryServer().remote, kinds=(WORK,))
    desk, laptop = world.devices
    desk.begin("one")
    world.drop(desk, "one")
    world.apply(desk, "one")
    set_all(desk.work, ago(days=9))
    for device in world.devices:
        world.sync(device)
    folder = laptop.work / "one"
    assert {path.name: time_of(path) for path in (folder, *folder.glob("[!.]*.json*"))} == {
        "one": ago(days=9),
        "session.json": ago(days=9),
        "log.jsonl": ago(days=9),
    }
    world.drop(desk, "one")
    set_all(desk.work, ago(days=5))
    for device in world.devices:
        world.sync(device)
    assert time_of(folder) == ago(days=5)
    for path in (folder / "breadcrumbs").rglob("*"):
        assert time_of(path) > EPOCH, f"{path.name} is of the pull"


def test_a_feature_keeps_its_age_with_all_of_its_files(tmp_path: Path) -> None:
    world = PolicyWorld(tmp_path, MemoryServer().remote, kinds=(FEATURE,))
    desk, laptop = world.devices
    desk.plan("login-2025-01-31")
    world.log(desk, "login-2025-01-31")
    (desk.features / "login-2025-01-31" / "artifacts").mkdir()
    (desk.features / "login-2025-01-31" / "artifacts" / "notes.md").write_text("x")
    set_all(desk.features, ago(days=9))
    for device in world.devices:
        world.sync(device)
    folder = laptop.features / "login-2025-01-31"
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert {path.name for path in files} >= {"notes.md", "state.yaml", "history.jsonl"}
    assert {time_of(path) for path in (folder, *files)} == {ago(days=9)}


def test_a_brainstorm_keeps_its_age_and_the_folder_of_all_is_left_alone(tmp_path: Path) -> None:
    world = PolicyWorld(tmp_path, MemoryServer().remote, kinds=(BRAINSTORM,))
    desk, laptop = world.devices
    world.storm(desk, "logo")
    set_all(desk.storms, ago(days=9))
    for device in world.devices:
        world.sync(device)
    layout = recipient(BRAINSTORM, laptop.project)
    assert time_of(layout.place("app", "logo").path) == ago(days=9)
    assert time_of(laptop.storms) > EPOCH
