"""Work sessions and their breadcrumbs: a put over its flushes, lists over reading the same files."""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import asdict
from pathlib import Path

import msgspec

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
from sessionary import WorkStore
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from sessionary.layouts.maestro.compat_api import list_breadcrumbs, list_sessions, write_breadcrumb
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession

ROUNDS = 31
FEW_ROUNDS = 9
BATCH = 40
CRUMBS = 10_000
SESSIONS = 5_000


def _crumb() -> Breadcrumb:
    """A breadcrumb whose file has about 1 kB."""
    return create_breadcrumb(
        prompt="Look at the lock around the row in reserve(). " * 5,
        response="The two requests read the same row; the lock now ends it. " * 4,
        tools_called=[{"tool": "bash", "args": {"command": "make test"}, "result": "ok", "error": None}],
        files_modified=[],
        parent_session_id=None,
        depth_level=0,
        model_used="sonnet",
        token_count={"input": 100, "output": 20},
        cost=0.0006,
    )


def _put(place: Path) -> list[Measurement]:
    """Each round has folders of its own: how long ext4 looks for a free inode depends on the parent folder."""
    root = place / "sessions"
    root.mkdir()
    spread(root)
    spread(place)
    store = WorkStore(root)
    data = b"x" * 1000

    def ours() -> float:
        session = store.create("work_task").session_id
        first, *crumbs = [_crumb() for _ in range(BATCH + 1)]
        write_breadcrumb(first, session, root)  # makes the folder
        start = time.perf_counter()
        for crumb in crumbs:
            write_breadcrumb(crumb, session, root)
        return time.perf_counter() - start

    def theirs() -> float:
        folder = unlike(place, "floor")
        _raw_put(folder, "first.json", data)
        start = time.perf_counter()
        for number in range(BATCH):
            _raw_put(folder, f"{number}.json", data)
        return time.perf_counter() - start

    settle()
    return [compared(*by_turns([ours, theirs], ROUNDS), each=BATCH)]


def _raw_put(folder: Path, name: str, data: bytes) -> None:
    """Create, write, fsync; fsync the folder."""
    fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _breadcrumbs(place: Path) -> list[Measurement]:
    root = str(place)
    session = WorkStore(root).create("work_task").session_id
    for _ in range(CRUMBS):
        write_crumb(f"{root}/{session}", _crumb(), durable=False)
    folder = f"{root}/{session}/breadcrumbs/0"
    decode = msgspec.json.Decoder().decode

    def ours() -> None:
        if len(list_breadcrumbs(session, root)) != CRUMBS:
            raise RuntimeError("not every breadcrumb is listed")

    def theirs() -> None:
        found = [decode(_read(f"{folder}/{name}")) for name in os.listdir(folder)]
        if len(found) != CRUMBS:
            raise RuntimeError("not every breadcrumb was read")

    settle()
    return [compared(*by_turns([timed(ours), timed(theirs)], FEW_ROUNDS))]


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    data = os.read(fd, os.fstat(fd).st_size)
    os.close(fd)
    return data


def _sessions(place: Path) -> list[Measurement]:
    root = str(place)
    for _ in range(SESSIONS):
        known = str(uuid.uuid4())
        session = WorkSession(known, "work_task", metadata={"cookie": known}, purpose="Fix the race")
        session.related_entity = {"task_id": "task-7", "name": "Fix the race"}
        (place / known / "breadcrumbs").mkdir(parents=True)
        (place / known / "session.json").write_text(json.dumps(asdict(session), indent=2), encoding="utf-8")
    settle()
    time.sleep(MTIME_GRACE)  # what was written a moment ago is not remembered

    def ours() -> None:
        if len(list_sessions(root)) != SESSIONS:
            raise RuntimeError("not every session is listed")

    def theirs() -> None:
        with os.scandir(root) as entries:
            found = [(os.stat(entry.path), _read(f"{entry.path}/session.json")) for entry in entries]
        if len(found) != SESSIONS:
            raise RuntimeError("not every session was read")

    return [compared(*by_turns([timed(ours), timed(theirs)], FEW_ROUNDS))]


BENCHMARKS = (
    Benchmark(
        "work-put",
        (Row("`write_breadcrumb` of 1 kB, durable", "create + fsync + fsync dir", Limit(1.6)),),
        _put,
    ),
    Benchmark(
        "work-breadcrumbs",
        (Row(f"`list_breadcrumbs` of {CRUMBS:,}", "read + decode (msgspec) of the same files", Limit(3)),),
        _breadcrumbs,
    ),
    Benchmark(
        "work-sessions",
        (Row(f"`list_sessions` of {SESSIONS:,} work sessions", "scandir + stat + read", Limit(3)),),
        _sessions,
    ),
)
