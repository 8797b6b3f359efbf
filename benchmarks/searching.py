"""What it costs to find words in a gigabyte of transcripts without an index.

ripgrep searches the same bytes, but only the bytes: it finds the words in JSON keys, and does not find them where JSON
has written them with escapes. Our search decides on the decoded text, and reports which message it is. Its figures are
those of the command in process, cold: no earlier list has read the sessions.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from statistics import median

from benchmarks.gigabyte import FREQUENT, RARE, RARE_HITS, write_gigabyte
from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, in_words, settle, timed
from sessionary.cli.app import cli

ROUNDS = 7
HITS = 50

# The peak of a child counts the memory of its parent, from before it became another program; so it is asked itself.
_CHILD = """
import sys
from sessionary.cli import main
code = main(sys.argv[1:])
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
sys.stderr.write("peak " + peak[0])
sys.exit(code)
"""


def _searching(place: Path) -> list[Measurement]:
    paths = write_gigabyte(place)
    os.environ["XDG_CACHE_HOME"] = str(place / "nothing-remembered")
    settle()
    ours, ripgrep, process = by_turns(
        [lambda: _rare(place), lambda: _ripgrep(place), timed(lambda: _peak(place))], ROUNDS
    )
    first = [_first_hits(place) for _ in range(ROUNDS)]
    total = sum(path.stat().st_size for path in paths)
    what = f"{len(paths):,} files, {total / 1e9:.2f} GB; with the start of its process {in_words(median(process))}"
    peak = _peak(place) / 1024
    return [
        compared(ours, ripgrep, names=what),
        Measurement(peak, f"{peak:.0f} MiB, of which nothing is mapped"),
        Measurement(median(first) * 1000, f"{in_words(min(first))} to {in_words(max(first))}"),
    ]


def _rare(home: Path) -> float:
    """Seconds of `sessionary search` for the rare word.

    Raises:
        RuntimeError: it did not find every message.
    """
    seconds, out = _search(home, RARE)
    if out.lower().count(f"»{RARE}«") != RARE_HITS:
        raise RuntimeError("`sessionary search` does not find every message")
    return seconds


def _first_hits(home: Path) -> float:
    """Seconds up to the last of the first hits for the frequent one.

    Raises:
        RuntimeError: there were fewer.
    """
    seconds, out = _search(home, FREQUENT, "--limit", str(HITS))
    if out.lower().count(f"»{FREQUENT}«") != HITS:
        raise RuntimeError(f"`sessionary search` does not show {HITS} hits")
    return seconds


def _search(home: Path, *arguments: str) -> tuple[float, str]:
    out = io.StringIO()
    start = time.perf_counter()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        cli.main(["search", *arguments, "--home", str(home)], standalone_mode=False)
    return time.perf_counter() - start, out.getvalue()


def _peak(home: Path) -> int:
    """The most kB that a process of its own takes for the rare word."""
    command = [sys.executable, "-c", _CHILD, "search", RARE, "--home", str(home), "--jsonl"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return int(done.stderr.rpartition("peak ")[2])


def _ripgrep(home: Path) -> float:
    """Seconds of ripgrep for the same.

    Raises:
        RuntimeError: it did not find every line.
    """
    start = time.perf_counter()
    found = ripgrep(RARE, home, "-g", "transcript.jsonl")
    seconds = time.perf_counter() - start
    if found != RARE_HITS:
        raise RuntimeError("ripgrep does not find every line")
    return seconds


def ripgrep(word: str, home: Path, *options: str) -> int:
    """The number of lines below a folder in which ripgrep finds a word."""
    command = [_binary(), "-i", "--no-ignore", *options, word, str(home)]
    return subprocess.run(command, capture_output=True, check=True).stdout.count(b"\n")


def _binary() -> str:
    """The rg that `make bench` installed beside this Python, else any.

    Raises:
        RuntimeError: there is none.
    """
    found = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg")
    if found is None:
        raise RuntimeError("there is no rg; `make bench` installs it")
    return found


BENCHMARKS = (
    Benchmark(
        "search",
        (
            Row(
                "`sessionary search` of a rare word in 1 GB of transcripts, case folded, in process",
                "`rg -i`",
                Limit(3),
            ),
            Row("the memory of that", "-", Limit(64, unit=" MiB")),
            Row(
                f"the first {HITS} hits of a word in every fourth message, in process",
                "-",
                Limit(50, unit=" ms"),
            ),
        ),
        _searching,
    ),
)
