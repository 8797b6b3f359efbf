"""In-process listeners for appended events, such as a store that synchronises event logs.

A log is opened by the folder of its session, and has no reference to a store. So a listener registers for the
folder that contains the sessions, before or after a log is opened: both use the same list. Without listeners,
an append only checks an empty list.
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int], None]
"""Called with a session id and the number of bytes appended, in the thread of the append. Must not raise."""

_listeners: dict[str, list[Listener]] = {}


def listeners_of(root: str) -> list[Listener]:
    """The listeners for the sessions in this folder, given without links: always the same list."""
    return _listeners.setdefault(root, [])
