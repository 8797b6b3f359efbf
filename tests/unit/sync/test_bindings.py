"""Folders without a repository: two of one name are two projects, and a doubtful guess waits for a user."""

import json
import os
from pathlib import Path

import pytest

from sessionary.errors import NotFound, RemoteError
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.sync.bindings import Bindings, base_of, identities_in
from sessionary.sync.engine import Engine
from sessionary.sync.identity import Repositories
from sessionary.sync.remote import heads_of
from sessionary.sync.report import Outcome, SyncStatus
from tests.support.memory_remote import MemoryServer

HEX = "0123456789abcdef"


class Machine:
    """Folders without a repository, a home with their sessions, and a memory of its own."""

    def __init__(self, root: Path, server: MemoryServer) -> None:
        self.root, self.server = root, server
        self.folders: dict[str, Path] = {}

    def folder(self, way: str) -> Path:
        place = self.root / way
        place.mkdir(parents=True, exist_ok=True)
        self.folders[path_slug(str(place))] = place
        return place

    def sessions(self, folder: Path) -> Path:
        return self.root / "home" / "projects" / path_slug(str(folder)) / "sessions"

    def say(self, folder: Path, session: str, text: str) -> None:
        there = self.sessions(folder) / session
        there.mkdir(parents=True, exist_ok=True)
        with open(there / "transcript.jsonl", "a") as file:
            file.write(json.dumps({"role": "user", "content": text}) + "\n")

    def names(self, folder: Path) -> set[str]:
        there = self.sessions(folder)
        return {path.name for path in there.iterdir()} if there.is_dir() else set()

    def bindings(self, *, keep: bool = True) -> Bindings:
        return Bindings(
            str(self.root / "state" / "projects.json"),
            identities=lambda: identities_in(heads_of(self.server.remote())),
            machine=self.root.name,
            keep=keep,
        )

    def projects(self, *, keep: bool = True) -> Repositories:
        return Repositories(self.folders, bindings=self.bindings(keep=keep))

    def engine(self, *, keep: bool = True) -> Engine:
        return Engine(
            AmplifierSyncLayout(self.root / "home"),
            self.server.remote(),
            state_dir=self.root / "state" / "amplifier",
            projects=self.projects(keep=keep),
            quiet=0,
        )

    def push(self) -> dict[str, Outcome]:
        return {one.session_id: one for one in self.engine().push().outcomes}

    def pull(self) -> dict[str, Outcome]:
        return {one.session_id: one for one in self.engine().pull().outcomes}

    def identity(self, folder: Path) -> str | None:
        return self.bindings().known().get(str(folder))


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def a(tmp_path: Path, server: MemoryServer) -> Machine:
    return Machine(tmp_path / "a", server)


@pytest.fixture
def b(tmp_path: Path, server: MemoryServer) -> Machine:
    return Machine(tmp_path / "b", server)


def two_folders(machine: Machine) -> tuple[Path, Path]:
    work, play = machine.folder("work/app"), machine.folder("play/app")
    machine.say(work, "w", "work")
    machine.push()
    machine.say(play, "p", "play")
    machine.push()
    return work, play


def test_the_second_folder_of_a_name_is_a_project_of_its_own(a: Machine) -> None:
    work, play = two_folders(a)
    second = a.identity(play)
    assert a.identity(work) == "folder:app"
    assert second is not None
    assert second.startswith("folder:app#")
    assert len(second.partition("#")[2]) == 8
    assert set(second.partition("#")[2]) <= set(HEX)
    assert set(identities_in(heads_of(a.server.remote()))) == {"folder:app", second}


def test_two_new_folders_of_one_name_share_nothing_either(a: Machine) -> None:
    a.say(a.folder("work/app"), "w", "work")
    a.say(a.folder("play/app"), "p", "play")
    a.push()
    assert len(set(a.bindings().known().values())) == 2


def test_one_folder_and_one_project_are_bound_automatically(a: Machine, b: Machine) -> None:
    a.say(a.folder("work/app"), "w", "work")
    a.push()
    there = b.folder("deep/app")
    assert b.pull()["w"].standing is SyncStatus.PULLED
    assert b.names(there) == {"w"}
    b.say(there, "w", "more")
    assert b.push()["w"].standing is SyncStatus.PUSHED


def test_one_folder_and_two_projects_wait_for_a_user(a: Machine, b: Machine) -> None:
    _, play = two_folders(a)
    second = a.identity(play)
    there = b.folder("deep/app")
    b.say(there, "b", "mine")
    for outcomes in (b.pull(), b.push()):
        assert all(one.standing is SyncStatus.HELD_BACK for one in outcomes.values())
        assert outcomes
    assert b.names(there) == {"b"}
    with pytest.raises(NotFound) as error:
        b.bindings().identity("folder:app", str(there), lambda: [str(there)])
    assert error.value.details["identities"] == ["folder:app", second]
    assert "sessionary sync project bind" in str(error.value.hint)
    b.bindings().bind(str(there), second, "folder:app")
    pulled = b.pull()
    assert pulled["p"].standing is SyncStatus.PULLED
    assert pulled["w"].standing is SyncStatus.HELD_BACK
    assert b.names(there) == {"b", "p"}
    assert b.push()["b"].standing is SyncStatus.PUSHED


def test_two_folders_and_one_project_wait_for_a_user_and_then_go_apart(a: Machine, b: Machine) -> None:
    a.say(a.folder("work/app"), "w", "work")
    a.push()
    one, two = b.folder("one/app"), b.folder("two/app")
    b.say(one, "1", "mine")
    b.say(two, "2", "mine")
    assert {outcome.standing for outcome in b.push().values()} == {SyncStatus.HELD_BACK}
    b.bindings().bind(str(one), "folder:app", "folder:app")
    assert {outcome.standing for outcome in b.push().values()} == {SyncStatus.PUSHED}
    assert b.identity(one) == "folder:app"
    assert b.identity(two) not in (None, "folder:app")
    b.pull()
    assert b.names(one) == {"1", "w"}
    assert b.names(two) == {"2"}


def test_a_binding_never_changes_by_itself(a: Machine, b: Machine) -> None:
    there = b.folder("deep/app")
    b.say(there, "b", "mine")
    b.push()
    two_folders(a)
    assert b.push()["b"].standing is SyncStatus.IN_STEP
    assert b.identity(there) == "folder:app"


def test_a_folder_that_was_moved_keeps_its_project(a: Machine) -> None:
    work = a.folder("work/app")
    a.say(work, "w", "work")
    a.push()
    (a.root / "code").mkdir()
    os.rename(work, a.root / "code" / "app")
    a.folders.clear()
    moved = a.folder("code/app")
    a.say(moved, "m", "more")
    a.push()
    assert a.bindings().known() == {str(moved): "folder:app"}


def test_a_folder_on_a_missing_disk_keeps_its_project(a: Machine) -> None:
    work = a.folder("disk/work/app")
    a.say(work, "w", "work")
    a.push()
    os.rename(a.root / "disk", a.root / "away")
    a.say(a.folder("play/app"), "p", "play")
    a.push()
    assert a.identity(work) == "folder:app"
    assert len(set(a.bindings().known().values())) == 2


def test_what_was_forgotten_is_not_guessed(a: Machine) -> None:
    work, play = two_folders(a)
    second = a.identity(play)
    (a.root / "state" / "projects.json").write_text("{torn")
    assert {one.standing for one in a.push().values()} == {SyncStatus.HELD_BACK}
    a.bindings().bind(str(work), "folder:app", "folder:app")
    a.bindings().bind(str(play), second, "folder:app")
    assert {one.standing for one in a.push().values()} == {SyncStatus.IN_STEP}


def test_a_command_that_changes_nothing_binds_nothing(a: Machine) -> None:
    a.say(a.folder("work/app"), "w", "work")
    a.say(a.folder("play/app"), "p", "play")
    standings = {one.standing for one in a.engine(keep=False).status().outcomes}
    assert standings == {SyncStatus.NEVER}
    assert a.bindings().known() == {}


def test_rebinding_sends_the_sessions_to_the_other_project_and_deletes_none(a: Machine) -> None:
    work, play = two_folders(a)
    second = a.identity(play)
    a.bindings().bind(str(play), "folder:app#00000000", "folder:app")
    a.engine().forget_rebound()
    assert a.push()["p"].standing is SyncStatus.PUSHED
    assert set(identities_in(heads_of(a.server.remote()))) == {"folder:app", second, "folder:app#00000000"}
    assert a.names(play) == {"p"}
    assert a.names(work) == {"w"}


def test_a_folder_name_with_a_hash_suffix_is_not_a_second_folder(a: Machine) -> None:
    odd = a.folder("x/app#00000000")
    a.say(odd, "o", "odd")
    a.push()
    identity = a.identity(odd)
    assert identity is not None
    assert base_of(identity) == "folder:app#00000000"
    assert base_of("folder:app#00000000") == "folder:app"


def test_paths_may_be_any_bytes_and_identities_are_text(a: Machine) -> None:
    place = Path(os.fsdecode(os.fsencode(a.root) + b"/x/\xff"))
    place.mkdir(parents=True)
    bindings = a.bindings()
    identity = bindings.identity("folder:\ufffd", str(place), lambda: [str(place)])
    assert identity == "folder:\ufffd"
    assert a.bindings().known() == {str(place): identity}


def test_work_sessions_of_an_unbound_folder_are_held_back_too(tmp_path: Path, a: Machine, b: Machine) -> None:
    two_folders(a)
    for machine, way in ((a, "work/app"), (b, "deep/app")):
        folder = machine.folder(way)
        (folder / "docs" / "sessions").mkdir(parents=True)
    session = a.root / "work/app/docs/sessions/s1"
    session.mkdir()
    (session / "session.json").write_text('{"session_id": "s1", "session_type": "work_task"}')

    def engine(machine: Machine, way: str) -> Engine:
        folder = machine.root / way
        return Engine(
            MaestroSyncLayout(folder / "docs" / "sessions", project=path_slug(str(folder))),
            machine.server.remote(),
            state_dir=machine.root / "state" / "work",
            projects=machine.projects(),
            quiet=0,
        )

    assert [one.standing for one in engine(a, "work/app").push().outcomes] == [SyncStatus.PUSHED]
    assert [one.standing for one in engine(b, "deep/app").pull().outcomes] == [SyncStatus.HELD_BACK]
    b.bindings().bind(str(b.root / "deep/app"), "folder:app", "folder:app")
    assert [one.standing for one in engine(b, "deep/app").pull().outcomes] == [SyncStatus.PULLED]


def test_a_remote_that_does_not_answer_binds_nothing(a: Machine) -> None:
    def fails() -> list[str]:
        raise RemoteError("away", retryable=True)

    work = a.folder("work/app")
    a.say(work, "w", "work")
    bindings = Bindings(str(a.root / "state" / "projects.json"), identities=fails)
    engine = Engine(
        AmplifierSyncLayout(a.root / "home"),
        a.server.remote(),
        state_dir=a.root / "state" / "amplifier",
        projects=Repositories(a.folders, bindings=bindings),
    )
    (outcome,) = engine.push().outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert a.bindings().known() == {}
