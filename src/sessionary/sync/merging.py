"""Merge of two versions of a journal, so that both sides get the same bytes. Pure.

The common beginning stays unchanged: readers may have consumed it. Behind it come the lines of both, sorted by time;
for equal times the device with the smaller name comes first, and the lines of one device keep their order. A line
without a time stays behind the line before it. A line that both versions have is kept once; a line that one version
has twice is kept twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.codec.times import parse_iso
from sessionary.layouts.sync import Policy, Rule

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class Side(NamedTuple):
    """One version of a journal.

    Attributes:
        lines: its lines behind the common beginning, without newlines.
    """

    device: str
    lines: Sequence[bytes]


class Merged(NamedTuple):
    """The merged version.

    Attributes:
        doubled: of a ledger, the lines that were dropped because another one has their key.
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
    """Merge two versions.

    Args:
        rule: the keys of a line's time, and of its identity.
    """
    lines = _once(_read(rule, mine, _BEFORE_ALL), _read(rule, theirs, _BEFORE_ALL))
    lines.sort(key=lambda line: (line.time, line.device, line.offset))
    if rule.policy is not Policy.LEDGER:
        return Merged([line.raw for line in lines], [])
    return _one_for_each_key(rule, common, lines)


def _once(mine: list[_Line], theirs: list[_Line]) -> list[_Line]:
    """Combine the lines of both; equal lines as often as the side that has more of them."""
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
    seen: Counter[str | None] = Counter(
        key for raw in common if (key := _time_and_key(rule, raw)[1]) is not None
    )
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
        own_time, key = _time_and_key(rule, raw)
        time = own_time or time
        found.append(_Line(time, side.device, offset, raw, key))
    return found


def _time_and_key(rule: Rule, raw: bytes) -> tuple[datetime | None, str | None]:
    """Return the time and the key of a line; None for a missing one."""
    try:
        value = decode(raw)
    except Undecodable:
        return None, None
    if not isinstance(value, dict):
        return None, None
    key = value.get(rule.key) if rule.key else None
    return parse_iso(value.get(rule.time)), key if isinstance(key, str) else None
