"""Two machines that share their sessions, played in one folder: what `sessionary sync demo` shows.

Each machine is a home with sessions and a memory of its own; between them is a server. Nothing is simulated but that
the two homes lie on one disk, and the deaths: a process that dies is one whose calls all fail from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from sessionary.disk.fs import OS_FS
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode
from sessionary.sync.remote import Remote, blocks_of, heads_of
from sessionary.sync.remotes.memory import MemoryServer
from sessionary.sync.report import Report, SyncStatus
from sessionary.testing.chaos_remote import ChaosRemote
from sessionary.testing.demo_stage import BrokenPromise
from sessionary.testing.sync_world import TRANSCRIPT, Device, World, attempt

SESSION = "3f0c81d2-7a64-4b0e-9c55-1d2b7e90a1f3"


class Server(NamedTuple):
    """What stands between the machines: what it is, and how to reach it."""

    name: str
    connect: Callable[[], Remote]


@contextmanager
def server() -> Iterator[Server]:
    """A PostgreSQL of our own if server and client are installed; else a remote in this process, gone with it."""
    try:
        import psycopg  # noqa: F401 - a server of the system is of no use without it, and need not be started

        from sessionary.sync.remotes.postgres import PostgresRemote
        from sessionary.testing.postgres_server import PostgresServer

        started = PostgresServer()
    except (ImportError, OSError, RuntimeError):
        memory = MemoryServer()
        yield Server(
            "a store in the memory of this process (PostgreSQL or its client is not installed)", memory.remote
        )
        return
    remote = PostgresRemote(started.conninfo, tenant="demo")
    try:
        remote.prepare()
        yield Server("a PostgreSQL server that was started for this", lambda: remote)
    finally:
        remote.close()
        started.close()


def demonstrate_sync(folder: Path, between: Server) -> Iterator[str]:
    """The lines of the demonstration.

    Raises:
        BrokenPromise: something was not as promised.
    """
    world = World(folder, between.connect)
    desk, laptop = world.devices
    yield f"Two machines, and between them {between.name}."
    yield from _carried(world, desk, laptop)
    yield from _cut_off(world, desk, laptop)
    yield from _parted(world, desk, laptop)
    yield from _damaged(world, desk, laptop)
    yield from _renamed(world, desk, laptop)
    yield from _aged(world, desk, laptop)
    yield from _put_back(world, desk, laptop)
    try:
        world.check()
    except AssertionError as error:
        raise BrokenPromise(str(error)) from error
    yield "A third machine pulls everything: byte for byte the same. No line lost, none doubled."


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
            remote = ChaosRemote(world.remote(), {call: fault})
            kills += not attempt(desk, remote, Engine.push)
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
        raise BrokenPromise("two continuations were not told apart")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    yield "Both go on with it at the same time. Both versions are kept, on both machines:"
    yield f"  {SESSION}  the laptop's, which was pushed first"
    yield f"  {parted[0].sibling}  the desk's, which says where it comes from"


def _damaged(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """A power cut leaves a transcript without bytes on one device: the others keep what they have."""
    transcript = desk.sessions / SESSION / TRANSCRIPT
    whole = transcript.read_bytes()
    transcript.write_bytes(b"")
    reports = [verb(device.engine(world.remote())) for device, verb in _both_ways(desk, laptop)]
    standings = [one.standing for report in reports for one in report.outcomes if one.session_id == SESSION]
    if set(standings) != {SyncStatus.HELD_BACK} or laptop.files()[f"{SESSION}/{TRANSCRIPT}"] != whole:
        raise BrokenPromise("an emptied transcript was sent")
    yield f"A power cut empties the desk's transcript of {len(whole):,} bytes. The push holds it back, both machines"
    yield "  say so, and the laptop keeps the good one:"
    yield f"  {SESSION}  {reports[0].of(SyncStatus.HELD_BACK)[0].note}"
    engine = desk.engine(world.remote())
    engine.resolve(next(ref for ref in engine.layout.discover() if ref.session_id == SESSION), "theirs")
    laptop.engine(world.remote()).pull()
    _same(desk, laptop)
    if transcript.read_bytes() != whole:
        raise BrokenPromise("the good version did not come back")
    yield "  `sessionary sync resolve ID --keep theirs` on the desk brings every byte back."


def _both_ways(desk: Device, laptop: Device) -> Iterator[tuple[Device, Callable[[Engine], Report]]]:
    yield desk, Engine.push
    for device in (laptop, desk):
        for verb in (Engine.pull, Engine.push, Engine.status):
            yield device, verb


def _renamed(world: World, desk: Device, laptop: Device) -> Iterator[str]:
    """One device renames the session, the other goes on with it; both changes of one document are kept."""
    world.say(desk, SESSION)
    laptop.describe(SESSION, title="the logo")
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
    """Sessions keep their age and order; a clean-up by age is of one device."""
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
        raise BrokenPromise("a clean-up by age was not of one device")
    yield f"The laptop cleans up what is older than 30 days: {gone} sessions. The desk keeps them, and no pull brings"
    yield "  them back, until the desk goes on with one:"
    world.say(desk, "in-may")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    if laptop.lines("in-may") != desk.lines("in-may"):
        raise BrokenPromise("a session that went on did not come back")
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
    told = desk.engine(backup).status().of(SyncStatus.AHEAD)
    if [one.session_id for one in told] != [SESSION]:
        raise BrokenPromise("status does not tell that the server has lost something")
    world.say(laptop, SESSION)
    laptop.engine(backup).push()
    desk.engine(backup).pull()
    _same(desk, laptop)
    yield "A backup takes the place of the server, and lacks the last 3 turns: status says so, the next push puts them"
    yield "  there again, and no pull takes them back."
    empty = MemoryServer().remote()
    world.remote = lambda: empty
    for device in (laptop, desk):
        device.engine(empty).push(look=True)
    yield "Then an empty one takes its place: a push from each machine, and everything is there again."


def _copy(source: Remote, target: Remote) -> None:
    for record in list(heads_of(source)):
        space = decode(record.name, record.data).space
        for block in blocks_of(source, space, "", "~"):
            target.put_block(space, block.id, block.data)
        target.swap_head(record.name, record.data, None)


def _set_age(folder: Path, at: datetime) -> None:
    """As if a session had last been used then."""
    moment = int(at.timestamp()) * 10**9
    for path in (*folder.iterdir(), folder):
        OS_FS.utime(str(path), moment)


def _same(one: Device, other: Device) -> None:
    if one.files() != other.files():
        raise BrokenPromise(f"{one.name} and {other.name} have different files")
