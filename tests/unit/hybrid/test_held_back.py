"""Damage that must not travel, through the store: it is in the results, and the store settles it."""

import asyncio
import os
from collections.abc import Callable

import pytest

from sessionary.errors import Corrupt, Invalid
from sessionary.hybrid.sync_worker import unsent
from sessionary.sync.report import Outcome, Report, SyncStatus, Where
from tests.unit.hybrid.conftest import Machine

Make = Callable[..., Machine]


@pytest.fixture
def machines(machine: Make) -> tuple[Machine, Machine]:
    """Two machines with one session; on the first, the transcript has lost its bytes while no program had it open."""
    one, two = machine("one"), machine("two")
    one.write("a", "b")
    one.sync()
    two.pull()
    one.store.close()
    path = one.sessions / "s" / "transcript.jsonl"
    good = path.read_bytes()
    path.with_name("transcript.jsonl.backup").write_bytes(good)
    os.truncate(path, 0)
    one.restart()
    return one, two


def test_both_machines_report_it_and_the_good_version_stays(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    sent = one.sync()
    assert (sent.pushed, sent.unchanged, sent.failed, sent.damaged) == (0, 0, 1, 1)
    assert [type(error) for error in sent.errors] == [Corrupt]
    (outcome,) = sent.sessions
    assert (outcome.standing, outcome.held[0].where) == (SyncStatus.HELD_BACK, Where.HERE)
    for result in (two.pull(), two.sync(), two.pull()):
        assert (result.unchanged, result.damaged) == (0, 1)
        assert result.sessions[0].held[0].where is Where.ELSEWHERE
    assert two.texts() == ["a", "b"]


def test_the_courier_does_not_ask_again_for_what_only_a_user_settles(
    machines: tuple[Machine, Machine],
) -> None:
    (outcome,) = machines[0].sync().sessions
    assert unsent(Report([outcome])) == []
    assert unsent(Report([Outcome("s", None, SyncStatus.HELD_BACK)])) == ["s"]


def test_restore_backup_settles_it(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.sync()
    one.store.restore_backup("s")
    one.sync()
    assert two.pull().damaged == one.sync().damaged == 0
    assert one.files() == two.files()


@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_the_store_settles_it(keep: str, machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.sync()
    result = asyncio.run(one.store.resolve("s", keep))
    assert (result.failed, result.damaged) == (0, 0)
    assert two.pull().damaged == 0
    assert one.files() == two.files()
    assert bool((one.sessions / "s" / "transcript.jsonl").stat().st_size) is (keep == "theirs")
    with pytest.raises(Invalid):
        asyncio.run(one.store.resolve("s", keep))
