"""The stream of a conversation: the stored messages, then those that other programs add."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice
from typing import Any

import anyio

from sessionary.errors import NotFound, SessionaryError
from sessionary.escaping import harmless
from sessionary.model import Problem, Reset
from sessionary.transcript.typed import Numbered, numbered
from sessionary.viewer.library import Place
from sessionary.viewer.parts import WHOLE, item_of, problem_item
from sessionary.viewer.streams import event, failure, in_thread
from sessionary.workspace.following import Follower

PERIOD = 0.2
"""Seconds between two looks at a followed session."""

_FIRST, _BATCH = 40, 400
"""Messages in the first event and in all others: the first fills a screen."""


async def stream(
    place: Place, row: Callable[[], dict[str, Any]], *, follow: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    """The events of a session: ``items``, ``ready`` once all is sent, later further ``items``.

    Then also ``reset``: everything follows anew; ``problems``: those that are ``gone``, and those that are ``added``;
    and ``row`` after each change.

    Args:
        row: its row in the list, as it is now.
        follow: asked whether to go on when all is sent.
    """
    try:
        reading = _Reading(place.workspace.follower(place.ref))
        async for batch in in_thread(reading.batches()):
            yield batch
        yield event("ready", {})
        while follow():
            await anyio.sleep(PERIOD)
            grown = False
            async for batch in in_thread(reading.batches()):
                yield batch
                grown = True
            if grown:
                yield event("row", await anyio.to_thread.run_sync(row))
    except SessionaryError as error:
        yield event("failed", failure(error))


_Problems = dict[tuple[int | None, str], dict[str, Any]]
"""Problems by line and message: one that is read again is the same."""


class _Reading:
    """What a follower yields, as events, with the number of each message."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._count = 0
        self._open: _Problems = {}
        self._is_first = True
        self._file: str | None = None  # that of the last message

    def batches(self) -> Iterator[bytes]:
        """What was added. An incomplete last line is not a problem: of new ones, those with a message behind them."""
        batch: list[dict[str, Any]] = []
        problems: _Problems = {}
        final, most, reads = 0, _FIRST, self._follower.reads
        for one in self._follower.poll():
            if isinstance(one, Reset):
                batch, problems, self._count, self._is_first, self._open = [], {}, 0, True, {}
                self._file = None
                yield event("reset", {})
            elif isinstance(one, Problem):
                problems[one.line, one.message] = item = problem_item(one)
                if self._is_first:
                    batch.append(item)
            else:
                batch.append(item_of(one, self._count) | self._changed_file(one))
                self._count += 1
                final = len(problems)
            if len(batch) >= most:
                yield event("items", batch)
                batch, most = [], _BATCH
        if batch:
            yield event("items", batch)
        if self._is_first:
            self._is_first, self._open = False, {} if self._follower.settled else problems
        elif self._follower.reads > reads:
            yield from self._changes(problems, len(problems) if self._follower.settled else final)

    def _changed_file(self, one: Numbered) -> dict[str, str]:
        """The name of the file of a message, where it is another one than that of the message before it."""
        if (path := (one.message.place.path or "").partition("#")[0]) == self._file:  # a row of a database
            return {}
        self._file = path
        return {"file": harmless(os.path.basename(path))}

    def _changes(self, problems: _Problems, final: int) -> Iterator[bytes]:
        """The problems that are gone, and those that are new among the first ones."""
        gone = [one for key, one in self._open.items() if key not in problems]
        new = {key: one for key, one in islice(problems.items(), final) if key not in self._open}
        left = {key: one for key, one in self._open.items() if key in problems}
        self._open = {} if self._follower.settled else left | new
        if gone or new:
            yield event("problems", {"gone": gone, "added": list(new.values())})


def messages(place: Place) -> Iterator[Numbered]:
    """All messages of a session in the order of the stream, in which their numbers count from 0.

    Raises:
        NotFound: the session is gone.
    """
    return numbered(place.workspace.read(place.ref), asides=True, inherited=True)


def message_at(place: Place, at: int) -> Numbered:
    """A message by its number. Raises NotFound if there is none with this number."""
    found = next(islice(messages(place), at, None), None)
    if found is None:
        raise NotFound(f"no message {at} in this session", hint="reload the session")
    return found


def whole_message(place: Place, at: int) -> dict[str, Any]:
    """One message with nothing cut. Raises NotFound if there is none with this number."""
    return item_of(message_at(place, at), at, WHOLE)
