"""Survey of the records of a session without their items: current items, shown items, and facts. Pure.

The reader of a journal needs no state of it: it makes one pass to find out which items count, and one to yield them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, field

from sessionary.layouts.records.state import BEGIN, SNAPSHOT, Ranges
from sessionary.layouts.records.values import unmarked
from sessionary.layouts.records.view import (
    AFTER,
    FEW_RANGES,
    HEAD,
    ITEMS,
    MORE,
    VIEW,
    continuing,
    entered,
    in_order,
    shown_by,
    spans_in,
)
from sessionary.transcript.ranges import Spans

_FACTS = ("title", "cwd", "branch", "parent", "version", "agent", "nested")


class Survey(Struct, array_like=True):
    """The result of a pass over the records. A cursor holds its end, so that a later pass continues from it.

    Attributes:
        framework: what wrote them; "" if the first record is missing.
        next_line, next_item: the numbers that come next.
        facts: values of the table `VIEW` that are facts of the session.
        view: values of that table that say which items are the conversation.
        after: the table `AFTER`.
        last: the last key that the cursor before this pass has merged into one; "" if it has all of them.
        below: the number of the first item that the merged one shows.
        is_over: a record changed what the cursor has merged.
        dropped: ranges of the items that were dropped.
        missing: ranges of records that should be there and are not.
    """

    framework: str = ""
    next_line: int = 0
    next_item: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    view: dict[str, Any] = field(default_factory=dict)
    last: str = ""
    below: int = 0
    after: dict[str, Any] = field(default_factory=dict)
    is_over: bool = False
    dropped: Spans = field(default_factory=list)
    missing: Spans = field(default_factory=list)

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
        self._unset(record.get("unset"))
        self._set(record.get("set"))

    def _unset(self, tables: Any) -> None:
        for key in _table(tables, VIEW, list):
            self.facts.pop(key, None)
            self.view.pop(key, None)
            self.is_over |= self.last != "" and (key == ITEMS or key.startswith(MORE))
        for key in _table(tables, AFTER, list):
            self.is_over |= self.after.pop(key, UNSET) is UNSET

    def _set(self, tables: Any) -> None:
        for key, stored in _table(tables, VIEW, dict).items():
            if key in _FACTS and isinstance(value := unmarked(stored), str):
                self.facts[key] = value
            elif key in (HEAD, ITEMS) or key.startswith(MORE):
                self.is_over |= key != HEAD and self._is_merged(key, stored)
                self.view[key] = stored
        self.after.update(_table(tables, AFTER, dict))

    def _is_merged(self, key: str, stored: Any) -> bool:
        """True if a key changes what the cursor before this pass has merged."""
        begins = stored.get("below") if isinstance(stored, dict) else None
        reaches = isinstance(begins, int) and begins < self.below
        return self.last != "" and (key == ITEMS or in_order(key) <= in_order(self.last) or reaches)

    def shown(self) -> Spans | None:
        """Ranges of the items that are the conversation; None if these are all that stand."""
        return shown_by(self.view, self.after)

    def end(self) -> Survey:
        """What a later pass must know: as much of a session of a thousand branches as of one."""
        shown, last, below = self.shown(), self.last, self.below
        view = {} if shown is None else {ITEMS: shown}
        if HEAD in self.view:
            view = {HEAD: self.view[HEAD]}
        elif shown and (len(shown) > FEW_RANGES or len(self.view) > 1):
            last = max((*continuing(self.view), last, ITEMS), key=in_order)
            view = {ITEMS: shown[-FEW_RANGES:]}
            below = max(below, shown[-FEW_RANGES:][0][0])
        return Survey(self.framework, self.next_line, self.next_item, self.facts, view, last, below)

    def extends(self, earlier: Survey) -> bool:
        """True if the messages that an earlier survey led to are the first ones of those that this one leads to."""
        end = earlier.next_item
        if self.is_over or Ranges(self.dropped).below(end):
            return False
        if HEAD in self.view or HEAD in earlier.view:
            is_new = all(key.isdecimal() and int(key) >= end for key in self.after)
            return is_new and entered(self.view.get(HEAD), self.after, end) == earlier.view.get(HEAD)
        shown, before = self.shown(), earlier.shown()
        if shown is None or before is None:
            return shown is before
        return Ranges(shown).below(end) == Ranges(before).below(end)


def _table(tables: Any, name: str, kind: type[Any]) -> Any:
    """What a record sets or unsets in a table; nothing if that has another shape."""
    found = tables.get(name) if isinstance(tables, dict) else None
    return found if isinstance(found, kind) else kind()


def items_of(record: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """The items that a record adds as they are stored, with their numbers."""
    first, added = record.get("first"), record.get("add")
    if isinstance(first, int) and isinstance(added, list):
        yield from enumerate(added, first)
