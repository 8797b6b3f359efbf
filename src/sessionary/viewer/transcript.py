"""The stream of a conversation: what is stored, then what other programs add to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import anyio

from sessionary.errors import NotFound, SessionaryError
from sessionary.model import Problem, Reset
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
    """The events of a session: ``items``, ``ready`` once all is sent, later ``reset``, ``row`` and further ``items``.

    Args:
        place: the session.
        row: its row in the list, as it is now.
        follow: asked whether to go on when all is sent.
    """
    try:
        follower = place.workspace.follower(place.ref)
        async for batch in in_thread(_batches(follower, problems=True)):
            yield batch
        yield event("ready", {})
        while follow():
            await anyio.sleep(PERIOD)
            grown = False
            async for batch in in_thread(_batches(follower, problems=False)):
                yield batch
                grown = True
            if grown:
                yield event("row", await anyio.to_thread.run_sync(row))
    except SessionaryError as error:
        yield event("failed", failure(error))


def _batches(follower: Follower, *, problems: bool) -> Iterator[bytes]:
    """What was added, as events. A line that is being written is no problem, so none is sent while following."""
    batch: list[dict[str, Any]] = []
    most = _FIRST
    for one in follower.poll():
        if isinstance(one, Reset):
            batch = []
            yield event("reset", {})
        elif isinstance(one, Problem):
            if problems:
                batch.append(problem_item(one))
        else:
            batch.append(item_of(one))
        if len(batch) >= most:
            yield event("items", batch)
            batch, most = [], _BATCH
    if batch:
        yield event("items", batch)


def whole_message(place: Place, index: int, *, outside: bool) -> dict[str, Any]:
    """One message with nothing cut. Of several outside of the conversation at one index, the first.

    Raises:
        NotFound: there is none with this index.
    """
    found = place.workspace.messages(place.ref, index, index, asides=outside)
    one = next((one for one in found if one.outside == outside), None)
    if one is None:
        raise NotFound(f"no message {index} in this session", hint="reload the session")
    return item_of(one, WHOLE)
