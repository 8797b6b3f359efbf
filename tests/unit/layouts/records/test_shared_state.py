"""The state that sessions of Google ADK share, on two machines: what only one changed stands, else the later value."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.shared_state import merged_state
from sessionary.layouts.records.sync_adapter import RecordsSyncLayout
from tests.support.memory_remote import MemoryServer
from tests.unit.layouts.records.test_records_sync import Device

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


CLOCK = Clock()


def state(home: Path, name: str = "ada", scope: Any = ("app",)) -> RecordJournal:
    folder = home / "google-adk" / "state"
    return RecordJournal.with_fs(OS_FS, folder, "google-adk", name, scope, durability="none", now=CLOCK)


def put(home: Path, **values: Any) -> None:
    state(home).change(lambda _: Change(set={"state": values}))


def values(home: Path) -> dict[str, Any]:
    return state(home).state().table("state")


@pytest.fixture
def devices(tmp_path: Path) -> tuple[Device, Device]:
    server = MemoryServer()
    return Device(tmp_path / "a", server), Device(tmp_path / "b", server)


def test_shared_state_is_synced_and_is_not_a_session(devices: tuple[Device, Device]) -> None:
    one, two = devices
    put(one.home, name="Ada", half="\ud83d")
    state(one.home, "app", ()).change(lambda _: Change(set={"state": {"limit": 2}}))
    assert list(RecordsLayout(one.home).discover()) == []
    found = {ref.session_id: ref for ref in one.layout.discover()}
    assert set(found) == {"state:app", "state:app,ada"}
    for ref in found.values():
        assert one.layout.place(ref.project, ref.session_id) == ref
    within = RecordsSyncLayout(one.home / "google-adk")
    assert {ref.locator for ref in within.discover()} == {ref.locator for ref in found.values()}
    one.push()
    two.pull()
    assert values(two.home) == {"name": "Ada", "half": "\ud83d"}
    assert state(two.home, "app", ()).state().table("state") == {"limit": 2}
    put(two.home, name="Eve")
    two.push()
    one.pull()
    assert values(one.home) == {"name": "Eve", "half": "\ud83d"}


def test_what_both_changed_is_brought_together(devices: tuple[Device, Device]) -> None:
    one, two = devices
    put(one.home, common=1, both=0)
    one.push()
    two.pull()
    put(one.home, mine=1, both="earlier")
    put(two.home, theirs=2, both="later")
    one.push()
    two.pull()
    two.push()
    one.pull()
    expected = {"common": 1, "mine": 1, "theirs": 2, "both": "later"}
    assert values(one.home) == values(two.home) == expected
    (ref,) = one.layout.discover()
    assert Path(ref.locator).read_bytes() == Path(next(two.layout.discover()).locator).read_bytes()
    numbers = [json.loads(line)["n"] for line in Path(ref.locator).read_bytes().splitlines()]
    assert numbers == list(range(len(numbers)))
    put(one.home, more=3)
    assert values(one.home) == {**expected, "more": 3}


def test_states_that_began_apart_are_brought_together(devices: tuple[Device, Device]) -> None:
    one, two = devices
    put(one.home, a=1, both="earlier")
    put(two.home, b=2, both="later")
    one.push()
    two.pull()
    two.push()
    one.pull()
    assert values(one.home) == values(two.home) == {"a": 1, "b": 2, "both": "later"}


@pytest.mark.parametrize("seed", range(30))
def test_a_merge_has_each_latest_value_and_is_repeatable(tmp_path: Path, seed: int) -> None:
    random, homes = Random(seed), (tmp_path / "a", tmp_path / "b")
    latest: dict[str, int] = {}
    for step in range(20):
        key = random.choice("abcd")
        latest[key] = step
        put(random.choice(homes), **{key: step})
    mine, theirs = (state(home).path for home in homes)
    if not (Path(mine).exists() and Path(theirs).exists()):
        return
    data = Path(mine).read_bytes(), Path(theirs).read_bytes()
    for first, second in (data, data[::-1]):
        done = merged_state(first, second)
        assert done is not None
        again = merged_state(done.data, second)
        assert again is not None
        assert again.data == done.data
        Path(mine).write_bytes(done.data)
        assert state(homes[0]).state().table("state") == latest


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b'{"n":2,"at":"2026","op":"change","first":0,"add":[1]}\n',
        b'{"n":2,"at":"2026","op":"change","unset":{"state":["a"]}}\n',
        b'{"n":2,"at":"2026","op":"snapshot","byte":9}\n',
        b'{"torn',
    ],
)
def test_what_holds_more_than_values_is_left_to_the_user(tmp_path: Path, line: bytes) -> None:
    put(tmp_path, a=1)
    data = Path(state(tmp_path).path).read_bytes()
    assert merged_state(data, data) is not None
    assert merged_state(data + line, data) is None
    assert merged_state(data, data + line) is None


@pytest.mark.parametrize("session", ["state:../x", "state:", "state:a/b", "state:.hidden", "state:a,,b"])
def test_no_id_of_a_remote_leads_out_of_the_folder(tmp_path: Path, session: str) -> None:
    layout = RecordsSyncLayout(tmp_path)
    with pytest.raises(Invalid):
        layout.place("google-adk/state", session)
