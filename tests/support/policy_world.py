"""Several devices with one project, and all its content: work sessions, a mailbox, features, brainstorms.

As in `sync_world`, a device writes its files itself, and everything that is written is unlike all else: a message, a
line of a history, an answer. So what is lost is missed, and what is doubled is seen. Clocks may be wrong by days.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk.fs import Fs
from sessionary.errors import RemoteError
from sessionary.layouts import ledger_owner
from sessionary.layouts.brainstorm.sync_adapter import BrainstormSyncLayout
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.layouts.orchestrator.sync_adapter import FeatureSyncLayout
from sessionary.layouts.sync import SyncLayout
from sessionary.sync.blocks import BLOCK
from sessionary.sync.engine import Engine
from sessionary.sync.remote import Remote
from sessionary.sync.report import Report, SyncStatus
from sessionary.sync.rules import Rules
from sessionary.testing.wrapper import UNSYNCED
from tests.support.chaos_remote import ChaosRemote
from tests.support.faults import Fault, FaultFs, Killed

EPOCH = datetime(2025, 1, 31, 12, tzinfo=UTC)
PROJECT = "app"
WORK, FEATURE, BRAINSTORM = "work", "feature", "brainstorm"
KINDS = (WORK, FEATURE, BRAINSTORM)
LIST = "active-features.yaml"
ROUNDS = 14
_ASIDE = (".conflict-", ".lock", ".owner", ".tmp")


def recipient(kind: str, root: Path, fs: Fs = UNSYNCED) -> SyncLayout:
    """The layout of a kind over a project, for the code that carries its sessions."""
    if kind == WORK:
        return MaestroSyncLayout(root / "docs" / "sessions", fs, project=PROJECT)
    made = FeatureSyncLayout if kind == FEATURE else BrainstormSyncLayout
    return made(root, fs, project=PROJECT)


class PolicyDevice:
    """One machine with the project.

    Args:
        root: a folder for the devices.
        name: its name.
        kinds: what it carries.
        block: how many bytes a block holds.
        skew: how wrong its clock is.
    """

    def __init__(
        self, root: Path, name: str, kinds: tuple[str, ...], block: int = BLOCK, skew: timedelta = timedelta()
    ) -> None:
        self.name = name
        self.root = root / name
        self.project = self.root / PROJECT
        self.work = self.project / "docs" / "sessions"
        self.features = self.project / ".ai-session"
        self.storms = self.project / ".project-memory" / "brainstorm-sessions"
        for folder in (self.work, self.features, self.storms):
            folder.mkdir(parents=True, exist_ok=True)
        self.kinds = kinds
        self.block = block
        self.skew = skew
        self.rules = Rules()

    def engine(self, kind: str, remote: Remote, fs: Fs = UNSYNCED) -> Engine:
        """An engine for one kind, as a new process would have it."""
        tick = iter(range(10**9))
        return Engine(
            recipient(kind, self.project, fs),
            remote,
            state_dir=self.root / "state" / kind,
            rules=self.rules,
            quiet=0,
            block=self.block,
            fs=fs,
            now=lambda: EPOCH + self.skew + timedelta(seconds=next(tick)),
            sleep=lambda seconds: None,
        )

    def engines(self, remote: Remote, fs: Fs = UNSYNCED) -> list[Engine]:
        """An engine for each kind."""
        return [self.engine(kind, remote, fs) for kind in self.kinds]

    def files(self) -> dict[str, bytes]:
        """Every carried file, by its path from the project."""
        return {
            path.relative_to(self.project).as_posix(): path.read_bytes()
            for path in sorted(self.project.rglob("*"))
            if path.is_file() and not any(word in path.name for word in _ASIDE) and not _is_hidden(path, self)
        }

    # -- work sessions

    def begin(self, session: str, parent: str | None = None) -> None:
        """Begin a work session."""
        folder = (self.work_folder(parent) if parent else self.work) / session
        (folder / "breadcrumbs" / "0").mkdir(parents=True)
        self.tell(session, folder=folder, session_type="work_task", parent_session_id=parent)

    def work_folder(self, session: str) -> Path:
        """The place of a work session."""
        return next(folder for folder in self._work_folders() if folder.name == session)

    def sessions(self) -> list[str]:
        """The work sessions that its user sees."""
        return sorted(folder.name for folder in self._work_folders())

    def _work_folders(self) -> Iterator[Path]:
        for path in self.work.rglob("session.json"):
            if not any(part.startswith(".") for part in path.relative_to(self.work).parts):
                yield path.parent

    def tell(self, session: str, at: datetime = EPOCH, *, folder: Path | None = None, **changes: Any) -> None:
        """Change the document of a work session."""
        path = (folder or self.work_folder(session)) / "session.json"
        reported: dict[str, Any] = {"session_id": session, "status": "running"}
        if path.exists():
            reported = json.loads(path.read_text())
        path.write_text(json.dumps({**reported, "modified": at.isoformat(), **changes}))

    def drop(self, session: str, crumb: str, stamp: str, depth: int = 0) -> None:
        """Leave a message; where its name is taken, under the next one."""
        folder = self.work_folder(session) / "breadcrumbs" / str(depth)
        folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while (path := folder / f"{stamp}_{number:06}.json").exists():
            number += 1
        path.write_text(json.dumps({"timestamp": path.stem, "breadcrumb_id": crumb, "prompt": crumb}))

    def crumbs(self, session: str) -> list[str]:
        """The ids of all messages of a session."""
        files = self.work_folder(session).glob("breadcrumbs/*/*.json")
        return [json.loads(path.read_text())["breadcrumb_id"] for path in files]

    def apply(self, session: str, *, take_over: bool = False) -> list[str]:
        """Consume pending messages, if this device may; returns the applied ids."""
        ledger = self.work_folder(session) / "log.jsonl"
        if take_over:
            ledger_owner.take_over(str(ledger))
        owner = ledger_owner.owner_of(str(ledger))
        if owner is not None and not owner.here:
            return []
        done = {json.loads(line)["breadcrumb_id"] for line in _lines(ledger)}
        fresh = sorted(set(self.crumbs(session)) - done)
        if fresh:  # an empty ledger would count as damaged
            with open(ledger, "a") as file:
                for crumb in fresh:
                    entry = {"breadcrumb_id": crumb, "applied_at": EPOCH.isoformat(), "result": self.name}
                    file.write(json.dumps(entry) + "\n")
        return fresh

    def ledger(self, session: str) -> list[str]:
        """The ids in the log of a session, in order."""
        return [json.loads(line)["breadcrumb_id"] for line in _lines(self.work_folder(session) / "log.jsonl")]

    # -- features

    def plan(self, feature: str) -> None:
        """Begin a feature."""
        folder = self.features / feature
        folder.mkdir()
        (folder / "history.jsonl").touch()
        self.set(feature, EPOCH, active_task=None, model_in_use="sonnet", started_at=_z(EPOCH))

    def feature_names(self) -> list[str]:
        """The features that its user sees."""
        return sorted(path.parent.name for path in self.features.glob("[!.]*/state.yaml"))

    def log(self, feature: str, command: str, at: datetime, repeat: int = 1) -> None:
        """Append an entry to the history of a feature."""
        entry = {"timestamp": _z(at), "command": command, "status": "success"}
        with open(self.features / feature / "history.jsonl", "a") as file:
            file.write((json.dumps(entry) + "\n") * repeat)

    def history(self, feature: str) -> list[str]:
        """The lines of a history."""
        return _lines(self.features / feature / "history.jsonl")

    def set(self, feature: str, at: datetime, **changes: Any) -> None:
        """Set fields of the state of a feature."""
        path = self.features / feature / "state.yaml"
        reported: dict[str, Any] = {"version": "1.0", "feature_id": feature}
        if path.exists():
            reported = load_yaml(path.read_bytes())
        reported["current_state"] = {**reported.get("current_state", {}), **changes, "last_updated": _z(at)}
        path.write_bytes(dump_yaml(reported))

    def state(self, feature: str) -> dict[str, Any]:
        """The state of a feature."""
        found: dict[str, Any] = load_yaml((self.features / feature / "state.yaml").read_bytes())[
            "current_state"
        ]
        return found

    # -- brainstorms

    def storm(self, slug: str, answer: str) -> None:
        """Answer in a brainstorm, or begin it."""
        path = self.storms / f"{slug}.yaml"
        reported = load_yaml(path.read_bytes()) if path.exists() else _brainstorm(slug)
        reported["session"]["history"].append({"iteration": 1, "responses": [answer]})
        path.write_bytes(dump_yaml(reported))

    def storms_there(self) -> list[str]:
        """The slugs of the brainstorms that its user sees."""
        return sorted(path.stem for path in self.storms.glob("*.yaml"))

    def answers(self, slug: str) -> list[str]:
        """The answers in a brainstorm, in order."""
        reported = load_yaml((self.storms / f"{slug}.yaml").read_bytes())
        return [entry["responses"][0] for entry in reported["session"]["history"]]


class PolicyWorld:
    """Devices around one remote, and the memory of what their users wrote.

    Args:
        root: a folder for the devices.
        remote: gives a connection to the remote.
        devices: how many machines there are.
        kinds: what they carry.
        block: how many bytes their blocks hold.
        skews: how wrong the clock of each is.
    """

    def __init__(
        self,
        root: Path,
        remote: Callable[[], Remote],
        devices: int = 2,
        *,
        kinds: tuple[str, ...] = KINDS,
        block: int = BLOCK,
        skews: tuple[timedelta, ...] = (),
    ) -> None:
        self.root = root
        self.remote = remote
        self.kinds = kinds
        self.devices = [
            PolicyDevice(root, f"device{n}", kinds, block, skews[n] if n < len(skews) else timedelta())
            for n in range(devices)
        ]
        self.crumbs: dict[str, str] = {}
        self.applied: Counter[str] = Counter()
        self.logged: Counter[tuple[str, str]] = Counter()
        self.answered: set[str] = set()
        self.said = 0

    def like(self, other: PolicyWorld) -> PolicyWorld:
        """Take over the memory of another world, whose devices were copied."""
        self.crumbs, self.applied = dict(other.crumbs), Counter(other.applied)
        self.logged, self.answered = Counter(other.logged), set(other.answered)
        self.said = other.said
        return self

    def word(self) -> str:
        """A word that no other is like."""
        self.said += 1
        return f"word{self.said}"

    def drop(
        self, device: PolicyDevice, session: str, stamp: str = "20250131_120000", depth: int = 0
    ) -> None:
        """A sender leaves a message."""
        crumb = self.word()
        device.drop(session, crumb, stamp, depth)
        self.crumbs[crumb] = session

    def apply(self, device: PolicyDevice, session: str, *, take_over: bool = False) -> None:
        """A consumer applies pending messages."""
        self.applied.update(device.apply(session, take_over=take_over))

    def log(self, device: PolicyDevice, feature: str, at: datetime = EPOCH, repeat: int = 1) -> None:
        """An agent logs a command."""
        device.log(feature, self.word(), at, repeat)
        self.logged[feature, device.history(feature)[-1]] += repeat

    def storm(self, device: PolicyDevice, slug: str) -> None:
        """A person answers in a brainstorm."""
        word = self.word()
        device.storm(slug, word)
        self.answered.add(word)

    def sync(self, device: PolicyDevice) -> list[Report]:
        """Pull and push everything on a device."""
        verbs = (Engine.pull, partial(Engine.push, look=True))
        return [verb(engine) for engine in device.engines(self.remote()) for verb in verbs]

    def settle(self) -> None:
        """Let all devices pull and push until nothing changes; fails if that never comes."""
        for _ in range(ROUNDS):
            reports = [(device, report) for device in self.devices for report in self.sync(device)]
            moved = False
            for device, report in reports:
                troubles = [(one.session_id, one.note) for one in report.of(SyncStatus.FAILED)]
                assert not troubles, f"{device.name}: {troubles}"
                left = [one for one in report.of(SyncStatus.HELD_BACK) if one.session_id != LIST]
                assert not left, f"{device.name}: {left}"
                moving = {SyncStatus.IN_STEP, SyncStatus.HELD_BACK}
                moved = moved or any(one.standing not in moving for one in report.outcomes)
            if not moved:
                return
        raise AssertionError("the devices never come to rest")

    def check(self) -> None:
        """Nothing lost, nothing doubled, all alike, and a new device gets all of it."""
        self.settle()
        fresh = PolicyDevice(self.root, f"fresh{self.said}", self.kinds)
        for engine in fresh.engines(self.remote()):
            engine.pull()
        expected = fresh.files()
        for device in self.devices:
            found = device.files()
            differing = {name for name in {*found, *expected} if found.get(name) != expected.get(name)}
            differing = {name for name in differing if not name.endswith(LIST)}
            assert not differing, f"{device.name} and a fresh device differ in {sorted(differing)}"
        self._check_messages(fresh)
        self._check_histories(fresh)
        reported = Counter(word for slug in fresh.storms_there() for word in set(fresh.answers(slug)))
        assert set(reported) == self.answered, f"lost answers: {sorted(self.answered - set(reported))[:3]}"

    def _check_messages(self, fresh: PolicyDevice) -> None:
        found = Counter((crumb, session) for session in fresh.sessions() for crumb in fresh.crumbs(session))
        lost = [crumb for crumb, session in self.crumbs.items() if (crumb, session) not in found]
        assert not lost, f"lost messages: {lost[:3]}"
        doubled = [crumb for (crumb, _), times in found.items() if times > 1]
        assert not doubled, f"doubled messages: {doubled[:3]}"
        entries = Counter(crumb for session in fresh.sessions() for crumb in fresh.ledger(session))
        assert set(entries) == set(self.applied), (
            f"{sorted(set(self.applied) ^ set(entries))[:3]} in one alone"
        )
        assert not [crumb for crumb, times in entries.items() if times > 1], "a message is twice in a ledger"

    def _check_histories(self, fresh: PolicyDevice) -> None:
        found = Counter(
            (feature, line) for feature in fresh.feature_names() for line in fresh.history(feature)
        )
        lost = [line for (feature, line), times in self.logged.items() if found[feature, line] < times]
        assert not lost, f"lost lines: {lost[:3]}"
        doubled = [line for one, times in found.items() if times > self.logged[one] for line in one[1:]]
        assert not doubled, f"doubled lines: {doubled[:3]}"


def attempt_all(
    device: PolicyDevice, remote: Remote, work: Callable[[Engine], Report], fault: Fault | None = None
) -> bool:
    """Let a process of the device do some work on everything; it may be killed: then False."""
    fs = FaultFs(UNSYNCED, fault or ())
    try:
        for engine in device.engines(remote, fs):
            work(engine)
    except Killed:
        return False
    finally:
        fs.bury()
    return True


def live_on(world: PolicyWorld, fate: random.Random, steps: int, chance: float = 0.06) -> None:
    """Let users and devices do anything, in any order, over a bad network, with processes that are killed."""
    for _ in range(steps):
        device = fate.choice(world.devices)
        if fate.random() < 0.6:
            _use(world, device, fate)
            continue
        remote = ChaosRemote(world.remote(), fate=fate, chance=chance)
        fault = Fault("any", fate.randint(1, 120), "kill") if fate.random() < 0.3 else None
        with suppress(RemoteError):  # it fails as often as it is asked: cut off, as if it were killed
            attempt_all(device, remote, fate.choice((Engine.push, Engine.pull)), fault)
        remote.settle()


def _use(world: PolicyWorld, device: PolicyDevice, fate: random.Random) -> None:
    """One thing that happens on a device."""
    at = EPOCH + device.skew + timedelta(seconds=fate.randrange(4))
    if fate.random() < 0.1 or not (device.sessions() and device.feature_names()):
        parents = device.sessions()
        device.begin(
            f"work-{fate.randrange(10**9)}", fate.choice(parents) if parents and fate.random() < 0.4 else None
        )
        device.plan(f"feature-{fate.randrange(10**9)}-2025-01-31")
        return
    session, feature = fate.choice(device.sessions()), fate.choice(device.feature_names())
    chosen = fate.random()
    if chosen < 0.35:
        world.drop(device, session, f"2025013{fate.randrange(3)}_12000{fate.randrange(3)}", fate.randrange(2))
    elif chosen < 0.5:
        world.apply(device, session, take_over=fate.random() < 0.1)
    elif chosen < 0.7:
        world.log(device, feature, at, fate.choice((1, 1, 1, 2)))
    elif chosen < 0.8:
        device.set(
            feature, at, **fate.choice(({"active_task": f"t{fate.randrange(9)}"}, {"model_in_use": "opus"}))
        )
    elif chosen < 0.9:
        reported: dict[str, Any] = fate.choice(({"purpose": f"p{fate.randrange(99)}"}, {"status": "paused"}))
        device.tell(session, at, **reported)
    else:
        world.storm(device, fate.choice(device.storms_there() or [f"storm-{fate.randrange(10**9)}"]))


def _brainstorm(slug: str) -> dict[str, Any]:
    session = {"id": f"{slug}-2025-01-31", "slug": slug, "history": []}
    return {"format_version": "1.2", "session": session}


def _is_hidden(path: Path, device: PolicyDevice) -> bool:
    inside = path.relative_to(device.project).parts
    return any(part.startswith(".") and part not in (".ai-session", ".project-memory") for part in inside)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _z(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def stamps() -> Iterator[str]:
    """Times of messages, each unlike the others."""
    for number in range(10**6):
        yield (EPOCH + timedelta(seconds=number)).strftime("%Y%m%d_%H%M%S")
