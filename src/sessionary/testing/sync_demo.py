"""Two machines that share their sessions, in one folder: the demo of `sessionary sync demo`.

Each machine is a home with sessions and a state directory of its own; between them is a remote in a folder. A
killed process is one whose calls to the remote all fail from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessionary.errors import RemoteError
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.folder_remote import FolderRemote
from sessionary.sync.remote import Remote, WrappedRemote
from sessionary.sync.report import Report, SyncStatus
from sessionary.sync.rules import Rules
from sessionary.testing.demo import BrokenPromise
from sessionary.testing.wrapper import UNSYNCED

SESSION = "3f0c81d2-7a64-4b0e-9c55-1d2b7e90a1f3"
TRANSCRIPT, METADATA = "transcript.jsonl", "metadata.json"
NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)


class Killed(BaseException):
    """The simulated kill of a process."""


class DyingRemote(WrappedRemote):
    """Fails at one call: ``kill`` before it, ``kill after`` it, or ``lost``, which loses only the answer."""

    def __init__(self, inner: Remote, at: int, fault: str) -> None:
        super().__init__(inner)
        self.calls = 0
        self._at = at
        self._fault = fault

    def call(self, verb: str, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls != self._at:
            return super().call(verb, *arguments)
        if self._fault != "kill":
            super().call(verb, *arguments)
        if self._fault != "lost":
            raise Killed
        raise RemoteError("the answer is lost", retryable=True, details={"retry_after": 0.0})


class Device:
    """A machine: a home with sessions, and its sync state. It writes its files as an agent does."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.home, self.state = root / name / "home", root / name / "state"
        self.sessions = self.home / "projects" / "-work" / "sessions"
        self.sessions.mkdir(parents=True)

    def engine(self, remote: Remote) -> Engine:
        """An engine, as in a new process."""
        tick = iter(range(10**9))
        return Engine(
            AmplifierSyncLayout(self.home, UNSYNCED),
            remote,
            state_dir=self.state,
            rules=Rules(logs=False),
            quiet=0,
            fs=UNSYNCED,
            now=lambda: NOW + timedelta(seconds=next(tick)),
            sleep=lambda seconds: None,
        )

    def names(self) -> list[str]:
        """Its sessions."""
        return sorted(path.name for path in self.sessions.iterdir() if path.name[0] != ".")

    def lines(self, session: str) -> list[str]:
        """The lines of a conversation."""
        return (self.sessions / session / TRANSCRIPT).read_text().splitlines()

    def files(self) -> dict[str, bytes]:
        """Transcripts and metadata, by session and name."""
        paths = [
            self.sessions / session / name for session in self.names() for name in (TRANSCRIPT, METADATA)
        ]
        return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}

    def write(self, texts: list[str]) -> None:
        """Continue the session, or start it."""
        folder = self.sessions / SESSION
        folder.mkdir(exist_ok=True)
        with open(folder / TRANSCRIPT, "a") as file:
            file.writelines(json.dumps({"role": "user", "content": text}) + "\n" for text in texts)
        turns = {"session_id": SESSION, "turn_count": len(self.lines(SESSION))}
        (folder / METADATA).write_text(json.dumps(turns))


class World:
    """Two devices with one remote, and everything that their users wrote."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.remote = FolderRemote(str(root / "store"), UNSYNCED)
        self.devices = [Device(root, name) for name in ("desk", "laptop")]
        self.written: set[str] = set()

    def say(self, device: Device, count: int, size: int = 20) -> None:
        """The user of a device writes lines, no two of them alike."""
        first = len(self.written)
        device.write([f"{device.name} line {n} {'x' * size}" for n in range(first, first + count)])
        self.written |= set(device.lines(SESSION)[-count:])

    def check(self) -> None:
        """A new device gets every line once, and the same files as the others.

        Raises:
            BrokenPromise: it does not.
        """
        for _ in range(3):
            for device in self.devices:
                device.engine(self.remote).pull()
                device.engine(self.remote).push(look=True)
        fresh = Device(self.root, "fresh")
        fresh.engine(self.remote).pull()
        for device in self.devices:
            _same(device, fresh)
        found = [fresh.lines(session) for session in fresh.names()]
        if any(len(set(lines)) != len(lines) for lines in found):
            raise BrokenPromise("a line is doubled")
        if {line for lines in found for line in lines} != self.written:
            raise BrokenPromise("a line is lost")


def demonstrate_sync(folder: Path) -> Iterator[str]:
    """Yield the lines of the demo.

    Raises:
        BrokenPromise: a check failed.
    """
    world = World(folder)
    desk, laptop = world.devices
    yield "Two machines, with a folder between them as the store."
    yield from _carried(world, desk, laptop)
    yield from _cut_off(world, desk, laptop)
    yield from _parted(world, desk, laptop)
    yield from _damaged(world, desk, laptop)
    world.check()
    yield "A third machine pulls everything: byte for byte the same. No line is lost, none is doubled."


def _carried(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    world.say(desk, 40, 200)
    report = desk.engine(world.remote).push()
    size = len(desk.files()[f"{SESSION}/transcript.jsonl"])
    laptop.engine(world.remote).pull()
    _same(desk, laptop)
    cost = report.cost
    yield f"The desk pushes a session of {size:,} bytes: {cost.requests} requests, {cost.bytes_up:,} bytes up."
    yield "The laptop pulls it: byte for byte the same."


def _cut_off(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """Kill a push before and after each of its calls, and repeat it each time."""
    kills = 0
    for call in range(1, 20):
        for fault in ("kill", "kill after", "lost"):
            world.say(desk, 2, 200)
            remote = DyingRemote(world.remote, call, fault)
            try:
                desk.engine(remote).push()
            except Killed:
                kills += 1
            desk.engine(world.remote).push()
        if remote.calls < call:
            break
    laptop.engine(world.remote).pull()
    _same(desk, laptop)
    if not kills:
        raise BrokenPromise("no push could be killed")
    yield f"A push is killed {kills} times, at each of its calls, and repeated: the laptop still has the same bytes."


def _parted(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    world.say(desk, 3)
    world.say(laptop, 3)
    laptop.engine(world.remote).push()
    desk.engine(world.remote).push()
    report = desk.engine(world.remote).pull()
    parted = report.of(SyncStatus.DIVERGED)
    if len(parted) != 1 or parted[0].sibling is None:
        raise BrokenPromise("two continuations were not recognised as a conflict")
    desk.engine(world.remote).push()
    laptop.engine(world.remote).pull()
    _same(desk, laptop)
    yield "Both continue it at the same time. Both versions are kept, on both machines:"
    yield f"  {SESSION}  the laptop's, which was pushed first"
    yield f"  {parted[0].sibling}  the desk's sibling, which names its origin"


def _damaged(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """A power cut leaves an empty transcript on one device: the others keep theirs."""
    transcript = desk.sessions / SESSION / TRANSCRIPT
    whole = transcript.read_bytes()
    transcript.write_bytes(b"")
    reports = [verb(device.engine(world.remote)) for device, verb in _both_ways(desk, laptop)]
    standings = [one.standing for report in reports for one in report.outcomes if one.session_id == SESSION]
    if set(standings) != {SyncStatus.HELD_BACK} or laptop.files()[f"{SESSION}/{TRANSCRIPT}"] != whole:
        raise BrokenPromise("an emptied transcript was sent")
    yield f"A power cut empties the desk's transcript of {len(whole):,} bytes. The push holds it back,"
    yield "  both machines report it, and the laptop keeps the good one:"
    yield f"  {SESSION}  {reports[0].of(SyncStatus.HELD_BACK)[0].note}"
    engine = desk.engine(world.remote)
    engine.resolve(next(ref for ref in engine.layout.discover() if ref.session_id == SESSION), "theirs")
    laptop.engine(world.remote).pull()
    _same(desk, laptop)
    if transcript.read_bytes() != whole:
        raise BrokenPromise("the good version was not restored")
    yield "  `sessionary sync resolve ID --keep theirs` on the desk restores every byte."


def _both_ways(desk: Device, laptop: Device) -> Iterator[tuple[Device, Callable[[Engine], Report]]]:
    yield desk, Engine.push
    for device in (laptop, desk):
        for verb in (Engine.pull, Engine.push, Engine.status):
            yield device, verb


def _same(one: Device, other: Device) -> None:
    if one.files() != other.files():
        raise BrokenPromise(f"{one.name} and {other.name} have different files")
