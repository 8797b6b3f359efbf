"""Earlier versions: what the remote has of them, and how one takes the place of the present one."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from sessionary.errors import Invalid, Locked, NotFound
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.gc.removal import Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.heads import HISTORY, decode
from sessionary.sync.report import SyncStatus
from sessionary.sync.restoring import Generation
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, EPOCH, WORK, PolicyWorld
from tests.support.sync_world import World, note_what_is_there

DAY = 86_400.0


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def world(tmp_path: Path, server: MemoryServer) -> World:
    return World(tmp_path, server.remote, logs=True)


def push(world: World, at: int = 0) -> None:
    world.devices[at].engine(world.remote()).push()


def pull(world: World, at: int = 1) -> None:
    world.devices[at].engine(world.remote()).pull()


def rewound(world: World, times: int = 1) -> list[str]:
    """A session that was rewound on the first device, and pushed; returns its lines before the first rewind."""
    a = world.devices[0]
    world.say(a, "one", 6)
    push(world)
    lines = a.lines("one")
    for _ in range(times):
        a.rewind("one", 2)
        world.say(a, "one", 1)
        push(world)
    return lines


def only(engine: Engine) -> SessionRef:
    (ref,) = engine.layout.discover()
    return ref


def found(engine: Engine) -> list[Generation]:
    return engine.earlier.generations(only(engine))


def numbers(generations: list[Generation]) -> list[tuple[int, int, str]]:
    words = {(True, False): "present", (False, True): "gone", (False, False): "kept"}
    return [(one.first, one.last, words[one.present, one.is_gone]) for one in generations]


def test_a_session_that_only_grew_has_one_version(world: World) -> None:
    world.say(world.devices[0], "one", 3)
    push(world)
    world.say(world.devices[0], "one", 3)
    push(world)
    assert numbers(found(world.devices[0].engine(world.remote()))) == [(0, 0, "present")]


def test_a_version_before_a_rewind_is_restored_and_the_replaced_one_kept(world: World) -> None:
    lines = rewound(world)
    a = world.devices[0]
    world.say(a, "one", 2)  # not pushed: only the kept file has it
    present = a.lines("one")
    engine = a.engine(world.remote())
    assert numbers(found(engine)) == [(1, 1, "present"), (0, 0, "kept")]
    (done,) = engine.earlier.restore(only(engine), 0)
    assert a.lines("one") == lines
    assert done.name == "transcript.jsonl"
    assert done.size == sum(len(line) + 1 for line in lines)
    assert done.kept is not None
    assert Path(done.kept).read_text().splitlines() == present
    (back,) = engine.earlier.restore_kept(only(engine), Path(done.kept).name)
    assert a.lines("one") == present
    assert back.kept is not None
    assert Path(back.kept).read_text().splitlines() == lines


def test_other_devices_follow_a_restore_and_can_take_it_back(world: World) -> None:
    lines = rewound(world)
    pull(world)
    a, b = world.devices
    short = b.lines("one")
    engine = b.engine(world.remote())
    engine.earlier.restore(only(engine), 0)
    push(world, 1)
    pull(world, 0)
    assert a.lines("one") == b.lines("one") == lines
    newest = next(one.first for one in found(engine) if not one.present)
    engine = a.engine(world.remote())
    engine.earlier.restore(only(engine), newest)
    assert a.lines("one") == short


def test_event_logs_are_restored_with_the_conversation(world: World) -> None:
    a = world.devices[0]
    world.say(a, "one", 4)
    a.log("one", "first")
    a.log("one", "second")
    push(world)
    a.rewind("one", 1)
    (a.sessions / "one" / "events.jsonl").write_text(json.dumps({"event": "first"}) + "\n")
    push(world)
    engine = a.engine(world.remote())
    done = engine.earlier.restore(only(engine), 0)
    assert [one.name for one in done] == ["events.jsonl", "transcript.jsonl"]
    assert len(a.lines("one")) == 4
    assert len((a.sessions / "one" / "events.jsonl").read_text().splitlines()) == 2


def test_generations_that_a_head_does_not_keep_are_gone(world: World) -> None:
    rewound(world, HISTORY + 3)
    engine = world.devices[0].engine(world.remote())
    listed = numbers(found(engine))
    assert listed[0] == (HISTORY + 3, HISTORY + 3, "present")
    assert listed[-1] == (0, 2, "gone")
    assert len(listed) == HISTORY + 2
    with pytest.raises(NotFound, match="was removed"):
        engine.earlier.restore(only(engine), 1)
    engine.earlier.restore(only(engine), 3)


def test_generations_that_gc_removed_are_gone(tmp_path: Path) -> None:
    time = 0.0
    server = MemoryServer(clock=lambda: time)
    world = World(tmp_path / "w", server.remote, passed=lambda: time)
    rewound(world)
    removed = Removed(str(tmp_path / "removed"))
    note_what_is_there(Remover(server.remote(), removed, now=lambda: EPOCH))
    time = 400 * DAY
    later = world.devices[0].now() + timedelta(days=1)
    assert Remover(server.remote(), removed, now=lambda: later).remove().trimmed == 1
    engine = world.devices[0].engine(server.remote())
    assert numbers(found(engine)) == [(1, 1, "present"), (0, 0, "gone")]
    with pytest.raises(NotFound, match="was removed"):
        engine.earlier.restore(only(engine), 0)


def test_generations_that_an_emptied_store_has_lost_are_gone(world: World, server: MemoryServer) -> None:
    rewound(world)
    assert numbers(found(world.devices[0].engine(world.remote()))) == [(1, 1, "present"), (0, 0, "kept")]
    emptied = MemoryServer()
    engine = world.devices[0].engine(emptied.remote())
    engine.push(look=True)
    assert numbers(found(engine)) == [(1, 1, "present"), (0, 0, "gone")]
    with pytest.raises(NotFound, match="was removed"):
        engine.earlier.restore(only(engine), 0)


def test_a_block_that_is_missing_is_reported_before_anything_is_changed(
    world: World, server: MemoryServer
) -> None:
    rewound(world)
    engine = world.devices[0].engine(world.remote())
    before = world.devices[0].files()
    remote = server.remote()
    (record,) = remote.list_heads().heads
    head = decode(record.name, record.data)
    _, chain = head.history[0].tips["transcript.jsonl"]
    (lost,) = [one for one in remote.list_blocks(head.space, "", "~").stats if one.id.endswith(chain[:32])]
    remote.delete_block(head.space, lost.id, lost.version)
    with pytest.raises(NotFound, match="was removed"):
        engine.earlier.restore(only(engine), 0)
    assert world.devices[0].files() == before


def test_what_is_not_an_earlier_generation_is_refused(world: World) -> None:
    rewound(world)
    engine = world.devices[0].engine(world.remote())
    with pytest.raises(Invalid, match="current"):
        engine.earlier.restore(only(engine), 1)
    with pytest.raises(NotFound, match="no generation 7"):
        engine.earlier.restore(only(engine), 7)
    with pytest.raises(NotFound):
        engine.earlier.restore_kept(only(engine), "../../other/transcript.jsonl.before-1")
    with pytest.raises(NotFound):
        engine.earlier.restore_kept(only(engine), "metadata.json")


def test_an_open_session_is_not_restored(world: World) -> None:
    rewound(world)
    a = world.devices[0]
    before = a.lines("one")
    engine = a.engine(world.remote(), in_use=lambda ref: "it is open in a running agent")
    with pytest.raises(Locked):
        engine.earlier.restore(only(engine), 0)
    assert a.lines("one") == before


def test_each_pushed_version_of_a_brainstorm_is_kept_small_or_large(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = PolicyWorld(tmp_path, server.remote, kinds=(BRAINSTORM,))
    a, b = world.devices
    answers = [
        f"answer {n} " + "".join(chr(97 + (k * k * n) % 23) for k in range(n * 30_000)) for n in range(4)
    ]
    for answer in answers:
        a.storm("idea", answer)
        report = a.engine(BRAINSTORM, server.remote()).push()
        assert [one.standing for one in report.outcomes] == [SyncStatus.PUSHED]
    b.engine(BRAINSTORM, server.remote()).pull()
    engine = b.engine(BRAINSTORM, server.remote())
    assert numbers(found(engine)) == [(3, 3, "present"), (2, 2, "kept"), (1, 1, "kept"), (0, 0, "kept")]
    for generation in range(3):
        (done,) = engine.earlier.restore(only(engine), generation)
        assert b.answers("idea") == answers[: generation + 1]
        assert done.kept is not None
    assert b.storms_there() == ["idea"]


def test_a_ledger_is_not_restored(tmp_path: Path, server: MemoryServer) -> None:
    world = PolicyWorld(tmp_path, server.remote, kinds=(WORK,))
    a = world.devices[0]
    a.begin("one")
    ledger = a.work_folder("one") / "log.jsonl"
    line = '{"breadcrumb_id":"b","file":"0/b.json","applied_at":"2026-03-01T09:00:01+00:00","result":null}\n'
    ledger.write_text(line * 2)
    a.engine(WORK, server.remote()).push()
    ledger.write_text(line)
    a.engine(WORK, server.remote()).push()
    engine = a.engine(WORK, server.remote())
    with pytest.raises(Invalid, match="ledger"):
        engine.earlier.restore(only(engine), 0)
    assert ledger.read_text() == line
