"""The state of each agent: folders, numbers of sessions, versions, and the sessions that it will delete soon."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sessionary.catalog import Catalog, query
from sessionary.disk.fs import OS_FS, size_of
from sessionary.errors import SessionaryError, StorageFailed
from sessionary.layouts.abilities import HasLeftovers, Retains, Retention
from sessionary.layouts.base import Layout
from sessionary.layouts.files import Location
from sessionary.model import Problem, Summary
from sessionary.workspace.failures import gathered

SOON = timedelta(days=7)
"""Sessions that their agent will delete within this time are reported."""


@dataclass(slots=True)
class AgentState:
    """The state of one kind of sessions.

    Attributes:
        kind: the kind.
        locations: where it was looked for.
        sessions, nested: the number of its sessions, and of those of sub-agents, which `sessions` does not count.
        size: the bytes of all of them.
        health: their number by health.
        versions: the versions of the agent that wrote them, oldest first.
        retention: when the agent deletes them; None if it keeps them.
        leaving: the sessions that it will delete within a week, the first to go first.
        leftovers: a note on each file or folder of a session whose own file is missing.
        unkept: how many of those the archive does not have.
        failure: what could not be read; None if everything was.
    """

    kind: str
    locations: list[Location]
    sessions: int = 0
    nested: int = 0
    size: int = 0
    health: Counter[str] = field(default_factory=Counter)
    versions: list[str] = field(default_factory=list)
    retention: Retention | None = None
    leaving: list[Summary] = field(default_factory=list)
    leftovers: list[Problem] = field(default_factory=list)
    unkept: int = 0
    failure: StorageFailed | None = None


@dataclass(slots=True)
class CatalogueState:
    """The catalogue.

    Attributes:
        path: its file; None if there is no cache folder.
        size: its bytes; None if the file is missing, or its folder cannot be read.
        sessions: how many it holds, of all homes; None if it cannot be read.
    """

    path: str | None
    size: int | None
    sessions: int | None


@dataclass(slots=True)
class Doctor:
    """The state of every kind of sessions, and of the catalogue."""

    agents: list[AgentState]
    catalogue: CatalogueState


def state_of(layout: Layout, summaries: Iterable[Summary], now: datetime) -> AgentState:
    """The state of the sessions of a layout.

    Args:
        summaries: its sessions; the error that ends them is kept.
        now: the time at which is counted what will be deleted.
    """
    found, failure = gathered(summaries)
    own = [one for one in found if not one.nested]
    state = AgentState(
        layout.name,
        list(layout.locations()),
        len(own),
        len(found) - len(own),
        sum(one.size for one in found),
        Counter(one.health for one in found),
        sorted({one.version for one in found if one.version}, key=_version),
        layout.retention() if isinstance(layout, Retains) else None,
        leftovers=list(layout.leftovers()) if isinstance(layout, HasLeftovers) else [],
        failure=failure,
    )
    if state.retention is not None:
        last = now + SOON - timedelta(days=state.retention.days)
        leaving = [(one.updated, one) for one in own if one.updated is not None and one.updated < last]
        state.leaving = [one for _, one in sorted(leaving, key=lambda pair: pair[0])]
    return state


def catalogue_state(catalog: Catalog) -> CatalogueState:
    """The catalogue as it is."""
    if catalog.path is None:
        return CatalogueState(None, None, None)
    try:
        size = size_of(OS_FS, catalog.path)
    except OSError:
        size = None
    try:
        rows = None if size is None else query(catalog, "SELECT count(*) FROM sessions").rows
    except SessionaryError:
        rows = None
    return CatalogueState(catalog.path, size, rows[0][0] if rows else None)


def _version(text: str) -> list[tuple[int, str]]:
    """A version as it is ordered: numbers by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.\-+]", text)]
