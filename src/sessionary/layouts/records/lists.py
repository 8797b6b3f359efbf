"""Lists whose elements are items of a journal. Pure.

An element is stored once, and a list as the ranges of the numbers of its elements. A list beside which others grow
consists of ever more ranges: it is stored as the first elements of another list, and the ranges that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Raw

from sessionary.errors import Corrupt
from sessionary.layouts.records.state import State
from sessionary.layouts.records.values import decode_value
from sessionary.layouts.records.view import FEW_RANGES, SNAPSHOT_STEPS
from sessionary.transcript.ranges import Spans, spans_of

SEE_CHECK = "`sessionary check` names the damaged records; an earlier state may be whole"
Stored = Mapping[str, Any]
"""A list in a table: the key of the list that it builds on, how many of its elements stay, the ranges that follow, and
how many lists build on one another."""


def whole_list(spans: Spans) -> dict[str, Any]:
    """A list that builds on no other."""
    return {"from": None, "keep": 0, "then": spans, "depth": 0}


def spans_in_list(state: State, table: str, stored: Stored) -> Spans:
    """The numbers of the elements of a list, as ranges in its order.

    Raises:
        Corrupt: a list that it builds on is damaged.
    """
    spans: Spans = []
    current, count = stored, state.next_item
    while True:
        spans[:0] = _first(current["then"], count - current["keep"])
        count = min(count, current["keep"])
        if (key := current["from"]) is None:
            return spans
        current = state.value(table, key)
        if current is None:
            raise Corrupt(f"the list {key} that a later list builds on cannot be read", hint=SEE_CHECK)


def items_of_list(state: State, table: str, stored: Stored, place: str) -> Iterator[Raw]:
    """The stored elements of a list.

    Args:
        place: names the list in an error.

    Raises:
        Corrupt: a list that it builds on is damaged, or the record of an element.
    """
    numbers = [*numbers_in(spans_in_list(state, table, stored))]
    if missing := sum(number not in state.items for number in numbers):
        raise Corrupt(f"{missing} elements of {place} cannot be read", hint=SEE_CHECK)
    return (state.items[number] for number in numbers)


def continued(
    state: State, table: str, base: str | None, elements: Sequence[bytes], add: list[Raw]
) -> tuple[dict[str, Any], Spans]:
    """A list as it is stored, and its ranges. Elements that no item is equal to are appended to those to add.

    Args:
        state: the state of the journal.
        table: the table of the lists.
        base: the key of the list that it may build on; None for none.
        elements: the stored elements.
        add: the items that the record adds.
    """
    before = (base is not None and state.value(table, base)) or {}
    spans: Spans = []
    if "then" in before:
        with suppress(Corrupt):  # then it builds on none
            spans = spans_in_list(state, table, before)
    numbers: list[int] = []
    for number, element in zip(numbers_in(spans), elements, strict=False):
        if bytes(state.items.get(number, b"")) != element:
            break
        numbers.append(number)
    kept = len(numbers)
    for element in elements[kept:]:
        found = state.find(element)
        if found is None or (numbers and found <= numbers[-1]):  # numbers ascend
            found = state.next_item + len(add)
            add.append(Raw(element))
        numbers.append(found)
    whole, then = spans_of(numbers), spans_of(numbers[kept:])
    if len(whole) <= FEW_RANGES or not kept or before["depth"] + 1 >= SNAPSHOT_STEPS:
        return whole_list(whole), whole
    return {"from": base, "keep": kept, "then": then, "depth": before["depth"] + 1}, whole


def renumbered_lists(rows: Mapping[str, Raw], numbers: Mapping[int, int]) -> dict[str, Any]:
    """Stored values, with the elements of lists as they are numbered now."""
    found: dict[str, Any] = dict(rows)
    for key, raw in rows.items():
        value = decode_value(bytes(raw))
        if isinstance(value, dict) and "then" in value:
            found[key] = {**value, "then": spans_of(numbers[one] for one in numbers_in(value["then"]))}
    return found


def standing(state: State, table: str, kept: Mapping[str, Stored]) -> tuple[dict[str, Any], set[int]]:
    """What keeps lists readable when all others go: those to store as a whole, and the items that they need.

    Args:
        kept: the lists by key; values that are not lists need nothing.
    """
    whole, numbers = dict[str, Any](), set[int]()
    for key, stored in kept.items():
        if "then" in stored:
            spans = spans_in_list(state, table, stored)
            numbers.update(numbers_in(spans))
            if stored["from"] is not None:
                whole[key] = whole_list(spans)
    return whole, numbers


def numbers_in(spans: Iterable[Sequence[int]]) -> Iterator[int]:
    """The numbers in ranges."""
    for first, last in spans:
        yield from range(first, last + 1)


def _first(spans: Iterable[tuple[int, int]], count: int) -> Spans:
    """The ranges of the first numbers."""
    found: Spans = []
    for first, last in spans:
        if count <= 0:
            break
        found.append((first, min(last, first + count - 1)))
        count -= last - first + 1
    return found
