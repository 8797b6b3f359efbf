"""Where a search looks: sessions, the one with the newest message first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from sessionary.layouts.base import HasRecency, Layout, Recency
from sessionary.model import SessionRef

if TYPE_CHECKING:
    from sessionary.catalog import Catalog

_OLDEST = float("-inf")


class Target(NamedTuple):
    """A session to search.

    Attributes:
        ref: the session.
        layout: its layout.
        changed: nothing in it is newer, in seconds since 1970; None if that is unknown.
        size: the bytes of its conversation.
    """

    ref: SessionRef
    layout: Layout
    changed: float | None = None
    size: int = 0


def targets(
    layout_of: Callable[[SessionRef], Layout], catalog: Catalog, refs: Iterable[SessionRef]
) -> list[Target]:
    """The sessions in the order in which they are searched.

    Args:
        layout_of: returns the layout of a session.
        catalog: knows when sessions changed that must be read for it.
        refs: the sessions.
    """
    found: list[tuple[float, str, Target]] = []
    for _, those in groupby(refs, attrgetter("kind")):
        some = list(those)
        layout = layout_of(some[0])
        for ref, recent in _recencies(layout, catalog, some):
            newest = _OLDEST if recent.newest is None else recent.newest
            found.append((newest, ref.session_id, Target(ref, layout, recent.changed, recent.size)))
    return [target for _, _, target in sorted(found, key=lambda one: one[:2], reverse=True)]


def _recencies(
    layout: Layout, catalog: Catalog, refs: list[SessionRef]
) -> Iterable[tuple[SessionRef, Recency]]:
    if isinstance(layout, HasRecency):
        return [(ref, layout.recency(ref)) for ref in refs]
    wanted = {ref.locator for ref in refs}
    return [
        (one.ref, Recency(time, time, one.size))
        for one in catalog.summaries(layout)
        if one.ref.locator in wanted
        for time in [None if one.updated is None else one.updated.timestamp()]
    ]
