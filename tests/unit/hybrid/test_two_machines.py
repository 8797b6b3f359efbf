"""One project on several machines: what is carried, what is kept twice, what is left alone."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary import HybridSessionStore
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.unit.hybrid.conftest import Machine, say

Make = Callable[..., Machine]


def test_what_one_machine_saves_another_continues_with(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    one.write("hello", "there")
    sent = one.sync()
    assert (sent.pushed, sent.failed, sent.errors) == (1, 0, [])
    assert sent.bytes > 0
    assert sent.requests > 0
    got = two.pull()
    assert (got.pulled, got.errors) == (1, [])
    assert got.bytes > 0
    assert two.files() == one.files()
    two.write("and on")
    assert two.sync().pushed == 1
    one.restart()
    assert one.pull().pulled == 1
    assert one.texts() == ["hello", "there", "and on"]
    assert one.files() == two.files()


def test_what_is_in_step_costs_nothing(machine: Make) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    again = one.sync()
    assert (again.pushed, again.unchanged, again.requests, again.bytes) == (0, 1, 0, 0)
    assert one.pull().unchanged == 1


def test_the_memory_of_what_was_sent_outlives_the_program(machine: Make) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    one.restart()
    again = one.sync()
    assert (again.unchanged, again.requests) == (1, 0)


def test_two_machines_that_go_on_with_one_session_keep_both(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    one.write("hello")
    one.sync()
    two.pull()
    one.write("from one")
    two.write("from two")
    assert one.sync().pushed == 1
    assert two.sync().diverged == 1
    two.restart()
    got = two.pull()
    assert got.diverged == 1
    (parted,) = [session for session in got.sessions if session.standing is SyncStatus.DIVERGED]
    sibling = parted.sibling
    assert sibling is not None
    assert two.texts() == ["hello", "from one"]
    assert two.texts(sibling) == ["hello", "from two"]
    assert two.store.get_metadata(sibling)["parent_id"] == "s"
    assert sibling in two.store.list_sessions()
    assert two.store.unsent == [sibling]
    two.sync()
    one.restart()
    one.pull()
    assert one.files() == two.files()
    assert one.texts(sibling) == ["hello", "from two"]


def newer_there(machine: Make) -> tuple[Machine, Machine]:
    """Two machines that have a session, of which the second has gone on and sent it."""
    one, two = machine("one"), machine("two")
    one.write("hello")
    one.sync()
    two.pull()
    two.write("newer")
    two.sync()
    return one, two


def test_a_session_that_is_open_here_is_announced_and_left_alone(machine: Make) -> None:
    one, _ = newer_there(machine)
    got = one.pull()
    assert (got.held_back, got.pulled) == (1, 0)
    (held,) = got.sessions
    assert held.session_id == "s"
    assert "newer on the remote" in held.note
    assert one.texts() == ["hello"]
    one.store.release("s")
    assert one.pull().pulled == 1
    assert one.texts() == ["hello", "newer"]


def test_a_session_that_was_only_read_is_open_too(machine: Make) -> None:
    one, _ = newer_there(machine)
    one.restart()
    one.texts()
    assert one.pull().held_back == 1


def test_looking_at_metadata_and_lists_opens_nothing(machine: Make) -> None:
    one, _ = newer_there(machine)
    one.restart()
    assert one.store.list_sessions() == ["s"]
    assert one.store.find_session("s") == "s"
    assert one.store.get_metadata("s")
    assert one.store.exists("s")
    assert one.pull().pulled == 1


def test_a_session_that_another_store_of_this_machine_has_open_is_left_alone(machine: Make) -> None:
    one, _ = newer_there(machine)
    other = machine("one", state_dir=one.sessions / ".." / "other-state")
    assert other.pull().held_back == 1
    one.store.close()
    assert other.pull().pulled == 1
    assert other.texts() == ["hello", "newer"]


HOLD = """
import sys
from sessionary import HybridSessionStore
from tests.support.memory_remote import MemoryServer
store = HybridSessionStore(sys.argv[1], remote=MemoryServer().remote, state_dir=sys.argv[2])
store.load("s")
print("open", flush=True)
sys.stdin.read()
"""


def test_a_session_that_another_program_has_open_is_left_alone_until_it_ends(
    machine: Make, tmp_path: Path
) -> None:
    one, _ = newer_there(machine)
    one.restart()
    agent = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(one.sessions), str(tmp_path / "agent")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    with agent, agent.stdin, agent.stdout:
        assert agent.stdout.readline() == b"open\n"
        assert one.pull().held_back == 1
        agent.kill()
        agent.wait()
    assert one.pull().pulled == 1


def test_what_a_program_wrote_that_says_nothing_is_left_alone_for_a_while(machine: Make) -> None:
    one, two = newer_there(machine)
    one.restart()
    path = one.sessions / "s" / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": "by hand"}))
    got = one.pull()
    assert got.held_back == 1
    patient = machine("one", quiet=0)
    assert patient.pull().pulled == 1
    assert patient.texts() == two.texts()


def test_a_pull_may_follow_a_pull_at_once(machine: Make) -> None:
    one, two = newer_there(machine)
    one.restart()
    assert one.pull().pulled == 1
    two.write("newer still")
    two.sync()
    assert one.pull().pulled == 1
    assert one.texts() == ["hello", "newer", "newer still"]


def test_what_is_trashed_here_is_trashed_there(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    for session in ("s", "t"):
        one.write("hello", session=session)
    one.sync()
    two.pull()
    one.store.delete("s")
    assert one.store.unsent == ["s"]
    assert one.sync().pushed == 1
    assert two.pull().pulled == 1
    assert two.store.list_sessions() == ["t"]
    assert two.store.undo("s") == "s"
    assert two.texts() == ["hello"]


def test_a_fork_and_what_is_undone_are_sent_too(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    one.write("hello", "there")
    one.sync()
    forked = one.store.fork("s", 1).session_id
    assert one.store.unsent == [forked]
    one.sync()
    one.store.rewind("s", 1)
    assert one.store.unsent == ["s"]
    one.sync()
    one.store.undo("s")
    assert one.store.unsent == ["s"]
    one.sync()
    two.pull()
    assert two.files() == one.files()


def test_projects_of_other_names_are_none_of_its_business(
    machine: Make, tmp_path: Path, server: MemoryServer
) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    with HybridSessionStore(
        tmp_path / "one" / "home" / "projects" / "[w]ork*" / "sessions",
        remote=server.remote,
        state_dir=tmp_path / "one" / "state",
    ) as other:
        other.save("o", say("other"), {"session_id": "o"})
        two = machine("two")
        assert two.pull().pulled == 1
        other.close()
    two.pull()
    assert two.store.list_sessions() == ["s"]
    assert one.sync().unchanged == 1


def test_stores_in_different_folders_share_a_project(
    tmp_path: Path, server: MemoryServer, machine: Make
) -> None:
    with (
        HybridSessionStore(
            tmp_path / "a", remote=server.remote, state_dir=tmp_path / "1", project="p"
        ) as one,
        HybridSessionStore(
            tmp_path / "b", remote=server.remote, state_dir=tmp_path / "2", project="p"
        ) as two,
        HybridSessionStore(tmp_path / "c", remote=server.remote, state_dir=tmp_path / "3") as three,
    ):
        one.save("s", say("hello"), {"session_id": "s"})
        asyncio.run(one.sync())
        assert asyncio.run(two.pull()).pulled == 1
        assert two.load("s") == one.load("s")
        assert asyncio.run(three.pull()).pulled == 0


def test_one_repository_is_one_project_wherever_it_is(tmp_path: Path, server: MemoryServer) -> None:
    import asyncio

    from sessionary import HybridSessionStore
    from sessionary.layouts.amplifier.ids import project_slug
    from sessionary.sync.heads import decode
    from sessionary.sync.remote import heads_of

    def store(name: str, origin: str) -> HybridSessionStore:
        project = tmp_path / name / "shop"
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
        base = tmp_path / f"home-{name}" / "projects" / project_slug(project) / "sessions"
        return HybridSessionStore(base, remote=server.remote, state_dir=tmp_path / f"state-{name}", quiet=0)

    with (
        store("desk", "git@github.com:example/shop.git") as desk,
        store("laptop", "https://github.com/Example/shop") as laptop,
        store("other", "https://github.com/example/another") as other,
    ):
        desk.save("s", say("hello"), {"session_id": "s"})
        asyncio.run(desk.sync())
        assert asyncio.run(laptop.pull()).pulled == 1
        assert laptop.load("s") == desk.load("s")
        assert asyncio.run(other.pull()).pulled == 0
    (record,) = heads_of(server.remote())
    assert decode(record.name, record.data).project == "git:github.com/example/shop"


def test_event_logs_go_only_where_they_are_asked_for(machine: Make) -> None:
    from sessionary import EventsLog

    for name, asked in (("bare", False), ("full", True)):
        one = machine(f"{name}1", event_logs=asked)
        one.write("hello", session=name)
        with EventsLog(one.sessions / name) as log:
            log.append({"event": "session:start"})
        one.sync()
        two = machine(f"{name}2", event_logs=asked)
        two.pull()
        assert (two.sessions / name / "events.jsonl").exists() is asked


def clone(root: Path, name: str, origin: str) -> Path:
    """A folder that looks like a clone of a repository."""
    folder = root / name
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
    return folder


def test_clones_of_a_repository_are_one_project_in_any_folder(
    tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store(home: str, folder: Path) -> HybridSessionStore:
        monkeypatch.setenv("HOME", str(tmp_path / home))
        monkeypatch.chdir(folder)
        return HybridSessionStore(remote=server.remote, state_dir=tmp_path / home / "state")

    shop = store("ana", clone(tmp_path, "code/shop", "git@github.com:acme/shop.git"))
    laden = store("ben", clone(tmp_path, "src/laden", "https://github.com/acme/shop"))
    other = store("cyd", clone(tmp_path, "elsewhere/shop", "https://github.com/other/shop"))
    with shop, laden, other:
        assert shop.base_dir.parent.name != laden.base_dir.parent.name
        shop.save("s", say("hello"), {"session_id": "s"})
        assert asyncio.run(shop.sync()).pushed == 1
        assert asyncio.run(laden.pull()).pulled == 1
        assert laden.load("s") == shop.load("s")
        assert asyncio.run(other.pull()).pulled == 0
