"""A rewind that comes to nothing, because another device had gone on, is reported on both devices."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.sync.report import Outcome, SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import Device, World

KEPT = "was rewound on another device from {} to {} bytes, but continued here: all lines are kept"
BACK = "has all rewound lines again: another device had continued from them"
BACK_HERE = "was rewound here from {} to {} bytes, but another device had continued: all lines are back"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, MemoryServer().remote)
    world.say(world.devices[0], "one", 5)
    run(world, 0, "push")
    run(world, 1, "pull")
    return world


def run(world: World, at: int, verb: str) -> Outcome:
    (outcome,) = getattr(world.devices[at].engine(world.remote()), verb)().outcomes
    assert isinstance(outcome, Outcome)
    return outcome


def size(device: Device) -> int:
    return path(device).stat().st_size


def path(device: Device) -> Path:
    return device.sessions / "one" / "transcript.jsonl"


def only_append(world: World, device: Device) -> None:
    """Go on with the conversation, and leave the metadata as they are."""
    with path(device).open("ab") as file:
        file.write(json.dumps({"role": "user", "content": "gone on"}).encode() + b"\n")


def append_and_describe(world: World, device: Device) -> None:
    world.say(device, "one")


def rewind(world: World, device: Device) -> tuple[int, int]:
    """Take back three lines of five; the sizes before and after. The metadata stay as they are."""
    before, lines = size(device), path(device).read_bytes().splitlines(keepends=True)
    path(device).write_bytes(b"".join(lines[:2]))
    return before, size(device)


@pytest.mark.parametrize("append", [only_append, append_and_describe])
@pytest.mark.parametrize("verbs", [("pull", "push"), ("push", "pull", "push")], ids="-".join)
def test_a_rewind_that_was_sent_and_is_undone_is_reported_on_both(
    verbs: tuple[str, ...], append: Callable[[World, Device], None], world: World
) -> None:
    a, b = world.devices
    before, after = rewind(world, a)
    assert run(world, 0, "push").undo is not None
    append(world, b)
    found = [run(world, 1, verb) for verb in verbs]
    reported = [one for one in found if KEPT.format(before, after) in one.note]
    assert len(reported) == 1, "once, and by whichever command meets the rewind first"
    assert reported[0].standing is not SyncStatus.IN_STEP, "what is in step is not printed"
    assert BACK in run(world, 0, "pull").note
    assert path(a).read_bytes() == path(b).read_bytes()
    assert len(a.lines("one")) == 6
    for at in (0, 1, 0):
        assert (run(world, at, "pull").note, run(world, at, "push").note) == ("", "")


def test_a_device_that_has_pulled_the_rewind_reports_it_too(tmp_path: Path) -> None:
    world = World(tmp_path, MemoryServer().remote, 3)
    a, b, c = world.devices
    world.say(a, "one", 5)
    run(world, 0, "push")
    for at in (1, 2):
        run(world, at, "pull")
    rewind(world, a)
    run(world, 0, "push")
    assert "rewound" in run(world, 2, "pull").note
    only_append(world, b)
    run(world, 1, "pull")
    run(world, 1, "push")
    assert BACK in run(world, 2, "pull").note
    assert path(c).read_bytes() == path(b).read_bytes()


@pytest.mark.parametrize("verbs", [("pull",), ("push", "pull")], ids="-".join)
def test_a_rewind_that_was_not_sent_yet_is_reported_where_it_was_made(
    verbs: tuple[str, ...], world: World
) -> None:
    a, b = world.devices
    only_append(world, b)
    run(world, 1, "push")
    before, after = rewind(world, a)
    assert BACK_HERE.format(before, after) in [run(world, 0, verb) for verb in verbs][-1].note
    assert path(a).read_bytes() == path(b).read_bytes()


def test_lines_that_the_same_device_brings_back_are_not_reported_as_those_of_another(world: World) -> None:
    a, b = world.devices
    whole = path(a).read_bytes()
    rewind(world, a)
    run(world, 0, "push")
    run(world, 1, "pull")
    path(a).write_bytes(whole)
    run(world, 0, "push")
    run(world, 1, "pull")
    only_append(world, b)
    run(world, 1, "push")
    assert BACK not in run(world, 0, "pull").note


def test_a_rewind_that_stands_is_not_reported_again_when_the_conversation_continues(world: World) -> None:
    a, b = world.devices
    rewind(world, a)
    run(world, 0, "push")
    run(world, 1, "pull")
    only_append(world, b)
    run(world, 1, "push")
    assert run(world, 0, "pull").note == ""
    assert len(a.lines("one")) == 3
