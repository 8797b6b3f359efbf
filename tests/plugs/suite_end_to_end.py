"""The life of an agent's session, by the framework's own runner and our commands, over two machines.

The agent is killed in the middle of a turn, resumes, is found, is repaired, and goes on elsewhere.
`SESSIONARY_FRAMEWORK` names the framework of the environment.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sessionary import Workspace
from sessionary.layouts.records.sync_adapter import RecordsSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.identity import Repositories
from tests.plugs.scripted_agents import AGENTS
from tests.support.memory_remote import MemoryServer

NAME = os.environ["SESSIONARY_FRAMEWORK"]
AGENT = AGENTS[NAME]
CHILD = """
import sys, time
from pathlib import Path
from tests.plugs.scripted_agents import AGENTS

agent, folder = AGENTS[sys.argv[1]], Path(sys.argv[2])
for number in range(3):
    agent.turn(folder, f"turn {number} of Ada")
    print(number, flush=True)

def middle():
    print("middle", flush=True)
    time.sleep(600)

agent.turn(folder, "interrupted", middle)
"""
TORN = b'{"n":99,"at":"2026-03-01T09:00:00.000Z","op":"change","add":[{"role'


def killed_in_the_middle(folder: Path) -> int:
    """Run an agent in a process that is killed in the middle of its fourth turn; return how many it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, NAME, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    lines = []
    while (line := child.stdout.readline().strip()) not in ("middle", ""):
        lines.append(line)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert line == "middle"
    return len(lines)


def sync(home: Path, server: MemoryServer) -> Engine:
    layout = RecordsSyncLayout(home)
    state = home.parent / f"{home.name}-state"
    return Engine(layout, server.remote(), state_dir=state, projects=Repositories({}), quiet=0)


def test_an_agent_is_killed_resumes_is_repaired_and_continues_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    desk, laptop = tmp_path / "desk", tmp_path / "laptop"
    folder = desk / NAME

    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "sessionary", *words, "--home", str(desk)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    said = [f"turn {number} of Ada" for number in range(killed_in_the_middle(folder))]
    assert len(said) == 3
    said += ["interrupted"] if AGENT.stores_begun_turns else []
    assert AGENT.said(folder) == said
    AGENT.resume(folder)
    assert AGENT.said(folder) == [*said, "Go on"]
    code, found = run("search", "Ada", "--json")
    assert (code, {hit["id"] for hit in json.loads(found)["hits"]}) == (0, {AGENT.session})

    (path,) = folder.glob("*.records")
    whole = path.read_bytes()
    path.write_bytes(whole + TORN + b"\n")
    assert run("check", AGENT.session)[0] == 13
    assert AGENT.said(folder) == [*said, "Go on"]
    code, repaired = run("repair", AGENT.session, "--json")
    assert (code, json.loads(repaired)["set_aside"]) == (0, len(TORN))
    assert (run("check", AGENT.session)[0], path.read_bytes()) == (0, whole)
    path.write_bytes(whole + TORN)  # as a killed writer leaves it: the next turn sets it aside
    AGENT.turn(folder, "after the damage")
    assert [one.read_bytes() for one in folder.glob("*.torn-*")] == [TORN]

    server = MemoryServer()
    sync(desk, server).push()
    sync(laptop, server).pull()
    there = laptop / NAME
    assert AGENT.said(there) == [*said, "Go on", "after the damage"]
    AGENT.turn(there, "on the laptop")
    sync(laptop, server).push()
    sync(desk, server).pull()
    assert AGENT.said(folder) == [*said, "Go on", "after the damage", "on the laptop"]
    workspace = Workspace(desk)
    assert list(workspace.check(workspace.find(AGENT.session))) == []
