"""Following a session: the messages that are in it, then those that its agent adds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from sessionary.disk.fs import Fs, is_file
from sessionary.errors import NotFound
from sessionary.layouts.base import Layout
from sessionary.mailbox.watching import Stop, is_set, wait, waker
from sessionary.model import Aside, Cursor, Inherited, Message, Place, Problem, Reset, SessionRef
from sessionary.transcript.history_messages import begins_turn
from sessionary.transcript.typed import Numbered

INTERVAL = 1.0
"""Seconds between two looks at a session that no event of the file system announces."""

_DELETED = (
    "it was deleted or moved: `sessionary list` shows the sessions that are left, also those in the archive"
)


def follow(
    layout: Layout, ref: SessionRef, fs: Fs, *, interval: float, stop: Stop, idle: Callable[[], object]
) -> Iterator[Numbered]:
    """Yield the messages of a session, and go on with those that are added; see `Workspace.follow`."""
    folder = _folder(ref.locator, fs)
    waking = waker(fs, folder, lambda _: True)
    follower = Follower(layout, ref)
    yielded: list[
        tuple[set[int], int]
    ] = []  # of each message: the hashes of its parts, the number of its records
    try:
        while not is_set(stop):
            waking.watch([folder])  # before reading, so that nothing is added unseen in between
            for one in follower.poll():
                if not isinstance(one, Numbered) or one.outside or one.inherited:
                    continue
                message = one.message
                parts, records = list(map(_hash, message.parts)), (message.place, *message.further)
                if one.index == len(yielded):
                    yielded.append((set(parts), len(records)))
                    yield one
                    continue
                known, count = yielded[one.index]
                yielded[one.index] = set(parts), len(records)
                if new := [
                    part for part, state in zip(message.parts, parts, strict=True) if state not in known
                ]:
                    place, *further = records[count:] or records
                    added = replace(message, parts=tuple(new), place=place, further=tuple(further))
                    yield replace(one, message=added)
            del yielded[follower.messages :]  # the session was rewound
            idle()
            wait(waking, interval, stop)
    except NotFound as error:
        error.hint = error.hint or _DELETED
        raise
    finally:
        waking.close()


def _hash(value: object) -> int:
    try:
        return hash(value)
    except TypeError:
        return hash(repr(value))  # it holds an object or an array of JSON


def _folder(locator: str, fs: Fs) -> str:
    """The folder in which the files of a session change."""
    path = locator.partition("#")[0]
    return os.path.dirname(path) if is_file(fs, path) else path


_NOWHERE = Place(None)

_START = (0, 0)
"""The numbers before the first cursor: messages of the conversation, turns."""


class Follower:
    """Reads a session once, and then what is added to it: from the last cursor, or from the start if there is none.

    A record that is being written is damage until it is whole, and then there is no cursor. What was yielded behind
    the last one is therefore remembered, and if it changes, everything is yielded anew.

    Attributes:
        messages: the number of messages in the conversation.
        reads: how often the session was read.
        settled: False if the problems of the last read are yielded by the next one again, or are gone then.
    """

    def __init__(self, layout: Layout, ref: SessionRef) -> None:
        self.messages: int = 0
        self.reads: int = 0
        self.settled: bool = True
        self._layout, self._ref = layout, ref
        self._state = b""
        self._cursor: Cursor | None = None
        self._mark = _START
        self._behind: list[int] = []
        """What was yielded behind the cursor, as hashes."""

    def poll(self) -> Iterator[Numbered | Problem | Reset]:
        """Yield what was added since the last call; everything in the first call.

        Messages outside of the conversation are included. `Reset`: what was yielded before is void, and everything
        follows. Problems behind the last cursor are yielded again. If nothing changed, no file is opened.

        Raises:
            NotFound: the session is gone.
        """
        state = self._layout.fingerprint(self._ref)
        if state and state == self._state:
            return
        self._state = state
        self.reads, self.settled = self.reads + 1, False
        index, turn = self._mark
        at, end = 0, 0
        for item in self._layout.read(self._ref, self._cursor):
            if isinstance(item, Reset):
                self._restart()
                index, turn = self._mark
                yield item
            elif isinstance(item, Cursor):
                self._cursor, self._mark, self.settled, end = item, (index, turn), True, at
            elif isinstance(item, Problem):
                yield item
            elif isinstance(item, Message | Aside | Inherited):
                turn += isinstance(item, Message) and begins_turn(item)
                digest = _digest(item)
                if at == len(self._behind):
                    self._behind.append(digest)
                    yield _numbered(item, index, turn)
                elif self._behind[at] != digest:
                    break
                at += 1
                index += isinstance(item, Message)
        self.messages = index
        if at < len(self._behind):
            self._restart()
            yield Reset()
            yield from self.poll()
        else:
            del self._behind[:end]

    def _restart(self) -> None:
        self._cursor = None
        self._mark = _START
        self._behind = []
        self._state = b""


def _digest(item: Message | Aside | Inherited) -> int:
    """The hash of a message, wherever it is stored."""
    message = item if isinstance(item, Message) else item.message
    rest = replace(message, parts=(), place=_NOWHERE, further=())
    return hash((type(item), _hash(rest), *map(_hash, message.parts)))


def _numbered(item: Message | Aside | Inherited, index: int, turn: int) -> Numbered:
    if isinstance(item, Inherited):
        return Numbered(0, 0, item.message, inherited=True)
    is_aside = isinstance(item, Aside)
    return Numbered(index, turn, item.message if isinstance(item, Aside) else item, outside=is_aside)
