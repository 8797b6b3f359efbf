"""Several devices that share a remote, and what must be true of them when the dust has settled.

Every line that a user writes is unlike all others, so that a lost one is missed and a doubled one is seen. A device
writes its files itself, as an agent would, and not through the code that is under test.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sessionary.disk.fs import Fs
from sessionary.layouts.amplifier.receiving import AmplifierRecipient
from sessionary.sync.engine import Engine
from sessionary.sync.remote import Remote
from sessionary.sync.report import Report, Standing
from sessionary.sync.rules import Rules
from sessionary.testing.chaos_remote import ChaosRemote
from sessionary.testing.faults import Fault, FaultFs, Killed
from sessionary.testing.wrapper import UNSYNCED

PROJECT = "-work"
TRANSCRIPT, METADATA, EVENTS = "transcript.jsonl", "metadata.json", "events.jsonl"
ROUNDS = 12
EPOCH = datetime(2025, 1, 31, 12, tzinfo=UTC)


class Device:
    """One machine: a home with sessions, and what it remembers of the remote."""

    def __init__(self, root: Path, name: str, *, logs: bool = False) -> None:
        self.name = name
        self.root = root / name
        self.sessions = self.root / "home" / "projects" / PROJECT / "sessions"
        self.sessions.mkdir(parents=True, exist_ok=True)
        self.state = self.root / "state"
        self.rules = Rules(logs=logs)
        self.trashed = 0

    def engine(self, remote: Remote, fs: Fs = UNSYNCED) -> Engine:
        """An engine as a new process would have it."""
        layout = AmplifierRecipient(self.root / "home", fs)
        tick = iter(range(10**9))
        return Engine(
            layout,
            remote,
            state_dir=self.state,
            rules=self.rules,
            quiet=0,
            fs=fs,
            now=lambda: EPOCH + timedelta(seconds=next(tick)),
            sleep=lambda seconds: None,
        )

    # -- what its user does

    def names(self) -> list[str]:
        """The sessions that its user sees."""
        return sorted(path.name for path in self.sessions.iterdir() if path.name[0] != ".")

    def lines(self, session: str) -> list[str]:
        """The lines of a conversation."""
        path = self.sessions / session / TRANSCRIPT
        return path.read_text().splitlines() if path.exists() else []

    def write(self, session: str, texts: list[str], *, parent: str | None = None) -> None:
        """Go on with a session, or begin it."""
        folder = self.sessions / session
        folder.mkdir(exist_ok=True)
        with open(folder / TRANSCRIPT, "ab") as file:
            file.write(b"".join(json.dumps({"role": "user", "content": text}).encode() + b"\n" for text in texts))
        self.describe(session, parent=parent)

    def describe(self, session: str, *, parent: str | None = None, title: str | None = None) -> None:
        """Write metadata as an agent does after a turn."""
        path = self.sessions / session / METADATA
        told = json.loads(path.read_text()) if path.exists() else {"session_id": session}
        told["turn_count"] = len(self.lines(session))
        told |= {"parent_id": parent} if parent else {}
        told |= {"name": title} if title else {}
        path.write_text(json.dumps(told))

    def rewind(self, session: str, keep: int) -> list[str]:
        """Take back all but the first lines; returns those taken back."""
        lines = self.lines(session)
        path = self.sessions / session / TRANSCRIPT
        new = path.with_name(".rewound")
        new.write_text("".join(line + "\n" for line in lines[:keep]))
        os.replace(new, path)
        self.describe(session)
        return lines[keep:]

    def trash(self, session: str) -> list[str]:
        """Throw a session away; returns its lines."""
        lines = self.lines(session)
        self.trashed += 1
        target = self.sessions / ".trash" / f"20250131T120000.{self.trashed:06}Z" / session
        target.parent.mkdir(parents=True)
        (self.sessions / session).rename(target)
        return lines

    # -- what it has

    def files(self) -> dict[str, bytes]:
        """Every carried file by session and name."""
        wanted = (TRANSCRIPT, METADATA, *((EVENTS,) if self.rules.logs else ()))
        return {
            f"{session}/{name}": (self.sessions / session / name).read_bytes()
            for session in self.names()
            for name in wanted
            if (self.sessions / session / name).exists()
        }


class World:
    """Devices around one remote, and the memory of what their users wrote.

    Args:
        root: a folder for the devices.
        remote: gives a connection to the remote.
        devices: how many machines there are.
    """

    def __init__(self, root: Path, remote: Callable[[], Remote], devices: int = 2) -> None:
        self.root = root
        self.remote = remote
        self.devices = [Device(root, f"device{n}") for n in range(devices)]
        self.written: dict[str, str] = {}
        self.taken_back: set[str] = set()
        self._count = 0

    def say(self, device: Device, session: str, count: int = 1, size: int = 20) -> None:
        """The user of a device writes lines that no other line is like."""
        texts = []
        for _ in range(count):
            self._count += 1
            texts.append(f"{device.name} line {self._count} {'x' * size}")
        device.write(session, texts)
        for line in device.lines(session)[-count:]:
            self.written[line] = session

    def take_back(self, lines: list[str]) -> None:
        """These lines may be gone from now on, or not."""
        self.taken_back |= set(lines)

    def settle(self) -> None:
        """Let all devices pull and push until nothing changes; fails if that never comes.

        Raises:
            AssertionError: some session is never in step.
        """
        for _ in range(ROUNDS):
            moved = False
            for device in self.devices:
                for report in (device.engine(self.remote()).pull(), device.engine(self.remote()).push()):
                    troubles = [(one.session_id, one.note) for one in report.of(Standing.FAILED)]
                    assert not troubles, f"{device.name}: {troubles}"
                    moved = moved or any(one.standing is not Standing.IN_STEP for one in report.outcomes)
            if not moved:
                return
        raise AssertionError("the devices never come to rest")

    def check(self) -> None:
        """Nothing lost, nothing doubled, all alike, and a new device gets all of it.

        Raises:
            AssertionError: what is wrong.
        """
        self.settle()
        fresh = Device(self.root, f"fresh{self._count}")
        fresh.engine(self.remote()).pull()
        expected = fresh.files()
        for device in self.devices:
            differing = {
                name
                for name in {*device.files(), *expected}
                if device.files().get(name) != expected.get(name)
            }
            assert not differing, f"{device.name} and a fresh device differ in {sorted(differing)}"
        places: dict[str, set[int]] = {}
        for session in fresh.names():
            lines = fresh.lines(session)
            assert len(set(lines)) == len(lines), f"a line is twice in {session}"
            for at, line in enumerate(lines):
                places.setdefault(line, set()).add(at)
        lost = {line for line in self.written if line not in places and line not in self.taken_back}
        assert not lost, f"lost: {sorted(lost)[:3]}"
        strange = {line for line in places if line not in self.written}
        assert not strange, f"nobody wrote {sorted(strange)[:3]}"
        self._no_line_went_two_ways(fresh)

    def _no_line_went_two_ways(self, fresh: Device) -> None:
        """Sessions share lines only where one was forked from the other: in their common beginning."""
        told = {session: fresh.lines(session) for session in fresh.names()}
        for one, lines in told.items():
            for other, others in told.items():
                common = 0
                while common < min(len(lines), len(others)) and lines[common] == others[common]:
                    common += 1
                both = set(lines[common:]) & set(others[common:])
                assert one == other or not both, f"{one} and {other} both have {sorted(both)[:3]}"
                whole = 0 < common == len(lines) and one != other and len(others) > common
                assert not whole or self._was_rewound(lines, others), f"{one} is only the beginning of {other}"

    def _was_rewound(self, lines: list[str], others: list[str]) -> bool:
        return any(line in self.taken_back for line in others[len(lines) :])


def attempt(
    device: Device, remote: Remote, work: Callable[[Engine], Report], fault: Fault | None = None
) -> bool:
    """Let a process of the device do some work that may be killed; False if it was."""
    fs = FaultFs(UNSYNCED, fault or ())
    try:
        work(device.engine(remote, fs))
    except Killed:
        return False
    finally:
        fs.bury()
    return True


def live(world: World, fate: random.Random, steps: int, chance: float = 0.06) -> None:
    """Let users and devices do anything, in any order, over a bad network, with processes that are killed.

    Args:
        world: the devices.
        fate: decides.
        steps: how many things happen.
        chance: how likely a fault is at each call to the remote.
    """
    for _ in range(steps):
        device = fate.choice(world.devices)
        names = device.names()
        chosen = fate.random()
        if chosen < 0.05 or not names:
            world.say(device, f"session-{device.name}-{fate.randrange(10**6)}", fate.randint(1, 4))
        elif chosen < 0.45:
            world.say(device, fate.choice(names), fate.randint(1, 4), fate.choice((5, 300)))
        elif chosen < 0.52:
            session = fate.choice(names)
            world.take_back(device.rewind(session, fate.randint(0, len(device.lines(session)))))
        elif chosen < 0.55:
            world.take_back(device.trash(fate.choice(names)))
        else:
            remote = ChaosRemote(world.remote(), fate=fate, chance=chance)
            fault = Fault("any", fate.randint(1, 60), "kill") if fate.random() < 0.3 else None
            attempt(device, remote, Engine.push if chosen < 0.78 else Engine.pull, fault)
            remote.settle()
