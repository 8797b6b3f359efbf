"""The state of a session after its records: the current items, and the tables. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import inf
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from sessionary.layouts.records.values import decode_value
from sessionary.transcript.ranges import Spans

FORMAT = 1
"""The version of the format that is written; older ones are read."""
BEGIN, CHANGE, SNAPSHOT = "begin", "change", "snapshot"


class Line(Struct, omit_defaults=True, gc=False):
    """One record: a line of the journal. docs/formats/records.md describes the keys."""

    n: int
    at: str
    op: str
    first: int = 0
    add: list[Raw] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    drop: Spans = field(default_factory=list)
    set: dict[str, dict[str, Raw]] = field(default_factory=dict)
    unset: dict[str, list[str]] = field(default_factory=dict)
    snap: int = -1
    byte: int = -1
    items: Spans = field(default_factory=list)
    lines: Spans = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)


class Begin(Struct):
    """The first record: what the session is."""

    format: int
    framework: str
    session: str
    scope: list[str] = field(default_factory=list)
    chain: bool = False
    parent: str | UnsetType = UNSET
    prev: str | UnsetType = UNSET


class Ranges:
    """A set of whole numbers, kept as ranges.

    Attributes:
        spans: the ranges, ascending; no two of them touch.
    """

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self.spans: Spans = []
        for first, last in sorted(spans):
            if self.spans and first <= self.spans[-1][1] + 1:
                self.spans[-1] = (self.spans[-1][0], max(last, self.spans[-1][1]))
            elif first <= last:
                self.spans.append((first, last))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.spans, (number, inf))
        return at > 0 and number <= self.spans[at - 1][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)

    def below(self, end: int) -> Spans:
        """The ranges of those below a number."""
        return [(first, min(last, end - 1)) for first, last in self.spans if first < end]


class State:
    """The state after the records so far.

    Attributes:
        items: the stored items that stand, by their number, in order.
        keys: the number of the item that has a key.
        tables: stored values by table and key.
        next_item: the number of the next item.
        next_line: the number of the next record.
    """

    def __init__(self) -> None:
        self.items: dict[int, Raw] = {}
        self.keys: dict[str, int] = {}
        self.tables: dict[str, dict[str, Raw]] = {}
        self.next_item = 0
        self.next_line = 0
        self._places: dict[int, int] = {}
        self._placed = 0

    @property
    def exists(self) -> bool:
        """True if a change is stored. A writer that was interrupted may leave the first record alone."""
        return self.next_line > 1

    def apply(self, line: Line) -> None:
        """Add one record. Records are applied in the order of the journal: most of them add one item, so be quick."""
        self.next_line = line.n + 1
        for first, last in line.drop:
            self._drop(first, last)
        for number, item in enumerate(line.add, line.first):
            self.items[number] = item
        end = line.first + len(line.add)
        if end > self.next_item:
            self.next_item = end
        if line.keys:
            for number, key in enumerate(line.keys[: len(line.add)], line.first):
                if key is not None:
                    self.keys[key] = number
        for table, names in line.unset.items():
            for name in names:
                self.tables.get(table, {}).pop(name, None)
        for table, values in line.set.items():
            self.tables.setdefault(table, {}).update(values)

    def _drop(self, first: int, last: int) -> None:
        found = range(first, last + 1) if last - first < len(self.items) else list(self.items)
        for number in found:
            if first <= number <= last:
                self.items.pop(number, None)
        if self.keys:
            self.keys = {key: number for key, number in self.keys.items() if number in self.items}

    def restrict(self, snapshot: Line) -> None:
        """Keep the items that stood at a snapshot, and their keys."""
        standing = Ranges(snapshot.items)
        self.items = {number: item for number, item in self.items.items() if number in standing}
        self.keys = dict(snapshot.named)
        self.tables = {}

    def find(self, item: bytes) -> int | None:
        """The number of the last current item that is stored as these bytes; None if there is none."""
        for number in range(self._placed, self.next_item):
            if (found := self.items.get(number)) is not None:
                self._places[hash(bytes(found))] = number
        self._placed = self.next_item
        number = self._places.get(hash(item), -1)
        return number if bytes(self.items.get(number, b"")) == item else None

    def stored(self, newest: int | None = None) -> list[Raw]:
        """The current items: all of them, or the newest N."""
        items = list(self.items.values())
        return items if newest is None else items[max(len(items) - newest, 0) :]

    def values(self, newest: int | None = None) -> list[Any]:
        """As `stored`, decoded."""
        values: list[Any] = decode_value(b"[%s]" % b",".join(self.stored(newest)))
        return values

    def table(self, name: str) -> dict[str, Any]:
        """A table, decoded."""
        return {key: decode_value(bytes(value)) for key, value in self.tables.get(name, {}).items()}

    def value(self, table: str, key: str) -> Any:
        """One value of a table, decoded; None if there is none."""
        stored = self.tables.get(table, {}).get(key)
        return None if stored is None else decode_value(bytes(stored))
