"""Answers that arrive while they are made: steps of a generator in a thread, as lines that a page reads at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any, TypeVar

import msgspec
from anyio import to_thread

from sessionary.errors import SessionaryError

Step = TypeVar("Step")
_END = object()
EVENTS = "text/event-stream"


async def in_thread(steps: Iterator[Step]) -> AsyncGenerator[Step]:
    """The steps of a generator, each made in a thread. When the browser goes away the thread is not waited for."""
    while True:
        step = await to_thread.run_sync(next, steps, _END, abandon_on_cancel=True)
        if step is _END:
            return
        yield step  # type: ignore[misc]


def event(name: str, data: Any) -> bytes:
    """A server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


def failure(error: SessionaryError) -> dict[str, Any]:
    """An error as JSON for the page."""
    return {"error": type(error).__name__, "message": error.message, "hint": error.hint, "path": error.path}
