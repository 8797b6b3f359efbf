"""Who wants to hear of it when this program appends an event: a store that carries event logs to another side.

A log is opened by the folder of its session, and knows no store. So whoever wants to hear says so by the folder that
holds the sessions, before a log is opened or after: both have the same list in hand. While nobody wants to, an append
pays for a look at an empty list.
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int], None]
"""Told the id of a session and how many bytes its log grew by; in the thread of the append. It must not raise."""

_ears: dict[str, list[Listener]] = {}


def ears_of(root: str) -> list[Listener]:
    """Who wants to hear of the sessions in this folder, given without links: one list, for all time."""
    return _ears.setdefault(root, [])
