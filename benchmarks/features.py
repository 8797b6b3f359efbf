"""What features cost: a durable update, a list, a state made of its history, each beside its floor or a peer."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks.harness import (
    Benchmark,
    Limit,
    Measurement,
    Row,
    by_turns,
    compared,
    settle,
    spread,
    timed,
    unlike,
)
from sessionary import FeatureStore

ID = "bench-2025-01-09"
ROUNDS = 41
FEW_ROUNDS = 7
BATCH = 20
FEATURES = 2_000
ENTRIES = 100_000
TASKS = [{"task_id": f"T{number}", "description": "what is to be done"} for number in range(20)]


def _store(place: Path) -> FeatureStore:
    store = FeatureStore(place)
    store.create(ID, name="Bench")
    store.save_plan(ID, [{"phase_id": "p", "name": "All of it", "tasks": TASKS}])
    store.update(ID, active_task="T1", model_in_use="opus")
    return store


def _updating(place: Path) -> list[Measurement]:
    spread(place)
    return [_update(place, comments=False), _update(place, comments=True)]


def _update(place: Path, *, comments: bool) -> Measurement:
    """Each round has folders of its own: how long ext4 looks for a free inode depends on the parent folder."""
    number = itertools.count()

    def opened() -> tuple[FeatureStore, Path]:
        root = unlike(place, "store")
        store, folder = _store(root), root / ".ai-session" / ID
        if comments:
            text = (folder / "state.yaml").read_text().replace('"opus"', '"opus"  # until Monday')
            (folder / "state.yaml").write_text(f"# agreed with the team\n{text}")
        store.update(ID, active_task="T1")
        return store, folder

    _, example = opened()
    data = (example / "state.yaml").read_bytes()
    line = (example / "history.jsonl").read_bytes().splitlines(keepends=True)[-1]
    if comments and b"# until Monday" not in data:
        raise RuntimeError("the comments are gone")

    def ours() -> float:
        store, _ = opened()
        return _batch(lambda: store.update(ID, active_task=f"T{next(number) % len(TASKS)}"))

    def theirs() -> float:
        floor = unlike(place, "floor")
        log = os.open(floor / "history.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        _floor(floor, log, line, data)
        try:
            return _batch(lambda: _floor(floor, log, line, data))
        finally:
            os.close(log)

    settle()
    return compared(*by_turns([ours, theirs], ROUNDS), each=BATCH)


def _floor(folder: Path, log: int, line: bytes, data: bytes) -> None:
    """One line appended and flushed; a temp file, written and flushed, renamed, the folder flushed."""
    os.write(log, line)
    os.fdatasync(log)
    temp = f"{folder}/state.yaml.new"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(temp, f"{folder}/state.yaml")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _batch(work: Callable[[], object]) -> float:
    """The seconds of a batch."""
    start = time.perf_counter()
    for _ in range(BATCH):
        work()
    return time.perf_counter() - start


def _listing(place: Path) -> list[Measurement]:
    store = _store(place)
    home = place / ".ai-session"
    state = (home / ID / "state.yaml").read_bytes()
    for number in range(1, FEATURES):
        folder = home / f"bench-{number}-2025-01-09"
        folder.mkdir()
        (folder / "state.yaml").write_bytes(state.replace(ID.encode(), folder.name.encode()))
        for name in ("history.jsonl", "implementation-plan.yaml"):
            (folder / name).write_bytes((home / ID / name).read_bytes())
    store.rebuild_index()

    def ours() -> None:
        if len(store.list_features()) != FEATURES:
            raise RuntimeError("not every feature is listed")

    def theirs() -> None:
        if len(_read_all(home)) != FEATURES:
            raise RuntimeError("not every state was read")

    settle()
    listed, read = by_turns([timed(ours), timed(theirs)], FEW_ROUNDS)
    return [compared(listed, read)]


def _read_all(home: Path) -> list[Any]:
    loaded = []
    for name in os.listdir(home):
        path = f"{home}/{name}/state.yaml"
        if not name.startswith(".") and os.path.exists(path):
            with open(path, "rb") as file:
                loaded.append(yaml.load(file.read(), Loader=yaml.CSafeLoader))
    return loaded


def _rebuilding(place: Path) -> list[Measurement]:
    store = _store(place)
    folder = place / ".ai-session" / ID
    history = folder / "history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(lines[-1] * ENTRIES)
    decode = msgspec.json.Decoder().decode

    def ours() -> None:
        (folder / "state.yaml").unlink()
        store.repair(ID)

    def theirs() -> None:
        if len([decode(line) for line in history.read_bytes().split(b"\n") if line]) != ENTRIES:
            raise RuntimeError("not every line was decoded")

    settle()
    rebuilt, decoded = by_turns([timed(ours), timed(theirs)], FEW_ROUNDS)
    return [compared(rebuilt, decoded)]


_FLOOR = "temp + fsync + rename + fsync dir + one append + fdatasync"

BENCHMARKS = (
    Benchmark(
        "feature-update",
        (
            Row("`FeatureStore.update`, durable, the plan unchanged", _FLOOR, Limit(1.6)),
            Row("the same, the state with comments", _FLOOR, Limit(5.0)),
        ),
        _updating,
    ),
    Benchmark(
        "feature-list",
        (
            Row(
                f"`list_features()` of {FEATURES:,} features",
                "read + PyYAML's C safe load of their states",
                Limit(1.5),
            ),
        ),
        _listing,
    ),
    Benchmark(
        "feature-rebuild",
        (
            Row(
                f"a state made of {ENTRIES:,} entries of its history (`repair`)",
                "JSON decode of them (msgspec)",
                Limit(1.5),
            ),
        ),
        _rebuilding,
    ),
)
