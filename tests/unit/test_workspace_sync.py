"""A workspace carries all that lies in it, and calls its projects by their repositories."""

import subprocess
from pathlib import Path

from sessionary.layouts.sync import SyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.remotes.memory import MemoryServer
from sessionary.sync.report import SyncStatus
from sessionary.workspace import Workspace
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
