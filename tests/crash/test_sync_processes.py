"""Real processes that synchronise and are killed in the middle of it: nothing is lost, nothing is doubled."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_remote import FileRemote
from tests.support.policy_world import PolicyWorld, live_on
from tests.support.sync_world import World, live

ROUNDS = 200 if os.environ.get("SESSIONARY_SOAK") else 4
LONGEST = 0.15
"""Seconds that a process may live after it has loaded everything: about as long as its work takes."""

CONVERSATIONS = """
import sys
from pathlib import Path
from tests.support.file_remote import FileRemote
from tests.support.sync_world import Device
device = Device(Path(sys.argv[1]), sys.argv[2], block=600)
engines = [device.engine(FileRemote(Path(sys.argv[3])))]
"""

PROJECTS = """
import sys
from pathlib import Path
from tests.support.file_remote import FileRemote
from tests.support.policy_world import KINDS, PolicyDevice
device = PolicyDevice(Path(sys.argv[1]), sys.argv[2], KINDS, block=600)
engines = device.engines(FileRemote(Path(sys.argv[3])))
"""

WORK = """
print("ready", flush=True)
while True:
    for engine in engines:
        engine.pull()
        engine.push()
"""


def run_and_kill(program: str, root: Path, names: list[str], fate: random.Random) -> None:
    """Let the devices synchronise at the same time, each in a process of its own, and kill these at some moment."""
    command = [sys.executable, "-c", program + WORK, str(root)]
    started = [
        subprocess.Popen([*command, name, str(root / "remote")], stdout=subprocess.PIPE) for name in names
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in started:
        time.sleep(fate.random() * LONGEST)
        assert process.poll() is None, "it ended by itself"
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.lane("sigkill")
def test_conversations_survive_processes_that_are_killed(tmp_path: Path) -> None:
    fate = random.Random(1)
    world = World(tmp_path, lambda: FileRemote(tmp_path / "remote"), block=600)
    kill_between(world.devices, CONVERSATIONS, tmp_path, fate, lambda: live(world, fate, 4, 0.0))
    world.check()
    assert world.said > 0


@pytest.mark.lane("sigkill")
def test_everything_in_a_project_survives_processes_that_are_killed(tmp_path: Path) -> None:
    fate = random.Random(2)
    world = PolicyWorld(tmp_path, lambda: FileRemote(tmp_path / "remote"), block=600)
    kill_between(world.devices, PROJECTS, tmp_path, fate, lambda: live_on(world, fate, 4, 0.0))
    world.check()
    assert world.said > 0


def kill_between(
    devices: Sequence[Any], program: str, root: Path, fate: random.Random, use: Callable[[], None]
) -> None:
    """People use their devices, and between that processes synchronise and are killed."""
    names = [device.name for device in devices]
    for _ in range(ROUNDS):
        use()
        run_and_kill(program, root, names, fate)
