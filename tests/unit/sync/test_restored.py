"""A remote that was put back to an earlier state, or emptied: nothing acknowledged vanishes, all goes there again."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode, encode, follows, is_older
from sessionary.sync.remote import heads_of
from sessionary.sync.report import Outcome, Report, SyncStatus
from tests.support.backed_up import BackedUp
from tests.support.chaos_remote import ChaosRemote
from tests.support.policy_world import BRAINSTORM, FEATURE, WORK, PolicyDevice, PolicyWorld
from tests.support.sync_world import Device, World, attempt


@pytest.fixture
def store() -> BackedUp:
    return BackedUp()


def three(tmp_path: Path, store: BackedUp) -> tuple[World, Device, Device, Device]:
    world = World(tmp_path, store.remote, 3)
    a, b, c = world.devices
    return world, a, b, c


def push(device: Device, store: BackedUp) -> Report:
    return device.engine(store.remote()).push(look=True)


def turn(device: Device, store: BackedUp) -> Report:
    """A push that asks for no list."""
    return device.engine(store.remote()).push()


def pull(device: Device, store: BackedUp) -> Report:
    return device.engine(store.remote()).pull()


def status(device: Device, store: BackedUp) -> Outcome:
    (outcome,) = device.engine(store.remote()).status().outcomes
    return outcome


def only(report: Report) -> Outcome:
    (outcome,) = report.outcomes
    return outcome


def everywhere(world: World, *devices: Device, lines: int = 2) -> None:
    """A session that the first of the devices has begun, and all have."""
    world.say(devices[0], "one", lines)
    devices[0].engine(world.remote()).push()
    for device in devices[1:]:
        device.engine(world.remote()).pull()


def test_what_was_acknowledged_before_a_restore_survives_the_push_of_another(
    tmp_path: Path, store: BackedUp
) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    store.back_up()
    world.say(b, "one", 3)
    push(b, store)
    kept = b.lines("one")[2:]
    store.put_back()
    for _ in range(3):  # as often as is needed to overtake the number that was there
        world.say(a, "one", 1)
        push(a, store)
    pull(b, store)
    assert kept == [line for name in b.names() for line in b.lines(name) if line in kept]
    world.check()


EDITS: dict[str, Callable[[World, Device], None]] = {
    "says": lambda world, device: world.say(device, "one", 1),
    "titles": lambda world, device: device.describe("one", title=device.name),
    "rewinds": lambda world, device: world.take_back(device.rewind("one", 1)),
    "nothing": lambda world, device: None,
}


@pytest.mark.parametrize("emptied", [False, True], ids=["restored", "emptied"])
@pytest.mark.parametrize("edit", EDITS)
def test_three_devices_in_every_order(edit: str, emptied: bool, tmp_path: Path) -> None:
    """One is behind, one has the newest, one has what is between; then each pushes or pulls first."""
    for at, order in enumerate(permutations(range(3))):
        for verbs in (pushes, pulls, pulls_and_pushes):
            store = BackedUp()
            world, a, b, c = three(tmp_path / f"{at}{verbs.__name__}", store)
            everywhere(world, a, b, c)
            if not emptied:
                store.back_up()
            world.say(b, "one", 2)
            push(b, store)
            pull(c, store)
            world.say(b, "one", 1)
            push(b, store)
            store.put_back()
            EDITS[edit](world, a)
            world.shortened.add("one")
            for number in order:
                verbs(world.devices[number], store)
            world.put_back = edit == "says"
            try:
                world.check()
            except AssertionError as error:
                raise AssertionError(f"{order} {verbs.__name__}: {error}") from error
            if edit == "nothing":
                assert [device.names() for device in world.devices] == [["one"]] * 3
                assert a.lines("one") == b.lines("one") == c.lines("one")
                assert len(a.lines("one")) == 5


def pushes(device: Device, store: BackedUp) -> None:
    push(device, store)


def pulls(device: Device, store: BackedUp) -> None:
    pull(device, store)


def pulls_and_pushes(device: Device, store: BackedUp) -> None:
    pull(device, store)
    push(device, store)


def test_what_three_devices_have_agreed_and_the_remote_has_lost_becomes_one_sibling(
    tmp_path: Path, store: BackedUp
) -> None:
    world, a, b, c = three(tmp_path, store)
    everywhere(world, a, b, c)
    store.back_up()
    world.say(b, "one", 2)
    push(b, store)
    pull(c, store)
    store.put_back()
    world.say(a, "one", 1)
    push(a, store)
    siblings = {only(pull(device, store)).sibling for device in (b, c)}
    assert len(siblings) == 1
    assert None not in siblings
    world.check()
    assert [len(device.names()) for device in world.devices] == [2, 2, 2]
    assert not list(tmp_path.rglob("*.conflict-*"))


def test_an_emptied_remote_is_reported_and_filled_again(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    before = only(pull(a, store))
    store.put_back()
    reported = status(a, store)
    assert (before.standing, reported.standing) == (SyncStatus.IN_STEP, SyncStatus.NEVER)
    assert "lost" in reported.note
    sent = only(push(a, store))
    assert (sent.standing, "again" in sent.note) == (SyncStatus.PUSHED, True)
    assert [only(push(device, store)).standing for device in (a, b)] == [SyncStatus.IN_STEP] * 2
    assert status(a, store).standing is SyncStatus.IN_STEP
    world.check()


def test_a_turn_fills_an_emptied_remote_without_a_list(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b, lines=3)
    store.put_back()
    world.say(a, "one", 1)
    assert only(turn(a, store)).standing is SyncStatus.PUSHED
    world.check()


def test_a_remote_that_was_put_back_is_reported_and_brought_up_again(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    store.back_up()
    world.say(a, "one", 3)
    push(a, store)
    store.put_back()
    reported = status(a, store)
    assert (reported.standing, "earlier state" in reported.note) == (SyncStatus.AHEAD, True)
    assert only(pull(a, store)).standing is SyncStatus.IN_STEP
    assert only(push(a, store)).standing is SyncStatus.PUSHED
    assert len(b.lines("one")) == 2
    assert only(pull(b, store)).standing is SyncStatus.PULLED
    assert b.lines("one") == a.lines("one")
    world.check()


def test_a_device_whose_state_the_remote_never_had_sees_that_both_continued(
    tmp_path: Path, store: BackedUp
) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    store.back_up()
    world.say(b, "one", 3)
    push(b, store)
    store.put_back()
    world.say(a, "one", 1)
    push(a, store)
    assert status(b, store).standing is SyncStatus.DIVERGED
    assert only(push(b, store)).standing is SyncStatus.DIVERGED
    world.check()


def test_a_rewind_is_kept_after_a_restore(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b, lines=4)
    store.back_up()
    world.take_back(a.rewind("one", 2))
    push(a, store)
    pull(b, store)
    store.put_back()
    for device in (b, a):
        pull(device, store)
        assert only(push(device, store)).standing in (SyncStatus.PUSHED, SyncStatus.IN_STEP)
    world.check()
    assert len(a.lines("one")) == 2


@pytest.mark.parametrize("emptied", [False, True])
def test_what_was_trashed_stays_so_after_a_restore(emptied: bool, tmp_path: Path, store: BackedUp) -> None:
    world, a, b, c = three(tmp_path, store)
    everywhere(world, a, b)
    if not emptied:
        store.back_up()
    world.take_back(a.trash("one"))
    push(a, store)
    store.put_back()
    reported = only(push(a, store))
    assert reported.standing is SyncStatus.TRASHED
    assert push(a, store).outcomes == []
    pull(c, store)
    assert c.names() == []
    assert only(pull(b, store)).standing is SyncStatus.TRASHED
    world.check()


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("emptied", [False, True])
def test_trashing_what_the_remote_has_lost_is_reported_as_it_is(
    emptied: bool, look: bool, tmp_path: Path, store: BackedUp
) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    if not emptied:
        store.back_up()
    world.say(a, "one", 1)
    push(a, store)
    store.put_back()
    world.take_back(a.trash("one"))
    reported = only(a.engine(store.remote()).push(look=look))
    assert (reported.standing, reported.note) == (SyncStatus.TRASHED, "")
    pull(a, store)
    assert a.names() == []
    world.settle()


def test_a_tombstone_takes_nothing_that_its_writer_had_not_seen(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    store.back_up()
    world.say(b, "one", 3)
    push(b, store)
    store.put_back()
    world.take_back(a.trash("one"))
    push(a, store)
    assert only(pull(b, store)).standing is SyncStatus.HELD_BACK
    assert len(b.lines("one")) == 5
    world.check()


def test_a_title_that_was_acknowledged_before_a_restore_is_kept_beside(
    tmp_path: Path, store: BackedUp
) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    store.back_up()
    b.describe("one", title="acknowledged")
    push(b, store)
    store.put_back()
    a.describe("one", title="another")
    push(a, store)
    pull(b, store)
    reported = [path.read_text() for path in b.sessions.glob("one/metadata.json*")]
    assert any("acknowledged" in text for text in reported)
    assert any("another" in text for text in reported)


@pytest.mark.parametrize("kind", [BRAINSTORM, WORK, FEATURE])
def test_other_kinds_of_sessions_lose_nothing_by_a_restore(kind: str, tmp_path: Path) -> None:
    for at, order in enumerate(permutations(range(3))):
        store = BackedUp()
        world = PolicyWorld(tmp_path / str(at), store.remote, 3, kinds=(kind,))
        a, b, _ = world.devices
        begin(world, a, kind)
        for device in world.devices:
            world.sync(device)
        store.back_up()
        go_on(world, b, kind)
        world.sync(b)
        world.sync(world.devices[2])
        store.put_back()
        go_on(world, a, kind)
        for number in order:
            world.sync(world.devices[number])
        world.check()


def begin(world: PolicyWorld, device: PolicyDevice, kind: str) -> None:
    if kind == WORK:
        device.begin("one")
    if kind == FEATURE:
        device.plan("one")
    go_on(world, device, kind)


def go_on(world: PolicyWorld, device: PolicyDevice, kind: str) -> None:
    if kind == BRAINSTORM:
        world.storm(device, "one")
    elif kind == WORK:
        world.drop(device, "one")
    else:
        world.log(device, "one")


def test_a_rewind_whose_head_does_not_say_from_where_is_none(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b, lines=4)
    a.rewind("one", 2)
    push(a, store)
    (record,) = heads_of(store.remote())
    head = decode(record.name, record.data)
    (past,) = head.history
    n, chain = past.tips["transcript.jsonl"]
    for tip in ((n - 1, chain), (n, "0" * 64)):
        another = msgspec.structs.replace(past, tips={"transcript.jsonl": tip})
        changed = msgspec.structs.replace(head, count=head.count + 1, history=(another,))
        (record,) = heads_of(store.remote())
        assert store.remote().swap_head(record.name, encode(changed), record.etag) is not None
        pull(b, store)
        assert len(b.lines("one")) == 4


def test_heads_know_what_led_to_them(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    heads = [decode(one.name, one.data) for one in heads_of(store.remote())]
    store.back_up()
    for device in (b, b, a):
        world.say(device, "one", 1)
        push(device, store)
        heads += [decode(one.name, one.data) for one in heads_of(store.remote())]
        pull(a, store)
    for at, one in enumerate(heads):
        for later in heads[at + 1 :]:
            assert (follows(later, one), follows(one, later)) == (True, False)
            assert (is_older(one, later), is_older(later, one)) == (True, False)
    store.put_back()
    world.say(b, "one", 1)
    push(b, store)


def test_heads_of_an_earlier_version_are_ordered_by_their_numbers(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, _ = three(tmp_path, store)
    everywhere(world, a, b)
    (record,) = heads_of(store.remote())
    head = msgspec.structs.replace(decode(record.name, record.data), counts={})
    later = msgspec.structs.replace(head, count=head.count + 1)
    assert (follows(later, head), follows(head, later)) == (True, False)
    assert (is_older(head, later), is_older(later, head)) == (True, False)


@pytest.mark.parametrize("known", [False, True], ids=["first push", "later push"])
def test_no_device_gives_a_number_twice_though_an_answer_was_lost_with_what_it_acknowledged(
    known: bool, tmp_path: Path, store: BackedUp
) -> None:
    """A push is carried out, and dies; another device sees it; then the store is put back, and the push is repeated."""
    world, a, b, _ = three(tmp_path, store)
    if known:
        everywhere(world, a, b)
    store.back_up()
    world.say(a, "one", 2)
    swap = 2 if known else 3
    remote = ChaosRemote(store.remote(), {swap: "kill after"})
    assert not attempt(a, remote, Engine.push)
    assert remote.log[-1].startswith("swap_head")
    pull(b, store)
    assert len(b.lines("one")) == len(a.lines("one"))
    world.say(b, "one", 1)
    push(b, store)
    pull(b, store)
    store.put_back()
    world.say(a, "one", 1)
    push(a, store)
    kept = b.lines("one")
    world.put_back = True
    world.check()
    reported = [line for name in b.names() for line in b.lines(name)]
    assert set(kept) <= set(reported)


def test_a_sibling_that_has_come_already_is_not_made_twice(tmp_path: Path, store: BackedUp) -> None:
    world, a, b, c = three(tmp_path, store)
    everywhere(world, a, b, c)
    store.back_up()
    world.say(b, "one", 2)
    push(b, store)
    pull(c, store)
    store.put_back()
    world.say(a, "one", 1)
    push(a, store)
    sibling = only(pull(b, store)).sibling
    push(b, store)
    opened = c.engine(store.remote())
    opened._in_use = lambda ref: ref.session_id == "one"
    opened.pull()
    assert c.names() == sorted([str(sibling), "one"])
    outcome = next(one for one in pull(c, store).outcomes if one.session_id == "one")
    assert (outcome.standing, outcome.sibling) == (SyncStatus.DIVERGED, sibling)
    assert c.files() == b.files()
    assert list(c.sessions.glob(".trash/*/one"))
    world.check()
