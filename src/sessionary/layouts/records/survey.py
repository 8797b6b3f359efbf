"""What the records of a session say without their items: which items stand, which are shown, and the facts. Pure.

The reader of a journal needs no state of it: it makes one pass to find out which items count, and one to yield them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from sessionary.layouts.records.state import BEGIN, SNAPSHOT, Ranges, Spans
from sessionary.layouts.records.values import unmarked
from sessionary.layouts.records.view import VIEW, shown_after, spans_in

_FACTS = ("title", "cwd", "branch", "parent", "version", "agent", "nested")


class Survey(Struct, array_like=True):
    """What a pass over the records found. A cursor holds it, so that a later pass goes on with it.

    Attributes:
        framework: what wrote them; "" if the first record is missing.
        next_line, next_item: the numbers that come next.
        dropped: ranges of the items that were dropped.
        shown: ranges of the items that are the conversation; None if these are all that stand.
        missing: ranges of records that should be there and are not.
        facts: values of the table `VIEW` that are facts of the session.
    """

    framework: str = ""
    next_line: int = 0
    next_item: int = 0
    dropped: Spans = field(default_factory=list)
    shown: Spans | None = None
    missing: Spans = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def add(self, record: dict[str, Any]) -> None:
        """Add the next record, whatever it holds."""
        number, op = record.get("n"), record.get("op")
        if isinstance(number, int):
            if number > self.next_line:
                self.missing.append((self.next_line, number - 1))
            self.next_line = max(self.next_line, number + 1)
        if op == BEGIN:
            self.framework = str(record.get("framework") or "")
            if isinstance(parent := record.get("parent"), str):
                self.facts["parent"] = parent
        if op == SNAPSHOT:
            return
        end = self.next_item  # a range may reach beyond the items that were there
        self.dropped += Ranges(spans_in(record.get("drop"))).below(end)
        for item_number, _ in items_of(record):
            self.next_item = max(self.next_item, item_number + 1)
        tables = record.get("set")
        view = tables.get(VIEW) if isinstance(tables, dict) else None
        if not isinstance(view, dict):
            return
        self.shown = shown_after(self.shown, view)
        for key, stored in view.items():
            if key in _FACTS and isinstance(value := unmarked(stored), str):
                self.facts[key] = value

    def extends(self, earlier: Survey) -> bool:
        """True if the messages that an earlier survey led to are the first ones of those that this one leads to."""
        end = earlier.next_item
        if Ranges(self.dropped).below(end) != Ranges(earlier.dropped).below(end):
            return False
        if self.shown is None or earlier.shown is None:
            return self.shown is earlier.shown
        return Ranges(self.shown).below(end) == Ranges(earlier.shown).below(end)


def items_of(record: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """The items that a record adds as they are stored, with their numbers."""
    first, added = record.get("first"), record.get("add")
    if isinstance(first, int) and isinstance(added, list):
        yield from enumerate(added, first)
