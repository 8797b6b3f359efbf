"""What the engine does and leaves alone: rules, open sessions, deletions, strangers, newer formats, and its cost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessionary.errors import Locked, RemoteError
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.heads import PartHead, decode, encode
from sessionary.sync.remote import heads_of
from sessionary.sync.report import SyncStatus
from sessionary.sync.retry import RetryingRemote
from sessionary.sync.rules import Rules
from sessionary.sync.state import States
from tests.support.chaos_remote import ChaosRemote
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import World


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def world(tmp_path: Path, server: MemoryServer) -> World:
    return World(tmp_path, server.remote)


def push(world: World, at: int) -> Any:
    return world.devices[at].engine(world.remote()).push()


def pull(world: World, at: int) -> Any:
    return world.devices[at].engine(world.remote()).pull()


def both_have(world: World, session: str = "one") -> None:
    world.say(world.devices[0], session, 3)
    push(world, 0)
    pull(world, 1)


def standings(report: Any) -> dict[str, SyncStatus]:
    return {outcome.session_id: outcome.standing for outcome in report.outcomes}


def only_head(world: World) -> Any:
    (record,) = heads_of(world.remote())
    return record


def change_head(world: World, change: Callable[[Any], Any]) -> None:
    record = only_head(world)
    head = decode(record.name, record.data)
    assert world.remote().swap_head(record.name, encode(change(head)), record.etag)


def test_a_session_syncs_both_ways_byte_for_byte(world: World) -> None:
    both_have(world)
    assert world.devices[0].files() == world.devices[1].files() != {}


def test_what_is_in_step_is_not_sent_again(world: World) -> None:
    both_have(world)
    report = push(world, 0)
    assert standings(report) == {"one": SyncStatus.IN_STEP}
    assert report.cost.requests == 0


def test_two_devices_that_go_on_with_one_session_keep_both(world: World) -> None:
    both_have(world)
    for device in world.devices:
        world.say(device, "one", 2)
    push(world, 0)
    assert standings(push(world, 1)) == {"one": SyncStatus.DIVERGED}
    (outcome,) = pull(world, 1).outcomes
    assert outcome.standing is SyncStatus.DIVERGED
    assert "_" not in outcome.sibling
    reported = json.loads((world.devices[1].sessions / outcome.sibling / "metadata.json").read_text())
    assert (reported["session_id"], reported["parent_id"]) == (outcome.sibling, "one")
    world.check()


def test_a_fork_shares_the_blocks_of_its_beginning(world: World) -> None:
    world.say(world.devices[0], "one", 40, 500)
    push(world, 0)
    world.fork(world.devices[0], "one", "fork", 40)
    report = push(world, 0)
    assert standings(report)["fork"] is SyncStatus.PUSHED
    assert report.cost.bytes_up < 2500
    world.check()


def test_an_open_session_is_announced_and_not_touched(world: World) -> None:
    both_have(world)
    world.say(world.devices[0], "one", 1)
    push(world, 0)
    before = world.devices[1].files()
    engine = world.devices[1].engine(world.remote(), in_use=lambda ref: True)
    (outcome,) = engine.pull().outcomes
    assert (outcome.standing, world.devices[1].files()) == (SyncStatus.HELD_BACK, before)
    assert "open in a running agent" in outcome.note
    assert standings(pull(world, 1)) == {"one": SyncStatus.PULLED}


@pytest.mark.parametrize("here", ["as agreed", "gone on", "trashed there"])
def test_a_session_that_is_opened_while_the_remote_is_asked_is_not_touched(here: str, world: World) -> None:
    both_have(world)
    world.say(world.devices[0], "one", 1)
    if here == "trashed there":
        world.devices[0].trash("one")
    push(world, 0)
    if here == "gone on":
        world.say(world.devices[1], "one", 1)
    before = world.devices[1].files()
    asked = iter([False, True])
    engine = world.devices[1].engine(world.remote(), in_use=lambda ref: next(asked))
    (outcome,) = engine.pull().outcomes
    assert (outcome.standing, world.devices[1].files()) == (SyncStatus.HELD_BACK, before)
    assert "open in a running agent" in outcome.note
    assert list(asked) == []


def test_a_session_that_was_just_changed_is_left_alone(world: World) -> None:
    both_have(world)
    world.say(world.devices[0], "one", 1)
    push(world, 0)
    device = world.devices[1]
    layout = AmplifierSyncLayout(device.root / "home")
    engine = Engine(layout, world.remote(), state_dir=device.state, quiet=3600)
    assert standings(engine.pull()) == {"one": SyncStatus.HELD_BACK}


def test_event_logs_are_carried_only_if_asked_for(world: World) -> None:
    a, b = world.devices
    world.say(a, "one")
    a.log("one", "event")
    push(world, 0)
    assert [part.name for part in decode(*only_head(world)[:2]).parts] == [
        "metadata.json",
        "transcript.jsonl",
    ]
    a.rules = b.rules = Rules(logs=True)
    push(world, 0)
    pull(world, 1)
    assert b.files() == a.files()
    assert len(b.files()) == 3


def test_a_device_without_logs_leaves_those_of_others_in_the_head(world: World) -> None:
    a, b = world.devices
    a.rules = Rules(logs=True)
    world.say(a, "one")
    a.log("one", "event")
    push(world, 0)
    pull(world, 1)
    world.say(b, "one")
    push(world, 1)
    assert "events.jsonl" in [part.name for part in decode(*only_head(world)[:2]).parts]


def test_projects_are_included_and_excluded_by_patterns() -> None:
    rules = Rules(include=("-home-*", ""), exclude=("*-secret",))
    admitted = [name for name in ("-home-a", "-home-secret", "-tmp", None) if rules.admits(name)]
    assert admitted == ["-home-a", None]


def test_an_excluded_project_is_neither_pushed_nor_pulled(world: World) -> None:
    both_have(world)
    world.devices[0].rules = world.devices[1].rules = Rules(exclude=("-work",))
    world.say(world.devices[0], "two")
    assert push(world, 0).outcomes == pull(world, 1).outcomes == []


def test_a_trashed_session_goes_to_the_trash_elsewhere_and_is_not_pushed_again(world: World) -> None:
    both_have(world)
    world.devices[0].trash("one")
    assert standings(push(world, 0)) == {"one": SyncStatus.TRASHED}
    assert standings(pull(world, 1)) == {"one": SyncStatus.TRASHED}
    assert world.devices[1].names() == []
    assert len(list((world.devices[1].sessions / ".trash").glob("*/one/transcript.jsonl"))) == 1
    assert push(world, 1).outcomes == push(world, 0).outcomes == []


def test_a_session_restored_from_the_trash_is_restored_everywhere(world: World) -> None:
    both_have(world)
    world.devices[0].trash("one")
    push(world, 0)
    pull(world, 1)
    world.devices[1].restore()
    push(world, 1)
    pull(world, 0)
    assert world.devices[0].files() == world.devices[1].files() != {}


def test_a_missing_disk_deletes_nothing(world: World) -> None:
    both_have(world)
    world.devices[0].sessions.rename(world.devices[0].root / "elsewhere")
    assert push(world, 0).outcomes == []
    assert not decode(*only_head(world)[:2]).deleted


def test_many_sessions_that_vanish_at_once_are_held_back(world: World) -> None:
    for n in range(7):
        world.say(world.devices[0], f"s{n}")
    push(world, 0)
    for n in range(6):
        world.devices[0].trash(f"s{n}")
    report = push(world, 0)
    assert len(report.of(SyncStatus.HELD_BACK)) == 6
    assert not any(decode(*record[:2]).deleted for record in heads_of(world.remote()))


def test_a_lost_memory_of_the_remote_costs_time_and_nothing_else(world: World) -> None:
    both_have(world)
    for path in world.devices[0].state.glob("*.json"):
        path.unlink()
    world.say(world.devices[0], "one", 1)
    assert standings(push(world, 0)) == {"one": SyncStatus.BEHIND}, "the last change of the title is unknown"
    assert standings(pull(world, 0)) == {"one": SyncStatus.PULLED}
    assert standings(push(world, 0)) == {"one": SyncStatus.PUSHED}
    world.check()
    assert world.devices[0].names() == ["one"]


def test_a_head_of_a_newer_format_is_left_alone(world: World) -> None:
    both_have(world)
    change_head(world, lambda head: msgspec.structs.replace(head, v=2))
    world.say(world.devices[1], "one", 1)
    before = only_head(world)
    assert standings(push(world, 1)) == {"one": SyncStatus.FAILED}
    (outcome,) = pull(world, 1).outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert only_head(world) == before


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a/../../b", ".lock", "other.txt", "a\\b", ""])
def test_a_head_cannot_write_outside_the_session(world: World, name: str) -> None:
    world.say(world.devices[0], "one")
    push(world, 0)
    part = PartHead(name, "document", 0, 0, "00")
    change_head(world, lambda head: msgspec.structs.replace(head, parts=(*head.parts, part)))
    (outcome,) = pull(world, 1).outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert world.devices[1].names() == []


def test_torn_bytes_here_are_kept_when_the_remote_continues(world: World) -> None:
    both_have(world)
    path = world.devices[1].sessions / "one" / "transcript.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"half')
    world.say(world.devices[0], "one", 1)
    push(world, 0)
    pull(world, 1)
    assert world.devices[0].files() == world.devices[1].files()
    assert [kept.read_bytes() for kept in path.parent.glob("*.torn-*")] == [b'{"half']


def test_status_reports_the_state_of_each_session_and_changes_nothing(world: World) -> None:
    a, b = world.devices
    for name in ("step", "ahead", "behind", "both"):
        world.say(a, name)
    push(world, 0)
    pull(world, 1)
    for name in ("behind", "both"):
        world.say(b, name)
    push(world, 1)
    for name in ("ahead", "both", "never"):
        world.say(a, name)
    before = a.files(), [*heads_of(world.remote())]
    found = standings(a.engine(world.remote()).status())
    assert found == {
        "step": SyncStatus.IN_STEP,
        "ahead": SyncStatus.AHEAD,
        "behind": SyncStatus.BEHIND,
        "both": SyncStatus.DIVERGED,
        "never": SyncStatus.NEVER,
    }
    assert (a.files(), [*heads_of(world.remote())]) == before


def test_a_remote_that_fails_for_a_moment_is_asked_again_and_one_that_refuses_is_not() -> None:
    waits: list[float] = []
    chaos = ChaosRemote(MemoryServer().remote(), {1: "throttled", 2: "dropped", 3: "lost"})
    patient = RetryingRemote(chaos, sleep=waits.append)
    assert patient.put_block("s", "a", b"x") is False
    assert (patient.cost.requests, len(waits), waits[0]) == (4, 3, 0.0)
    with pytest.raises(RemoteError):
        patient.put_block("s", "a", bytes(1 << 20))
    assert patient.cost.requests == 5


def test_a_remote_that_never_answers_is_not_asked_for_every_session(world: World) -> None:
    for n in range(20):
        world.say(world.devices[0], f"s{n}")
    dead = ChaosRemote(world.remote(), dict.fromkeys(range(1, 1000), "dropped"))
    report = world.devices[0].engine(dead).push()
    assert (len(report.of(SyncStatus.FAILED)), len(report.of(SyncStatus.HELD_BACK))) == (3, 17)
    assert report.cost.requests == 12
    assert len(push(world, 0).of(SyncStatus.PUSHED)) == 20


def test_the_cost_of_two_hundred_turns_is_less_than_the_transcript(world: World) -> None:
    requests = up = 0
    for turn in range(200):
        world.say(world.devices[0], "one", 4, 50)
        if turn % 3 == 2 or turn == 199:
            report = push(world, 0)
            requests += report.cost.requests
            up += report.cost.bytes_up
    size = len(world.devices[0].files()["one/transcript.jsonl"])
    assert requests <= 200
    assert up <= 2.0 * size  # tiny turns: the heads weigh more than what they speak of


def test_a_pull_of_what_has_not_changed_costs_a_request_for_a_hundred_sessions(world: World) -> None:
    for n in range(250):
        world.say(world.devices[0], f"s{n}")
    push(world, 0)
    pull(world, 1)
    report = pull(world, 1)
    assert report.cost.requests <= 3
    assert {outcome.standing for outcome in report.outcomes} == {SyncStatus.IN_STEP}


# -- only some of them


def refs(world: World, *sessions: str) -> list[SessionRef]:
    layout = AmplifierSyncLayout(world.devices[0].root / "home")
    return [layout.place("-work", session) for session in sessions]


def test_only_the_sessions_that_are_asked_for_are_looked_at(world: World) -> None:
    for name in ("one", "two", "three"):
        world.say(world.devices[0], name)
    report = world.devices[0].engine(world.remote()).push(refs(world, "two"))
    assert standings(report) == {"two": SyncStatus.PUSHED}
    pull(world, 1)
    assert world.devices[1].names() == ["two"]


def test_a_session_that_is_asked_for_and_gone_was_deleted_and_no_other_was(world: World) -> None:
    names = [f"s{number}" for number in range(8)]
    for name in names:
        world.say(world.devices[0], name)
    push(world, 0)
    pull(world, 1)
    for name in names[1:]:
        world.take_back(world.devices[0].trash(name))
    report = world.devices[0].engine(world.remote()).push(refs(world, *names[2:], "never"))
    assert standings(report) == dict.fromkeys(names[2:], SyncStatus.TRASHED)
    pull(world, 1)
    assert world.devices[1].names() == names[:2]


def test_deletions_are_not_reported_where_the_folder_of_all_is_gone(world: World) -> None:
    world.say(world.devices[0], "one")
    push(world, 0)
    asked = refs(world, "one")
    world.devices[0].sessions.rename(world.devices[0].root / "unmounted")
    report = world.devices[0].engine(world.remote()).push(asked)
    assert report.outcomes == []
    assert not decode(only_head(world).name, only_head(world).data).deleted


def test_another_synchronisation_is_waited_for_as_long_as_is_said(world: World) -> None:
    device = world.devices[0]
    world.say(device, "one")
    engine = Engine(
        AmplifierSyncLayout(device.root / "home"), world.remote(), state_dir=device.state, patience=0
    )
    lock = States(str(device.state)).lock()
    with lock.held(note="sync"), pytest.raises(Locked):
        engine.push()
    lock.close()
    assert standings(engine.push()) == {"one": SyncStatus.PUSHED}


def bytes_of(world: World, at: int, session: str = "one") -> dict[str, bytes]:
    folder = world.devices[at].sessions / session
    return {name: (folder / name).read_bytes() for name in ("transcript.jsonl", "metadata.json")}


@pytest.mark.parametrize("meanwhile", ["left alone", "gone on", "rewound"])
def test_what_gives_way_a_second_time_with_the_same_bytes_is_kept_too(meanwhile: str, world: World) -> None:
    both_have(world)
    for device in world.devices:
        world.say(device, "one", 2)
    push(world, 0)
    before = bytes_of(world, 1)
    (outcome,) = pull(world, 1).outcomes
    first = outcome.sibling
    b = world.devices[1]
    if meanwhile == "gone on":
        world.say(b, first, 1)
    elif meanwhile == "rewound":
        world.shortened.add(first)
        world.take_back(b.rewind(first, 1))
    for name, data in before.items():  # the user brings back a copy
        (b.sessions / "one" / name).write_bytes(data)
    world.say(world.devices[0], "one", 1)
    push(world, 0)
    (again,) = [one for one in pull(world, 1).outcomes if one.session_id == "one"]
    assert again.standing is SyncStatus.DIVERGED
    assert (again.sibling == first) is (meanwhile != "rewound")
    lines = before["transcript.jsonl"].decode().splitlines()
    assert b.lines(again.sibling)[: len(lines)] == lines
    assert standings(pull(world, 1))["one"] is SyncStatus.IN_STEP
    if meanwhile != "rewound":
        assert len(b.names()) == 2
        world.check()
