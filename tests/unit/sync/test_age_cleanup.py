"""A clean-up by age is of one device: the others keep their sessions, and it is not undone by the next pull."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessionary import BrainstormStore, SessionStore
from sessionary.disk.fs import OS_FS
from sessionary.layouts import cleaned_up
from sessionary.sync.activity import CLEANED_UP
from sessionary.sync.report import Outcome, SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, PolicyWorld
from tests.support.sync_world import EPOCH, Device, World
from tests.unit.hybrid.conftest import Machine

IDS = [f"old{number}" for number in range(3)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two devices that share three sessions of two months ago."""
    world = World(tmp_path, MemoryServer().remote)
    desk, laptop = world.devices
    for session in IDS:
        world.say(desk, session)
        age(desk, session, 60)
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    return world


def age(device: Device, session: str, days: float) -> None:
    at = (EPOCH - timedelta(days=days)).timestamp()
    folder = device.sessions / session
    for path in (*folder.iterdir(), folder):
        os.utime(path, (at, at))


def store(device: Device) -> SessionStore:
    return SessionStore.with_fs(OS_FS, device.sessions, now=lambda: EPOCH)


def reported(outcomes: list[Outcome]) -> dict[str, tuple[SyncStatus, str]]:
    return {one.session_id: (one.standing, one.note) for one in outcomes}


def forget_all(device: Device) -> None:
    """The memory of the remote is deleted, as it may be."""
    shutil.rmtree(device.state)


def empty_trash(device: Device) -> None:
    shutil.rmtree(device.sessions / ".trash")


@pytest.mark.parametrize("erase", [False, True], ids=["trashed", "erased"])
@pytest.mark.parametrize("then", [lambda device: None, forget_all], ids=["remembered", "forgotten"])
def test_it_is_of_one_device_and_lasts(erase: bool, then: Callable[[Device], None], world: World) -> None:
    desk, laptop = world.devices
    assert store(laptop).cleanup_old_sessions(30, erase=erase) == 3
    if not erase:
        empty_trash(laptop)
    then(laptop)
    for _ in range(2):
        assert reported(laptop.engine(world.remote()).push().outcomes) == {}
        pulled = laptop.engine(world.remote()).pull()
        assert {one.standing for one in pulled.outcomes} == {SyncStatus.IN_STEP}
        desk.engine(world.remote()).pull()
    assert (desk.names(), laptop.names()) == (IDS, [])
    expected = dict.fromkeys(IDS, (SyncStatus.IN_STEP, CLEANED_UP))
    assert reported(laptop.engine(world.remote()).status().outcomes) == expected


def test_a_push_of_what_has_changed_does_not_take_it_for_a_deletion_either(world: World) -> None:
    desk, laptop = world.devices
    refs = list(laptop.engine(world.remote()).layout.discover())
    store(laptop).cleanup_old_sessions(30)
    assert laptop.engine(world.remote()).push(refs).outcomes == []
    desk.engine(world.remote()).pull()
    assert desk.names() == IDS


@pytest.mark.parametrize("then", [lambda device: None, forget_all], ids=["remembered", "forgotten"])
def test_a_session_continued_on_another_device_is_restored(
    then: Callable[[Device], None], world: World
) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    world.say(desk, "old1")
    age(desk, "old1", 1)
    desk.engine(world.remote()).push()
    then(laptop)
    assert reported(laptop.engine(world.remote()).status().outcomes)["old1"][0] is SyncStatus.BEHIND
    laptop.engine(world.remote()).pull()
    assert laptop.names() == ["old1"]
    assert laptop.lines("old1") == desk.lines("old1")
    assert store(laptop).cleanup_old_sessions(30) == 0, "it is as young as it is there"


def test_what_came_back_can_be_deleted(world: World) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    world.say(desk, "old1")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    laptop.trash("old1")
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    assert desk.names() == ["old0", "old2"]


@pytest.mark.parametrize(
    "delete", [SessionStore.delete, lambda store, session: None], ids=["by us", "by hand"]
)
def test_what_was_brought_back_can_be_deleted(
    delete: Callable[[SessionStore, str], None], world: World
) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    store(laptop).undo("old1")
    laptop.engine(world.remote()).push()
    delete(store(laptop), "old1")
    if "old1" in laptop.names():
        laptop.trash("old1")
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    assert desk.names() == ["old0", "old2"]


def test_what_was_made_anew_under_the_old_id_can_be_deleted_by_hand(world: World) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    shutil.copytree(desk.sessions / "old1", laptop.sessions / "old1")
    laptop.engine(world.remote()).push()
    laptop.trash("old1")
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    assert desk.names() == ["old0", "old2"]


def test_a_deletion_is_still_a_deletion_of_all_devices(world: World) -> None:
    desk, laptop = world.devices
    store(laptop).delete("old1")
    store(laptop).cleanup_old_sessions(30)
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    assert desk.names() == ["old0", "old2"]


def test_what_was_deleted_elsewhere_after_it_was_cleaned_up_here_is_deleted(world: World) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    desk.trash("old1")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    assert laptop.names() == []
    assert "old1" not in reported(laptop.engine(world.remote()).status().outcomes)


def test_a_clean_up_that_fails_leaves_no_note(world: World) -> None:
    _, laptop = world.devices
    (laptop.sessions / ".trash").write_text("a file of somebody else, where the trash should be")
    one = store(laptop)
    assert one.cleanup_old_sessions(30) == 0
    assert {problem.code for problem in one.last_report.problems} == {"not_moved"}
    assert cleaned_up.noted(OS_FS, str(laptop.sessions)) == []


def test_a_note_that_cannot_be_read_counts_and_any_news_brings_the_session_back(world: World) -> None:
    desk, laptop = world.devices
    store(laptop).cleanup_old_sessions(30)
    forget_all(laptop)
    (laptop.sessions / ".cleaned-up" / "old1").write_text("{")
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    assert desk.names() == IDS
    laptop.engine(world.remote()).pull()
    assert laptop.names() == ["old1"]


def test_notes_follow_a_project_that_moved(tmp_path: Path) -> None:
    for name in ("a", "b"):
        cleaned_up.note(OS_FS, str(tmp_path / "from"), name, EPOCH, EPOCH)
    cleaned_up.move(OS_FS, str(tmp_path / "from"), str(tmp_path / "to"))
    cleaned_up.move(OS_FS, str(tmp_path / "from"), str(tmp_path / "to"))
    assert sorted(cleaned_up.noted(OS_FS, str(tmp_path / "to"))) == ["a", "b"]
    assert cleaned_up.last_activity(OS_FS, str(tmp_path / "to"), "a") == EPOCH
    assert not (tmp_path / "from" / ".cleaned-up").exists()


# -- a store with another side, and the other layouts


def test_a_hybrid_store_cleans_up_on_its_machine_only(tmp_path: Path) -> None:
    server = MemoryServer()
    one, two = (Machine(tmp_path / name, server.remote) for name in ("one", "two"))
    try:
        one.write("hello")
        one.sync()
        two.pull()
        two.store.release("s")
        for path in (*(two.sessions / "s").iterdir(), two.sessions / "s"):
            os.utime(path, (1, 1))
        assert two.store.cleanup_old_sessions() == 1
        assert two.store.unsent == []
        assert two.sync().pushed == 0
        assert one.pull().errors == []
        assert two.pull().pulled == 0
        assert (one.store.list_sessions(), two.store.list_sessions()) == (["s"], [])
    finally:
        one.store.close(0.2)
        two.store.close(0.2)


def test_a_hybrid_store_leaves_a_session_that_it_pulled_or_opened_as_old_as_it_is(tmp_path: Path) -> None:
    server = MemoryServer()
    one, two = (Machine(tmp_path / name, server.remote) for name in ("one", "two"))
    try:
        for session, at in (("a", 1000), ("b", 3000), ("c", 2000)):
            one.write("hello", session=session)
            for path in (*(one.sessions / session).iterdir(), one.sessions / session):
                os.utime(path, (at, at))
        one.sync()
        assert two.pull().pulled == 3
        assert two.store.list_sessions() == ["b", "c", "a"]
        two.restart()
        two.texts("a")
        assert two.store.list_sessions() == ["b", "c", "a"]
        assert two.store.cleanup_old_sessions() == 3
    finally:
        one.store.close(0.2)
        two.store.close(0.2)


def test_a_brainstorm_that_is_cleaned_up_stays_elsewhere(tmp_path: Path) -> None:
    world = PolicyWorld(tmp_path, MemoryServer().remote, kinds=(BRAINSTORM,))
    desk, laptop = world.devices
    then = datetime(2024, 1, 1, tzinfo=UTC)
    made = BrainstormStore(desk.project)
    made.create("logo", now=then)
    made.abandon("logo", now=then)
    for device in world.devices:
        world.sync(device)
    assert laptop.storms_there() == ["logo"]
    (done,) = BrainstormStore(laptop.project).cleanup(30, now=EPOCH)
    assert done.row.slug == "logo"
    for device in (laptop, desk, laptop):
        world.sync(device)
    assert (desk.storms_there(), laptop.storms_there()) == (["logo"], [])
    BrainstormStore(laptop.project).restore("logo")
    (laptop.storms / "logo.yaml").unlink()
    for device in (laptop, desk):
        world.sync(device)
    assert desk.storms_there() == []
