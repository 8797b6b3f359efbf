"""Two machines that share their sessions, in one folder: the demo of `sessionary sync demo`.

Each machine is a home with sessions and a state directory of its own; between them is a remote in memory. A
killed process is one whose calls to the remote all fail from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessionary.disk.fs import OS_FS
from sessionary.errors import RemoteError
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode
from sessionary.sync.remote import Remote, WrappedRemote, blocks_of, heads_of
from sessionary.sync.remotes.memory import MemoryServer
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

    def now(self) -> datetime:
        """The time by its clock."""
        return NOW

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

    def write(self, session: str, texts: list[str]) -> None:
        """Continue a session, or start it."""
        (self.sessions / session).mkdir(exist_ok=True)
        with open(self.sessions / session / TRANSCRIPT, "a") as file:
            file.writelines(json.dumps({"role": "user", "content": text}) + "\n" for text in texts)
        self.describe(session)

    def describe(self, session: str, **changed: str) -> None:
        """Write metadata as an agent does after a turn."""
        path = self.sessions / session / METADATA
        old = json.loads(path.read_text()) if path.exists() else {"session_id": session}
        path.write_text(json.dumps({**old, "turn_count": len(self.lines(session)), **changed}))


class World:
    """Two devices with one remote, and everything that their users wrote."""

    def __init__(self, root: Path) -> None:
        server = MemoryServer()
        self.root = root
        self.remote: Callable[[], Remote] = server.remote
        self.devices = [Device(root, name) for name in ("desk", "laptop")]
        self.written: set[str] = set()

    def say(self, device: Device, session: str, count: int = 1, size: int = 20) -> None:
        """The user of a device writes lines, no two of them alike."""
        first = len(self.written)
        device.write(session, [f"{device.name} line {n} {'x' * size}" for n in range(first, first + count)])
        self.written |= set(device.lines(session)[-count:])

    def check(self) -> None:
        """A new device gets every line once, and the same files as the others.

        Raises:
            BrokenPromise: it does not.
        """
        for _ in range(3):
            for device in self.devices:
                device.engine(self.remote()).pull()
                device.engine(self.remote()).push(look=True)
        fresh = Device(self.root, "fresh")
        fresh.engine(self.remote()).pull()
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
    yield "Two machines, with a store in memory between them."
    yield from _carried(world, desk, laptop)
    yield from _cut_off(world, desk, laptop)
    yield from _parted(world, desk, laptop)
    yield from _damaged(world, desk, laptop)
    yield from _renamed(world, desk, laptop)
    yield from _aged(world, desk, laptop)
    yield from _put_back(world, desk, laptop)
    world.check()
    yield "A third machine pulls everything: byte for byte the same. No line is lost, none is doubled."


def _carried(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    world.say(desk, SESSION, 40, 200)
    report = desk.engine(world.remote()).push()
    size = len(desk.files()[f"{SESSION}/transcript.jsonl"])
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    cost = report.cost
    yield f"The desk pushes a session of {size:,} bytes: {cost.requests} requests, {cost.bytes_up:,} bytes up."
    yield "The laptop pulls it: byte for byte the same."


def _cut_off(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """Kill a push before and after each of its calls, and repeat it each time."""
    kills = 0
    for call in range(1, 20):
        for fault in ("kill", "kill after", "lost"):
            world.say(desk, SESSION, 2, 200)
            remote = DyingRemote(world.remote(), call, fault)
            try:
                desk.engine(remote).push()
            except Killed:
                kills += 1
            desk.engine(world.remote()).push()
        if remote.calls < call:
            break
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    if not kills:
        raise BrokenPromise("no push could be killed")
    yield f"A push is killed {kills} times, at each of its calls, and repeated: the laptop still has the same bytes."


def _parted(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    world.say(desk, SESSION, 3)
    world.say(laptop, SESSION, 3)
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).push()
    report = desk.engine(world.remote()).pull()
    parted = report.of(SyncStatus.DIVERGED)
    if len(parted) != 1 or parted[0].sibling is None:
        raise BrokenPromise("two continuations were not recognised as a conflict")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    yield "Both continue it at the same time. Both versions are kept, on both machines:"
    yield f"  {SESSION}  the laptop's, which was pushed first"
    yield f"  {parted[0].sibling}  the desk's sibling, which names its origin"


def _damaged(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """A power cut leaves an empty transcript on one device: the others keep theirs."""
    transcript = desk.sessions / SESSION / TRANSCRIPT
    whole = transcript.read_bytes()
    transcript.write_bytes(b"")
    reports = [verb(device.engine(world.remote())) for device, verb in _both_ways(desk, laptop)]
    standings = [one.standing for report in reports for one in report.outcomes if one.session_id == SESSION]
    if set(standings) != {SyncStatus.HELD_BACK} or laptop.files()[f"{SESSION}/{TRANSCRIPT}"] != whole:
        raise BrokenPromise("an emptied transcript was sent")
    yield f"A power cut empties the desk's transcript of {len(whole):,} bytes. The push holds it back,"
    yield "  both machines report it, and the laptop keeps the good one:"
    yield f"  {SESSION}  {reports[0].of(SyncStatus.HELD_BACK)[0].note}"
    engine = desk.engine(world.remote())
    engine.resolve(next(ref for ref in engine.layout.discover() if ref.session_id == SESSION), "theirs")
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    if transcript.read_bytes() != whole:
        raise BrokenPromise("the good version was not restored")
    yield "  `sessionary sync resolve ID --keep theirs` on the desk restores every byte."


def _both_ways(desk: Device, laptop: Device) -> Iterator[tuple[Device, Callable[[Engine], Report]]]:
    yield desk, Engine.push
    for device in (laptop, desk):
        for verb in (Engine.pull, Engine.push, Engine.status):
            yield device, verb


def _renamed(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """One device renames the session, the other continues it; both changes of one document are kept."""
    world.say(desk, SESSION)
    laptop.describe(SESSION, name="the logo")
    turns = len(desk.lines(SESSION))
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    _same(desk, laptop)
    found = json.loads(desk.files()[f"{SESSION}/metadata.json"])
    if (found["name"], found["turn_count"]) != ("the logo", turns):
        raise BrokenPromise("a change of metadata is lost")
    yield f"The laptop renames it while the desk adds turn {turns}: metadata.json has both on both machines."


def _aged(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """Sessions keep their age and order; a clean-up by age applies to one device."""
    ages = {"in-may": 250, "in-december": 40, "yesterday": 1}
    for session, days in ages.items():
        world.say(desk, session)
        _set_age(desk.sessions / session, desk.now() - timedelta(days=days))
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    listed = [one for one in SessionStore(laptop.sessions).list_sessions() if one in ages]
    if listed != ["yesterday", "in-december", "in-may"]:
        raise BrokenPromise(f"the laptop lists {listed}")
    yield f"Three sessions of the desk arrive on the laptop in the order of their age: {', '.join(listed)}."
    gone = SessionStore.with_fs(OS_FS, laptop.sessions, now=laptop.now).cleanup_old_sessions(30)
    for device in (laptop, desk, laptop):
        device.engine(world.remote()).push()
        device.engine(world.remote()).pull()
    kept = [set(device.names()) & set(ages) for device in (desk, laptop)]
    if gone != 2 or kept != [set(ages), {"yesterday"}]:
        raise BrokenPromise("a clean-up by age affected another device")
    yield f"The laptop cleans up sessions older than 30 days: {gone} sessions. The desk keeps them, and no pull"
    yield "  restores them, until the desk continues one:"
    world.say(desk, "in-may")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    if laptop.lines("in-may") != desk.lines("in-may"):
        raise BrokenPromise("a continued session was not restored")
    yield "  in-may  is on the laptop again"
    world.say(desk, "in-december")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)


def _put_back(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """The server is restored from a backup that is older than what it acknowledged: it gets everything again."""
    backup = MemoryServer().remote()
    _copy(world.remote(), backup)
    world.say(desk, SESSION, 3)
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    world.remote = lambda: backup
    ahead = desk.engine(backup).status().of(SyncStatus.AHEAD)
    if [one.session_id for one in ahead] != [SESSION]:
        raise BrokenPromise("status does not report that the server has lost data")
    world.say(laptop, SESSION)
    laptop.engine(backup).push()
    desk.engine(backup).pull()
    _same(desk, laptop)
    yield "The server is restored from a backup without the last 3 turns: status reports it, the next push"
    yield "  uploads them again, and no pull removes them."
    empty = MemoryServer().remote()
    world.remote = lambda: empty
    for device in (laptop, desk):
        device.engine(empty).push(look=True)
    yield "Then the server is emptied: after a push from each machine, everything is there again."


def _copy(source: Remote, target: Remote) -> None:
    for record in list(heads_of(source)):
        space = decode(record.name, record.data).space
        for block in blocks_of(source, space, "", "~"):
            target.put_block(space, block.id, block.data)
        target.swap_head(record.name, record.data, None)


def _set_age(folder: Path, at: datetime) -> None:
    """Set the last use of a session to this time."""
    moment = int(at.timestamp()) * 10**9
    for path in (*folder.iterdir(), folder):
        OS_FS.utime(str(path), moment)


def _same(one: Device, other: Device) -> None:
    if one.files() != other.files():
        raise BrokenPromise(f"{one.name} and {other.name} have different files")
