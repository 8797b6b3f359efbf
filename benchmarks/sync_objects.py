"""An object store: what a pull costs where nothing has changed, when each is a process of its own.

Lists of such a store have no bytes, so a device with an empty memory fetches every head. What is counted are
the HTTP requests that the server gets, not the calls to the remote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Benchmark, Limit, Measurement, Row
from benchmarks.samples import messages, write_session
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.remotes.objects import ObjectStoreRemote
from sessionary.sync.report import SyncStatus
from sessionary.sync.settings import CacheFile
from tests.support.s3_server import BUCKET, S3Server

SESSIONS = 1000


def _carry(verb: str, home: Path, server: S3Server) -> tuple[set[SyncStatus], int]:
    """One push or pull as a new process would do it; how the sessions stand then, and the requests it took."""
    server.requests.clear()
    cache = CacheFile(str(home / "state" / "heads"))
    remote = ObjectStoreRemote(f"s3://{BUCKET}/bench", tenant="me", cache=cache, **server.options)
    try:
        engine = Engine(AmplifierSyncLayout(home / "home"), remote, state_dir=home / "state", quiet=0)
        report = engine.push() if verb == "push" else engine.pull()
    finally:
        remote.close()
    if len(report.outcomes) != SESSIONS:
        raise RuntimeError(f"there are {len(report.outcomes)} sessions and not {SESSIONS}")
    return {outcome.standing for outcome in report.outcomes}, len(server.requests)


def _unchanged(place: Path) -> Sequence[Measurement]:
    spoken = messages(4)
    for number in range(SESSIONS):
        folder = place / "a" / "home" / "projects" / "-home-u-app" / "sessions" / f"session-{number:04}"
        write_session(folder, spoken)
    wanted = [SyncStatus.PUSHED, SyncStatus.PULLED, SyncStatus.IN_STEP]
    with S3Server() as server:
        reported = [
            _carry("push", place / "a", server),
            _carry("pull", place / "b", server),
            _carry("pull", place / "b", server),
        ]
    for (found, _), standing in zip(reported, wanted, strict=True):
        if found != {standing}:
            raise RuntimeError(f"not every session is {standing.value}: {found}")
    (_, first), (_, requests) = reported[1:]
    words = f"{requests} requests for {SESSIONS} sessions ({first} when all of them were new)"
    return [Measurement(requests * 100 / SESSIONS, words)]


BENCHMARKS = (
    Benchmark(
        "sync-objects",
        (
            Row(
                f"pull of {SESSIONS:,} unchanged sessions from S3, in a new process: HTTP requests per 100",
                "-",
                Limit(1, unit=""),
            ),
        ),
        _unchanged,
    ),
)
