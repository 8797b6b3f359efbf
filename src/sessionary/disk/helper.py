"""Many looks at the disk, some of them taken by a second process, while this one goes on with something else.

A look is a short system call with more Python around it than it takes itself: two threads would only wait for each
other's lock. A forked child begins at once and has everything that it is to look at; a byte for each look comes back.

The child begins with the last and comes towards this process, which looks from the first on as soon as it has time.
Where they meet, all is known and the child is ended. So neither waits for the other, whatever keeps one of them: a
machine that has no second core to spare just now, a disk that answers one of them late.

For a program of its own, as a command is. A library must not fork the program that it is loaded into: whatever other
libraries do in their threads goes on in one of the two only.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

Item = TypeVar("Item")

WORTH = 2000
"""Fewer looks than these are taken alone: a child costs about as much as a thousand of them."""

PIECE = 50
"""The child answers so many looks at once; after so many this process reads how far the child has come."""


class Helper(Generic[Item]):
    """A second process that looks at things from the last on, while this one does something else.

    Entered, it begins; left, it is at its end. Where there is no second core, or a thread that a child would lack,
    or too little to look at, there is none, and everything is looked at here.

    Args:
        look: gives a byte for each of some of the items, in their order. It must not change anything, since what a
            child changes nobody sees.
        items: all that is to be looked at.
        is_wanted: False if there is nothing to be done meanwhile.
    """

    def __init__(
        self,
        look: Callable[[Sequence[Item]], Iterable[int]],
        items: Sequence[Item],
        *,
        is_wanted: bool = True,
    ) -> None:
        self._look = look
        self._items = items
        self._is_wanted = is_wanted and len(items) >= WORTH and _has_company()
        self._child = 0
        self._answers = -1
        """The end of the pipe from which the child's answers are read."""

    def __enter__(self) -> Self:
        try:
            if self._is_wanted:
                with suppress(OSError):  # so many processes, or descriptors, this person may not have
                    self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def is_at_work(self) -> bool:
        """True if there is a second process: what else there is to do may be done now."""
        return self._child > 0

    def answers(self) -> Iterator[int]:
        """What `look` says of each item, in their order; each as soon as all up to it are known."""
        items, theirs, ours = self._items, bytearray(), 0
        while ours < (end := len(items) - len(theirs)):
            until = min(ours + PIECE, end) if self._child else end
            yield from self._look(items[ours:until])
            ours = until
            self._hear(theirs)
        yield from reversed(theirs[: len(items) - ours])  # the child's first is that of the last item

    def _begin(self) -> None:
        self._answers, there = os.pipe()
        try:
            # Ctrl-C reaches the child, too. Before it is where nothing escapes, it would come back as a second parent.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._child = os.fork()
                if not self._child:
                    self._answer(there)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        finally:
            os.close(there)
        os.set_blocking(self._answers, False)

    def _end(self) -> None:
        child, answers = self._child, self._answers
        self._child, self._answers = 0, -1
        if answers >= 0:
            os.close(answers)
        if child:
            # Where SIGCHLD is ignored, the system has waited for it, and its number may be another's by now.
            with suppress(ChildProcessError, ProcessLookupError):
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)

    def _hear(self, theirs: bytearray) -> None:
        """Take in what the child has answered by now; of one that was killed, or failed as we shall, no more comes."""
        if self._child:
            with suppress(BlockingIOError):
                while piece := os.read(self._answers, 1 << 16):
                    theirs += piece

    def _answer(self, there: int) -> NoReturn:
        """All that the child does. Whatever happens, it must not come back as a second one of the parent."""
        try:
            os.close(self._answers)  # or it would itself be the reader that its answer waits for
            items = self._items
            for end in range(len(items), 0, -PIECE):
                answers = bytes(self._look(items[max(end - PIECE, 0) : end]))
                os.write(there, answers[::-1])  # all of it: a pipe takes so few at once, or waits
        finally:
            os._exit(0)


def _has_company() -> bool:
    """True if this program may fork, and a second process would not have to wait for this one's core.

    On macOS the system's own libraries may keep a forked child from going on; there it has no `sched_getaffinity`.
    """
    return (
        hasattr(os, "fork")
        and hasattr(os, "sched_getaffinity")
        and len(os.sched_getaffinity(0)) > 1
        and threading.active_count() == 1
    )
