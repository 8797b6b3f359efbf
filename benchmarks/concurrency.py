"""Many processes that append to one session, durably, at the same time."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, settle
from benchmarks.samples import messages, write_session
from sessionary import SessionStore

PROCESSES = 8
APPENDS = 200  # of each process in a round; one process alone does as many
ROUNDS = 9


def _worker(base: str, number: int, orders: Connection) -> None:
    """Appends on order; answers with its times of start and end. None ends it."""
    store = SessionStore(base)
    conversation = messages(APPENDS, 950)
    count = 0
    while (session := orders.recv()) is not None:
        batch = []
        for message in conversation:
            batch.append({**message, "id": f"{number}-{count}"})
            count += 1
        orders.send("ready")
        orders.recv()
        start = time.monotonic()
        for message in batch:
            store.append(session, [message])
        orders.send((start, time.monotonic()))


def _round(workers: Sequence[Connection], session: str) -> float:
    """Seconds from the first start to the last end, for each append."""
    settle()
    for worker in workers:
        worker.send(session)
    for worker in workers:
        worker.recv()
    for worker in workers:
        worker.send("go")
    times = [worker.recv() for worker in workers]
    seconds: float = max(end for _, end in times) - min(start for start, _ in times)
    return seconds / (APPENDS * len(workers))


def _many(place: Path) -> list[Measurement]:
    write_session(place / "one", messages(10))
    write_session(place / "many", messages(10))
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(PROCESSES)]
    processes = [
        context.Process(target=_worker, args=(str(place), number, theirs), daemon=True)
        for number, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    workers = [ours for ours, _ in pipes]
    one, many = by_turns([lambda: _round(workers[:1], "one"), lambda: _round(workers, "many")], ROUNDS)
    for worker in workers:
        worker.send(None)
    for process in processes:
        process.join(10)
    _nothing_lost(place / "one", ROUNDS * APPENDS)
    _nothing_lost(place / "many", ROUNDS * APPENDS * PROCESSES)
    speedup = median(alone / together for alone, together in zip(one, many, strict=True))
    return [
        Measurement(speedup, f"{1 / median(many):,.0f}/s : {1 / median(one):,.0f}/s, all there and whole")
    ]


def _nothing_lost(folder: Path, appended: int) -> None:
    """Raises RuntimeError unless every message is there once, whole, and each writer's in its order."""
    lines = (folder / "transcript.jsonl").read_bytes().splitlines()
    ids = [json.loads(line)["id"].split("-") for line in lines[10:]]
    in_order = sorted(ids, key=lambda pair: int(pair[0]))
    counted = {(writer, int(count)) for writer, count in ids}
    steady = all(
        int(count) > int(before)
        for (other, before), (writer, count) in itertools.pairwise(in_order)
        if other == writer
    )
    if len(ids) != appended or len(counted) != appended or not steady:
        raise RuntimeError(
            f"{appended} messages were appended, {len(counted)} of {len(ids)} lines are theirs"
        )


BENCHMARKS = (
    Benchmark(
        "processes",
        (
            Row(
                f"{PROCESSES} processes, durable `append` without metadata, one session: throughput",
                "1 process",
                Limit(0, at_least=True),
            ),
        ),
        _many,
    ),
)
