"""The table of a journal that a plug fills for readers: the facts of the session, and the items that are shown. Pure.

A conversation beside which another list grows consists of ever more ranges. A record does not store all of them again:
it adds a key with the number up to which the ranges before it stay, and the ranges that follow.

A conversation with branches is a tree. A record stores the item that is its end now, and of the items that it adds the
first one's predecessor, if that is not the item before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionary.layouts.records.state import Ranges
from sessionary.layouts.records.values import decode_value
from sessionary.transcript.ranges import Spans

VIEW = "view"
"""The table. Its keys are ``title``, ``cwd``, ``branch``, ``parent`` and ``version``, ``agent`` and ``nested`` of an
imported session, and ``items``: the ranges of the items that are the conversation now, which ``items+1``, ``items+2``
and so on continue. Instead of them, ``head`` is the number of the last item of a conversation with branches. Without
any of them these are all items that stand.
"""
AFTER = "after"
"""The table of a conversation with branches: by the number of an item, that of the item before it, or null for none.
An item without an entry follows the one whose number is one less.
"""
HEAD = "head"
ITEMS = "items"
MORE = "items+"
SNAPSHOT_STEPS = 256
"""Changes of a list that build on one another before it is stored as a whole."""
FEW_RANGES = 8
"""Lists of up to this many ranges are stored completely: a change would not be smaller."""

Table = Mapping[str, Any]


def shown_in(tables: Mapping[str, Table]) -> Spans | None:
    """The ranges of the items that the stored tables show, ascending; None if these are all that stand."""
    view, after = tables.get(VIEW, {}), tables.get(AFTER, {})
    names = [key for key in (HEAD, ITEMS, *continuing(view)) if key in view]
    return shown_by(
        {key: decode_value(bytes(view[key])) for key in names},
        {key: decode_value(bytes(stored)) for key, stored in after.items()} if HEAD in view else {},
    )


def shown_by(view: Table, after: Table) -> Spans | None:
    """As `shown_in`, of decoded tables. What has another shape changes nothing."""
    if HEAD in view:
        return Ranges(_leading_to(view[HEAD], after)).spans
    if ITEMS not in view:
        return None
    shown = Ranges(spans_in(view[ITEMS])).spans
    for key in continuing(view):
        _continue(shown, view[key])
    return shown


def _leading_to(head: Any, after: Table) -> Iterator[tuple[int, int]]:
    """The ranges of the items that lead to one, the last range first."""
    before = {int(key): number for key, number in after.items() if key.isdecimal()}
    starts = sorted(before)
    while isinstance(head, int) and head >= 0:
        at = bisect_right(starts, head) - 1
        first = starts[at] if at >= 0 else 0
        yield first, head
        number = before.get(first)
        head = number if isinstance(number, int) and number < first else None


def entered(head: Any, after: Table, end: int) -> int | None:
    """The last item below a number of those that lead to a head; None if there is none."""
    return next((min(last, end - 1) for first, last in _leading_to(head, after) if first < end), None)


def showing(view: Table, shown: Spans) -> tuple[dict[str, Any], list[str]]:
    """The values to set and the keys to unset in the stored table, so that it shows these items.

    Args:
        view: the table as it is.
        shown: ascending ranges of items.
    """
    before, old = shown_in({VIEW: view}), continuing(view)
    key = f"{MORE}{len(old) + 1}"
    # A key may be there already, and another one missing, if a line is damaged.
    if before is not None and key not in view and len(shown) > FEW_RANGES and len(old) + 1 < SNAPSHOT_STEPS:
        below, then = _difference(before, shown)
        if len(then) <= FEW_RANGES:
            return {key: {"below": below, "then": then}}, []
    return {ITEMS: shown}, old


def continuing(view: Table) -> list[str]:
    """The keys that continue ``items``, in their order."""
    return sorted((key for key in view if key.startswith(MORE)), key=in_order)


def in_order(key: str) -> tuple[int, str]:
    """Sorts the keys that show items: ``items``, ``items+2``, ``items+10``."""
    return len(key), key


def _continue(shown: Spans, stored: Any) -> None:
    below = stored.get("below") if isinstance(stored, dict) else None
    if not isinstance(below, int):
        return
    while shown and shown[-1][0] >= below:
        shown.pop()
    if shown and shown[-1][1] >= below:
        shown[-1] = (shown[-1][0], below - 1)
    for first, last in spans_in(stored.get("then")):
        touches = bool(shown) and shown[-1][1] == first - 1
        shown.append((shown.pop()[0] if touches else first, last))


def spans_in(stored: Any) -> Spans:
    """Stored ranges; invalid ones are left out."""
    found: Spans = []
    for one in stored if isinstance(stored, list) else ():
        if isinstance(one, list) and len(one) == 2 and all(isinstance(number, int) for number in one):
            found.append((one[0], one[1]))
    return found


def _difference(before: Sequence[tuple[int, int]], after: Sequence[tuple[int, int]]) -> tuple[int, Spans]:
    """The number up to which two lists of ascending ranges are the same, and the ranges of the second from there."""
    same = next(
        (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
        min(len(before), len(after)),
    )
    old, new = before[same:], after[same:]
    if old and new and old[0][0] == new[0][0]:
        below = min(old[0][1], new[0][1]) + 1
    else:
        below = min((one[0][0] for one in (old, new) if one), default=after[-1][1] + 1)
    return below, [(max(first, below), last) for first, last in new if last >= below]
