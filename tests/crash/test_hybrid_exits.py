"""Programs that end without a `close()`: what they wrote is sent, and what earlier ones left moves forward."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sessionary import CosmosConfig, HybridSessionStore
from sessionary.sync.remotes.cosmos import CosmosRemote
from tests.remotes import REMOTES
from tests.support.cosmos_double import CosmosDouble

SIX = [f"s{number}" for number in range(6)]
SLOW = 20
"""So many more programs may end before all is sent: on a busy machine two seconds may be too short for one."""

Side = dict[str, Any]

PROGRAM = """
import json, sys
from importlib import import_module
from sessionary import CosmosConfig, HybridSessionStore
side, base, state = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
def remote():
    module, _, name = side["remote"].partition(":")
    return getattr(import_module(module), name)(**side["arguments"])
way = {"remote": remote} if "remote" in side else {"cosmos_config": CosmosConfig(**side)}
store = HybridSessionStore(base, state_dir=state, project="p", tenant="me", **way)
for session in sys.argv[4:]:
    store.save(session, [{"role": "user", "content": f"I am {session}"}], {"session_id": session})
"""


@contextmanager
def cosmos() -> Iterator[Side]:
    with CosmosDouble() as double:
        side = {"endpoint": double.endpoint, "database": "db", "container": "box", "key": double.key}
        first = CosmosRemote(CosmosConfig(**side), tenant="me")
        first.prepare()
        first.close()
        yield side


def of_address(empty: Callable[[], Side]) -> Callable[[], Any]:
    @contextmanager
    def side() -> Iterator[Side]:
        yield empty()

    return side


SIDES = [
    pytest.param(cosmos, id="cosmos"),
    *(pytest.param(of_address(one.values[0]), id=one.id, marks=one.marks) for one in REMOTES),
]


@contextmanager
def store_at(root: Path, side: Side) -> Iterator[HybridSessionStore]:
    """A store of this process over the folder of the programs; it sends nothing by itself."""

    def remote() -> Any:
        module, _, name = side["remote"].partition(":")
        return getattr(import_module(module), name)(**side["arguments"])

    way: Any = {"remote": remote} if "remote" in side else {"cosmos_config": CosmosConfig(**side)}
    with HybridSessionStore(
        root / "sessions", state_dir=root / "state", project="p", tenant="me", **way
    ) as store:
        assert store._worker is not None
        store._worker.background.given_up.set()
        yield store


def program(root: Path, side: Side, *sessions: str, ending: str = "") -> None:
    """A program that writes these sessions and ends at once."""
    code = [sys.executable, "-W", "error", "-c", PROGRAM + ending, json.dumps(side)]
    places = [str(root / "sessions"), str(root / "state")]
    done = subprocess.run(
        [*code, *places, *sessions], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def unsent(root: Path, side: Side) -> list[str]:
    with store_at(root, side) as store:
        return store.unsent


def pulled(root: Path, side: Side) -> list[str]:
    """The sessions that a fresh device gets."""
    with store_at(root, side) as store:
        got = asyncio.run(store.pull())
        assert got.errors == []
        assert [store.load(session)[0][0]["content"] for session in store.list_sessions()] == [
            f"I am {session}" for session in store.list_sessions()
        ]
        return sorted(store.list_sessions())


@pytest.mark.parametrize("a_side", SIDES)
def test_short_programs_send_what_they_write(a_side: Callable[[], Any], tmp_path: Path) -> None:
    one = tmp_path / "one"
    with a_side() as side:
        for session in SIX:
            program(one, side, session)
        left = unsent(one, side)
        assert sorted({*left, *pulled(tmp_path / "two", side)}) == SIX, "it is either unsent or there"
        assert len(left) < len(SIX)
        for _ in range(SLOW):
            if not unsent(one, side):
                break
            program(one, side)
        assert pulled(tmp_path / "three", side) == SIX


@pytest.mark.parametrize("a_side", SIDES)
def test_the_next_exit_sends_what_a_killed_program_left(a_side: Callable[[], Any], tmp_path: Path) -> None:
    one = tmp_path / "one"
    with a_side() as side:
        program(one, side, *SIX, ending="\nimport os; os._exit(0)")
        assert unsent(one, side) == SIX
        for _ in range(SLOW):
            program(one, side, "later")
            if not unsent(one, side):
                break
        assert pulled(tmp_path / "two", side) == ["later", *SIX]


OUTLIVING = """
import threading
def work():
    threading.main_thread().join()
    store.save("late", [{"role": "user", "content": "I am late"}], {"session_id": "late"})
threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_one_is_sent_too(tmp_path: Path) -> None:
    side = {
        "remote": "tests.support.file_remote:FileRemote",
        "arguments": {"path": str(tmp_path / "r")},
    }
    program(tmp_path / "one", side, "early", ending=OUTLIVING)
    assert pulled(tmp_path / "two", side) == ["early", "late"]
