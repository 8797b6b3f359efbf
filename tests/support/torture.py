"""Real processes, really killed.

The models of `survivors` say what a disk may hold; here nothing is modelled. Workers write into one folder
at the same time, and are killed by SIGKILL at moments that a seed chose. What a worker was promised it says
through a pipe, *after* the call that promised it has returned, so whatever arrived is owed.

A worker is the text of a Python program, run by the interpreter of the test. It gets its words in
``sys.argv[1:]`` and says what it was promised by `ack`::

    import sys
    from tests.support.torture import ack, spec

    me = spec()                      # number, run and seed of this worker
    for count in range(100):
        append(sys.argv[1], f"{me.number} {me.run} {count}")
        ack(count)

The seed chooses who is killed when; the scheduler of the machine does the rest, so a failing run may not
fail again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SPEC = "SESSIONARY_TORTURE"
TIMEOUT = 60.0
_ROOT = str(Path(__file__).parents[2])


@dataclass(frozen=True, slots=True)
class Spec:
    """Identity of a worker: its number, the serial number of its process, and its seed."""

    number: int
    run: int
    seed: int
    pipe: int


def spec() -> Spec:
    """In a worker: who it is."""
    return Spec(**json.loads(os.environ[_SPEC]))


def ack(value: Any) -> None:
    """In a worker: the call that promised `value` (JSON-able) has returned."""
    line = json.dumps(value).encode() + b"\n"
    while line:
        line = line[os.write(spec().pipe, line) :]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a worker acknowledged."""

    number: int
    run: int
    value: Any


@dataclass(slots=True)
class Worker:
    """A running worker, as its parent sees it."""

    number: int
    run: int
    process: subprocess.Popen[bytes]
    acks: list[Any] = field(default_factory=list)
    errors: bytes = b""
    _news: threading.Condition = field(default_factory=threading.Condition)
    _readers: list[threading.Thread] = field(default_factory=list)

    def wait_for_acks(self, count: int, timeout: float = TIMEOUT) -> bool:
        """Wait until the worker has acknowledged so often, or has ended. True if it has."""
        with self._news:
            self._news.wait_for(lambda: len(self.acks) >= count or not self._readers[0].is_alive(), timeout)
            return len(self.acks) >= count

    def kill(self) -> None:
        """SIGKILL; what it had acknowledged is complete when this returns."""
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def finish(self, timeout: float = TIMEOUT) -> None:
        """Wait until it ends by itself.

        Raises:
            AssertionError: it ended in an error, or not in time.
        """
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"worker {self.number} did not end in {timeout:g} s") from None
        self._end()
        if self.process.returncode:
            trace = self.errors.decode(errors="replace")
            raise AssertionError(f"worker {self.number} ended with {self.process.returncode}:\n{trace}")

    def _end(self) -> None:
        self.process.wait()
        for reader in self._readers:
            reader.join()

    def _read_acks(self, pipe: int) -> None:
        with open(pipe, "rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):  # a kill may tear an acknowledgment too: then it was never made
                    with self._news:
                        self.acks.append(json.loads(line))
                        self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as pipe:
            self.errors = pipe.read()


def start(
    source: str, arguments: Sequence[str] = (), *, number: int = 0, run: int = 0, seed: int = 0
) -> Worker:
    """Start a worker that runs the program `source`."""
    reading, writing = os.pipe()
    who = {"number": number, "run": run, "seed": seed, "pipe": writing}
    process = subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH")))),
            _SPEC: json.dumps(who),
        },
        pass_fds=[writing],
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    worker = Worker(number, run, process)
    worker._readers += [
        threading.Thread(target=worker._read_acks, args=(reading,), daemon=True),
        threading.Thread(target=worker._read_errors, daemon=True),
    ]
    for reader in worker._readers:
        reader.start()
    return worker


def torture(
    source: str,
    arguments: Sequence[str] = (),
    *,
    workers: int = 4,
    kills: int = 8,
    most_acks: int = 10,
    pause: float = 0.005,
    seed: int = 0,
) -> list[Promise]:
    """Run workers side by side, kill some at random and replace them, and let the last ones finish.

    Args:
        source: the program of every worker. It MUST end by itself.
        arguments: its words.
        workers: how many run at a time.
        kills: how many are killed.
        most_acks: a worker is killed after it has acknowledged between 0 and so many times…
        pause: …and up to so many seconds later, which is most likely in the middle of something.
        seed: of who and when.

    Returns:
        Everything that was acknowledged by anyone, the killed included.

    Raises:
        AssertionError: a worker ended in an error.
    """
    rng = random.Random(seed)
    running = [start(source, arguments, number=n, seed=rng.getrandbits(32)) for n in range(workers)]
    ended: list[Worker] = []
    try:
        for _ in range(kills):
            victim = running[rng.randrange(workers)]
            victim.wait_for_acks(len(victim.acks) + rng.randint(0, most_acks))
            time.sleep(rng.uniform(0, pause))
            victim.kill()
            ended.append(victim)
            running[victim.number] = start(
                source, arguments, number=victim.number, run=victim.run + 1, seed=rng.getrandbits(32)
            )
        for worker in running:
            worker.finish()
    finally:
        for worker in running:
            worker.kill()
    everyone = sorted([*ended, *running], key=lambda worker: (worker.number, worker.run))
    return [Promise(worker.number, worker.run, value) for worker in everyone for value in worker.acks]
