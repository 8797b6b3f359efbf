"""A workspace carries all its content, and calls its projects by their repositories."""

import subprocess
from pathlib import Path

import pytest

from sessionary.errors import NotFound
from sessionary.layouts.sync import SyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.report import SyncStatus
from sessionary.sync.settings import Settings, save_settings
from sessionary.workspace import Workspace
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.policy_world import PolicyWorld


def project(tmp_path: Path, name: str) -> Path:
    """A clone of the same repository, with one session of each kind in the first one."""
    if name == "two":
        place = tmp_path / name
        place.mkdir()
    else:
        device = PolicyWorld(tmp_path / name, MemoryServer().remote, 1).devices[0]
        place = device.project
        device.begin("work")
        device.plan("f-2025-01-31")
        device.storm("ideas", "answer")
        transcript = device.project / "projects" / "-gone" / "sessions" / "s" / "transcript.jsonl"
        transcript.parent.mkdir(parents=True)
        transcript.write_text('{"role":"user","content":"hi"}\n')
    subprocess.run(["git", "-C", str(place), "init", "-q"], check=True)
    remote = ["git", "-C", str(place), "remote", "add", "origin", "git@github.com:o/app.git"]
    subprocess.run(remote, check=True)
    return place


def engines(place: Path, server: MemoryServer) -> list[Engine]:
    workspace = Workspace(place, cache=str(place / ".cache"))
    sync_layouts: list[SyncLayout] = list(workspace.sync_layouts())
    return [
        Engine(
            layout,
            server.remote(),
            state_dir=place / ".state" / layout.name,
            projects=workspace.repositories(),
            quiet=0,
        )
        for layout in sync_layouts
    ]


def test_everything_in_a_project_goes_to_its_other_clone(tmp_path: Path) -> None:
    server = MemoryServer()
    one, two = project(tmp_path, "one"), project(tmp_path, "two")
    pushed = [outcome for engine in engines(one, server) for outcome in engine.push().outcomes]
    assert {outcome.session_id: outcome.standing for outcome in pushed} == {
        "s": SyncStatus.HELD_BACK,
        "work": SyncStatus.PUSHED,
        "f-2025-01-31": SyncStatus.PUSHED,
        "ideas": SyncStatus.PUSHED,
    }
    pulled = [outcome for engine in engines(two, server) for outcome in engine.pull().outcomes]
    assert {(outcome.session_id, outcome.project) for outcome in pulled} == {
        ("work", "git:github.com/o/app"),
        ("f-2025-01-31", "git:github.com/o/app"),
        ("ideas", "git:github.com/o/app"),
    }
    assert {outcome.standing for outcome in pulled} == {SyncStatus.PULLED}
    assert (two / "docs" / "sessions" / "work" / "session.json").exists()
    assert (two / ".ai-session" / "f-2025-01-31" / "state.yaml").exists()
    assert (two / ".project-memory" / "brainstorm-sessions" / "ideas.yaml").exists()


def test_the_state_of_sync_is_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = MemoryServer()
    place, settings = project(tmp_path, "one"), tmp_path / "sync.json"
    save_settings(settings, Settings(remote="s3://bucket", tenant="ada", device="desk"))
    monkeypatch.setattr("sessionary.workspace.syncing.open_remote", lambda *_, **__: server.remote())
    monkeypatch.setattr(MemoryRemote, "close", lambda _: None, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = Workspace(place, cache=str(tmp_path / "cache"))
    calls: list[int] = []
    before = workspace.sync_status(settings, passed=lambda: calls.append(1))
    assert before.cost.requests == len(calls) > 0
    assert {(one.kind, one.session_id, one.standing) for one in before.outcomes} == {
        ("amplifier", "s", SyncStatus.HELD_BACK),
        ("work", "work", SyncStatus.NEVER),
        ("feature", "f-2025-01-31", SyncStatus.NEVER),
        ("brainstorm", "ideas", SyncStatus.NEVER),
    }
    for engine in engines(place, server):
        engine.push()
    assert {one.standing for one in workspace.sync_status(settings).of(SyncStatus.NEVER)} == set()
    with pytest.raises(NotFound):
        workspace.sync_status(tmp_path / "missing.json")
