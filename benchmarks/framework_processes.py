"""Eight processes through the store of a framework, beside one shared database file of the framework's own store.

Runs inside the environment of that framework (`python -m benchmarks.frameworks` starts it), and prints one JSON object.
Each process keeps a session of its own, and adds messages to it; then all of them add to one session.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.plugs.drivers import DRIVERS, Driver

PROCESSES = 8
ROUNDS = 5
MESSAGES = 20
"""What each process adds in a round."""
ATTEMPTS = 1000
OURS, THEIRS = "ours", "theirs"


def drivers_of(name: str, folder: str) -> dict[str, Driver]:
    """The drivers of a framework's stores on disk."""
    found = {}
    for kind, make in zip((OURS, THEIRS), DRIVERS[name], strict=True):
        driver: Any = make(Path(folder) / kind)
        if hasattr(driver, "session"):
            driver.session = functools.cache(driver.session)
        if driver.durable:
            found[kind] = driver
    return found


def add(driver: Driver, session: str, text: str) -> int:
    """Add a message, until it is stored. Returns how often it was refused."""
    for refused in range(ATTEMPTS):
        try:
            driver.append(session, text)
        except Exception:  # noqa: BLE001 - each framework refuses a stale or a waiting writer in its own way
            continue
        return refused
    raise TimeoutError(f"{session}: refused {ATTEMPTS} times")


def work(name: str, folder: str, number: str) -> None:
    """One of the processes: a line names the store, the session and how many messages to add."""
    drivers = drivers_of(name, folder)
    print(flush=True)
    for line in sys.stdin:
        kind, session, count = line.split()
        refused = [
            add(drivers[kind], session, f"{number} {time.monotonic_ns()} {one}") for one in range(int(count))
        ]
        print(sum(refused), flush=True)


def stored(driver: Any, session: str) -> set[str]:
    """The messages of a session; of LangGraph those of all checkpoints, as processes make branches."""
    if hasattr(driver, "saver"):
        found = driver.saver.list({"configurable": {"thread_id": session}})
        return {text for one in found for text in one.checkpoint["channel_values"]["messages"]}
    return set(driver.read(session) or ())


def together(workers: list[Any], lines: list[str]) -> tuple[float, int]:
    """Give each process its line. Returns the seconds until all are done, and the refused attempts."""
    begin = time.perf_counter()
    for worker, line in zip(workers, lines, strict=True):
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
    refused = sum(int(worker.stdout.readline()) for worker in workers)
    return time.perf_counter() - begin, refused


def main(name: str, folder: str) -> None:
    """Print the row of a framework."""
    drivers = drivers_of(name, folder)
    for driver in drivers.values():  # makes the tables of a database
        add(driver, "first", "one")
    kinds = list(drivers)
    command = [sys.executable, "-m", "benchmarks.framework_processes", name, folder]
    workers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    try:
        for worker in workers:
            worker.stdout.readline()  # type: ignore[union-attr]
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        refused = dict.fromkeys(kinds, 0)
        for number in range(ROUNDS):
            for kind in kinds if number % 2 else kinds[::-1]:
                lines = [f"{kind} own-{one} {MESSAGES}" for one in range(PROCESSES)]
                seconds, again = together(workers, lines)
                rates[kind].append(PROCESSES * MESSAGES / seconds)
                refused[kind] += again
        _, again = together(workers, [f"{OURS} shared {MESSAGES}"] * PROCESSES)
        lost = PROCESSES * MESSAGES - len(stored(drivers[OURS], "shared"))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    row: dict[str, Any] = {kind: median(found) for kind, found in rates.items()}
    if THEIRS in rates:
        row["ratio"] = median(a / b for a, b in zip(rates[OURS], rates[THEIRS], strict=True))
        row["refused"] = refused[THEIRS]
    print(json.dumps({**row, "lost": lost, "refused_shared": again}))


if __name__ == "__main__":
    (work if len(sys.argv) > 3 else main)(*sys.argv[1:])
