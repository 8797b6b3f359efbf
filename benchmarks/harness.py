"""How a figure is taken.

A figure is a ratio: our work beside its floor or a peer, both in one run, on one disk, by turns. Absolute times say
as much about the machine and its neighbours as about the code; a ratio of neighbours in time says only the latter.
Each round gives one ratio, and their median is the figure, so that a hiccup of the machine costs one round.
"""

from __future__ import annotations

import fcntl
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROUNDS = 5
LONG_ROUNDS = 3
_GET_FLAGS, _SET_FLAGS, _TOP_DIR = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h: chattr +T

Work = Callable[[], float]
"""Does one round of a work and returns the seconds that count."""


class Limit(NamedTuple):
    """What a figure must reach."""

    value: float
    at_least: bool = False
    unit: str = "x"

    def holds(self, figure: float) -> bool:
        """True if the figure reaches it."""
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}{self.unit}"


class Row(NamedTuple):
    """One line of the table: a work, what it is compared with, and what the comparison must reach."""

    work: str
    peer: str
    limit: Limit


class Measurement(NamedTuple):
    """What came out for a row.

    Attributes:
        figure: in the unit of the row's limit.
        numbers: the absolute numbers behind it, in words.
    """

    figure: float
    numbers: str


class Benchmark(NamedTuple):
    """Rows that are measured together.

    Attributes:
        name: how to ask for it.
        rows: lines of the table.
        measure: given an empty folder on the disk in question, returns a measurement for each row.
        apart: measured only if it is named, and not part of the table.
    """

    name: str
    rows: tuple[Row, ...]
    measure: Callable[[Path], Sequence[Measurement]]
    apart: bool = False


def timed(work: Callable[[], object]) -> Work:
    """The whole of `work` counts."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return once


def by_turns(works: Sequence[Work], rounds: int = ROUNDS) -> list[list[float]]:
    """Seconds by work and round. In every round another work goes first, so that none profits from its place."""
    seconds: list[list[float]] = [[] for _ in works]
    gc.collect()
    for number in range(rounds):
        for step in range(len(works)):
            place = (number + step) % len(works)
            seconds[place].append(works[place]())
    return seconds


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return median(our / their for our, their in zip(ours, theirs, strict=True))


def compared(
    ours: Sequence[float], theirs: Sequence[float], *, each: int = 1, names: str = ""
) -> Measurement:
    """Ours as a multiple of theirs; `each` operations were done in a round."""
    words = f"{in_words(median(ours) / each)} : {in_words(median(theirs) / each)}"
    return Measurement(ratio(ours, theirs), f"{words}{names and f' ({names})'}")


def in_words(seconds: float) -> str:
    """A time with the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def settle() -> None:
    """Let the disk take what earlier work left in memory, so that no flush of the next one pays for it."""
    os.sync()


def forget_freed() -> None:
    """Let ext4 without a journal forget which inodes were freed of late, where we may.

    It passes over those that it finds freed within the last minute, or five if they are not written yet, one by one,
    but looks for them in the cache only.
    """
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1", encoding="ascii")
    except OSError:
        pass  # only root may: then the first minutes after many files were deleted are no time to measure


def spread(place: Path) -> None:
    """Give each folder that `unlike` makes below `place` a group of inodes of its own, where the file system is ext4.

    It looks long for a free inode in a group in which many files were deleted of late, as benchmarks do, see
    `forget_freed`. The code that makes files would pay for that, ours and not theirs.
    """
    flags = bytearray(8)
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags)
        fcntl.ioctl(
            fd, _SET_FLAGS, (int.from_bytes(flags, sys.byteorder) | _TOP_DIR).to_bytes(8, sys.byteorder)
        )
    except OSError:
        pass  # another file system, which does not look like that
    finally:
        os.close(fd)


def unlike(place: Path, name: str) -> Path:
    """A new folder, whose name no earlier run has used: ext4 chooses the group of such a folder by its name."""
    folder = place / f"{name}-{os.urandom(4).hex()}"
    folder.mkdir()
    return folder
