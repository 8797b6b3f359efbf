"""Two versions of a journal brought together, so that both sides reach the same bytes whoever does it. Pure.

What both begin with stays as it is: it was read by many already. Behind that stand the lines of both, in the order of
their times; where the times are equal, of the device whose name is smaller first, and of one device as it wrote them.
A line that cannot say its time stays behind the one before it. A line that both have stands once; one that a side has
twice, it meant twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.layouts.sync import Policy, Rule

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class Side(NamedTuple):
    """One version of a journal.

    Attributes:
        device: whose it is.
        lines: its lines behind what both begin with, without newlines.
    """

    device: str
    lines: Sequence[bytes]


class Merged(NamedTuple):
    """Both versions in one.

    Attributes:
        lines: the lines behind what both begin with.
        doubled: of a ledger, the lines that gave way because another one has their key.
    """

    lines: list[bytes]
    doubled: list[bytes]


class _Line(NamedTuple):
    time: datetime
    device: str
    offset: int
    raw: bytes
    key: Any


def merge(rule: Rule, common: Sequence[bytes], mine: Side, theirs: Side) -> Merged:
    """Bring two versions together.

    Args:
        rule: under which keys a line says its time, and what makes it unlike all others.
        common: the lines that both begin with.
        mine: what is here.
        theirs: what is on the other side.
    """
    lines = _once(_read(rule, mine, _BEFORE_ALL), _read(rule, theirs, _BEFORE_ALL))
    lines.sort(key=lambda line: (line.time, line.device, line.offset))
    if rule.policy is not Policy.LEDGER:
        return Merged([line.raw for line in lines], [])
    return _one_for_each_key(rule, common, lines)


def _once(mine: list[_Line], theirs: list[_Line]) -> list[_Line]:
    """The lines of both; of those that are equal as many as the side has that has more of them."""
    ours, others = _by_bytes(mine), _by_bytes(theirs)
    kept: list[_Line] = []
    for raw in ours.keys() | others.keys():
        pairs = sorted([*ours.get(raw, ()), *others.get(raw, ())])
        kept += pairs[: max(len(ours.get(raw, ())), len(others.get(raw, ())))]
    return kept


def _by_bytes(lines: list[_Line]) -> dict[bytes, list[_Line]]:
    found: dict[bytes, list[_Line]] = {}
    for line in lines:
        found.setdefault(line.raw, []).append(line)
    return found


def _one_for_each_key(rule: Rule, common: Sequence[bytes], lines: list[_Line]) -> Merged:
    seen = Counter(key for raw in common if (key := _told(rule, raw)[1]) is not None)
    kept, doubled = [], []
    for line in lines:
        if line.key is not None and seen[line.key]:
            doubled.append(line.raw)
            continue
        seen[line.key] += 1
        kept.append(line.raw)
    return Merged(kept, doubled)


def _read(rule: Rule, side: Side, time: datetime) -> list[_Line]:
    found = []
    for offset, raw in enumerate(side.lines):
        told, key = _told(rule, raw)
        time = told or time
        found.append(_Line(time, side.device, offset, raw, key))
    return found


def _told(rule: Rule, raw: bytes) -> tuple[datetime | None, str | None]:
    """The time and the key that a line says; None for what it does not."""
    try:
        value = decode(raw)
    except Undecodable:
        return None, None
    if not isinstance(value, dict):
        return None, None
    key = value.get(rule.key) if rule.key else None
    return instant(value.get(rule.time)), key if isinstance(key, str) else None


def instant(value: Any) -> datetime | None:
    """The time that a value in ISO 8601 says, in UTC where it names no zone; None if it says none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        return None
