"""Match the messages of a save with the lines that are stored. Pure.

A message that is stored already keeps the bytes of its line, so that a save changes nothing that the caller did
not change: not the order of keys, not the spelling of a number, above all not the time.  Callers often keep their
messages without the time that the store gave them, so a message without one matches a stored line whatever time
that carries.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from sessionary.codec import encode_line
from sessionary.layouts.amplifier.messages import timestamp_of
from sessionary.layouts.amplifier.recovery import StoredTranscript

STAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a save will store.

    Attributes:
        raws: the lines, in order, without newlines.
        extends: the stored lines stand unchanged at the head of `raws`.
    """

    raws: list[bytes]
    extends: bool


def align(messages: list[dict[str, Any]], stored: StoredTranscript, now: Callable[[], str]) -> Plan:
    """Find for each cleaned message its line: the stored one if it is there, else a new one with a time."""
    same = _common_prefix(messages, stored)
    raws = stored.raws[:same]
    extends = same == len(stored.raws)
    if same < len(messages):
        raws += _rest(messages, stored, same, now)
    return Plan(raws, extends)


def _common_prefix(messages: list[dict[str, Any]], stored: StoredTranscript) -> int:
    same = 0
    for message, value, raw in zip(messages, stored.values, stored.raws, strict=False):
        if not _is_line(message, value, raw):
            break
        same += 1
    return same


def _is_line(message: dict[str, Any], value: dict[str, Any], raw: bytes) -> bool:
    if encode_line(message) == raw:
        return True
    if len(value) - len(message) not in (0, 1) or message.get("role") != value.get("role"):
        return False
    return _key(message) == _key(value) or (
        timestamp_of(message) is None and STAMP in value and _key(message) == _key(value, without=STAMP)
    )


def _rest(
    messages: list[dict[str, Any]], stored: StoredTranscript, same: int, now: Callable[[], str]
) -> list[bytes]:
    """Lines for the messages behind the common prefix: stored ones are found by content, first come first served."""
    by_content: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for place in range(same, len(stored.values)):
        value = stored.values[place]
        by_content[_key(value)].append(place)
        if STAMP in value:
            by_content[_key(value, without=STAMP)].append(place)
    used: set[int] = set()
    found = [_take(by_content, _key(message), used) for message in messages[same:]]
    return [
        stored.raws[place] if place is not None else _new_line(message, same + offset, stored, used, now)
        for offset, (message, place) in enumerate(zip(messages[same:], found, strict=True))
    ]


def _take(by_content: defaultdict[bytes, deque[int]], key: bytes, used: set[int]) -> int | None:
    places = by_content.get(key)
    while places:
        place = places.popleft()
        if place not in used:
            used.add(place)
            return place
    return None


def _new_line(
    message: dict[str, Any], place: int, stored: StoredTranscript, used: set[int], now: Callable[[], str]
) -> bytes:
    if timestamp_of(message) is None:
        message = {**message, STAMP: _time_of_edited(message, place, stored, used) or now()}
    return encode_line(message)


def _time_of_edited(
    message: dict[str, Any], place: int, stored: StoredTranscript, used: set[int]
) -> str | None:
    """A message that was edited in its place is still the message of that time."""
    if place >= len(stored.values) or place in used:
        return None
    value = stored.values[place]
    time = value.get(STAMP)
    return time if value.get("role") == message.get("role") and isinstance(time, str) else None


def _key(value: dict[str, Any], without: str | None = None) -> bytes:
    """The content of a message whatever the order of its keys; exact in types (1, 1.0 and true differ)."""
    if without is not None:
        value = {name: item for name, item in value.items() if name != without}
    try:
        return _SORTED.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError, TypeError, msgspec.MsgspecError):
        return encode_line(_sorted(value))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


_SORTED = msgspec.json.Encoder(order="deterministic")
