"""Damage that must not travel: what is held back where, who sees it, and what settles it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Invalid
from sessionary.layouts.amplifier.repairing import repair
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.redaction import Redaction
from sessionary.sync.engine import Engine
from sessionary.sync.heads import Head, decode, encode
from sessionary.sync.remote import heads_of, stats_of
from sessionary.sync.report import Outcome, Report, SyncStatus, Where
from sessionary.sync.rules import Rules
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import EVENTS, METADATA, TRANSCRIPT, Device, World

ID = "one"
BACKUP = TRANSCRIPT + ".backup"


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def world(tmp_path: Path, server: MemoryServer) -> World:
    """Two devices with one session of six lines, in step."""
    return begun(World(tmp_path, server.remote))


def begun(world: World) -> World:
    world.say(world.devices[0], ID, 6)
    push(world, 0)
    for at in range(1, len(world.devices)):
        pull(world, at)
    return world


def engine(world: World, at: int) -> Engine:
    return world.devices[at].engine(world.remote())


def push(world: World, at: int) -> Report:
    return engine(world, at).push()


def pull(world: World, at: int) -> Report:
    return engine(world, at).pull()


def status(world: World, at: int) -> Report:
    return engine(world, at).status()


def resolve(world: World, at: int, keep: str) -> Outcome:
    found = engine(world, at)
    (ref,) = [ref for ref in found.layout.discover() if ref.session_id == ID]
    (outcome,) = found.resolve(ref, keep).outcomes
    return outcome


def only(report: Report) -> Outcome:
    (outcome,) = report.outcomes
    return outcome


def head_of(world: World) -> Head:
    (record,) = heads_of(world.remote())
    return decode(record.name, record.data)


def part_of(world: World, name: str = TRANSCRIPT) -> Any:
    return next(part for part in head_of(world).parts if part.name == name)


def path(device: Device, name: str = TRANSCRIPT) -> Path:
    return device.sessions / ID / name


def replace(target: Path, data: bytes) -> None:
    """As most writers do it: another file takes the name."""
    new = target.with_name(".new")
    new.write_bytes(data)
    os.replace(new, target)


# -- ways to damage a file; each leaves it with less than it had


def emptied(target: Path) -> None:
    os.truncate(target, 0)


def emptied_with_backup(target: Path) -> None:
    target.with_name(target.name + ".backup").write_bytes(target.read_bytes())
    os.truncate(target, 0)


def flipped(target: Path) -> None:
    """One bit of the middle of the file: the brace that begins a record."""
    data = bytearray(target.read_bytes())
    at = data.find(b"\n{", len(data) // 2) + 1
    data[at] ^= 0x80
    target.write_bytes(bytes(data))


def zeroed(target: Path) -> None:
    """A block of zeros in the middle, as some file systems leave after a power cut."""
    data = target.read_bytes()
    middle = len(data) // 2
    target.write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])


def torn(target: Path) -> None:
    """Cut off within a line, some lines before the end."""
    os.truncate(target, target.stat().st_size // 2 + 10)


def cut_at_last_newline(target: Path) -> None:
    """One byte too short: the last record is whole, and its line is not ended."""
    os.truncate(target, target.stat().st_size - 1)


WHOLE_LINES = [emptied, emptied_with_backup, flipped, zeroed]
"""Damage that shows in whole lines, and so on the remote: what stands behind the last newline is never sent."""

DAMAGE = [*WHOLE_LINES, torn, cut_at_last_newline]


@pytest.fixture(params=DAMAGE, ids=lambda damage: damage.__name__)
def damage(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    found: Callable[[Path], None] = request.param
    return found


# -- a push


def test_a_damaged_conversation_is_held_back_and_the_good_one_stays_everywhere(
    world: World, damage: Callable[[Path], None]
) -> None:
    a, b = world.devices
    good, agreed = path(a).read_bytes(), part_of(world)
    damage(path(a))
    bad = path(a).read_bytes()
    pushed = only(push(world, 0))
    assert (pushed.standing, [hold.file for hold in pushed.held]) == (SyncStatus.HELD_BACK, [TRANSCRIPT])
    assert pushed.held[0].where is Where.HERE
    assert pushed.held[0].why in pushed.note
    assert part_of(world) == agreed
    pull(world, 1)
    assert path(b).read_bytes() == good
    pull(world, 0)
    assert path(a).read_bytes() == bad


def test_the_other_files_of_a_session_go(world: World, damage: Callable[[Path], None]) -> None:
    a, b = world.devices
    damage(path(a))
    reported = json.loads(path(a, METADATA).read_text())
    path(a, METADATA).write_text(json.dumps({**reported, "name": "a new title"}))
    outcome = only(push(world, 0))
    assert outcome.standing is SyncStatus.HELD_BACK
    assert "the rest was sent" in outcome.note
    pull(world, 1)
    assert json.loads(path(b, METADATA).read_text())["name"] == "a new title"


def test_a_session_in_step_is_not_reported(world: World, damage: Callable[[Path], None]) -> None:
    damage(path(world.devices[0]))
    push(world, 0)
    for report in (push(world, 0), pull(world, 0), status(world, 0)):
        outcome = only(report)
        assert (outcome.standing, [hold.where for hold in outcome.held]) == (
            SyncStatus.HELD_BACK,
            [Where.HERE],
        )
    for report in (pull(world, 1), push(world, 1), status(world, 1), pull(world, 1)):
        outcome = only(report)
        assert [hold.where for hold in outcome.held] == [Where.ELSEWHERE]
        assert outcome.held[0].why in outcome.note
        assert outcome.standing in (SyncStatus.HELD_BACK, SyncStatus.PULLED)
    assert only(pull(world, 1)).standing is SyncStatus.HELD_BACK


def test_a_pull_or_status_before_any_push_reports_it_too(world: World) -> None:
    emptied_with_backup(path(world.devices[0]))
    for report in (pull(world, 0), status(world, 0)):
        assert only(report).standing is SyncStatus.HELD_BACK


def test_the_device_with_the_good_version_continues(world: World) -> None:
    a, b = world.devices
    emptied(path(a))
    push(world, 0)
    pull(world, 1)
    world.say(b, ID, 2)
    assert only(push(world, 1)).standing is SyncStatus.PUSHED
    assert part_of(world).size == path(b).stat().st_size
    assert only(pull(world, 0)).standing is SyncStatus.HELD_BACK
    assert path(a).read_bytes() == b""
    assert resolve(world, 0, "theirs").standing in (SyncStatus.PULLED, SyncStatus.PUSHED)
    assert path(a).read_bytes() == path(b).read_bytes()
    world.check()


def test_growth_travels_whatever_is_wrong_with_it(world: World) -> None:
    a, b = world.devices
    with open(path(a), "ab") as file:
        file.write(b'{"role": "user", "content": "cut o\n{"role": "user", "content": "and on"}\n')
    assert only(push(world, 0)).standing is SyncStatus.PUSHED
    assert only(pull(world, 1)).standing is SyncStatus.PULLED
    assert path(a).read_bytes() == path(b).read_bytes()


def test_damage_that_all_have_holds_nothing_back(world: World) -> None:
    a, b = world.devices
    test_growth_travels_whatever_is_wrong_with_it(world)
    lines = path(a).read_bytes().splitlines(keepends=True)
    replace(path(a), b"".join(lines[:2] + lines[3:]))
    assert only(push(world, 0)).standing is SyncStatus.PUSHED
    assert only(pull(world, 1)).standing is SyncStatus.PULLED
    assert path(a).read_bytes() == path(b).read_bytes()


def test_a_torn_last_line_of_a_longer_conversation_holds_nothing_back(world: World) -> None:
    a, b = world.devices
    world.say(a, ID)
    whole = path(a).read_bytes()
    with open(path(a), "ab") as file:
        file.write(b'{"role": "us')
    assert only(push(world, 0)).standing is SyncStatus.PUSHED
    pull(world, 1)
    assert path(b).read_bytes() == whole


@pytest.mark.parametrize("keep", [0, 2])
def test_a_healthy_rewind_goes_through_and_is_reported_on_both_with_the_way_back(
    world: World, keep: int
) -> None:
    a, b = world.devices
    taken = world.devices[0].lines(ID)[keep:]
    store = SessionStore(a.sessions)
    store.save(ID, [json.loads(line) for line in a.lines(ID)[:keep]], {"session_id": ID})
    assert path(a).stat().st_size
    world.take_back(taken)
    pushed, pulled = only(push(world, 0)), only(pull(world, 1))
    assert (pushed.standing, pulled.standing) == (SyncStatus.PUSHED, SyncStatus.PULLED)
    for outcome in (pushed, pulled):
        assert "rewound" in outcome.note
        assert outcome.undo is not None
        assert (outcome.undo.file, outcome.undo.generation) == (TRANSCRIPT, 0)
    assert head_of(world).history[-1].gen == 0
    assert path(a).read_bytes() == path(b).read_bytes()


def test_a_compaction_goes_through(world: World) -> None:
    a, b = world.devices
    lines = path(a).read_bytes().splitlines(keepends=True)
    replace(path(a), b'{"role": "user", "content": "a summary"}\n' + lines[-1])
    pushed = only(push(world, 0))
    assert (pushed.standing, pushed.held) == (SyncStatus.PUSHED, ())
    assert pushed.undo is not None
    pull(world, 1)
    assert path(a).read_bytes() == path(b).read_bytes()


@pytest.mark.parametrize("damage", [emptied, torn, zeroed], ids=lambda damage: damage.__name__)
def test_a_damaged_document_is_held_back_and_the_conversation_goes(
    world: World, damage: Callable[[Path], None]
) -> None:
    a, b = world.devices
    good = path(a, METADATA).read_bytes()
    world.say(a, ID)
    replace(path(a, METADATA), good)
    damage(path(a, METADATA))
    outcome = only(push(world, 0))
    assert (outcome.standing, [hold.file for hold in outcome.held]) == (SyncStatus.HELD_BACK, [METADATA])
    pull(world, 1)
    assert path(b, METADATA).read_bytes() == good
    assert path(b).read_bytes() == path(a).read_bytes()


def test_text_where_zeros_stand_now_is_held_back_too(world: World) -> None:
    a, b = world.devices
    for device in world.devices:
        (device.sessions / ID / "config.md").write_text("# configuration\n" * 20)
    push(world, 0)
    pull(world, 1)
    zeroed(path(a, "config.md"))
    assert [hold.file for hold in only(push(world, 0)).held] == ["config.md"]
    replace(path(a, "config.md"), b"# another one\n")
    assert only(push(world, 0)).standing is SyncStatus.PUSHED
    pull(world, 1)
    assert path(b, "config.md").read_bytes() == b"# another one\n"


def test_a_session_that_was_never_sent_goes_as_it_is(tmp_path: Path, server: MemoryServer) -> None:
    world = World(tmp_path, server.remote)
    world.say(world.devices[0], ID, 6)
    flipped(path(world.devices[0]))
    assert only(push(world, 0)).standing is SyncStatus.PUSHED
    assert only(pull(world, 1)).standing is SyncStatus.PULLED


def test_what_is_held_back_is_compared_once(world: World) -> None:
    """A program that pushes after each turn does not fetch the agreed version each time."""
    device = world.devices[0]
    flipped(path(device))
    hour = 3600
    os.utime(path(device), (path(device).stat().st_mtime - hour,) * 2)

    def pushed() -> Report:
        return device.engine(world.remote(), now=lambda: device.now().replace(year=2100)).push()

    assert pushed().cost.requests > 0
    again = pushed()
    assert (only(again).standing, again.cost.requests) == (SyncStatus.HELD_BACK, 0)


# -- a pull


def spoil_remote(world: World, damage: Callable[[Path], None], name: str = TRANSCRIPT) -> None:
    """Put a damaged version there, as a client does that does not look: its user says that it stands."""
    damage(path(world.devices[0], name))
    resolve(world, 0, "mine")
    (record,) = heads_of(world.remote())
    head = json.loads(record.data)
    head.pop("accepted")
    assert world.remote().swap_head(record.name, json.dumps(head).encode(), record.etag)


@pytest.mark.parametrize("damage", WHOLE_LINES, ids=lambda damage: damage.__name__)
def test_a_damaged_version_that_comes_in_is_refused_and_laid_beside(
    world: World, damage: Callable[[Path], None]
) -> None:
    b = world.devices[1]
    good = path(b).read_bytes()
    spoil_remote(world, damage)
    outcome = only(pull(world, 1))
    assert (outcome.standing, [hold.where for hold in outcome.held]) == (
        SyncStatus.HELD_BACK,
        [Where.REMOTE],
    )
    assert path(b).read_bytes() == good
    bad = path(world.devices[0]).read_bytes()
    sent = bad[: bad.rfind(b"\n") + 1]
    assert outcome.held[0].other is not None
    assert Path(outcome.held[0].other).read_bytes() == sent
    assert Path(outcome.held[0].other).name.startswith(f"{TRANSCRIPT}.conflict-")


def test_a_refused_version_is_reported_until_it_is_settled_and_written_once(world: World) -> None:
    b = world.devices[1]
    spoil_remote(world, emptied)
    pull(world, 1)
    for report in (pull(world, 1), push(world, 1), status(world, 1)):
        assert only(report).standing is SyncStatus.HELD_BACK
    (kept,) = path(b).parent.glob(f"{TRANSCRIPT}.conflict-*")
    assert not path(b, BACKUP).exists()
    layout = engine(world, 1).layout
    (ref,) = layout.discover()
    assert [found.path for found in layout.check(ref) if found.code == "conflict_kept"] == [str(kept)]


def test_a_refused_document_does_not_keep_the_conversation_from_coming(world: World) -> None:
    a, b = world.devices
    good = path(b, METADATA).read_bytes()
    spoil_remote(world, torn, METADATA)
    with open(path(a), "ab") as file:
        file.write(b'{"role": "user", "content": "more"}\n')
    push(world, 0)
    outcome = only(pull(world, 1))
    assert (outcome.standing, [hold.file for hold in outcome.held]) == (SyncStatus.HELD_BACK, [METADATA])
    assert path(b, METADATA).read_bytes() == good
    assert path(b).read_bytes() == path(a).read_bytes()


def test_a_device_that_has_continued_is_not_parted_by_a_damaged_version(world: World) -> None:
    b = world.devices[1]
    world.say(b, ID, 2)
    good = path(b).read_bytes()
    spoil_remote(world, flipped)
    assert only(pull(world, 1)).standing is SyncStatus.HELD_BACK
    assert (path(b).read_bytes(), b.names()) == (good, [ID])
    assert resolve(world, 1, "mine").standing is SyncStatus.PUSHED
    pull(world, 0)
    assert path(world.devices[0]).read_bytes() == good


def test_a_new_device_takes_what_there_is(tmp_path: Path, world: World) -> None:
    spoil_remote(world, flipped)
    fresh = Device(tmp_path, "fresh")
    assert only(fresh.engine(world.remote()).pull()).standing is SyncStatus.PULLED


# -- what settles it


@pytest.mark.parametrize("damage", [emptied, flipped, torn], ids=lambda damage: damage.__name__)
def test_theirs_brings_the_good_version_back_and_keeps_the_damaged_one_beside(
    world: World, damage: Callable[[Path], None]
) -> None:
    a = world.devices[0]
    good = path(a).read_bytes()
    path(a, BACKUP).write_bytes(good + b'{"role": "user", "content": "never sent"}\n')
    backup = path(a, BACKUP).read_bytes()
    damage(path(a))
    bad = path(a).read_bytes()
    push(world, 0)
    pull(world, 1)
    resolve(world, 0, "theirs")
    assert path(a).read_bytes() == good
    assert path(a, BACKUP).read_bytes() == backup
    assert [kept.read_bytes() for kept in path(a).parent.glob(f"{TRANSCRIPT}.conflict-*")] == [bad]
    settled(world)


def settled(world: World) -> None:
    """Nothing is held back any more, on any device."""
    for _ in range(2):
        for at in range(len(world.devices)):
            pull(world, at)
            push(world, at)
    for at in range(len(world.devices)):
        for report in (push(world, at), pull(world, at), status(world, at)):
            assert [(one.standing, one.held) for one in report.outcomes] == [(SyncStatus.IN_STEP, ())]
    assert len({tuple(sorted(device.files().items())) for device in world.devices}) == 1


def test_mine_sends_the_damaged_version_and_others_take_it(
    world: World, damage: Callable[[Path], None]
) -> None:
    a, b = world.devices
    damage(path(a))
    push(world, 0)
    pull(world, 1)
    assert resolve(world, 0, "mine").standing is SyncStatus.PUSHED
    assert only(pull(world, 1)).standing is SyncStatus.PULLED
    bad = path(a).read_bytes()
    assert path(b).read_bytes() == bad[: bad.rfind(b"\n") + 1]


@pytest.mark.parametrize("pulled", [True, False])
@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_a_refused_version_is_settled_either_way(world: World, keep: str, pulled: bool) -> None:
    b = world.devices[1]
    good = path(b).read_bytes()
    spoil_remote(world, flipped)
    bad = path(world.devices[0]).read_bytes()
    if pulled:
        pull(world, 1)
    resolve(world, 1, keep)
    assert path(b).read_bytes() == (good if keep == "mine" else bad)
    if keep == "theirs":
        assert good in [kept.read_bytes() for kept in path(b).parent.glob(f"{TRANSCRIPT}.conflict-*")]
    settled(world)


def test_a_repair_settles_it(world: World) -> None:
    a, b = world.devices
    good = path(a).read_bytes()
    emptied_with_backup(path(a))
    push(world, 0)
    pull(world, 1)
    repair(path(a).parent)
    push(world, 0)
    assert path(a).read_bytes() == path(b).read_bytes() == good
    settled(world)


def test_a_repair_that_drops_a_line_is_synced_with_the_command_that_restores_it(world: World) -> None:
    a, b = world.devices
    flipped(path(a))
    push(world, 0)
    repair(path(a).parent)
    outcome = only(push(world, 0))
    assert (outcome.standing, outcome.held) == (SyncStatus.PUSHED, ())
    assert outcome.undo is not None
    pull(world, 1)
    assert path(a).read_bytes() == path(b).read_bytes()
    settled(world)


@pytest.mark.parametrize("how", ["repair", "restore_backup"])
def test_an_older_copy_that_is_restored_after_damage_gets_back_what_was_sent(world: World, how: str) -> None:
    """Else the lines between it and the damage would be taken back on all devices."""
    a, b = world.devices
    good = path(a).read_bytes()
    path(a, BACKUP).write_bytes(b"".join(good.splitlines(keepends=True)[:4]))
    os.truncate(path(a), 0)
    push(world, 0)
    pull(world, 1)
    repair(path(a).parent) if how == "repair" else SessionStore(a.sessions).restore_backup(ID)
    assert len(a.lines(ID)) == 4
    assert only(push(world, 0)).standing is SyncStatus.BEHIND
    assert only(pull(world, 0)).standing is SyncStatus.PULLED
    assert path(a).read_bytes() == path(b).read_bytes() == good
    settled(world)


def test_another_device_can_end_what_a_lost_one_held_back(world: World) -> None:
    emptied(path(world.devices[0]))
    push(world, 0)
    pull(world, 1)
    with pytest.raises(Invalid, match="nothing to decide"):
        resolve(world, 1, "theirs")
    resolve(world, 1, "mine")
    for report in (push(world, 1), pull(world, 1), status(world, 1)):
        assert only(report).standing is SyncStatus.IN_STEP


def test_there_is_nothing_to_decide_about_a_healthy_session(world: World) -> None:
    for keep in ("mine", "theirs"):
        with pytest.raises(Invalid, match="nothing to decide"):
            resolve(world, 0, keep)


def test_what_is_held_back_waits_for_the_user(world: World) -> None:
    emptied(path(world.devices[0]))
    push(world, 0)
    (outcome,) = engine(world, 0).awaiting().outcomes
    assert (outcome.session_id, [hold.file for hold in outcome.held]) == (ID, [TRANSCRIPT])
    resolve(world, 0, "theirs")
    assert engine(world, 0).awaiting().outcomes == []


# -- more devices, and less memory


def test_three_devices_of_which_two_are_damaged(tmp_path: Path, server: MemoryServer) -> None:
    world = begun(World(tmp_path, server.remote, 3))
    good = path(world.devices[2]).read_bytes()
    emptied(path(world.devices[0]))
    flipped(path(world.devices[1]))
    for at in (0, 1, 0, 1):
        push(world, at)
        pull(world, at)
    quiet = [push(world, at).cost.bytes_up for at in (0, 1, 0, 1)]
    assert quiet == [0, 0, 0, 0]
    assert only(pull(world, 2)).standing is SyncStatus.HELD_BACK
    assert path(world.devices[2]).read_bytes() == good
    for at in (0, 1):
        resolve(world, at, "theirs")
    settled(world)
    assert path(world.devices[0]).read_bytes() == good


def test_a_device_that_lost_its_memory_neither_sends_nor_loses_the_damaged_version(world: World) -> None:
    a = world.devices[0]
    good = path(a).read_bytes()
    emptied_with_backup(path(a))
    more = b'{"role": "user", "content": "never sent"}\n'
    path(a, BACKUP).write_bytes(good + more)
    for found in a.state.glob("*.json"):
        found.unlink()
    for report in (push(world, 0), pull(world, 0)):
        assert only(report).standing is SyncStatus.HELD_BACK
    assert (path(a).read_bytes(), path(a, BACKUP).read_bytes()) == (b"", good + more)
    resolve(world, 0, "theirs")
    assert (path(a).read_bytes(), path(a, BACKUP).read_bytes()) == (good, good + more)


def test_a_head_with_marks_is_read_by_clients_that_do_not_know_them(world: World) -> None:
    """They are fields with a default: an older client drops them, and the next push of ours names it again."""
    emptied(path(world.devices[0]))
    push(world, 0)
    (record,) = heads_of(world.remote())
    head = json.loads(record.data)
    assert list(head.pop("held")) == [TRANSCRIPT]
    data = json.dumps(head).encode()
    assert encode(decode(record.name, data)) is not None
    assert world.remote().swap_head(record.name, data, record.etag)
    push(world, 0)
    pull(world, 0)
    push(world, 0)
    assert list(head_of(world).held) == [TRANSCRIPT]


def test_event_logs_and_black_text_are_held_back_too(tmp_path: Path, server: MemoryServer) -> None:
    world = World(tmp_path, server.remote)
    a, b = world.devices
    a.rules = b.rules = Rules(logs=True, redact=Redaction())
    begun(world)
    for device in world.devices:
        with open(path(device), "ab") as file:
            file.write(b'{"role": "user", "content": "x", "password": "a secret of mine"}\n')
    for n in range(6):
        a.log(ID, f"event {n}")
    push(world, 0)
    pull(world, 1)
    assert path(b, EVENTS).read_bytes() == path(a, EVENTS).read_bytes()
    good = {name: path(b, name).read_bytes() for name in (TRANSCRIPT, EVENTS)}
    torn(path(a))
    zeroed(path(a, EVENTS))
    outcome = only(push(world, 0))
    assert [hold.file for hold in outcome.held] == [EVENTS, TRANSCRIPT]
    pull(world, 1)
    assert {name: path(b, name).read_bytes() for name in good} == good


def test_without_the_agreed_version_a_damaged_one_stays_all_the_same(
    world: World, server: MemoryServer
) -> None:
    flipped(path(world.devices[0]))
    remote = world.remote()
    space = head_of(world).space
    for stat in stats_of(remote, space, "0", "g"):
        remote.delete_block(space, stat.id, stat.version)
    outcome = only(push(world, 0))
    assert outcome.standing is SyncStatus.HELD_BACK
    assert "cannot be read for comparison" in outcome.note


@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_what_another_device_holds_back_does_not_keep_a_user_from_deciding(
    keep: str, tmp_path: Path, server: MemoryServer
) -> None:
    world = begun(World(tmp_path, server.remote, 3))
    a, b, _ = world.devices
    good = path(a).read_bytes()
    emptied(path(a))
    torn(path(b, METADATA))
    for at in (0, 1, 0, 1):
        push(world, at)
        pull(world, at)
    resolve(world, 0, keep)
    assert list(head_of(world).held) == [METADATA]
    assert part_of(world).size == (0 if keep == "mine" else len(good))
    assert path(a).read_bytes() == (b"" if keep == "mine" else good)


def test_mine_takes_back_what_an_older_copy_lacks(world: World) -> None:
    a, b = world.devices
    lines = path(a).read_bytes().splitlines(keepends=True)
    os.truncate(path(a), 0)
    push(world, 0)
    replace(path(a), b"".join(lines[:4]))
    assert only(push(world, 0)).standing is SyncStatus.BEHIND
    outcome = resolve(world, 0, "mine")
    assert (outcome.standing, outcome.undo is not None) == (SyncStatus.PUSHED, True)
    pull(world, 1)
    assert path(a).read_bytes() == path(b).read_bytes() == b"".join(lines[:4])


def test_a_push_that_comes_second_reports_damage_too(world: World) -> None:
    a, b = world.devices
    world.say(b, ID)
    good = path(a, METADATA).read_bytes()
    torn(path(a, METADATA))
    push(world, 1)
    outcome = only(push(world, 0))
    assert outcome.standing is SyncStatus.HELD_BACK
    assert [hold.file for hold in outcome.held] == [METADATA]
    assert good != path(a, METADATA).read_bytes()
