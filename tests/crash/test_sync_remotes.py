"""The proofs of sync over real stores: cut off at every call, lived with on a bad network, and really killed."""

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sessionary.sync.remote import Remote
from tests.crash.sync_stages import BLOCK, STAGES, Stage, cut_off
from tests.remotes import REMOTES, postgres
from tests.support.chaos_remote import FAULTS, ChaosRemote
from tests.support.sync_torture import Address, connected, torture_remote
from tests.support.sync_world import World, live

SOAK = bool(os.environ.get("SESSIONARY_SOAK"))
SEEDS = 500 if SOAK else 8
KILLS = 200 if SOAK else 12
NAMES = ("grown here", "rewound here", "grown on both", "trashed there")
Empty = Callable[[], Address]


# A call takes milliseconds on the servers of object stores, and there are thousands: all of it is for a soak.
@pytest.mark.parametrize("empty", REMOTES if SOAK else REMOTES[:1])
@pytest.mark.parametrize(
    "stage", [stage for stage in STAGES if SOAK or stage.name in NAMES], ids=lambda stage: str(stage.name)
)
def test_work_that_is_cut_off_at_any_call_comes_right(stage: Stage, empty: Empty, tmp_path: Path) -> None:
    with connected(empty()) as remote:
        counting = ChaosRemote(remote)
        stage.work(prepared(stage, tmp_path / "counted", remote).devices[0].engine(counting))
    assert counting.calls
    for call in range(1, counting.calls + 1):
        for fault in FAULTS:
            with connected(empty()) as remote:
                world = prepared(stage, tmp_path / f"{call}-{fault}", remote)
                cut_off(world, stage, {call: fault}, None)
                shutil.rmtree(world.root)


def prepared(stage: Stage, root: Path, remote: Remote) -> World:
    world = World(root, lambda: remote, block=BLOCK)
    stage.prepare(world)
    return world


@pytest.mark.parametrize("empty", REMOTES)
def test_devices_on_a_bad_network_lose_and_double_nothing(empty: Empty, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        with connected(empty()) as remote:
            fate = random.Random(seed)
            world = World(tmp_path / str(seed), partial(ChaosRemote, remote), fate.choice((2, 3)), block=600)
            live(world, fate, 40)
            try:
                world.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.lane("sigkill")
@pytest.mark.parametrize("empty", REMOTES)
def test_killed_processes_lose_and_double_nothing(empty: Empty, tmp_path: Path) -> None:
    at_work = torture_remote(empty(), tmp_path, devices=3, kills=KILLS, rounds=6, seed=1)
    assert at_work > KILLS // 4, "hardly any of them was killed while it pushed or pulled"


CARELESS = """
from sessionary.sync.remotes.postgres import PostgresRemote

class Careless(PostgresRemote):
    def put_block(self, space, block, data):
        return block[-1] in "01" or super().put_block(space, block, data)
"""


@pytest.mark.lane("sigkill")
@pytest.mark.lane("postgres")
def test_the_killed_processes_find_a_remote_that_stores_not_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "careless_remote.py").write_text(CARELESS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for seed in range(6):  # the machine decides who is killed when: most runs find it, hardly any six do not
        address = {**postgres(), "remote": "careless_remote:Careless"}
        if found := complaint(address, tmp_path / str(seed), seed):
            break
    assert "not on the remote" in found


def complaint(address: Address, root: Path, seed: int) -> str:
    try:
        torture_remote(address, root, devices=3, kills=6, rounds=6, seed=seed)
    except AssertionError as error:
        return str(error)
    return ""
