"""The table of a journal that a plug fills for readers: the facts of the session, and the items that are shown. Pure.

A conversation beside which another list grows consists of ever more ranges. A record does not store all of them again:
it adds a key with the number up to which the ranges before it stay, and the ranges that follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionary.layouts.records.state import Ranges, Spans
from sessionary.layouts.records.values import decode_value

VIEW = "view"
"""The table. Its keys are ``title``, ``cwd``, ``branch``, ``parent`` and ``version``, ``agent`` and ``nested`` of an
imported session, and ``items``: the ranges of the items that are the conversation now, which ``items+1``, ``items+2``
and so on continue. Without ``items`` these are all items that stand.
"""
ITEMS = "items"
MORE = "items+"
SNAPSHOT_STEPS = 256
"""Changes of a list that build on one another before it is stored as a whole."""
FEW_RANGES = 8
"""Up to so many ranges a list is stored as a whole: it takes no more bytes than a change of it."""

Table = Mapping[str, Any]


def shown_in(view: Table) -> Spans | None:
    """The ranges of the items that the stored table shows, ascending; None if these are all that stand."""
    if ITEMS not in view:
        return None
    return shown_after(None, {key: decode_value(bytes(view[key])) for key in (ITEMS, *continuing(view))})


def shown_after(shown: Spans | None, view: Table) -> Spans | None:
    """The ranges that are shown after a record, which may change those before it in place.

    Args:
        shown: the ranges before it.
        view: what it sets in the table, decoded. What has another shape changes nothing.
    """
    if ITEMS in view:
        shown = Ranges(spans_in(view[ITEMS])).spans
    if shown is not None:
        for key in continuing(view):
            _continue(shown, view[key])
    return shown


def showing(view: Table, shown: Spans) -> tuple[dict[str, Any], list[str]]:
    """The values to set and the keys to unset in the stored table, so that it shows these items.

    Args:
        view: the table as it is.
        shown: ascending ranges of items.
    """
    before, old = shown_in(view), continuing(view)
    key = f"{MORE}{len(old) + 1}"
    # A key may be there already, and another one missing, if a line is damaged.
    if before is not None and key not in view and len(shown) > FEW_RANGES and len(old) + 1 < SNAPSHOT_STEPS:
        below, then = _difference(before, shown)
        if len(then) <= FEW_RANGES:
            return {key: {"below": below, "then": then}}, []
    return {ITEMS: shown}, old


def continuing(view: Table) -> list[str]:
    """The keys that continue ``items``, in their order."""
    return sorted((key for key in view if key.startswith(MORE)), key=lambda key: (len(key), key))


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
    """Stored ranges; what is none is left out."""
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
