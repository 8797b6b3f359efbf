"""Devices whose processes are really killed while they push and pull, against any remote.

A remote is given by its *address*, so that a process that is started anew can connect to it: a JSON object with
``"remote"``, the class as ``module:name``, and ``"arguments"``, its keywords.

Each worker is one device and does what a user's machine does, over and over: it adds lines to sessions through the
store, as an agent would, and pushes and pulls. What the store acknowledged is owed from then on, after any kill.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from sessionary.disk.fs import OS_FS
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.sync.engine import Engine
from sessionary.sync.remote import Remote
from tests.support.sync_world import TRANSCRIPT, Device, World
from tests.support.torture import Promise, Spec, ack, spec, torture

Address = Mapping[str, Any]
SHARED = "shared"
BLOCK = 400
_AT_WORK = "at work"
_WORKER = "import sys; from tests.support.sync_torture import work; work(*sys.argv[1:])"


@contextmanager
def connected(address: Address) -> Iterator[Remote]:
    """The remote at an address; closed at the end, if it can be."""
    module, _, name = str(address["remote"]).partition(":")
    made = getattr(import_module(module), name)(**address["arguments"])
    try:
        yield cast("Remote", made)
    finally:
        getattr(made, "close", lambda: None)()


def work(root: str, address: str, rounds: str) -> None:
    """What a worker does."""
    me = spec()
    device = Device(Path(root), f"device{me.number}", block=BLOCK)
    chance = random.Random(me.seed)
    with connected(json.loads(address)) as remote:
        for turn in range(int(rounds)):
            _speak(device, me, turn, chance)
            ack(_AT_WORK)
            chance.choice((Engine.push, Engine.pull, _both))(device.engine(remote, OS_FS))


def _both(engine: Engine) -> None:
    engine.pull()
    engine.push()


def _speak(device: Device, me: Spec, turn: int, chance: random.Random) -> None:
    """Add lines to the session that all devices share, or to one of its own."""
    store = SessionStore(device.sessions)
    session = chance.choice((SHARED, f"own-{me.number}", chance.choice(device.names() or [SHARED])))
    for count in range(chance.randint(1, 3)):
        name = f"{me.number}.{me.run}.{turn}.{count}"
        store.append(session, [{"role": "user", "content": name, "pad": "x" * chance.choice((1, 300, 1500))}])
        ack(name)


def torture_remote(address: Address, root: Path, *, devices: int, kills: int, rounds: int, seed: int) -> int:
    """Let devices work on one remote while their processes are killed, and check that nothing was lost or doubled.

    Args:
        address: an empty remote.
        root: a folder for the devices.
        devices: how many there are.
        kills: how many processes are killed.
        rounds: how often a process speaks and synchronises before it ends by itself.
        seed: of who and when.

    Returns:
        How many were killed while they pushed or pulled.

    Raises:
        AssertionError: what is wrong.
    """
    arguments = [str(root), json.dumps(address), str(rounds)]
    promises = torture(_WORKER, arguments, workers=devices, kills=kills, most_acks=8, pause=0.06, seed=seed)
    with connected(address) as remote:
        world = World(root, lambda: remote, devices, block=BLOCK)
        for device in world.devices:
            _end_torn_lines(device)
            for session in device.names():
                world.written |= dict.fromkeys(device.lines(session), session)
        _refuse_losses(promises, world)
        world.check()
    last = {(promise.number, promise.run): promise.value for promise in promises}
    return sum(1 for value in last.values() if value == _AT_WORK) - devices


def _end_torn_lines(device: Device) -> None:
    """Begin each session anew that a killed writer left in the middle of a line, as its next writer would."""
    for session in device.names():
        path = device.sessions / session / TRANSCRIPT
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            SessionStore(device.sessions).append(
                session, [{"role": "user", "content": f"after {device.name}"}]
            )


def _refuse_losses(promises: list[Promise], world: World) -> None:
    found = {json.loads(line)["content"] for line in world.written}
    lost = sorted({promise.value for promise in promises} - found - {_AT_WORK})
    assert not lost, f"no device has {lost[:3]} any more, of {len(promises)} that were acknowledged"
