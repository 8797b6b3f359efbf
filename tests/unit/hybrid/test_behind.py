"""Background sync never delays a store, never fails it, and continues after an interruption."""

import asyncio
import gc
import logging
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from sessionary import EventsLog, HybridSessionStore
from sessionary.errors import Invalid, Locked, RemoteError, Unsupported
from sessionary.layouts.amplifier.presence import why_open
from sessionary.sync.remote import BlockPage, HeadPage, HeadRecord, Remote, StatPage
from tests.support.chaos_remote import ChaosRemote
from tests.support.file_remote import FileRemote
from tests.support.memory_remote import MemoryServer
from tests.unit.hybrid.conftest import META, Machine, say

Make = Callable[..., Machine]
BULK = "x" * (70 << 10)


class Refusing:
    """A remote whose every call does what `way` does."""

    settled_after = 0.0

    def __init__(self, way: Callable[[], object]) -> None:
        self.calls = 0
        self._way = way

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        raise self._refused()

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        raise self._refused()

    def read_head(self, name: str) -> HeadRecord | None:
        raise self._refused()

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        raise self._refused()

    def list_heads(self, after: str | None = None) -> HeadPage:
        raise self._refused()

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        raise self._refused()

    def delete_block(self, space: str, block: str, version: str) -> bool:
        raise self._refused()

    def _refused(self) -> Exception:
        self.calls += 1
        self._way()
        return RemoteError("no answer", retryable=True, details={"retry_after": 0.0})


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.002)


@pytest.fixture
def hung() -> Iterator[threading.Event]:
    """What a hanging remote hangs on, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_making_a_store_makes_no_request(machine: Make) -> None:
    def connect() -> Remote:
        raise AssertionError("no request is expected yet")

    one = machine("one", connect)
    one.write("hello")
    assert one.texts() == ["hello"]
    assert not (one.sessions.parents[3] / "state").exists()


def test_a_bulk_is_sent_without_a_call(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    one.write("hello")
    one.write(BULK)
    until(lambda: one.store.last_sync)
    assert one.store.last_sync is not None
    assert one.store.last_sync.pushed == 1
    until(lambda: not one.store.unsent)
    assert two.pull().pulled == 1
    assert two.files() == one.files()


def test_saves_neither_wait_for_a_remote_that_hangs_nor_fail(machine: Make, hung: threading.Event) -> None:
    remote = Refusing(lambda: hung.wait(60))
    one = machine("one", lambda: remote)
    one.write("hello")
    one.write(BULK)
    until(lambda: remote.calls)
    begun = time.monotonic()
    for number in range(20):
        one.write(str(number))
    assert time.monotonic() - begun < 30  # the remote hangs for 60
    assert len(one.texts()) == 22
    begun = time.monotonic()
    one.store.close(0.1)
    assert time.monotonic() - begun < 30
    assert one.store.unsent == ["s"]


def test_saves_do_not_fail_where_the_remote_does(machine: Make) -> None:
    def breaks() -> None:
        raise OSError("the driver does what it must not")

    for remote in (Refusing(lambda: None), Refusing(breaks)):
        one = machine("one", partial(_same, remote))
        one.write("hello")
        one.write(BULK)
        until(partial(getattr, remote, "calls"))
        one.write("on")
        assert one.store.unsent == ["s"]


def _same(remote: Remote) -> Remote:
    return remote


def test_a_failed_upload_is_reported_and_retried_later(machine: Make, server: MemoryServer) -> None:
    dead = Refusing(lambda: None)
    remotes: list[Remote] = [dead]

    class Switched:
        def __getattr__(self, name: str) -> object:
            return getattr(remotes[-1], name)

    one = machine("one", Switched)
    one.write("hello")
    failed = one.sync()
    assert (failed.pushed, failed.failed) == (0, 1)
    assert [type(error) for error in failed.errors] == [RemoteError]
    assert one.store.unsent == ["s"]
    got = one.pull()
    assert (got.pulled, [type(error) for error in got.errors]) == (0, [RemoteError])
    remotes.append(server.remote())
    assert one.sync().pushed == 1
    assert one.store.unsent == []


def test_a_throttled_remote_gets_all_of_it_in_the_end(machine: Make, server: MemoryServer) -> None:
    fate = random.Random(7)
    one = machine(
        "one", lambda: ChaosRemote(server.remote(), fate=fate, chance=0.3, faults=("throttled", "lost"))
    )
    for number in range(6):
        one.write(*map(str, range(number)), session=f"s{number}")
    for _ in range(20):
        if not one.sync().failed:
            break
    two = machine("two")
    two.pull()
    assert two.files() == one.files()


def test_a_side_that_this_installation_cannot_speak_to_stops_no_save(machine: Make) -> None:
    def connect() -> Remote:
        raise Unsupported("no driver", hint="pip install 'sessionary[cosmos]'")

    one = machine("one", connect)
    one.write("hello")
    sent = one.sync()
    assert sent.failed == 1
    assert "pip install" in str(sent.errors[0].hint)
    with pytest.raises(Unsupported):
        one.pull()
    assert one.texts() == ["hello"]


def test_another_program_that_synchronises_is_not_waited_for_behind_the_back(
    machine: Make, tmp_path: Path
) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    assert one.store._worker is not None
    from sessionary.sync.state import States

    lock = States(one.store._worker._place.state).lock()
    with lock.held(note="sync"):
        one.write("on")
        one.write(BULK)
        until(lambda: one.store.last_sync)
        assert one.store.last_sync is not None
        assert [type(error) for error in one.store.last_sync.errors] == [Locked]
    lock.close()
    assert one.store.unsent == ["s"]
    assert one.sync().pushed == 1


def test_a_session_that_the_remote_refuses_stays_unsent(machine: Make, server: MemoryServer) -> None:
    class Choosy:
        """Takes all sessions but one."""

        def __init__(self) -> None:
            self._inner = server.remote()

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
            if b'"bad"' in data:
                raise RemoteError("this one is not wanted")
            return self._inner.swap_head(name, data, etag)

    one = machine("one", Choosy)
    one.write("hello", session="bad")
    one.write("hello", session="good")
    sent = one.sync()
    assert (sent.pushed, sent.failed) == (1, 1)
    assert one.store.unsent == ["bad"]
    one.restart()
    assert one.store.unsent == ["bad"]


def test_what_an_earlier_program_left_is_unsent(machine: Make) -> None:
    one = machine("one", lambda: Refusing(lambda: None))
    one.write("hello")
    one.restart()
    assert one.store.unsent == ["s"]


def test_the_end_waits_for_another_program_that_synchronises(machine: Make) -> None:
    one = machine("one")
    one.write("hello")
    assert one.store._worker is not None
    from sessionary.sync.state import States

    background = one.store._worker.background
    lock = States(one.store._worker._place.state).lock()
    with lock.held(note="sync"):
        background.hurry(30)
        until(lambda: background._under_way)
    lock.close()
    background.wait(30)
    assert one.store.unsent == []


# -- event logs


def log_of(machine: Machine, session: str = "s") -> Path:
    return machine.sessions / session / "events.jsonl"


@pytest.mark.parametrize("before", [True, False])
def test_an_appended_event_is_sent_if_logs_are_synced(machine: Make, before: bool) -> None:
    one, two = (machine(name, event_logs=True) for name in ("one", "two"))
    one.write("hello")
    if before:
        one.store.close()
        log = EventsLog(log_of(one).parent)
        one.restart()
    else:
        log = EventsLog(log_of(one).parent)
    one.sync()
    assert one.store.unsent == []
    with log:
        log.session_start()
        assert one.store.unsent == ["s"], "it waits for two quiet seconds"
        log.llm_request(messages=[BULK])
        until(lambda: not one.store.unsent)
    two.pull()
    assert log_of(two).read_bytes() == log_of(one).read_bytes() != b""


def test_an_appended_event_is_ignored_where_logs_are_not_carried(machine: Make) -> None:
    one = machine("one")
    one.write("hello")
    one.sync()
    with EventsLog(log_of(one).parent) as log:
        log.llm_request(messages=[BULK])
        assert one.store.unsent == []


def test_close_sends_events_of_other_programs(machine: Make) -> None:
    one, two = (machine(name, event_logs=True) for name in ("one", "two"))
    one.write("hello")
    one.sync()
    log_of(one).write_text('{"event": "session:end"}\n')
    one.store.close()
    two.pull()
    assert log_of(two).read_bytes() == log_of(one).read_bytes()


def test_a_log_holds_no_store_that_was_forgotten(tmp_path: Path, server: MemoryServer) -> None:
    store = HybridSessionStore(
        tmp_path / "a", remote=server.remote, state_dir=tmp_path / "state", event_logs=True
    )
    store.save("s", say("hello"), META)
    with EventsLog(tmp_path / "a" / "s") as log:
        assert len(log._listeners) == 1
        gone = weakref.ref(store)
        del store
        gc.collect()
        assert gone() is None
        assert log._listeners == []
        log.session_end()


# -- the end, and the next beginning


def test_closing_sends_what_is_not_sent(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    with one.store:
        one.write("hello")
    assert one.store.unsent == []
    two.pull()
    assert two.files() == one.files()


def test_a_closed_store_can_still_be_written_to(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    one.store.close()
    one.write("after")
    assert one.texts() == ["after"]
    one.store.close()
    one.restart()
    assert one.sync().pushed == 1
    assert two.pull().pulled == 1


def test_what_an_earlier_program_left_is_found_by_the_next(machine: Make, hung: threading.Event) -> None:
    dead = Refusing(lambda: None)
    left = machine("one", lambda: dead)
    left.write("hello")
    left.store.close(0.1)
    one, two = machine("one"), machine("two")
    until(lambda: one.store.last_sync)  # by itself, two seconds later
    two.pull()
    assert two.files() == one.files()


AT_EXIT = """
import sys
from sessionary import HybridSessionStore
from tests.support.file_remote import FileRemote
store = HybridSessionStore(sys.argv[1], remote=lambda: FileRemote(sys.argv[2]), state_dir=sys.argv[3])
store.save("s", [{"role": "user", "content": "hello"}], {"session_id": "s"})
"""


def test_the_end_of_a_program_sends_what_is_not_sent(tmp_path: Path) -> None:
    places = [str(tmp_path / name) for name in ("a", "remote", "state")]
    subprocess.run([sys.executable, "-W", "error", "-c", AT_EXIT, *places], check=True, timeout=60)
    with HybridSessionStore(
        tmp_path / "b",
        remote=lambda: FileRemote(places[1]),
        state_dir=tmp_path / "state2",
        project=places[0].replace("/", "-"),
    ) as other:
        assert asyncio.run(other.pull()).pulled == 1
        assert other.load("s")[0][0]["content"] == "hello"
    assert (
        why_open(str(tmp_path / "a" / "s"), now=time.time(), environ={"XDG_STATE_HOME": "/nowhere"}) is None
    )


def test_a_store_that_is_forgotten_sends_and_ends_its_thread(tmp_path: Path, server: MemoryServer) -> None:
    store = HybridSessionStore(tmp_path / "a", remote=server.remote, state_dir=tmp_path / "state")
    store.save("s", say("hello"), META)
    assert store._worker is not None
    background = store._worker.background
    thread = background._thread
    assert thread is not None
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None, "the thread keeps the store"
    thread.join(60)
    assert not thread.is_alive()
    assert background.waiting == []


def test_a_forked_child_carries_on_by_itself(tmp_path: Path) -> None:
    connected: list[int] = []

    def connect() -> Remote:
        connected.append(os.getpid())
        return FileRemote(str(tmp_path / "remote"))

    with HybridSessionStore(tmp_path / "a", remote=connect, state_dir=tmp_path / "state") as store:
        store.save("s", say("hello"), META)
        asyncio.run(store.sync())
        child = os.fork()
        if child == 0:
            store.append("s", say("from the child"))
            store.close(20)
            os._exit(0 if connected[-1] == os.getpid() and not store.unsent else 1)
        assert os.waitpid(child, 0)[1] == 0
        store.append("s", say("from the parent"))
        assert asyncio.run(store.sync()).pushed == 1
        assert connected == [os.getpid()]
    with HybridSessionStore(
        tmp_path / "b",
        remote=connect,
        state_dir=tmp_path / "state2",
        project=str(tmp_path / "a").replace("/", "-"),
    ) as other:
        asyncio.run(other.pull())
        assert [one["content"] for one in other.load("s")[0]] == [
            "hello",
            "from the child",
            "from the parent",
        ]


def test_many_threads_write_while_it_is_carried(machine: Make) -> None:
    one, two = machine("one"), machine("two")

    def work(number: int) -> None:
        for count in range(20):
            one.store.append(f"s{number % 3}", say(f"{number}.{count} {'x' * 5000}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert one.sync().failed == 0
    for thread in threads:
        thread.join()
    one.sync()
    assert one.store.unsent == []
    two.pull()
    assert two.files() == one.files()
    assert sum(len(two.texts(f"s{number}")) for number in range(3)) == 120


# -- a store without another side


def test_a_local_store_has_nothing_to_send(tmp_path: Path, server: MemoryServer) -> None:
    for store in (
        HybridSessionStore(tmp_path / "a"),
        HybridSessionStore(tmp_path / "b", sync_enabled=False, remote=server.remote),
        HybridSessionStore(tmp_path / "c", None),
    ):
        with store:
            store.save("s", say("hello"), META)
            assert store.load("s")[0] == say("hello")
            sent, got = asyncio.run(store.sync()), asyncio.run(store.pull())
            assert (sent.pushed, sent.unchanged, sent.failed, sent.requests, sent.errors) == (0, 0, 0, 0, [])
            assert (got.pulled, got.unchanged, got.held_back, got.errors) == (0, 0, 0, [])
            assert (store.unsent, store.last_sync) == ([], None)
            store.release("s")
            assert {path.name for path in (store.base_dir / "s").iterdir()} == {
                ".lock",
                "metadata.json",
                "transcript.jsonl",
            }


def test_a_store_has_one_remote(tmp_path: Path, server: MemoryServer) -> None:
    from sessionary import CosmosConfig

    config = CosmosConfig("http://127.0.0.1:1/", "db", "box")
    with pytest.raises(Invalid, match="both given"):
        HybridSessionStore(tmp_path, config, remote=server.remote)


def test_where_the_memory_is_stored(
    tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    with HybridSessionStore(tmp_path / "a", remote=server.remote) as store:
        store.save("s", say("hello"), META)
        asyncio.run(store.sync())
    (folder,) = (tmp_path / "xdg" / "sessionary" / "sync").iterdir()
    assert (folder / "device").exists()


def test_background_errors_are_logged_without_session_content(
    machine: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sessionary")
    one = machine("one", lambda: Refusing(lambda: None))
    one.write("a secret", BULK)
    one.write("another")
    one.write(BULK)
    until(lambda: one.store.last_sync)
    until(lambda: "could not be sent yet" in caplog.text)
    assert "secret" not in caplog.text
