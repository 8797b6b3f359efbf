"""The tree of work sessions, by the parent ids in the documents. Pure.

A session whose parent is missing is an orphan: it is shown at the top, with a flag. A cycle of parents would
be unreachable; it is cut above its oldest session, which moves to the top with a flag of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from sessionary.layouts.clock import believed
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.times import parse_time

Flag = Literal["orphan", "cycle"]
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Node:
    """One session in the tree.

    Attributes:
        session: the session.
        children: the nodes below it, oldest first.
        flag: ``orphan`` if its parent is missing, ``cycle`` if it is its own ancestor, else None.
    """

    session: WorkSession
    children: list[Node] = field(default_factory=list)
    flag: Flag | None = None

    def walk(self, depth: int = 0) -> Iterator[tuple[Node, int]]:
        """This node and its descendants, with their depths."""
        waiting = [(self, depth)]
        while waiting:
            node, depth = waiting.pop()
            yield node, depth
            waiting += [(child, depth + 1) for child in reversed(node.children)]


def age_key(session: WorkSession) -> tuple[datetime, str]:
    """Oldest first; a session without a creation time is the oldest."""
    return parse_time(session.created) or _OLDEST, session.session_id


def latest_key(session: WorkSession) -> tuple[datetime, datetime, str]:
    """Sort key: last change, then age, then id.

    A time that is missing, invalid or in the future counts as oldest.
    """
    return (
        believed(parse_time(session.modified)),
        believed(parse_time(session.created)),
        session.session_id,
    )


def forest(sessions: Sequence[WorkSession]) -> list[Node]:
    """The trees of these sessions, oldest first; every session is in exactly one tree."""
    ordered = sorted(sessions, key=age_key)
    ids = {session.session_id for session in ordered}
    below: defaultdict[str | None, list[Node]] = defaultdict(list)
    for session in ordered:
        known = session.parent if session.parent in ids else None
        below[known].append(Node(session, flag="orphan" if session.parent and known is None else None))
    roots = below.pop(None, [])
    placed = _hang(roots, below)
    for session in ordered:
        if session.session_id not in placed:
            ring = _ring(session, {each.session_id: each for each in ordered})
            first = min(ring, key=age_key)
            if first.session_id in placed:
                continue
            nodes = below[first.parent]
            node = next(each for each in nodes if each.session is first)
            nodes.remove(node)
            node.flag = "cycle"
            roots.append(node)
            placed |= _hang([node], below)
    return roots


def _hang(roots: list[Node], below: dict[str | None, list[Node]]) -> set[str]:
    """Attach all descendants of these nodes; return the ids of the attached sessions."""
    placed: set[str] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        first_of_id = node.session.session_id not in placed
        placed.add(node.session.session_id)
        if first_of_id:  # of two sessions with one id only one gets the children
            node.children = below.pop(node.session.session_id, [])
            waiting += node.children
    return placed


def _ring(session: WorkSession, by_id: dict[str, WorkSession]) -> list[WorkSession]:
    """The sessions of the cycle that the parents of a session lead into."""
    seen: list[str] = []
    current = session
    while current.session_id not in seen:
        seen.append(current.session_id)
        current = by_id[current.parent or ""]
    return [by_id[name] for name in seen[seen.index(current.session_id) :]]
