"""Many looks at the disk, most of them taken by a second process, while this one goes on with something else.

A look is a short system call with more Python around it than it takes itself: two threads would only wait for each
other's lock. A forked child begins at once and has everything that it is to look at; a byte for each look comes back.
On a slow disk all of that takes long, so answers are handed on as they come: whoever waits can be told how far it is.

For a program of its own, as a command is. A library must not fork the program that it is loaded into: whatever other
libraries do in their threads goes on in one of the two only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")

WORTH = 2000
"""Fewer looks than these are taken alone: a child costs about as much as a thousand of them."""


SHARE = 0.8
"""The child's part of the looks. What a list has to do here meanwhile takes longer than half of them."""


PIECE = 100
"""The child sends so many answers at once."""


def with_helper(
    look: Callable[[Sequence[Item]], Iterable[int]],
    items: Sequence[Item],
    meanwhile: Callable[[], object],
) -> Generator[int, None, None]:
    """What `look` answers for the items: a byte for each, in their order, each as soon as all up to it are known.

    Where there is no second core, or a thread that a child would lack, `look` is called here with all of them, and
    `meanwhile` is not called.

    Args:
        look: asked for some of the items; must not change anything, since what a child changes nobody sees.
        items: all of them.
        meanwhile: what can be done here before the first answer is known.
    """
    if len(items) < WORTH or not _has_company():
        yield from look(items)
        return
    ours = len(items) - int(SHARE * len(items))
    here, there = os.pipe()
    try:
        child = os.fork()
    except OSError:  # so many processes this person may not have
        os.close(here)
        os.close(there)
        yield from look(items)
        return
    if not child:
        _answer(look, items[ours:], there, here)
    os.close(there)
    known = ours
    try:
        meanwhile()
        yield from look(items[:ours])
        while piece := os.read(here, 1 << 16):
            known += len(piece)
            yield from piece
    finally:
        os.close(here)  # a child that nobody listens to any more ends with its next answers
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, the system has waited for it
            os.waitpid(child, 0)
    yield from look(items[known:])  # nothing, or it was killed, or failed as we shall here


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


def _answer(
    look: Callable[[Sequence[Item]], Iterable[int]], items: Sequence[Item], there: int, here: int
) -> None:
    """All that the child does. Whatever happens, it must not come back as a second one of the parent."""
    try:
        os.close(here)  # or it would itself be the reader that its answer waits for
        answers = iter(look(items))
        while piece := bytes(islice(answers, PIECE)):
            os.write(there, piece)  # all of it: a pipe takes so few at once, or waits
    finally:
        os._exit(0)
