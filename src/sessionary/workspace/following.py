"""Following a session: the messages that are in it, then those that its agent adds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from sessionary.disk.fs import Fs, is_file
from sessionary.layouts.base import Layout
from sessionary.mailbox.watching import Stop, is_set, wait, waker
from sessionary.model import Cursor, Message, Reset, SessionRef
from sessionary.transcript.history_messages import begins_turn
from sessionary.transcript.typed import Numbered

INTERVAL = 1.0
"""Seconds between two looks at a session that no event of the file system announces."""


def follow(
    layout: Layout, ref: SessionRef, fs: Fs, *, interval: float, stop: Stop, idle: Callable[[], object]
) -> Iterator[Numbered]:
    """Yield the messages of a session, and go on with those that are added; see `Workspace.follow`."""
    folder = _folder(ref.locator, fs)
    waking = waker(fs, folder, lambda _: True)
    reader = _Reader(layout, ref)
    before = None
    try:
        while not is_set(stop):
            waking.watch([folder])  # before reading, so that nothing is added unseen in between
            state = layout.fingerprint(ref)
            if not state or state != before:
                yield from reader.added()
            before = state
            idle()
            wait(waking, interval, stop)
    finally:
        waking.close()


def _folder(locator: str, fs: Fs) -> str:
    """The folder in which the files of a session change."""
    path = locator.partition("#")[0]
    return os.path.dirname(path) if is_file(fs, path) else path


class _Reader:
    """Reads what was added: from the last cursor, or from the start where a layout has none.

    A record that is being written is damage until it is whole, and then there is no cursor. What was yielded behind
    the last one is therefore counted.
    """

    def __init__(self, layout: Layout, ref: SessionRef) -> None:
        self._layout, self._ref = layout, ref
        self._cursor: Cursor | None = None
        self._index = self._turn = 0  # of the first message behind the cursor, and of the last turn before it
        self._yielded = 0

    def added(self) -> Iterator[Numbered]:
        """Yield the messages that were not yielded before."""
        index, turn = self._index, self._turn
        for item in self._layout.read(self._ref, self._cursor):
            if isinstance(item, Reset):
                index = turn = 0
            elif isinstance(item, Message):
                turn += begins_turn(item)
                if index >= self._yielded:
                    self._yielded = index + 1
                    yield Numbered(index, turn, item)
                index += 1
            elif isinstance(item, Cursor):
                self._cursor, self._index, self._turn = item, index, turn
        self._yielded = index  # fewer than before if the session was rewound
