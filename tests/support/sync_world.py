"""Several devices that share a remote, and what must be true of them when the dust has settled.

Every line that a user writes is unlike all others, so that a lost one is missed and a doubled one is seen. A device
writes its files itself, as an agent would, and not through the code that is under test.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.errors import RemoteError
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.blocks import BLOCK
from sessionary.sync.engine import Engine
from sessionary.sync.gc.leftovers import read_heads
from sessionary.sync.gc.removal import LEAST, Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.remote import Remote
from sessionary.sync.report import Report, SyncStatus
from sessionary.sync.retry import RetryingRemote
from sessionary.sync.rules import Rules
from sessionary.testing.wrapper import UNSYNCED
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault, FaultFs, Killed

PROJECT = "-work"
TRANSCRIPT, METADATA, EVENTS = "transcript.jsonl", "metadata.json", "events.jsonl"
ROUNDS = 12
EPOCH = datetime(2025, 1, 31, 12, tzinfo=UTC)


def note_what_is_there(remover: Remover) -> None:
    """Record tombstones and earlier generations, as the first removal of a machine does, and remove nothing."""
    with remover._removed.lock().once():
        remover._seen(read_heads(remover._remote), remover._now())


class Device:
    """One machine: a home with sessions, and what it remembers of the remote."""

    def __init__(
        self, root: Path, name: str, *, logs: bool = False, block: int = BLOCK, skew: timedelta = timedelta()
    ) -> None:
        self.name = name
        self.root = root / name
        self.sessions = self.root / "home" / "projects" / PROJECT / "sessions"
        self.sessions.mkdir(parents=True, exist_ok=True)
        self.state = self.root / "state"
        self.rules = Rules(logs=logs)
        self.block = block
        self.skew = skew
        self.passed: Callable[[], float] = lambda: 0.0
        self.trashed = 0

    def now(self) -> datetime:
        """What time it is by the clock of this machine."""
        return EPOCH + self.skew + timedelta(seconds=self.passed())

    def remover(self, remote: Remote, fs: Fs = UNSYNCED, older: timedelta = LEAST) -> Remover:
        """The remover of leftovers, as a new process would have it."""
        patient = RetryingRemote(remote, sleep=lambda seconds: None)
        removed = Removed(str(self.root / "removed"), fs)
        return Remover(
            patient,
            removed,
            older=older,
            now=self.now,
            sleep=getattr(remote, "rest", lambda seconds: None),
        )

    def engine(self, remote: Remote, fs: Fs = UNSYNCED, **options: Any) -> Engine:
        """An engine as a new process would have it."""
        tick = iter(range(10**9))
        given: dict[str, Any] = {
            "state_dir": self.state,
            "rules": self.rules,
            "quiet": 0,
            "block": self.block,
            "now": lambda: self.now() + timedelta(seconds=next(tick)),
            "sleep": lambda seconds: None,
        }
        return Engine(AmplifierSyncLayout(self.root / "home", fs), remote, fs=fs, **{**given, **options})

    # -- what its user does

    def names(self) -> list[str]:
        """The sessions that its user sees."""
        return sorted(path.name for path in self.sessions.iterdir() if path.name[0] != ".")

    def lines(self, session: str) -> list[str]:
        """The lines of a conversation."""
        path = self.sessions / session / TRANSCRIPT
        return [line for line in path.read_text().splitlines() if line] if path.exists() else []

    def parent(self, session: str) -> str | None:
        """The session that a session says it comes from."""
        return self._told(session).get("parent_id")

    def label(self, session: str) -> str | None:
        """The id that a session says it has."""
        return self._told(session).get("session_id")

    def _told(self, session: str) -> dict[str, Any]:
        path = self.sessions / session / METADATA
        reported: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return reported

    def write(self, session: str, texts: list[str], *, parent: str | None = None) -> None:
        """Go on with a session, or begin it."""
        folder = self.sessions / session
        folder.mkdir(exist_ok=True)
        with open(folder / TRANSCRIPT, "ab") as file:
            file.write(
                b"".join(json.dumps({"role": "user", "content": text}).encode() + b"\n" for text in texts)
            )
        self.describe(session, parent=parent)

    def describe(self, session: str, *, parent: str | None = None, title: str | None = None) -> None:
        """Write metadata as an agent does after a turn."""
        path = self.sessions / session / METADATA
        reported = self._told(session) or {"session_id": session}
        reported["turn_count"] = len(self.lines(session))
        reported |= {"parent_id": parent} if parent else {}
        reported |= {"name": title} if title else {}
        path.write_text(json.dumps(reported))

    def rewind(self, session: str, keep: int) -> list[str]:
        """Take back all but the first lines; returns those taken back. One byte says that nothing is left."""
        lines = self.lines(session)
        path = self.sessions / session / TRANSCRIPT
        new = path.with_name(".rewound")
        new.write_text("".join(line + "\n" for line in lines[:keep]) or "\n")
        os.replace(new, path)
        self.describe(session)
        return lines[keep:]

    def log(self, session: str, text: str) -> None:
        """The agent adds an event to the log of a session."""
        with open(self.sessions / session / EVENTS, "ab") as file:
            file.write(json.dumps({"event": text}).encode() + b"\n")

    def restore(self) -> None:
        """Restore the last trashed session, if its place is free."""
        trash = self.sessions / ".trash"
        for path in sorted(trash.glob("*/*"), reverse=True) if trash.exists() else ():
            if not (self.sessions / path.name).exists():
                path.rename(self.sessions / path.name)
                return

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
        block: how many bytes their blocks hold; few, so that there are many.
        logs: carry event logs too.
        skews: how wrong the clock of each device is.
        passed: how many seconds have passed since the world began.

    Attributes:
        put_back: the remote was put back to an earlier state: of what it had lost, each device may have kept as much as
            it had, so that one session is the beginning of another.
    """

    def __init__(
        self,
        root: Path,
        remote: Callable[[], Remote],
        devices: int = 2,
        *,
        block: int = BLOCK,
        logs: bool = False,
        skews: tuple[timedelta, ...] = (),
        passed: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.root = root
        self.remote = remote
        wrong = (*skews, *[timedelta()] * devices)
        self.devices = [
            Device(root, f"device{n}", logs=logs, block=block, skew=wrong[n]) for n in range(devices)
        ]
        for device in self.devices:
            device.passed = passed
        self.written: dict[str, str] = {}
        self.taken_back: set[str] = set()
        self.shortened: set[str] = set()
        self.logs = logs
        self.put_back = False
        self.said = 0

    def say(self, device: Device, session: str, count: int = 1, size: int = 20) -> None:
        """The user of a device writes lines that no other line is like."""
        texts = []
        for _ in range(count):
            self.said += 1
            texts.append(f"{device.name} line {self.said} {'x' * size}")
        device.write(session, texts)
        for line in device.lines(session)[-count:]:
            self.written[line] = session

    def fork(self, device: Device, session: str, new: str, keep: int) -> None:
        """The user of a device goes another way from some line of a session on."""
        texts = [json.loads(line)["content"] for line in device.lines(session)[:keep]]
        device.write(new, texts, parent=session)
        self.say(device, new)
        self.shortened |= {session, new}

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
                engine = device.engine
                for report in (engine(self.remote()).pull(), engine(self.remote()).push(look=True)):
                    troubles = [(one.session_id, one.note) for one in report.of(SyncStatus.FAILED)]
                    assert not troubles, f"{device.name}: {troubles}"
                    moved = moved or any(one.standing is not SyncStatus.IN_STEP for one in report.outcomes)
            if not moved:
                return
        raise AssertionError("the devices never come to rest")

    def check(self) -> None:
        """Nothing lost, nothing doubled, all alike, and a new device gets all of it.

        Raises:
            AssertionError: what is wrong.
        """
        self.settle()
        fresh = Device(self.root, f"fresh{self.said}", logs=self.logs)
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
            assert fresh.label(session) in (session, None), f"{session} says that it is another"
            lines = fresh.lines(session)
            assert len(set(lines)) == len(lines), f"a line is twice in {session}"
            for at, line in enumerate(lines):
                places.setdefault(line, set()).add(at)
        lost = {line for line in self.written if line not in places and line not in self.taken_back}
        assert not lost, f"lost: {sorted(lost)[:3]}"
        strange = {line for line in places if line not in self.written}
        assert not strange, f"never written: {sorted(strange)[:3]}"
        self._no_line_went_two_ways(fresh)

    def _no_line_went_two_ways(self, fresh: Device) -> None:
        """Sessions share lines only where one was forked from the other: in their common beginning."""
        reported = {session: fresh.lines(session) for session in fresh.names()}
        for one, lines in reported.items():
            for other in reported.keys() - {one}:
                others = reported[other]
                common = next(
                    (n for n, (a, b) in enumerate(zip(lines, others, strict=False)) if a != b),
                    min(len(lines), len(others)),
                )
                both = set(lines[common:]) & set(others[common:])
                assert not both, f"{one} and {other} both have {sorted(both)[:3]}"
                parents = (fresh.parent(one), fresh.parent(other))
                family = parents[0] == other or parents[1] == one or (parents[0] and parents[0] == parents[1])
                begins = 0 < common == len(lines) and not self.put_back
                # What gave way on a device whose user had rewound it is that short by right, under its new id.
                needless = family and begins and not {one, other, *parents} & self.shortened
                assert not needless or self._was_rewound(others[common:]), f"{one} only begins {other}"

    def _was_rewound(self, lines: list[str]) -> bool:
        return not lines or any(line in self.taken_back for line in lines)


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
        if fate.random() < 0.55:
            _use(world, device, fate)
            continue
        remote = ChaosRemote(world.remote(), fate=fate, chance=chance)
        fault = Fault("any", fate.randint(1, 60), "kill") if fate.random() < 0.3 else None
        with suppress(RemoteError):  # it fails as often as it is asked: cut off, as if it were killed
            attempt(device, remote, fate.choice((Engine.push, Engine.pull)), fault)
        remote.settle()


def _use(world: World, device: Device, fate: random.Random) -> None:
    """One thing that the user of a device does."""
    names = device.names()
    if not names or fate.random() < 0.08:
        world.say(device, f"session-{fate.randrange(10**9)}", fate.randint(1, 4))
        return
    session = fate.choice(names)
    chosen = fate.random()
    if chosen < 0.70:
        world.say(device, session, fate.randint(1, 4), fate.choice((5, 300, 300, 3000)))
    elif chosen < 0.80:
        world.shortened.add(session)
        world.take_back(device.rewind(session, fate.randint(0, len(device.lines(session)))))
    elif chosen < 0.85:
        world.take_back(device.trash(session))
    elif chosen < 0.88:
        device.restore()
    elif chosen < 0.92:
        keep = fate.randint(1, max(1, len(device.lines(session))))
        world.fork(device, session, f"fork-{fate.randrange(10**9)}", keep)
    elif chosen < 0.96 and world.logs:
        device.log(session, f"event {fate.random()}")
    else:
        device.describe(session, title=f"title {fate.random()}")
