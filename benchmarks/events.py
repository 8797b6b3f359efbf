"""Questions about an event log of a gigabyte, answered without loading it."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.event_file import EventFile, write_event_file
from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, timed
from sessionary.layouts.amplifier.event_reader import EventReader

SIZE = 1_000_000_000
BLOCK = 1 << 18
LAST = 20
ROUNDS = 7
TAIL_ROUNDS = 15
TAIL_BATCH = 50


def _events(place: Path) -> list[Measurement]:
    file = write_event_file(place / "events.jsonl", SIZE, seed=3)
    return [*_in_a_process_of_its_own(file), _tail(file)]


def _in_a_process_of_its_own(file: EventFile) -> list[Measurement]:
    """The scan, in a process that does nothing else, so that its memory can be measured."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.events", str(file.path)],
        check=True,
        capture_output=True,
        text=True,
    )
    reported = json.loads(done.stdout)
    if reported["offsets"] != file.prompts:
        raise RuntimeError("the offsets of the prompts are not where they were written")
    memory = reported["memory"] / 2**20
    return [compared(reported["ours"], reported["floor"]), Measurement(memory, "peak of the whole process")]


def _prompts(path: str) -> list[int]:
    return [event.byte for event in EventReader(path).heads(event="prompt:submit")]


def _read_blocks(path: str) -> None:
    """The floor: the file through one buffer, nothing looked at."""
    buffer = bytearray(BLOCK)
    fd = os.open(path, os.O_RDONLY)
    while os.readv(fd, [buffer]):
        pass
    os.close(fd)


def _tail(file: EventFile) -> Measurement:
    path = str(file.path)

    def ours() -> None:
        for _ in range(TAIL_BATCH):
            EventReader(path).tail(LAST)

    def floor() -> None:
        for _ in range(TAIL_BATCH):
            _last_lines(path)

    measured = by_turns([timed(ours), timed(floor)], TAIL_ROUNDS)
    return compared(*measured, each=TAIL_BATCH)


def _last_lines(path: str) -> list[int]:
    """The floor: where the last lines begin, by rfind over the mapped file."""
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as mapped:
        os.close(fd)
        begins: list[int] = []
        end = size - 1
        while len(begins) < LAST:
            end = mapped.rfind(b"\n", 0, end)
            begins.append(end + 1)
    return begins


def _peak_memory() -> int:
    """Bytes that this process had in memory at most; getrusage would count those of its parent, too."""
    status = Path("/proc/self/status").read_text("ascii")
    row = next(row for row in status.splitlines() if row.startswith("VmHWM:"))
    return int(row.split()[1]) * 1024


def main(arguments: Sequence[str]) -> None:
    """Scan the file and print what was found and how long it took."""
    (path,) = arguments
    offsets = _prompts(path)
    ours, floor = by_turns([timed(lambda: _prompts(path)), timed(lambda: _read_blocks(path))], ROUNDS)
    print(json.dumps({"offsets": offsets, "ours": ours, "floor": floor, "memory": _peak_memory()}))


_WORK = "offsets of all `prompt:submit` events in a 1 GB events.jsonl with 20 MB lines"

BENCHMARKS = (
    Benchmark(
        "events",
        (
            Row(_WORK, "plain block read", Limit(2.5)),
            Row(f"{_WORK}: memory", "64 MiB", Limit(64, unit=" MiB")),
            Row(f"heads of its last {LAST} events", "rfind over the same bytes", Limit(3)),
        ),
        _events,
    ),
)

if __name__ == "__main__":
    main(sys.argv[1:])
