"""A session that says it changed after the clock: that is a note, and another time orders the lists."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessionary.catalog import Catalog
from sessionary.layouts.summary import summaries
from sessionary.model import Severity
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import KINDS, PROJECT, PolicyDevice, PolicyWorld, recipient

FUTURE = datetime(2099, 1, 1, tzinfo=UTC)
THEN = 1_700_000_000
NAMES = {"work": "one", "feature": "login-2025-01-31", "brainstorm": "logo"}


@pytest.fixture
def device(tmp_path: Path) -> PolicyDevice:
    world = PolicyWorld(tmp_path, MemoryServer().remote, 1)
    (device,) = world.devices
    device.begin("one")
    device.plan("login-2025-01-31")
    world.storm(device, "logo")
    return device


def say(device: PolicyDevice, kind: str, at: datetime) -> None:
    """Let the session say that it changed then; its files are of another time."""
    if kind == "work":
        device.tell("one", at)
    elif kind == "feature":
        device.set("login-2025-01-31", at)
    else:
        path = device.storms / "logo.yaml"
        text = "".join(line for line in path.read_text().splitlines(True) if "updated:" not in line)
        path.write_text(text.replace("session:\n", f'session:\n  updated: "{at:%Y-%m-%dT%H:%M:%SZ}"\n', 1))
    for path in (*device.project.rglob("*"), device.project):
        os.utime(path, (THEN, THEN))


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_after_the_clock_is_a_note_and_the_files_count(
    kind: str, device: PolicyDevice, tmp_path: Path
) -> None:
    say(device, kind, FUTURE)
    layout = recipient(kind, device.project)
    catalog = Catalog(str(tmp_path / "cache"))
    for _ in range(2):
        [found] = [one for one in catalog.summaries(layout) if one.ref.session_id == NAMES[kind]]
        assert found.updated == datetime.fromtimestamp(THEN, UTC)
        [note] = [one for one in found.problems if one.code == "future_time"]
        assert (note.severity, "2099-01-01" in note.message) == (Severity.note, True)
    stored = [row.summary.ref.session_id for row in catalog._load(layout).values() if row.fingerprint]
    assert NAMES[kind] not in stored, "it is a note only until the clock has come there"
    assert "future_time" in [one.code for one in layout.check(layout.place(PROJECT, NAMES[kind]))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_one_minute_ahead_is_accepted(kind: str, device: PolicyDevice) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=1)).replace(microsecond=0)
    say(device, kind, soon)
    layout = recipient(kind, device.project)
    [found] = [one for one in summaries(layout) if one.ref.session_id == NAMES[kind]]
    assert found.updated == soon
    assert "future_time" not in [one.code for one in found.problems]
