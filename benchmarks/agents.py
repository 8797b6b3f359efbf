"""What it costs to list, search, show and count the sessions of Claude Code and Codex.

The first catalogue is compared with msgspec decoding the same files line by line, in process. All other times are
those of whole processes, as a user has them. Every list is compared with what the store is known to hold.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.agent_stores import CLAUDE_CODE, CODEX, FREQUENT, RARE, Truth, write_stores
from benchmarks.harness import (
    LONG_ROUNDS,
    Benchmark,
    Limit,
    Measurement,
    Row,
    Work,
    by_turns,
    compared,
    in_words,
    ratio,
    settle,
    timed,
)
from benchmarks.searching import ripgrep
from sessionary.catalog import Catalog
from sessionary.catalog.store import FILE
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.model import Summary, Usage
from sessionary.testing.layout_suite import CountingFs

SESSIONS, SIZE = 10_000, 94_000
LARGE = 28_000_000
"""Of two sessions of this size on average, each has 100 MB; see `write_stores`."""
ROUNDS = 7
HITS = 50
SCREEN = 24
ROWS = 10
LAYOUTS = (ClaudeCodeLayout, CodexLayout)
_decode = msgspec.json.Decoder().decode

# The peak of a child counts the memory of its parent, from before it became another program; so it is asked itself.
_CHILD = """
import sys
from sessionary.cli import main
code = main(sys.argv[1:])
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
sys.stderr.write("peak " + peak[0])
sys.exit(code)
"""


def _catalogue(place: Path) -> list[Measurement]:
    truth = write_stores(place / "home", SESSIONS, SIZE)
    settle()
    time.sleep(MTIME_GRACE)  # what was written a moment ago is not remembered
    works = [_first(place, truth, kind) for kind in (CLAUDE_CODE, CODEX)]
    works += [_decoding(truth, kind) for kind in (CLAUDE_CODE, CODEX)]
    *ours, claude_lines, codex_lines = by_turns(works, LONG_ROUNDS)
    both = [sum(seconds) for seconds in zip(*ours, strict=True)]
    lines = [sum(seconds) for seconds in zip(claude_lines, codex_lines, strict=True)]
    parts = f"Claude Code {ratio(ours[0], claude_lines):.2f}x, Codex {ratio(ours[1], codex_lines):.2f}x"
    peak = _peak(place, "sql", "SELECT count(*) FROM sessions") / 1024
    return [
        compared(both, lines, names=parts),
        Measurement(peak, "a new process with an empty cache"),
        _first_rows(place),
        *_warm(place, truth),
        *_searches(place, truth),
    ]


def _first(place: Path, truth: Truth, kind: str) -> Work:
    """Seconds to read all sessions of a kind into an empty catalogue.

    Raises:
        RuntimeError: what it says is not what the store holds.
    """

    def once() -> float:
        shutil.rmtree(place / "first", ignore_errors=True)
        (layout,) = (one for one in LAYOUTS if one.name == kind)
        start = time.perf_counter()
        found = list(Catalog(str(place / "first")).summaries(layout(place / "home")))
        seconds = time.perf_counter() - start
        _compare(found, truth, kind)
        return seconds

    return once


def _compare(found: Sequence[Summary], truth: Truth, kind: str) -> None:
    usage: dict[tuple[str, str], Usage] = {}
    for one in found:
        for model, used in one.usage_by_model().items():
            usage[kind, model] = usage.get((kind, model), Usage()).plus(used)
    counts = len(found), sum(one.turns for one in found)
    expected = {key: used for key, used in truth.usage.items() if key[0] == kind}
    if counts != (truth.sessions[kind], truth.turns[kind]) or usage != expected:
        raise RuntimeError(f"the sessions of {kind} are not counted right: {counts}, {usage}, not {expected}")


def _decoding(truth: Truth, kind: str) -> Work:
    paths = [path for path in truth.paths if ("rollout-" in path.name) == (kind == CODEX)]

    def lines() -> None:
        for path in paths:
            with path.open("rb") as file:
                for line in file:
                    _decode(line)

    return timed(lines)


def _warm(place: Path, truth: Truth) -> list[Measurement]:
    """The list and the statistics of sessions that have not changed.

    Raises:
        RuntimeError: the list wrote something.
    """
    _run(place, "list")
    catalogue = next(place.joinpath("cache").rglob(FILE))
    before = os.stat(catalogue)
    lists, stats = by_turns([timed(lambda: _run(place, "list")), timed(lambda: _run(place, "stats"))], ROUNDS)
    after = os.stat(catalogue)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise RuntimeError("a list of unchanged sessions wrote to the catalogue")
    stored = sum(path.stat().st_size for path in truth.paths)
    return [
        Measurement(
            1000 * median(lists), f"{in_words(min(lists))} to {in_words(max(lists))}, nothing written"
        ),
        Measurement(1000 * median(stats), f"{in_words(min(stats))} to {in_words(max(stats))}"),
        Measurement(after.st_size / stored, f"{after.st_size / 1e6:.1f} MB : {stored / 1e6:.0f} MB"),
    ]


def _first_rows(place: Path) -> Measurement:
    """Seconds until a first list on a terminal has printed its first rows, before it has read the sessions."""
    rows = [_rows_on_terminal(place) for _ in range(LONG_ROUNDS)]
    return Measurement(1000 * median(rows), f"{in_words(min(rows))} to {in_words(max(rows))}, an empty cache")


def _rows_on_terminal(place: Path) -> float:
    """Seconds until a new process with an empty cache has printed some rows that are not counted yet."""
    shutil.rmtree(place / "cache", ignore_errors=True)
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    with subprocess.Popen(
        _command(place, "list"), stdin=theirs, stdout=theirs, stderr=theirs, env=_surroundings(place)
    ) as process:
        shown = b""
        while shown.count("…".encode()) < ROWS or shown.count(b"\n") <= ROWS:
            shown += os.read(ours, 1 << 16)
            if b"reading sessions" in shown:
                raise RuntimeError("the sessions are read before the first rows are printed")
        seconds = time.perf_counter() - start
        process.kill()
    os.close(ours)
    os.close(theirs)
    return seconds


def _searches(place: Path, truth: Truth) -> list[Measurement]:
    hits = _run(place, "search", RARE, "--jsonl").count(b"\n")
    ours, theirs = by_turns(
        [timed(lambda: _run(place, "search", RARE)), timed(lambda: ripgrep(RARE, place / "home"))], ROUNDS
    )
    first = [_until(place, HITS, "search", FREQUENT, "--jsonl") for _ in range(ROUNDS)]
    return [
        compared(ours, theirs, names=f"{len(truth.paths):,} files, {hits} hits"),
        Measurement(1000 * median(first), f"{in_words(min(first))} to {in_words(max(first))}"),
    ]


def _large(place: Path) -> list[Measurement]:
    """Sessions of 100 MB: one message more, and the first screen."""
    truth = write_stores(place / "home", 2, LARGE)
    settle()
    time.sleep(MTIME_GRACE)
    names = {CLAUDE_CODE: _largest(truth, "projects"), CODEX: _largest(truth, "sessions")}
    fresh = [_first_screen(place, path, forget=True) for path in names.values() for _ in range(LONG_ROUNDS)]
    _run(place, "list")
    known = [_first_screen(place, path, forget=False) for path in names.values() for _ in range(ROUNDS)]
    peak = max(_peak(place, "show", path.stem[-36:]) for path in names.values()) / 1024
    longer, read = [], []
    for layout in LAYOUTS:
        for _ in range(ROUNDS):
            unchanged, _ = _refresh(place, layout)
            added = _append(names[layout.name])
            changed, count = _refresh(place, layout)
            longer.append(changed - unchanged)
            read.append(count - added)
    return [
        Measurement(1000 * median(longer), f"{in_words(max(longer))} at most, either agent"),
        Measurement(max(read) / 1024, "the most of all rounds; either agent"),
        Measurement(1000 * median(known), f"{in_words(min(known))} to {in_words(max(known))}, either agent"),
        Measurement(1000 * median(fresh), f"{in_words(min(fresh))} to {in_words(max(fresh))}, either agent"),
        Measurement(peak, "all of it is shown"),
    ]


def _largest(truth: Truth, folder: str) -> Path:
    return max((one for one in truth.paths if folder in one.parts), key=lambda one: one.stat().st_size)


def _refresh(place: Path, layout: type[ClaudeCodeLayout | CodexLayout]) -> tuple[float, int]:
    """Seconds of a list in process, and the bytes that it reads of sessions."""
    fs = CountingFs()
    start = time.perf_counter()
    found = list(Catalog(str(place / "refreshed")).summaries(layout(place / "home", fs)))
    seconds = time.perf_counter() - start
    if not found:
        raise RuntimeError("no session is found")
    return seconds, fs.bytes_read


def _append(path: Path) -> int:
    """Append a message as the agent would; its size in bytes."""
    with path.open("rb") as file:
        file.seek(-20_000, os.SEEK_END)
        last = json.loads(file.read().splitlines()[-1])
    if "uuid" in last:
        message = {"role": "user", "content": "one more"}
        record = {**last, "type": "user", "message": message, "parentUuid": last["uuid"]}
        record["uuid"] = f"{time.monotonic_ns():032x}"
    else:
        record = {**last, "payload": {"type": "user_message", "message": f"one more {time.monotonic_ns()}"}}
    line = msgspec.json.encode(record) + b"\n"
    with path.open("ab") as file:
        return file.write(line)


def _first_screen(place: Path, path: Path, *, forget: bool) -> float:
    if forget:
        shutil.rmtree(place / "cache", ignore_errors=True)
    return _until(place, SCREEN, "show", path.stem[-36:])


def _until(place: Path, lines: int, *arguments: str) -> float:
    """Seconds until a new process has printed so many lines."""
    start = time.perf_counter()
    with subprocess.Popen(
        _command(place, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_surroundings(place),
    ) as process:
        assert process.stdout is not None
        for _ in range(lines):
            if not process.stdout.readline():
                raise RuntimeError(f"`sessionary {' '.join(arguments)}` printed less than {lines} lines")
        seconds = time.perf_counter() - start
        process.kill()
    return seconds


def _run(place: Path, *arguments: str) -> bytes:
    command = _command(place, *arguments)
    return subprocess.run(command, check=True, capture_output=True, env=_surroundings(place)).stdout


def _command(place: Path, name: str, *arguments: str) -> list[str]:
    script = str(Path(sys.executable).with_name("sessionary"))
    return [script, name, *arguments, "--home", str(place / "home")]


def _peak(place: Path, *arguments: str) -> int:
    """The most kB that a new process with an empty cache takes."""
    shutil.rmtree(place / "cache", ignore_errors=True)
    command = [sys.executable, "-c", _CHILD, *_command(place, *arguments)[1:]]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=_surroundings(place))
    return int(done.stderr.rpartition("peak ")[2])


def _surroundings(place: Path) -> dict[str, str]:
    """As where it is installed: Python keeps what it has compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"XDG_CACHE_HOME": str(place / "cache"), "PYTHONPYCACHEPREFIX": str(place / "compiled")}


_STORE = f"{SESSIONS:,} sessions of Claude Code and Codex (1 GB)"
BENCHMARKS = (
    Benchmark(
        "agents",
        (
            Row(
                f"first catalogue of {_STORE}, counts compared",
                "msgspec decodes them, line by line",
                Limit(3),
            ),
            Row("the memory of that", "-", Limit(64, unit=" MiB")),
            Row("the first rows of the first `sessionary list` on a terminal", "-", Limit(2000, unit=" ms")),
            Row("`sessionary list` of them, unchanged, a new process", "-", Limit(400, unit=" ms")),
            Row("`sessionary stats` of them, unchanged, a new process", "-", Limit(500, unit=" ms")),
            Row("size of the catalogue", "size of the sessions", Limit(0.02)),
            Row("`sessionary search` of a rare word in them, a new process", "`rg -i`", Limit(4)),
            Row(
                f"the first {HITS} hits of a word in every answer, a new process", "-", Limit(250, unit=" ms")
            ),
        ),
        _catalogue,
    ),
    Benchmark(
        "agents-large",
        (
            Row(
                "list after one message more in a session of 100 MB",
                "the same without",
                Limit(20, unit=" ms"),
            ),
            Row("bytes read of it, besides the message", "-", Limit(64, unit=" kB")),
            Row("`show` of it: first screen, catalogued, a new process", "-", Limit(250, unit=" ms")),
            Row("the same, with nothing catalogued", "-", Limit(1000, unit=" ms")),
            Row("the memory of showing all of it", "-", Limit(100, unit=" MiB")),
        ),
        _large,
    ),
)
