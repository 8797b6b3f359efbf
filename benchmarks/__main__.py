"""`python -m benchmarks [name ...] [--check]`: measure, print, and write docs/performance.md.

Without names everything is measured but the other programs, and the page is written. With names the rows are only
printed, since a table that mixes runs would compare what was never side by side.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    agent_peers,
    agents,
    appends,
    brainstorms,
    checking,
    concurrency,
    events,
    features,
    hybrid,
    listing,
    load,
    mailbox,
    mcp_search,
    replacing,
    report,
    saves,
    searching,
    startup,
    surgery,
    sync,
    sync_cosmos,
    sync_objects,
    turns,
    viewer,
    work,
)
from benchmarks.harness import Benchmark, forget_freed, settle

# On the disk of the project: where temp files lie is often memory, which has nothing to flush.
SCRATCH = Path(__file__).resolve().parent.parent / ".bench"
IN_MEMORY = ("tmpfs", "ramfs")

ALL: tuple[Benchmark, ...] = (
    *appends.BENCHMARKS,
    *saves.BENCHMARKS,
    *load.BENCHMARKS,
    *concurrency.BENCHMARKS,
    *replacing.BENCHMARKS,
    *events.BENCHMARKS,
    *listing.BENCHMARKS,
    *searching.BENCHMARKS,
    *mcp_search.BENCHMARKS,
    *checking.BENCHMARKS,
    *agents.BENCHMARKS,
    *agent_peers.BENCHMARKS,
    *turns.BENCHMARKS,
    *surgery.BENCHMARKS,
    *work.BENCHMARKS,
    *mailbox.BENCHMARKS,
    *brainstorms.BENCHMARKS,
    *features.BENCHMARKS,
    *sync.BENCHMARKS,
    *hybrid.BENCHMARKS,
    *sync_cosmos.BENCHMARKS,
    *sync_objects.BENCHMARKS,
    *startup.BENCHMARKS,
    *viewer.BENCHMARKS,
)

# Measured before anything else: after many files were deleted, ext4 looks long for the inode of a new one (see
# `forget_freed`), and most of the others delete or replace what they have made.
MAKING_FILES = frozenset(("work-put", "mailbox-one", "mailbox-throughput"))


def main(arguments: Sequence[str]) -> int:
    """Measure what is asked for; 1 if `--check` was given and a row misses its limit."""
    names = [benchmark.name for benchmark in ALL]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row misses what it must reach")
    parser.add_argument("name", nargs="*", help=f"one of: {', '.join(names)}")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.name) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    SCRATCH.mkdir(exist_ok=True)
    if (kind := report.file_system_of(SCRATCH)) in IN_MEMORY:
        parser.error(f"{SCRATCH} lies in memory ({kind}): a flush costs nothing there, and so proves nothing")
    chosen = [one for one in ALL if (one.name in asked.name if asked.name else not one.apart)]
    measured: dict[str, list[report.Result]] = {}
    forget_freed()
    # All goes at the end, for the same reason.
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
        os.chmod(scratch, 0o711)  # a database server may run as another user
        for benchmark in sorted(chosen, key=lambda each: each.name not in MAKING_FILES):
            measured[benchmark.name] = _measure(benchmark, Path(scratch, benchmark.name))
    results = [result for benchmark in chosen for result in measured[benchmark.name]]
    if not asked.name:
        report.write(results, report.machine_of(SCRATCH))
    missed = [row for row, found in results if not row.limit.holds(found.figure)]
    print(f"{len(results) - len(missed)} of {len(results)} rows reach what they must")
    return 1 if asked.check and missed else 0


def _measure(benchmark: Benchmark, place: Path) -> list[report.Result]:
    start = time.monotonic()
    place.mkdir()
    settle()
    results = list(zip(benchmark.rows, benchmark.measure(place), strict=True))
    for row, measured in results:
        print(report.line(row, measured))
    print(f"       ({benchmark.name}: {time.monotonic() - start:.0f} s)", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
