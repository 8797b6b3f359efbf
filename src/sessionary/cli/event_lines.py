"""An event as one line: time, level, name, duration, size and its most important detail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sessionary.cli import formatting, output
from sessionary.cli.page import telling
from sessionary.cli.text import cells, fit, one_line
from sessionary.layouts.amplifier.event_heads import EventHead

DETAIL = 200
NAME = 21
_WIDE = 60

PATHS = (
    "error",
    "data.error",
    "data.prompt",
    "data.tool_name",
    "data.tool_input",
    "data.model",
    "data.usage",
    "data.message_count",
    "data.agent",
    "data.sub_session_id",
)
"""The fields that `detail` reads."""

_SIGNS = {"ERROR": "✗", "CRITICAL": "✗", "WARNING": "!", "WARN": "!", "INFO": " ", "DEBUG": "·", None: "?"}
_COLOURS = {"✗": "red", "!": "yellow"}


class EventLines:
    """Turns events into lines, with a heading for each new day.

    Args:
        room: cells per line; None: nothing is cut.
        now: the present, for dates without a year.
    """

    def __init__(self, room: int | None, *, now: datetime) -> None:
        self._room = room
        self._now = now
        self._day: str | None = None

    def lines(self, head: EventHead, fields: Mapping[str, Any]) -> Iterator[str]:
        """The line of an event, preceded by that of its day if it is the first of it."""
        time = "--:--:--"
        if head.ts is not None:
            time, day = formatting.clock(head.ts), formatting.stamp(head.ts, self._now).rpartition(" ")[0]
            if day != self._day:
                self._day = day
                yield output.paint(f"── {day} ".ljust(self._room or output.WIDTH, "─"), "cyan")
        level = None if head.lvl is None else head.lvl.upper()
        sign = _SIGNS.get(level, "?")
        took = "" if head.duration_ms is None else duration(head.duration_ms)
        name = one_line(head.event or "(no name)")
        facts = f"{time} {sign} {name:{NAME}}"
        if self._room is None or self._room >= _WIDE:
            facts += f" {took:>7} {formatting.size(head.length):>6}"
        detail_text = detail(head, fields)
        if self._room is not None:
            detail_text = fit(detail_text, max(self._room - cells(facts) - 2, 0))
        line = f"{facts}  {detail_text}".rstrip()
        line = line if self._room is None else fit(line, self._room)
        yield output.paint(line, _COLOURS[sign]) if sign in _COLOURS else line


def detail(head: EventHead, fields: Mapping[str, Any]) -> str:
    """The most important detail of an event, on one line of at most `DETAIL` characters."""
    parts = list(_parts(fields))
    if head.status is not None and head.status not in ("ok", "success"):
        parts.append(head.status)
    return fit(one_line("  ".join(parts)[: 4 * DETAIL]), DETAIL)


def _parts(fields: Mapping[str, Any]) -> Iterator[str]:
    if (error := fields.get("error") or fields.get("data.error")) is not None:
        yield _error(error)
    if isinstance(tool := fields.get("data.tool_name"), str):
        yield tool
        yield telling(fields.get("data.tool_input"))
    if isinstance(usage := fields.get("data.usage"), dict):
        yield _usage(usage)
    if type(count := fields.get("data.message_count")) is int:
        yield formatting.count(count, "message")
    for path in ("data.agent", "data.sub_session_id", "data.prompt", "data.model"):
        if isinstance(word := fields.get(path), str):
            yield word


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    parts = [error[key] for key in ("type", "msg", "message") if isinstance(error.get(key), str)]
    return ": ".join(parts) or "error"


def _usage(usage: Mapping[str, Any]) -> str:
    parts = [
        f"{usage[name]:,} {word}"
        for name, word in (("input_tokens", "in"), ("output_tokens", "out"))
        if type(usage.get(name)) is int
    ]
    if isinstance(cost := usage.get("cost_usd"), str | int | float):
        parts.append(f"${cost}")
    return " ".join(parts)


def duration(milliseconds: float) -> str:
    """A duration in at most seven characters: ``912 ms``, ``11.6 s``, ``2.5 min``."""
    for limit, unit, word in ((999.5, 1, "ms"), (99_950, 1000, "s"), (5_997_000, 60_000, "min")):
        if milliseconds < limit:
            number = milliseconds / unit
            return f"{number:.0f} {word}" if unit == 1 else f"{number:.1f} {word}"
    return f"{milliseconds / 3_600_000:.1f} h"
