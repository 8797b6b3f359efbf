"""Metadata that two devices have changed: afterwards both devices have the changes of both."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.redaction import Redaction
from sessionary.sync.report import Outcome, SyncStatus
from sessionary.sync.rules import Rules
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import Device, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two devices that share a session."""
    world = World(tmp_path, MemoryServer().remote)
    desk, laptop = world.devices
    world.say(desk, "one", 2)
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    return world


def reported(device: Device) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((device.sessions / "one" / "metadata.json").read_text())
    return found


def change(device: Device, **fields: Any) -> None:
    (device.sessions / "one" / "metadata.json").write_text(json.dumps({**reported(device), **fields}))


def aside(device: Device) -> list[str]:
    return [path.name for path in (device.sessions / "one").iterdir() if ".conflict-" in path.name]


def bring_together(world: World, first: int = 0) -> Outcome:
    """One device pushes, the other pulls and pushes, the first pulls. Returns what the pull reported."""
    one, other = world.devices[first], world.devices[1 - first]
    one.engine(world.remote()).push()
    (outcome,) = other.engine(world.remote()).pull().outcomes
    other.engine(world.remote()).push()
    one.engine(world.remote()).pull()
    assert one.files() == other.files()
    assert aside(one) == aside(other) == []
    world.check()
    return outcome


@pytest.mark.parametrize("first", [0, 1])
def test_a_rename_here_and_a_turn_there_both_survive(first: int, world: World) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    laptop.describe("one", title="the logo")
    outcome = bring_together(world, first)
    assert outcome.note == ""
    assert (reported(desk)["name"], reported(desk)["turn_count"]) == ("the logo", 3)
    assert len(desk.lines("one")) == 3


@pytest.mark.parametrize("first", [0, 1])
def test_of_a_field_that_both_changed_the_side_wins_whose_conversation_continued(
    first: int, world: World
) -> None:
    desk, laptop = world.devices
    world.say(desk, "one")
    change(desk, name="of the desk", desk=1)
    change(laptop, name="of the laptop", laptop=1)
    outcome = bring_together(world, first)
    found = reported(laptop)
    assert (found["name"], found["turn_count"], found["desk"], found["laptop"]) == ("of the desk", 3, 1, 1)
    assert outcome.note == (
        'metadata.json was changed on two devices: name ("of the desk" is kept, "of the laptop" was overwritten)'
    )


@pytest.mark.parametrize("first", [0, 1])
def test_where_no_conversation_continued_the_remote_wins(first: int, world: World) -> None:
    desk, laptop = world.devices
    change(desk, name="of the desk", desk=1)
    change(laptop, name="of the laptop", laptop=1)
    outcome = bring_together(world, first)
    assert reported(desk)["name"] == ("of the desk", "of the laptop")[first]
    assert (reported(desk)["desk"], reported(desk)["laptop"]) == (1, 1)
    assert "was overwritten" in outcome.note


def test_a_long_value_is_reported_shortened_and_a_removed_field_too(world: World) -> None:
    desk, laptop = world.devices
    change(desk, name="x" * 5000)
    change(laptop, name="short")
    note = bring_together(world).note
    assert len(note) < 500
    assert '"short" was overwritten' in note


def test_metadata_whose_past_is_forgotten_lose_nothing_and_what_gave_way_is_kept(world: World) -> None:
    desk, laptop = world.devices
    change(desk, name="of the desk", desk=1)
    change(laptop, name="of the laptop", laptop=1)
    desk.engine(world.remote()).push()
    for path in laptop.state.glob("*.state.json"):
        path.unlink()
    laptop.engine(world.remote()).pull()
    assert (reported(laptop)["name"], reported(laptop)["desk"], reported(laptop)["laptop"]) == (
        "of the desk",
        1,
        1,
    )
    (kept,) = aside(laptop)
    assert json.loads((laptop.sessions / "one" / kept).read_text())["name"] == "of the laptop"


def test_metadata_that_cannot_be_read_are_kept_in_both_versions(world: World) -> None:
    desk, laptop = world.devices
    change(desk, name="of the desk")
    (laptop.sessions / "one" / "metadata.json").write_text('{"session_id": "one", "na')
    desk.engine(world.remote()).push()
    engine = laptop.engine(world.remote())
    (outcome,) = engine.pull().outcomes
    assert (outcome.standing, aside(laptop)) == (SyncStatus.HELD_BACK, [])
    engine.resolve(next(engine.layout.discover()), "theirs")
    assert reported(laptop)["name"] == "of the desk"
    (kept,) = aside(laptop)
    assert (laptop.sessions / "one" / kept).read_text() == '{"session_id": "one", "na'


def test_what_is_black_on_the_remote_stays_as_it_is_here(tmp_path: Path) -> None:
    world = World(tmp_path, MemoryServer().remote)
    desk, laptop = world.devices
    for device in world.devices:
        device.rules = Rules(redact=Redaction())
    world.say(desk, "one")
    change(desk, api_key="a secret of this desk", name="n")
    desk.engine(world.remote()).push()
    laptop.engine(world.remote()).pull()
    world.say(laptop, "one")
    change(desk, name="renamed")
    laptop.engine(world.remote()).push()
    desk.engine(world.remote()).pull()
    found = reported(desk)
    assert (found["api_key"], found["name"], found["turn_count"]) == ("a secret of this desk", "renamed", 2)
