"""What a command costs before it does anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, timed

ROUNDS = 21


def _version(place: Path) -> list[Measurement]:
    script = Path(sys.executable).with_name("sessionary")
    ours = timed(lambda: _run(str(script), "--version"))
    floor = timed(lambda: _run(sys.executable, "-c", "pass"))
    return [compared(*by_turns([ours, floor], ROUNDS))]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


BENCHMARKS = (
    Benchmark(
        "version", (Row("`sessionary --version`, a new process", "`python -c pass`", Limit(5)),), _version
    ),
)
