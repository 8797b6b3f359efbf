"""The sessions to search, the one with the newest message first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sessionary.errors import StorageFailed
from sessionary.layouts.abilities import HasRecency, Recency
from sessionary.layouts.base import Layout
from sessionary.model import SessionRef, Summary

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
        has_documents: it is stored in documents, whose damage only its summary reports.
        name: the title that the user gave to it; None for that of its agent.
    """

    ref: SessionRef
    layout: Layout
    changed: float | None = None
    size: int = 0
    has_documents: bool = False
    name: str | None = None


def targets(
    layout_of: Callable[[SessionRef], Layout],
    catalog: Catalog,
    refs: Iterable[SessionRef],
    names: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[Target]:
    """The sessions in the order in which they are searched.

    Args:
        layout_of: returns the layout of a session.
        catalog: knows when sessions changed, so that their ends are not read for it.
        refs: the sessions.
        names: the titles that the user gave to sessions, by kind and id.
    """
    found: list[tuple[float, str, Target]] = []
    for layout, those in groupby(refs, layout_of):
        some = list(those)
        in_files = layout if isinstance(layout, HasRecency) else None
        recencies = (
            _in_files(in_files, layout, catalog, some) if in_files else _summed_up(layout, catalog, some)
        )
        for ref, recent in recencies:
            newest = _OLDEST if recent.newest is None else recent.newest
            name = names.get((ref.kind, ref.session_id))
            target = Target(ref, layout, recent.changed, recent.size, in_files is None, name)
            found.append((newest, ref.session_id, target))
    return _newest_first(found)


def known_targets(
    layout_of: Callable[[SessionRef], Layout],
    summaries: Iterable[Summary],
    names: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[Target]:
    """As `targets`, of sessions whose summaries are known: nothing is read, and they may have changed since."""
    found: list[tuple[float, str, Target]] = []
    in_files: dict[Layout, bool] = {}
    for one in summaries:
        ref, layout = one.ref, layout_of(one.ref)
        if layout not in in_files:
            in_files[layout] = isinstance(layout, HasRecency)  # takes long, of a protocol
        time = None if one.updated is None else one.updated.timestamp()
        name = names.get((ref.kind, ref.session_id))
        target = Target(ref, layout, None, one.size, not in_files[layout], name)
        found.append((_OLDEST if time is None else time, ref.session_id, target))
    return _newest_first(found)


def _newest_first(found: list[tuple[float, str, Target]]) -> list[Target]:
    return [target for _, _, target in sorted(found, key=itemgetter(0, 1), reverse=True)]


def _in_files(
    in_files: HasRecency, layout: Layout, catalog: Catalog, refs: list[SessionRef]
) -> Iterable[tuple[SessionRef, Recency]]:
    known = catalog.known_times(layout) if len(refs) > 1 else {}
    return [(ref, in_files.recency(ref, known.get(ref.locator))) for ref in refs]


def _summed_up(
    layout: Layout, catalog: Catalog, refs: list[SessionRef]
) -> Iterable[tuple[SessionRef, Recency]]:
    wanted, found = {ref.locator for ref in refs}, list[tuple[SessionRef, Recency]]()
    with suppress(StorageFailed):  # what cannot be read was reported when the sessions were found
        for one in catalog.summaries(layout):
            if one.ref.locator in wanted:
                time = None if one.updated is None else one.updated.timestamp()
                found.append((one.ref, Recency(time, time, one.size)))
    return found
