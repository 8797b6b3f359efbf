"""Who has a session open, and how others on the machine get to know of it."""

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sessionary.layouts.amplifier.files import IN_USE
from sessionary.layouts.amplifier.presence import MOST, Presence, why_open

NOW = 2_000_000_000.0
LONG_AGO = NOW - 3600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions" / "s"
    folder.mkdir(parents=True)
    written(folder, LONG_AGO)
    return folder


def written(folder: Path, at: float) -> None:
    path = folder / "transcript.jsonl"
    path.write_text('{"role": "user", "content": "hello"}\n')
    os.utime(path, (at, at))


NOWHERE = {"XDG_STATE_HOME": "/nowhere"}


def why(
    folder: Path, *, now: float = NOW, quiet: float = 30.0, environ: Mapping[str, str] = NOWHERE
) -> str | None:
    return why_open(str(folder), now=now, quiet=quiet, environ=environ)


def test_a_session_that_was_left_alone_is_not_open(folder: Path) -> None:
    assert why(folder) is None
    assert {path.name for path in folder.iterdir()} == {"transcript.jsonl"}, "asking leaves no trace"


def test_a_session_held_by_another_program_is_open(folder: Path) -> None:
    one, two = Presence(), Presence()
    one.enter(str(folder))
    two.enter(str(folder))
    assert why(folder) == "a program has it open"
    one.leave(str(folder))
    assert why(folder) == "a program has it open"
    two.leave_all()
    assert why(folder) is None


def test_who_is_forgotten_is_not_present_any_more(folder: Path) -> None:
    presence = Presence()
    presence.enter(str(folder))
    del presence
    assert why(folder) is None


def test_entering_twice_and_leaving_unentered_have_no_effect(folder: Path) -> None:
    presence = Presence()
    presence.leave(str(folder))
    presence.enter(str(folder))
    presence.enter(str(folder))
    presence.leave(str(folder))
    assert why(folder) is None


def test_where_presence_is_unknown_nothing_fails(tmp_path: Path) -> None:
    presence = Presence()
    presence.enter(str(tmp_path / "missing" / "s"))
    presence.leave(str(tmp_path / "missing" / "s"))
    assert not (tmp_path / "missing").exists()


def test_not_more_sessions_are_held_than_descriptors_should_be(tmp_path: Path) -> None:
    presence = Presence()
    folders = [tmp_path / f"s{number}" for number in range(MOST + 2)]
    for folder in folders:
        folder.mkdir()
        presence.enter(str(folder))
    held = [folder for folder in folders if why(folder, quiet=0)]
    assert held == folders[2:]


def test_a_recently_written_session_is_open_until_it_is_quiet(folder: Path) -> None:
    written(folder, NOW - 29)
    assert why(folder) == "it was changed a moment ago"
    assert why(folder, quiet=10) is None
    assert why(folder, now=NOW + 2) is None
    assert why(folder, quiet=0) is None


def test_a_time_far_in_the_future_does_not_keep_a_session_open_for_ever(folder: Path) -> None:
    now = time.time()
    path = folder / "transcript.jsonl"
    os.utime(path, (now + 7200, now + 7200))
    assert why(folder, now=now + 1) == "it was changed a moment ago", "its time was set a moment ago"
    assert why(folder, now=now + 40) is None
    os.utime(path, (now + 60, now + 60))
    assert why(folder, now=now) == "it was changed a moment ago", (
        "the clock of a server may be a minute ahead"
    )
    assert why(folder, now=now + 91) is None


def test_a_clean_exit_leaves_nothing_to_wait_for(folder: Path) -> None:
    presence = Presence()
    presence.enter(str(folder))
    now = time.time()
    written(folder, now)
    presence.leave(str(folder))
    assert why(folder, now=now + 1) is None
    written(folder, time.time() + 1)
    assert why(folder, now=time.time() + 2) == "it was changed a moment ago"


def test_what_a_killed_program_wrote_is_waited_for(folder: Path) -> None:
    (folder / IN_USE).touch()
    os.utime(folder / IN_USE, (NOW - 20, NOW - 20))
    written(folder, NOW - 10)
    assert why(folder) == "it was changed a moment ago"


def agent(tmp_path: Path, *, active: object) -> Path:
    """Where an agent of the original says that it works on the session; returns its lock."""
    place = tmp_path / "state" / "v1" / ("0" * 64) / "s"
    place.mkdir(parents=True)
    (place / "owner.json").write_text(json.dumps({"app": "cli", "pid": 1, "active": active}))
    (place / "session.lock").touch()
    return place / "session.lock"


@pytest.mark.parametrize("variable", ["AMPLIFIER_SESSION_STATE_HOME", "XDG_STATE_HOME"])
def test_an_agent_of_the_original_is_known_by_its_lock(folder: Path, tmp_path: Path, variable: str) -> None:
    lock = agent(tmp_path, active=True)
    where = {variable: str(tmp_path / "state")}
    if variable == "XDG_STATE_HOME":
        (tmp_path / "amplifier").mkdir()
        (tmp_path / "state").rename(tmp_path / "amplifier" / "sessions")
        lock = tmp_path / "amplifier" / "sessions" / lock.relative_to(tmp_path / "state")
        where = {variable: str(tmp_path)}
    assert why(folder, environ=where) is None, "its lock file exists, and is not held"
    with open(lock, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert why(folder, environ=where) == "an agent has it open"
    assert why(folder, environ=where) is None


def test_the_lock_of_an_agent_that_has_left_is_not_touched(folder: Path, tmp_path: Path) -> None:
    lock = agent(tmp_path, active=False)
    where = {"AMPLIFIER_SESSION_STATE_HOME": str(tmp_path / "state")}
    with open(lock, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert why(folder, environ=where) is None
    (lock.parent / "owner.json").write_text("{half")
    with open(lock, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert why(folder, environ=where) == "an agent has it open"
