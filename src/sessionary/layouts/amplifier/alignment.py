"""Match the messages of a save with the stored lines. Pure.

A message that is stored already keeps the bytes of its line, so that a save changes nothing that the caller
did not change: not the order of keys, not the form of a number, and above all not the time. Callers often
keep their messages without the time that the store added, so a message without a time matches a stored line
with any time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from sessionary.codec import encode_line
from sessionary.codec.times import timestamp_of
from sessionary.layouts.amplifier.recovery import StoredTranscript, one_line

STAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Plan:
    """The lines that a save will store.

    Attributes:
        raws: the lines, in order, without newlines.
        extends: `raws` begins with all stored lines, unchanged.
    """

    raws: list[bytes]
    extends: bool


def align(messages: list[dict[str, Any]], stored: StoredTranscript, now: Callable[[], str]) -> Plan:
    """Find the line of each cleaned message: the stored one if it exists, else a new one with a time."""
    same = 0
    for message, value, raw in zip(messages, stored.values, stored.raws, strict=False):
        if not _is_line(message, value, raw):
            break
        same += 1
    raws = [one_line(raw) for raw in stored.raws[:same]]
    extends = same == len(stored.raws)
    if same < len(messages):
        raws += _rest(messages, stored, same, now)
    return Plan(raws, extends)


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
    """Lines for the messages after the common prefix: stored ones are found by content, in order."""
    by_content: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for place in range(same, len(stored.values)):
        value = stored.values[place]
        by_content[_key(value)].append(place)
        if STAMP in value:
            by_content[_key(value, without=STAMP)].append(place)
    used: set[int] = set()
    found = [_take(by_content, _key(message), used) for message in messages[same:]]
    edited = _edited(same, found, len(stored.raws))
    lines = []
    for offset, (message, taken) in enumerate(zip(messages[same:], found, strict=True)):
        if taken is not None:
            lines.append(one_line(stored.raws[taken]))
        else:
            old = stored.values[same + offset] if edited[offset] else {}
            lines.append(_new_line(message, old, now))
    return lines


def _edited(same: int, found: list[int | None], stored: int) -> list[bool]:
    """Find the new messages that are edited versions of old ones in the same position.

    These are the ones before a stored message that is still in its place: nothing was inserted or removed in
    between. Without such a later message, a new one counts as new: after a rewind it is in the place of a
    dropped one, and must not get the time of that.
    """
    edited = [False] * len(found)
    in_place = False
    for offset in range(len(found) - 1, -1, -1):
        place = found[offset]
        if place is not None:
            in_place = place == same + offset
        else:
            edited[offset] = in_place and same + offset < stored
    return edited


def _take(by_content: defaultdict[bytes, deque[int]], key: bytes, used: set[int]) -> int | None:
    places = by_content.get(key)
    while places:
        place = places.popleft()
        if place not in used:
            used.add(place)
            return place
    return None


def _new_line(message: dict[str, Any], old: dict[str, Any], now: Callable[[], str]) -> bytes:
    """The line of a message that is not stored; `old` is its version before an edit, if there is one."""
    if timestamp_of(message) is None:
        time = old.get(STAMP) if old.get("role") == message.get("role") else None
        message = {**message, STAMP: time if isinstance(time, str) else now()}
    return encode_line(message)


def _key(value: dict[str, Any], without: str | None = None) -> bytes:
    """The content of a message independent of the order of its keys; exact in types (1, 1.0 and true differ)."""
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
