"""Histories are one set of lines on both sides, bundles one set of files; owners and lists are respected."""

import json
import os
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.disk.spooled_file import IN_MEMORY
from sessionary.errors import Conflict, Corrupt, Invalid
from sessionary.layouts import ledger_owner
from sessionary.layouts.own_names import own_name
from sessionary.layouts.sync import Policy, Rule
from sessionary.mailbox.mailbox import Mailbox
from sessionary.sync.bundles import Item, item, names_of, pack_items, unpack_items
from sessionary.sync.diff import compare
from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode
from sessionary.sync.install import Placer
from sessionary.sync.merging import Merged, Side, merge
from sessionary.sync.remote import heads_of
from sessionary.sync.report import Beside, SyncStatus
from sessionary.sync.rules import Rules, rule_of
from sessionary.testing.wrapper import UNSYNCED
from tests.messages import echo, put
from tests.support.chaos_remote import ChaosRemote
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import EPOCH, FEATURE, LIST, PROJECT, WORK, PolicyWorld, recipient

UNION = Rule(Policy.UNION, "t")
LEDGER = Rule(Policy.LEDGER, "t", "k")


def line(time: int | None, word: str, key: str | None = None) -> bytes:
    reported: dict[str, Any] = {"w": word}
    reported |= {} if time is None else {"t": f"2025-01-31T12:00:{time:02}Z"}
    reported |= {} if key is None else {"k": key}
    return json.dumps(reported).encode()


lines = st.lists(
    st.builds(line, st.one_of(st.none(), st.integers(0, 3)), st.sampled_from("abcd"), st.sampled_from("kl")),
    max_size=6,
)


@given(lines, lines)
def test_both_sides_come_to_the_same_lines(mine: list[bytes], theirs: list[bytes]) -> None:
    for rule in (UNION, LEDGER):
        here = merge(rule, [], Side("a", mine), Side("b", theirs))
        there = merge(rule, [], Side("b", theirs), Side("a", mine))
        assert here == there


@given(lines, lines)
def test_bringing_together_twice_does_no_more_than_once(mine: list[bytes], theirs: list[bytes]) -> None:
    first = merge(UNION, [], Side("a", mine), Side("b", theirs)).lines
    again = merge(UNION, [], Side("a", first), Side("b", theirs)).lines
    assert sorted(again) == sorted(first)


@given(lines, lines)
def test_no_line_is_lost_and_none_is_there_more_often_than_a_side_has_it(
    mine: list[bytes], theirs: list[bytes]
) -> None:
    merged = merge(UNION, [], Side("a", mine), Side("b", theirs)).lines
    for one in {*mine, *theirs, *merged}:
        assert merged.count(one) == max(mine.count(one), theirs.count(one))


def test_lines_of_one_moment_are_ordered_by_device_and_place() -> None:
    mine, theirs = [line(1, "a2"), line(1, "a1")], [line(1, "b"), line(0, "b0")]
    merged = merge(UNION, [], Side("a", mine), Side("b", theirs))
    assert merged.lines == [line(0, "b0"), line(1, "a2"), line(1, "a1"), line(1, "b")]


def test_a_line_without_a_time_stays_behind_the_one_before_it() -> None:
    mine = [line(2, "a"), line(None, "of a"), b"no json"]
    merged = merge(UNION, [], Side("x", mine), Side("y", [line(1, "b"), line(3, "c")]))
    assert merged.lines == [line(1, "b"), line(2, "a"), line(None, "of a"), b"no json", line(3, "c")]


def test_the_earlier_of_two_lines_with_one_key_is_kept_and_the_other_reported() -> None:
    mine, theirs = [line(2, "mine", "m1"), line(3, "x", "m2")], [line(1, "theirs", "m1")]
    assert merge(LEDGER, [], Side("a", mine), Side("b", theirs)) == Merged(
        [line(1, "theirs", "m1"), line(3, "x", "m2")], [line(2, "mine", "m1")]
    )
    behind = merge(LEDGER, [line(0, "old", "m1")], Side("a", []), Side("b", theirs))
    assert behind == Merged([], theirs)


names = st.sampled_from(["breadcrumbs/0/a.json", "breadcrumbs/1/a.json", "breadcrumbs/0/b.json", "x"])
items = st.sets(st.builds(Item, names, st.binary(max_size=9)), max_size=6)


@given(items)
def test_a_bundle_comes_back_as_the_files_that_it_was_made_of(files: set[Item]) -> None:
    packed = b"".join(pack_items(files))
    assert set(unpack_items([packed[:7], packed[7:]])) == files
    assert b"".join(pack_items(sorted(files, reverse=True))) == packed


@given(items)
def test_no_two_files_of_a_bundle_share_a_name_and_each_is_known_again(files: set[Item]) -> None:
    placed = names_of(files)
    assert set(placed.values()) == files
    assert {item(name, one.data) for name, one in placed.items()} == files


def test_a_bundle_to_the_byte() -> None:
    packed = b"".join(
        pack_items([Item("b/1/x", b'"\n\x01\xc3\xa9'), Item("a/0/y", b"\xff"), Item("z/w", b"")])
    )
    assert packed == (
        b'{"name":"z/w","text":""}\n'
        b'{"name":"b/1/x","text":"\\"\\n\\u0001\xc3\xa9"}\n'
        b'{"name":"a/0/y","base64":"/w=="}\n'
    )
    assert own_name("a/0/y.json", b"") == "a/0/y~e3b0c442.json"


@pytest.mark.parametrize(
    "bad", [b"x\n", b'{"name":1,"text":""}\n', b'{"name":"a"}\n', b'{"name":"a","text":""}', b"[]\n"]
)
def test_what_is_not_a_bundle_is_refused(bad: bytes) -> None:
    with pytest.raises(Corrupt):
        list(unpack_items([bad]))


# -- owners


def test_a_mailbox_that_another_device_consumes_refuses_until_it_is_taken_over(tmp_path: Path) -> None:
    put(tmp_path, "a")
    ledger = str(tmp_path / "log.jsonl")
    ledger_owner.name_owner(ledger, "laptop", here=False)
    with pytest.raises(Conflict, match="laptop") as refused:
        Mailbox(tmp_path).consume(echo)
    assert "--take-over" in (refused.value.hint or "")
    assert Mailbox(tmp_path, "audit").consume(echo).applied == 1, "each consumer has a ledger of its own"
    assert Mailbox(tmp_path).consume(echo, take_over=True).applied == 1
    put(tmp_path, "b", number=2)
    assert Mailbox(tmp_path).consume(echo).applied == 1


def test_a_take_over_stays_until_the_head_names_this_device(tmp_path: Path) -> None:
    ledger = str(tmp_path / "log.jsonl")
    assert ledger_owner.take_over(ledger) is False
    ledger_owner.name_owner(ledger, "laptop", here=False)
    assert ledger_owner.take_over(ledger) is True
    ledger_owner.name_owner(ledger, "laptop", here=False)
    assert ledger_owner.owner_of(ledger) == ledger_owner.Owner("laptop", True)
    ledger_owner.name_owner(ledger, "me", here=True)
    assert ledger_owner.owner_of(ledger) is None
    ledger_owner.name_owner(ledger, "desktop", here=False)
    with pytest.raises(Conflict, match="desktop"):
        ledger_owner.check(ledger)


def test_a_file_that_names_an_unknown_owner_is_taken_for_a_foreign_one(tmp_path: Path) -> None:
    (tmp_path / ".log.jsonl.owner").write_bytes(b"\0\0")
    with pytest.raises(Conflict):
        ledger_owner.check(str(tmp_path / "log.jsonl"))


# -- through the engine


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


def world_of(kind: str, tmp_path: Path, server: MemoryServer) -> PolicyWorld:
    return PolicyWorld(tmp_path, server.remote, kinds=(kind,))


def push(world: PolicyWorld, at: int) -> Any:
    (engine,) = world.devices[at].engines(world.remote())
    return engine.push()


def pull(world: PolicyWorld, at: int) -> Any:
    (engine,) = world.devices[at].engines(world.remote())
    return engine.pull()


def test_what_was_applied_twice_is_reported_and_kept(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    a, b = world.devices
    a.begin("one")
    world.drop(a, "one")
    push(world, 0)
    pull(world, 1)
    a.apply("one")
    b.apply("one")
    push(world, 1)
    (outcome,) = pull(world, 0).outcomes
    assert outcome.standing is SyncStatus.PULLED
    assert "1 messages were applied on two devices" in outcome.note
    (beside,) = a.work_folder("one").glob("log.jsonl.conflict-*")
    reported = [
        json.loads(text)["result"]
        for text in (beside.read_text(), (a.work_folder("one") / "log.jsonl").read_text())
    ]
    assert sorted(reported) == ["device0", "device1"]


def test_a_thousand_messages_do_not_make_the_head_grow(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    a = world.devices[0]
    a.begin("one")
    for _ in range(300):
        world.drop(a, "one")
    push(world, 0)
    world.drop(a, "one", "20250131_120001")
    report = push(world, 0)
    (record,) = heads_of(world.remote())
    assert len(record.data) < 2000
    assert (report.cost.requests, report.cost.bytes_up < 4000) == (2, True)


def test_a_message_that_is_still_being_written_is_not_sent(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    a = world.devices[0]
    a.begin("one")
    world.drop(a, "one")
    half = a.work_folder("one") / "breadcrumbs" / "0" / "20250131_130000_000000.json"
    half.write_text('{"breadcrumb_id": "half')
    push(world, 0)
    pull(world, 1)
    assert world.devices[1].crumbs("one") == ["word1"]
    assert not list(world.devices[1].work.rglob(half.name))


@pytest.mark.parametrize(("keep", "text"), [("mine", "# here\n"), ("theirs", "# there\n")])
def test_a_user_decides_about_the_list(keep: str, text: str, tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a, b = world.devices
    (a.features / LIST).write_text("active_features: []\n")
    push(world, 0)
    pull(world, 1)
    (a.features / LIST).write_text("# here\n")
    (b.features / LIST).write_text("# there\n")
    push(world, 1)
    (reported,) = pull(world, 0).outcomes
    assert (reported.standing, reported.session_id) == (SyncStatus.HELD_BACK, LIST)
    assert "merge both versions" in reported.note
    (engine,) = a.engines(world.remote())
    (held,) = engine.status().outcomes
    assert (held.standing, held.note) == (SyncStatus.HELD_BACK, reported.note)
    (ref,) = engine.layout.discover()
    engine.resolve(ref, keep)
    pull(world, 1)
    assert [(device.features / LIST).read_text() for device in (a, b)] == [text, text]
    with pytest.raises(Invalid):
        engine.resolve(ref, keep)


def test_both_lists_wait_for_a_user_though_none_was_ever_agreed_on(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a, b = world.devices
    (a.features / LIST).write_text("# here\n")
    (b.features / LIST).write_text("# there\n")
    push(world, 1)
    (engine,) = a.engines(world.remote())
    for report in (engine.status(), engine.awaiting()):
        (reported,) = report.outcomes
        assert reported.standing is SyncStatus.HELD_BACK
        assert reported.beside == (Beside(LIST, str(a.features / LIST), None),)
    engine.pull()
    for report in (engine.status(), engine.awaiting()):
        ((_, _, other),) = report.outcomes[0].beside
        assert other is not None
        assert Path(other).read_text() == "# there\n"
    (engine_of_b,) = b.engines(world.remote())
    assert engine_of_b.awaiting().outcomes == []
    (a.features / LIST).write_text("# there\n")
    assert engine.awaiting().outcomes == [], "a person has made them alike"
    assert engine.awaiting().cost.requests == 1


@pytest.mark.parametrize("verb", ["status", "awaiting"])
def test_a_long_list_is_compared_on_a_machine_that_remembers_nothing(
    tmp_path: Path, server: MemoryServer, verb: str
) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a, b = world.devices
    (b.features / LIST).write_text(f"# {random.Random(1).randbytes(IN_MEMORY + 1).hex()}\n")
    push(world, 1)
    (a.features / LIST).write_text("# here\n")
    (engine,) = a.engines(world.remote())
    assert not os.path.exists(engine.states.folder)
    (reported,) = getattr(engine, verb)().outcomes
    assert reported.standing is SyncStatus.HELD_BACK
    assert reported.beside == (Beside(LIST, str(a.features / LIST), None),)


def test_what_waits_is_not_known_while_the_remote_does_not_answer(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a = world.devices[0]
    a.plan("f-2025-01-31")
    (a.features / LIST).write_text("# here\n")
    (engine,) = a.engines(
        ChaosRemote(server.remote(), fate=random.Random(1), chance=1.0, faults=("throttled",))
    )
    (reported,) = engine.awaiting().outcomes
    assert (reported.session_id, reported.standing) == (LIST, SyncStatus.FAILED)


def test_two_devices_bring_one_session_to_one_place_at_once(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    world.devices[0].begin("one")
    world.drop(world.devices[0], "one")
    push(world, 0)
    (record,) = heads_of(world.remote())
    head = decode(record.name, record.data)
    layout = recipient(WORK, world.devices[1].project)
    ref = layout.place(PROJECT, "one")
    found = compare(UNSYNCED, world.remote(), {}, None, head, Rules(), rule_of(layout))
    engine = Engine(layout, world.remote(), state_dir=tmp_path / "state", fs=UNSYNCED)
    placer = Placer(engine._context)
    staged = [placer.stage(record.name, ref, head, found, {}, device) for device in ("x", "y", "x")]
    assert staged[0] == staged[2] != staged[1]
    for one in staged[:2]:
        assert len([path for path in Path(one).rglob("*") if path.is_file()]) == 2, (
            "neither took from the other"
        )
    placer.enter(staged[1], ref)
    placer.enter(staged[0], ref)
    assert world.devices[1].crumbs("one") == ["word1"]
    assert not list(world.devices[1].work.glob(".pull-*"))


@pytest.mark.parametrize("ahead", [True, False])
def test_a_time_far_in_the_future_does_not_hold_a_session_back_for_ever(
    ahead: bool, tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(WORK, tmp_path, server)
    a, b = world.devices
    a.begin("one")
    push(world, 0)
    pull(world, 1)
    a.tell("one", EPOCH + timedelta(seconds=1), purpose="new")
    push(world, 0)
    path, now = b.work / "one" / "session.json", datetime.now(UTC)
    if ahead:
        os.utime(path, (now.timestamp() + 7200,) * 2)
    for later, standing in ((1, SyncStatus.HELD_BACK), (40, SyncStatus.PULLED)):
        engine = Engine(
            recipient(WORK, b.project),
            world.remote(),
            state_dir=b.root / "state" / WORK,
            quiet=30,
            now=partial(datetime.fromtimestamp, now.timestamp() + later, UTC),
        )
        assert [outcome.standing for outcome in engine.pull().outcomes] == [standing]


def test_a_list_that_is_gone_is_not_taken_for_one_that_was_removed(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a, b = world.devices
    (a.features / LIST).write_text("active_features: []\n")
    push(world, 0)
    pull(world, 1)
    (a.features / LIST).unlink()
    push(world, 0)
    pull(world, 1)
    assert (b.features / LIST).exists()


def test_plans_of_both_devices_are_kept(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(FEATURE, tmp_path, server)
    a, b = world.devices
    a.plan("f-2025-01-31")
    push(world, 0)
    pull(world, 1)
    for device, word in ((a, "here"), (b, "there")):
        (device.features / "f-2025-01-31" / "implementation-plan.yaml").write_text(word)
    push(world, 1)
    (outcome,) = pull(world, 0).outcomes
    folder = a.features / "f-2025-01-31"
    (beside,) = folder.glob("implementation-plan.yaml.conflict-*")
    assert {beside.read_text(), (folder / "implementation-plan.yaml").read_text()} == {"here", "there"}
    assert "implementation-plan.yaml was changed on two devices" in outcome.note


def test_a_project_takes_only_its_own_sessions(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    world.devices[0].begin("one")
    push(world, 0)
    (engine,) = world.devices[1].engines(world.remote())
    engine.layout._project = "other"  # type: ignore[attr-defined]
    assert engine.pull().outcomes == []


def test_a_large_document_is_brought_together_by_what_both_had_last(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(WORK, tmp_path, server)
    a, b = world.devices
    large = {f"k{n}": random.Random(n).randbytes(300).hex() for n in range(40)}
    a.begin("one")
    a.tell("one", metadata=large, purpose="old")
    push(world, 0)
    pull(world, 1)
    a.tell("one", EPOCH + timedelta(seconds=1), purpose="new")
    b.tell("one", EPOCH + timedelta(seconds=2), status="paused")
    push(world, 1)
    pull(world, 0)
    push(world, 0)
    pull(world, 1)
    for device in world.devices:
        reported = json.loads((device.work / "one" / "session.json").read_text())
        assert (reported["purpose"], reported["status"], reported["metadata"]) == ("new", "paused", large)


def test_without_a_synced_version_the_later_document_leads_and_the_other_is_kept(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = world_of(WORK, tmp_path, server)
    a, b = world.devices
    a.begin("one")
    push(world, 0)
    pull(world, 1)
    a.tell("one", EPOCH + timedelta(seconds=1), purpose="earlier")
    b.tell("one", EPOCH + timedelta(seconds=2), purpose="later")
    push(world, 1)
    for path in (a.root / "state" / WORK).glob("*.state.json"):
        path.unlink()
    pull(world, 0)
    assert json.loads((a.work / "one" / "session.json").read_text())["purpose"] == "later"
    (beside,) = (a.work / "one").glob("session.json.conflict-*")
    assert json.loads(beside.read_text())["purpose"] == "earlier"


def test_what_is_where_a_session_belongs_is_kept(tmp_path: Path, server: MemoryServer) -> None:
    world = world_of(WORK, tmp_path, server)
    a, b = world.devices
    a.begin("one")
    world.drop(a, "one")
    world.apply(a, "one")
    push(world, 0)
    left = b.work / "one" / "breadcrumbs" / "0" / "20250131_120000_000000.json"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({"breadcrumb_id": "left", "prompt": "left"}))
    (b.work / "one" / "log.jsonl").write_text("{}\n")
    pull(world, 1)
    assert sorted(b.crumbs("one")) == ["left", "word1"]
    assert b.ledger("one") == ["word1"]
    assert [path.read_text() for path in (b.work / "one").glob("log.jsonl.conflict-*")] == ["{}\n"]
    with pytest.raises(Conflict):
        ledger_owner.check(str(b.work / "one" / "log.jsonl"))
