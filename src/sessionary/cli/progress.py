"""Progress bars for long operations.

A bar is drawn on standard error, only on a terminal, only after a second, and not while results are printed there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from sessionary.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE = 1.0
Item = TypeVar("Item")


class Progress:
    """A bar that appears if the operation takes more than a second.

    Args:
        total: the amount of work in any unit; None if unknown: only the work done is shown.
        clock: seconds.
    """

    def __init__(self, what: str, total: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._clock = clock
        self._quiet_since = clock()
        self._wanted = can_be_drawn()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pause()

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; each counts as done when the next one is requested."""
        for item in items:
            yield item
            self.advance()

    def advance(self, amount: int = 1) -> None:
        """Add to the work done."""
        self.reach(self._done + amount)

    def reach(self, done: int) -> None:
        """Set the work done."""
        self._done = done
        if self._bar is None and self._wanted and self._clock() - self._quiet_since > PATIENCE:
            if output.is_on_screen():
                self._wanted = False
            else:
                self._bar = _started(self._what, self._total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def pause(self) -> None:
        """Remove the bar because something is printed; it comes back after another second without output."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._quiet_since = self._clock()


@contextmanager
def waiting(what: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """A bar without a total, with the time since it appeared, for one operation that takes more than a second."""
    if not can_be_drawn():
        yield
        return
    bars: list[Bar] = []
    timer = threading.Timer(patience, lambda: bars.append(_started(what, None, counted=False)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # once it has drawn, the bar can be removed
        for bar in bars:
            bar.stop()


def can_be_drawn() -> bool:
    """True if a user would see a bar."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _started(what: str, total: int | None, *, counted: bool = True) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    if not counted:
        columns.append(TimeElapsedColumn())
    elif total is None:
        columns.append(TextColumn("{task.completed:,.0f}"))
    else:
        columns += [TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()]
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
