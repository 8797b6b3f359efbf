"""Identify events from the first bytes of their lines, and filter them.

Both writers of this format, ours and amplifier's hook, put all identifying keys before `data`. So the head of
a line is cut before `data`, closed with a brace and decoded: if that is an object, `data` was a key of the
event itself and not of something inside it, since braces and quotes would not match otherwise. With another
key order, or a head that ends too early, the whole line is read; msgspec then builds only the wanted fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict

import msgspec

from sessionary.codec.decode import REFUSED
from sessionary.codec.times import parse_time
from sessionary.disk.line_reader import Head
from sessionary.errors import Invalid

WIDTH = 1024
HUGE = 1 << 20
_EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_DATA = b'"data":'


class EventHead(NamedTuple):
    """An event without its data. Missing values are None.

    Attributes:
        line: line number, from 1; None if reading began at the end of the file.
        byte: offset of the line.
        length: its size in bytes, without the newline.
        ts: when it happened (UTC).
        lvl: its level, such as ``INFO``.
        event: its name, such as ``llm:response``; empty if missing.
        session_id: its session id.
        duration_ms: its duration.
        status: its result, such as ``ok``.
        span_id: its span.
        parent_span_id: the parent of its span.
    """

    line: int | None
    byte: int
    length: int
    ts: datetime | None
    lvl: str | None
    event: str
    session_id: str | None
    duration_ms: float | None
    status: str | None
    span_id: str | None
    parent_span_id: str | None


class Top(msgspec.Struct, gc=False):
    """The identifying fields of an event, as in the file."""

    ts: str | int | float | None = None
    lvl: str | None = None
    event: str | None = None
    session_id: str | None = None
    duration_ms: int | float | None = None
    status: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None

    def at(self, head: Head) -> EventHead:
        """These fields, and their place."""
        return EventHead(
            head.line,
            head.byte,
            head.length,
            parse_time(self.ts),
            self.lvl,
            self.event or "",
            self.session_id,
            self.duration_ms,
            self.status,
            self.span_id,
            self.parent_span_id,
        )


_decode_top = msgspec.json.Decoder(Top).decode


def top_of_head(head: Head) -> Top | None:
    """The fields in the first bytes of a long line, or None if they do not suffice.

    They are used if time and event come before `data`, and the line ends as one whose last key is `data`. The
    bytes between are not parsed: other fields after `data` are missed in a long line that ends in an object
    of its own.
    """
    front, data, _ = head.head.partition(_DATA)
    if not data or not head.whole or head.end != b"}}":
        return None
    try:
        top = _decode_top(front.rstrip(b", ") + b"}")
    except REFUSED:
        return None
    return None if top.ts is None or top.event is None else top


def top_of_line(raw: bytes) -> Top | None:
    """The fields of a whole line, or None if it is not plain JSON of the usual types."""
    try:
        top = _decode_top(raw)
    except REFUSED:
        return None
    return top if raw.isascii() or is_utf8(raw) else None


def top_of_value(value: Mapping[str, Any]) -> Top:
    """The fields of a decoded event; a field of an unusual type is missing."""
    numbers = {name: value.get(name) for name in ("ts", "duration_ms") if _is_number(value.get(name))}
    texts = {
        name: value[name]
        for name in Top.__struct_fields__
        if name != "duration_ms" and isinstance(value.get(name), str)
    }
    return Top(**numbers, **texts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_utf8(raw: bytes) -> bool:
    """Whether bytes are valid UTF-8; msgspec does not check text that it skips.

    A huge line is not checked: that can cost several times the decoding of a field.
    """
    if len(raw) > HUGE or raw.isascii():
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class EventFilter(TypedDict, total=False):
    """A filter of events: all given conditions must match.

    Attributes:
        event: a name, or several; ``*`` and ``?`` are wildcards, as in ``llm:*``.
        level: a level, or several, in upper or lower case.
        since: not before this time. Text may have any offset; without one it is UTC.
        until: before this time.
        span: the events of this span, and of its direct children.
    """

    event: str | Sequence[str] | None
    level: str | Sequence[str] | None
    since: datetime | str | None
    until: datetime | str | None
    span: str | None


def compile_filter(wanted: EventFilter) -> Callable[[Top], bool]:
    """A test for events. Raises Invalid if a time cannot be read."""
    tests: list[Callable[[Top], bool]] = []
    if (event := wanted.get("event")) is not None:
        names = re.compile("|".join(map(translate, _several(event))) or r"(?!)")
        # A log of a million events has some dozens of names.
        is_name = lru_cache(1024)(lambda name: names.match(name) is not None)
        tests.append(lambda top: is_name(top.event or ""))
    if (level := wanted.get("level")) is not None:
        levels = {name.upper() for name in _several(level)}
        tests.append(lambda top: top.lvl is not None and top.lvl.upper() in levels)
    if (span := wanted.get("span")) is not None:
        tests.append(lambda top: span in (top.span_id, top.parent_span_id))
    since, until = _time(wanted.get("since"), "since"), _time(wanted.get("until"), "until")
    if since or until:
        first, end = since or _EVER[0], until or _EVER[1]
        tests.append(lambda top: (time := parse_time(top.ts)) is not None and first <= time < end)
    return tests[0] if len(tests) == 1 else lambda top: all(test(top) for test in tests)


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _time(given: datetime | str | None, name: str) -> datetime | None:
    if given is None:
        return None
    time = parse_time(given if isinstance(given, str) else given.isoformat())
    if time is None:
        raise Invalid(
            f"{name} is not a time: {given!r}",
            operation="find",
            hint="for example 2026-03-04T13:20:00Z, or 2026-03-04",
        )
    return time
