"""The mailbox: what a message costs over the flushes that it cannot do without, and beside two queues on SQLite."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from benchmarks.harness import (
    Benchmark,
    Limit,
    Measurement,
    Row,
    by_turns,
    compared,
    in_words,
    settle,
    spread,
    timed,
    unlike,
)
from sessionary import Mailbox
from sessionary.codec import encode_document
from sessionary.disk.fs import OS_FS
from sessionary.disk.lock import FileLock
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from sessionary.layouts.maestro.records import Breadcrumb

ROUNDS = 31
BATCH = 40
PROCESSED = 100_000
WAKE_UPS = 200
PROCESSES = 4
MESSAGES = 1000  # of each producer in a round: enough for start and end to weigh little
RACES = 7
IDLE = 0.01  # seconds that a consumer, whichever, sleeps after it has found nothing


def _crumb(text: str = "x" * 400) -> Breadcrumb:
    return create_breadcrumb(
        prompt=text,
        response="done",
        tools_called=[],
        files_modified=[],
        parent_session_id=None,
        depth_level=0,
        model_used="sonnet",
        token_count={"input": 100, "output": 20},
    )


def _mailbox(session: Path, *, shared: bool = False) -> Mailbox:
    """A mailbox as users have it, with the copy of its log beside the session and not in their state."""
    return Mailbox.with_fs(OS_FS, session, shared=shared, state=str(session.parent / "state"))


def _apply(crumb: Breadcrumb) -> dict[str, Any]:
    return {"seen": len(crumb.prompt)}


class _Floor:
    """What the disk itself needs: for three flushes, and for a message that is a file and a line that answers it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.fds = [os.open(place / str(n), os.O_WRONLY | os.O_CREAT | os.O_APPEND) for n in range(3)]
        self.names = itertools.count()
        self.message = encode_document(asdict(_crumb()))

    def three_flushes(self) -> None:
        for _ in range(BATCH):
            for fd in self.fds:
                os.write(fd, b"x" * 300)
                os.fdatasync(fd)

    def file_and_line(self) -> None:
        for _ in range(BATCH):
            fd = os.open(self.place / f"m{next(self.names)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(fd, self.message)
            os.fsync(fd)
            os.close(fd)
            folder = os.open(self.place, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
            os.write(self.fds[0], b"x" * 300)
            os.fdatasync(self.fds[0])


def _one(place: Path) -> list[Measurement]:
    spread(place)
    session = unlike(place, "session")
    folder = str(session)
    mailbox = _mailbox(session)

    def consume() -> float:
        seconds = 0.0
        for _ in range(BATCH):
            write_crumb(folder, _crumb())
            start = time.perf_counter()
            report = mailbox.consume(_apply)
            seconds += time.perf_counter() - start
            if report.applied != 1:
                raise RuntimeError(f"one message was put, {report} applied")
        return seconds

    def put_and_consume() -> None:
        for _ in range(BATCH):
            write_crumb(folder, _crumb())
            mailbox.consume(_apply)

    floor = _Floor(unlike(place, "floor"))
    settle()
    works = [consume, timed(floor.three_flushes), timed(put_and_consume), timed(floor.file_and_line)]
    consumed, flushes, both, raw = by_turns(works, ROUNDS)
    measured = compared(consumed, flushes, each=BATCH)
    whole = compared(both, raw, each=BATCH)
    reported = f"put and consumed {whole.numbers} (create, fsync, fsync dir, append, fdatasync)"
    return [measured._replace(numbers=f"{measured.numbers}; {reported}")]


def _idle(place: Path) -> list[Measurement]:
    session = place / "session"
    depth = session / "breadcrumbs" / "0"
    depth.mkdir(parents=True)
    with open(session / "log.jsonl", "wb") as log:
        for number in range(PROCESSED):
            name = f"20260101_{number // 1000:06d}_{number % 1000:06d}.json"
            (depth / name).touch()
            line = {"breadcrumb_id": f"id-{number}", "file": f"0/{name}", "applied_at": "t", "result": None}
            log.write(json.dumps(line).encode() + b"\n")
    mailbox = _mailbox(session)
    start = time.perf_counter()
    mailbox.pending()
    first = time.perf_counter() - start
    time.sleep(2.1)
    mailbox.pending()
    calls = 200

    def poll() -> None:
        for _ in range(calls):
            if mailbox.pending():
                raise RuntimeError("something waits in an idle mailbox")

    def stat() -> None:
        for _ in range(calls):
            os.stat(depth)

    measured = compared(*by_turns([timed(poll), timed(stat)], ROUNDS), each=calls)
    return [
        measured._replace(numbers=f"{measured.numbers}; the first one, with all to read: {in_words(first)}")
    ]


def _wake_ups(place: Path) -> list[Measurement]:
    session = place / "session"
    session.mkdir()
    stop = threading.Event()
    woken: list[float] = []
    ready = threading.Semaphore(0)

    def watch() -> None:
        for _ in _mailbox(session).watch(stop=stop):
            woken.append(time.perf_counter())
            ready.release()

    watcher = threading.Thread(target=watch)
    watcher.start()
    there = []
    for _ in range(WAKE_UPS):
        time.sleep(0.003)
        there.append(time.perf_counter())
        write_crumb(str(session), _crumb(), durable=False)
        ready.acquire()
    stop.set()
    watcher.join()
    late = [(after - before) * 1e3 for before, after in zip(there, woken, strict=True)]
    return [
        Measurement(
            median(late),
            f"from the unflushed write to the message in hand; slowest of {WAKE_UPS}: {max(late):.1f} ms",
        )
    ]


# -- four producers, four consumers


class _Queue(Protocol):
    """One process's end of a queue; `put` and `take` return when what they did is durable."""

    def put(self, text: str) -> None: ...
    def take(self) -> int: ...


class _Ours:
    """A mailbox with shared consumers."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.mailbox = _mailbox(Path(place), shared=True)

    def put(self, text: str) -> None:
        write_crumb(self.place, _crumb(text))

    def take(self) -> int:
        return self.mailbox.consume(_apply).applied


class _LiteQueue:
    """WAL as it comes, and synchronous=FULL, so that a commit is as durable as ours."""

    def __init__(self, place: str) -> None:
        from litequeue import LiteQueue

        self.queue = LiteQueue(f"{place}/queue.db", timeout=60)
        self.queue.conn.execute("PRAGMA synchronous = FULL")

    def put(self, text: str) -> None:
        self.queue.put(json.dumps(asdict(_crumb(text))))

    def take(self) -> int:
        message = self.queue.pop()
        if message is None:
            return 0
        _apply(Breadcrumb(**json.loads(message.data)))
        self.queue.done(message.message_id)
        return 1


class _PersistQueue:
    """Its queue with acknowledgments. A lock keeps two processes from taking the same message.

    It finds one in one transaction and marks it in another.
    """

    def __init__(self, place: str) -> None:
        from persistqueue import SQLiteAckQueue

        self.queue = SQLiteAckQueue(place, auto_resume=False, auto_commit=True, timeout=60)
        self.lock = FileLock(f"{place}/get.lock")

    def put(self, text: str) -> None:
        self.queue.put(json.dumps(asdict(_crumb(text))))

    def take(self) -> int:
        from persistqueue import Empty

        try:
            with self.lock.held(60):
                text = self.queue.get(block=False)
        except Empty:
            return 0
        _apply(Breadcrumb(**json.loads(text)))
        self.queue.ack(text)
        return 1


_KINDS: dict[str, Callable[[str], _Queue]] = {
    "ours": _Ours,
    "litequeue": _LiteQueue,
    "persist-queue": _PersistQueue,
}


def _worker(produces: bool, orders: Connection, taken: Any) -> None:
    """Puts, or takes until all is taken, on order; answers with its times of start and end. None ends it."""
    while (order := orders.recv()) is not None:
        kind, place, each = order
        queue = _KINDS[kind](place)
        orders.send("ready")
        orders.recv()
        start = time.monotonic()
        if produces:
            for number in range(each):
                queue.put(f"{number} " + "x" * 400)
        else:
            while taken.value < each * PROCESSES:
                if count := queue.take():
                    with taken.get_lock():
                        taken.value += count
                else:
                    time.sleep(IDLE)
        orders.send((start, time.monotonic()))


def _race(workers: Sequence[Connection], kind: str, place: Path, taken: Any) -> float:
    """Messages that went through in a second."""
    taken.value = 0
    _KINDS[kind](str(place))  # makes its tables before eight processes try to
    settle()
    for worker in workers:
        worker.send((kind, str(place), MESSAGES))
    for word in ("ready", "go"):
        for worker in workers:
            if word == "ready":
                worker.recv()
            else:
                worker.send(word)
    times = [worker.recv() for worker in workers]
    seconds: float = max(end for _, end in times) - min(start for start, _ in times)
    return MESSAGES * PROCESSES / seconds


def _many(place: Path) -> list[Measurement]:
    spread(place)
    context = multiprocessing.get_context("spawn")
    taken = context.Value("i", 0)
    pipes = [context.Pipe() for _ in range(2 * PROCESSES)]
    processes = [
        context.Process(target=_worker, args=(number < PROCESSES, theirs, taken), daemon=True)
        for number, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    workers = [ours for ours, _ in pipes]
    rates: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for number in range(RACES):
        for kind in _KINDS:
            folder = unlike(place, f"{kind}-{number}")
            rates[kind].append(_race(workers, kind, folder, taken))
            if kind == "ours":
                _nothing_lost(folder)
    for worker in workers:
        worker.send(None)
    for process in processes:
        process.join(10)
    theirs = [max(pair) for pair in zip(rates["litequeue"], rates["persist-queue"], strict=True)]
    figure = median(ours / best for ours, best in zip(rates["ours"], theirs, strict=True))
    reported = ", ".join(f"{kind} {median(found):,.0f}/s" for kind, found in rates.items())
    return [Measurement(figure, f"{reported}; all there, each once")]


def _nothing_lost(session: Path) -> None:
    """Raises RuntimeError unless every message is in the log exactly once."""
    lines = [json.loads(line) for line in (session / "log.jsonl").read_bytes().splitlines()]
    files = {f"0/{path.name}" for path in (session / "breadcrumbs" / "0").iterdir()}
    if len(lines) != MESSAGES * PROCESSES or {line["file"] for line in lines} != files:
        raise RuntimeError(f"{len(files)} messages, {len(lines)} lines in the log")


BENCHMARKS = (
    Benchmark(
        "mailbox-one",
        (Row("`consume` of one message, durable, 1 producer, 1 consumer", "three raw flushes", Limit(1.5)),),
        _one,
    ),
    Benchmark(
        "mailbox-throughput",
        (
            Row(
                f"{PROCESSES} producers, {PROCESSES} consumers, durable: messages per second",
                "the better of litequeue and persist-queue (SQLite)",
                Limit(2, at_least=True),
            ),
        ),
        _many,
    ),
    Benchmark(
        "mailbox-wake-up",
        (Row("wake-up of `watch`, local disk, p50", "10 ms", Limit(10, unit=" ms")),),
        _wake_ups,
    ),
    Benchmark(
        "mailbox-idle",
        (
            Row(
                f"`pending()` of an idle mailbox with {PROCESSED:,} processed messages",
                "one stat per depth folder",
                Limit(20),
            ),
        ),
        _idle,
    ),
)
