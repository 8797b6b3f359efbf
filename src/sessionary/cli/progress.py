"""How far a long work has come, for a person who waits for it.

It is drawn on standard error, only on a terminal, only after a second, and not while results are being printed there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from sessionary.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE = 1.0
Item = TypeVar("Item")


class Progress:
    """A bar that appears if the work takes more than a second.

    Args:
        what: what is done, in a word.
        total: how much there is to do, in any unit; None: nobody knows, and only what is done is shown.
        clock: seconds.
    """

    def __init__(self, what: str, total: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._clock = clock
        self._quiet_since = clock()
        self._wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()

    def over(self, items: Iterable[Item]) -> Iterable[Item]:
        """The items, each of them done when the next is asked for."""
        return self._each(items) if self._wanted else items

    def _each(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            yield item
            self.advance()

    def advance(self, amount: int = 1) -> None:
        """So much more is done."""
        self.reach(self._done + amount)

    def reach(self, done: int) -> None:
        """So much is done in all."""
        self._done = done
        if self._bar is None and self._wanted and self._clock() - self._quiet_since > PATIENCE:
            if output.is_on_screen():
                self._wanted = False
            else:
                self._bar = _started(self._what, self._total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def pause(self) -> None:
        """Take the bar away, because something is printed now; it comes back after another second without any."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._quiet_since = self._clock()


def _started(what: str, total: int | None) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    how_far = "{task.completed:,.0f}" if total is None else "{task.percentage:.0f} %"
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(), TextColumn(how_far)]
    if total is not None:
        columns.append(TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
