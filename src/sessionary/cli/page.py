"""A conversation as a page: turns under rules, tools on one line each with the head and tail of what they answered.

The page is made while the messages go by, so that the first turn of a huge session is there at once. A tool call
waits for its result, which follows in a later message, and is shown with it; a call that nobody answered says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from sessionary.cli.output import paint
from sessionary.cli.phrases import count, stamp
from sessionary.cli.said import Said
from sessionary.cli.text import cells, fit, harmless, one_line, wrap
from sessionary.turns import ToolCall, ToolResult

HEAD = 8
TAIL = 4

# What tells most about a call, in this order.
_TELLING = (
    "command", "pattern", "query", "agent", "file_path", "path", "url", "instruction", "prompt", "name", "description",
)  # fmt: skip
_SPEAKERS = {"assistant": "Agent", "user": "Hook", "tool": "Tool", "system": "System", "developer": "Developer"}


class Page:
    """Turns messages into lines.

    Args:
        width: cells per line.
        full: fold nothing.
        now: for dates without a year.
    """

    def __init__(self, width: int, *, full: bool, now: datetime) -> None:
        self._width = width
        self._full = full
        self._now = now
        self._waiting: dict[str, ToolCall] = {}
        self._speaker: str | None = None

    def lines(self, messages: Iterable[Said]) -> Iterator[str]:
        """The lines of the messages, in order."""
        for message in messages:
            if message.results:
                for result in message.results:
                    yield from self._result(result)
                if message.role == "tool" or not message.text:
                    continue
            yield from self._unanswered()
            yield from self._person(message) if message.person else self._other(message)
            self._waiting = {call.call_id or str(at): call for at, call in enumerate(message.calls)}
        yield from self._unanswered()

    def _person(self, message: Said) -> Iterator[str]:
        time = f" {stamp(message.time, self._now)} ──" if message.time else ""
        rule = f"── {message.turn} ── You ".ljust(self._width - cells(time), "─")
        self._speaker = "You"
        yield ""
        yield paint(rule + time, "cyan")
        yield from self._text(message.text or _without_words(message.record))

    def _other(self, message: Said) -> Iterator[str]:
        if message.role is None:
            yield paint(fit(f"record without a role: {one_line(_json(message.record))}", self._width), "dim")
            return
        if message.role == "user" and not self._full:
            yield paint(fit(f"hook: {one_line(message.text)}", self._width), "dim")
            return
        yield from self._thinking(message)
        if message.text:
            yield from self._label(_SPEAKERS.get(message.role, message.role), message.time)
            yield from self._text(message.text)
...
