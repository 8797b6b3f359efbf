"""Every public write of the amplifier layout, and every pair of them, cut off by power at every point.

What must hold in each surviving state: what was acknowledged is there; what was not is there whole, in part from
its beginning, or not at all; metadata is never ahead of the transcript; and the session goes on.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import NotFound
from sessionary.layouts.amplifier.events import EventsLog
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.amplifier.store import SessionStore
from tests.support.original import load_transcript
from tests.support.sweeps import crash_sweep, pairs

META = {"session_id": "s", "created": "2025-01-31T12:00:00.000Z", "bundle": "bundle:x"}


def say(text: Any, **more: Any) -> Any:
    return {"role": "user", "content": text, "timestamp": "t", **more}


START = [say("a"), say("b")]


class World:
    """What the session should hold after each call, computed beside the store."""

    def __init__(self, messages: Any, metadata: Any, gone: Any = False) -> None:
        self.messages, self.metadata, self.gone = messages, metadata, gone


def grow(store: Any, world: Any) -> Any:
    world = World([*world.messages, say("c"), say("d")], world.metadata)
    store.save("s", world.messages, world.metadata)
    return world


def grow_with_metadata(store: Any, world: Any) -> Any:
    metadata = {**world.metadata, "turn_count": world.metadata.get("turn_count", 0) + 1}
    world = World([*world.messages, say("e"), say("f")], metadata)
    store.save("s", world.messages, world.metadata)
    return world


def rewrite(store: Any, world: Any) -> Any:
    world = World([say("new"), *world.messages[1:]], world.metadata)
    store.save("s", world.messages, world.metadata)
    return world


def append(store: Any, world: Any) -> Any:
    store.append("s", [say("g"), say("h")])
    return World([*world.messages, say("g"), say("h")], world.metadata)


def append_with_metadata(store: Any, world: Any) -> Any:
    store.append("s", [say("i")], {"name": "n"})
    return World([*world.messages, say("i")], {**world.metadata, "name": "n"})


def update_metadata(store: Any, world: Any) -> Any:
    store.update_metadata("s", {"name": "renamed"})
    return World(world.messages, {**world.metadata, "name": "renamed"})


def empty(store: Any, world: Any) -> Any:
    store.save("s", [], world.metadata)
    return World([], world.metadata)


def snapshot_config(store: Any, world: Any) -> Any:
    store.save_config_snapshot("s", {"a": 1})
    return world


def trash_and_undo(store: Any, world: Any) -> Any:
    store.delete("s")
    store.undo("s")
    return world


CALLS = {
    call.__name__: call
    for call in (
        grow,
        grow_with_metadata,
        rewrite,
        append,
        append_with_metadata,
        update_metadata,
        empty,
        snapshot_config,
        trash_and_undo,
    )
}


def setup(folder: Any) -> None:
    store = SessionStore(Path(folder, "sessions"), durability="none")
    store.save("s", START, META)


def worlds_of(*calls: Any) -> Any:
    """The states that a run of these calls goes through."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        setup(folder)
        store = SessionStore(Path(folder, "sessions"), durability="none")
        worlds = [World(START, META)]
        for call in calls:
            worlds.append(call(store, worlds[-1]))
    return worlds


def operation(*calls: Any) -> Any:
    def run(fs: Any) -> None:
        store = SessionStore.with_fs(fs, Path(fs.root, "sessions"))
        world = World(START, META)
        for number, call in enumerate(calls, 1):
            world = call(store, world)
            fs.mark(number)

    return run


def is_between(found: Any, old: Any, new: Any) -> Any:
    """Old, new, or old with the first few new ones behind it."""
    if found in (old, new):
        return True
    return new[: len(old)] == old and found[: len(old)] == old and new[: len(found)] == found


def stored_metadata(store: Any) -> Any:
    return store.get_metadata("s")


def check_of(worlds: Any, *, may_be_gone: Any) -> Any:
    def check(folder: Any, acked: Any) -> None:
        at = len(acked)
        old, new = worlds[at], worlds[min(at + 1, len(worlds) - 1)]
        pool_of(OS_FS).drop(str(Path(folder, "sessions", "s")))  # the reader is a new process
        store = SessionStore(Path(folder, "sessions"), durability="none")
        try:
            messages, metadata, report = store.load_with_report("s")
        except NotFound:
            assert may_be_gone, "the session is gone"
            assert store.undo("s") == "s"
            messages, metadata, report = store.load_with_report("s")
        assert is_between(messages, old.messages, new.messages), f"{messages} is neither old nor new"
        assert metadata in (old.metadata, new.metadata), f"{metadata} is neither old nor new"
        if metadata == new.metadata != old.metadata:
            assert messages == new.messages, "metadata is ahead of the transcript"
        assert {p.code for p in report.problems} <= {"torn_tail", "nul_run", "missing_newline"}, (
            report.problems
        )
        store.append("s", [say("after")])
        assert load_transcript(Path(folder, "sessions", "s")) == [*messages, say("after")]
        assert not [name for name in os.listdir(Path(folder, "sessions", "s")) if name.endswith(".tmp")]

    return check


@pytest.mark.parametrize("name", CALLS)
def test_one_call(name: Any, tmp_path: Any) -> None:
    call = CALLS[name]
    check = check_of(worlds_of(call), may_be_gone=name == "trash_and_undo")
    report = crash_sweep(setup, operation(call), check, tmp_path)
    assert report.states > 10 or name == "snapshot_config"
    assert not report.violations, report.describe()


@pytest.mark.parametrize("first", CALLS)
def test_pairs_of_calls(first: Any, tmp_path: Any) -> None:
    for second, call in CALLS.items():
        calls = (CALLS[first], call)
        gone = "trash_and_undo" in (first, second)
        check = check_of(worlds_of(*calls), may_be_gone=gone)
        report = crash_sweep(
            setup, operation(*calls), check, tmp_path / second, models=("relaxed",), limit=24
        )
        assert not report.violations, f"{first}, then {second}: {report.describe()}"


def test_the_first_save_of_a_session(tmp_path: Any) -> None:
    def first(fs: Any) -> None:
        SessionStore.with_fs(fs, Path(fs.root, "deep", "sessions")).save("s", START, META)
        fs.mark("saved")

    def check(folder: Any, acked: Any) -> None:
        store = SessionStore(Path(folder, "deep", "sessions"), durability="none")
        if not acked and not store.exists("s"):
            return
        messages, metadata, report = store.load_with_report("s")
        assert messages == START
        assert metadata in (({}, META) if not acked else (META,))
        assert not report.problems

    report = crash_sweep(lambda folder: None, first, check, tmp_path)
    assert not report.violations, report.describe()


def test_a_first_append_creates_the_session(tmp_path: Any) -> None:
    def first(fs: Any) -> None:
        SessionStore.with_fs(fs, Path(fs.root, "sessions")).append("s", START, {"bundle": "b"})
        fs.mark("appended")

    def check(folder: Any, acked: Any) -> None:
        store = SessionStore(Path(folder, "sessions"), durability="none")
        if not acked and not store.exists("s"):
            return
        messages, metadata = store.load("s")
        assert messages == START
        if acked:
            assert metadata["bundle"] == "b"

    report = crash_sweep(lambda folder: None, first, check, tmp_path)
    assert not report.violations, report.describe()


def test_a_new_process_vouches_for_the_names_that_a_killed_one_made(tmp_path: Any) -> None:
    """Files whose names were never flushed, because their creator was killed, are acknowledged by another process."""

    def run(fs: Any) -> None:
        root = Path(fs.root, "sessions")
        SessionStore.with_fs(fs, root, durability="none").append("s", START)
        pool_of(fs).drop(str(root / "s"))
        SessionStore.with_fs(fs, root).append("s", [say("c")])
        fs.mark("appended")

    def check(folder: Any, acked: Any) -> None:
        if acked:
            store = SessionStore(Path(folder, "sessions"), durability="none")
            assert store.load("s")[0] == [*START, say("c")]

    report = crash_sweep(lambda folder: None, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_a_torn_tail_is_stored_before_it_is_cut(tmp_path: Any) -> None:
    torn = b'{"role": "user", "content": "half'

    def begin(folder: Any) -> None:
        setup(folder)
        with open(Path(folder, "sessions", "s", "transcript.jsonl"), "ab") as file:
            file.write(torn)

    def run(fs: Any) -> None:
        SessionStore.with_fs(fs, Path(fs.root, "sessions")).append("s", [say("c")])
        fs.mark("appended")

    def check(folder: Any, acked: Any) -> None:
        session = Path(folder, "sessions", "s")
        store = SessionStore(session.parent, durability="none")
        assert is_between(store.load("s")[0], START, [*START, say("c")])
        kept = [path.read_bytes() for path in session.glob("transcript.jsonl.torn-*")]
        main = (session / "transcript.jsonl").read_bytes()
        assert torn in main or torn in kept
        if acked:
            assert load_transcript(session) == [*START, say("c")]

    report = crash_sweep(begin, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_events_under_full(tmp_path: Any) -> None:
    def run(fs: Any) -> None:
        with EventsLog.with_fs(fs, Path(fs.root, "sessions", "s"), durability="full") as log:
            for number in range(3):
                log.append({"event": f"e{number}", "ts": "t"})
                fs.mark(number)

    def check(folder: Any, acked: Any) -> None:
        path = Path(folder, "sessions", "s", "events.jsonl")
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        names = [json.loads(line)["event"] for line in lines[:-1]]
        assert names == [f"e{number}" for number in range(len(names))]
        assert len(names) >= len(acked)

    report = crash_sweep(setup, run, check, tmp_path)
    assert not report.violations, report.describe()


def test_the_pairs_are_really_pairs() -> None:
    assert len(pairs({name: operation(call) for name, call in CALLS.items()})) == len(CALLS) ** 2
