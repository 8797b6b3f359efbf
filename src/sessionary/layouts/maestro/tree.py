"""The tree of work sessions, by the parent ids in the documents. Pure.

A session whose parent is missing is an orphan: it is shown at the top, with a flag. A cycle of parents would
be unreachable; it is cut above its oldest session, which moves to the top with a flag of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sessionary.layouts.clock import believed
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.times import parse_time

Flag = Literal["orphan", "cycle"]
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, eq=False)
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
    return (believed(parse_time(session.modified)), believed(parse_time(session.created)), session.session_id)


ORDERS: dict[str, Callable[[WorkSession], Any]] = {
    "created": age_key,
    "modified": latest_key,
    "status": lambda session: (session.status, age_key(session)),
    "type": lambda session: (session.session_type, age_key(session)),
}
"""The sort keys of a list, by the word for its order."""


def ordered(sessions: Iterable[WorkSession], order: str, *, reverse: bool = False) -> list[WorkSession]:
    """The sessions in one of `ORDERS`: by time the newest first, by text from A to Z; or in reverse."""
    return sorted(sessions, key=ORDERS[order], reverse=reverse != (order in ("created", "modified")))


def prune(top: Node, status: str | None, depth: int | None) -> bool:
    """Keep sessions of this status, their ancestors, and nothing deeper than `depth`; return False if none is left.

    Without recursion: files may form a chain of a hundred thousand sessions.
    """
    wanted: set[int] = set()
    nodes = list(top.walk())
    for node, level in reversed(nodes):  # children come before their parents
        node.children = [child for child in node.children if id(child) in wanted]
        is_shown = depth is None or level <= depth
        if is_shown and (status in (None, node.session.status) or node.children):
            wanted.add(id(node))
    return id(top) in wanted


def forest(sessions: Sequence[WorkSession]) -> list[Node]:
    """The trees of these sessions: those without parent by age, then those that head a cycle."""
    nodes = [Node(session) for session in sorted(sessions, key=age_key)]
    by_id: dict[str, Node] = {}
    for node in nodes:
        by_id.setdefault(
            node.session.session_id, node
        )  # of two sessions with one id only one gets the children
    roots: list[Node] = []
    for node in nodes:
        if node.session.parent not in by_id:
            node.flag = "orphan" if node.session.parent else None
            roots.append(node)
    heads = _heads_of_cycles(nodes, by_id)
    for node in nodes:
        parent = by_id.get(node.session.parent or "")
        if parent is not None and node not in heads:
            parent.children.append(node)
    return roots + heads


def _heads_of_cycles(nodes: list[Node], by_id: dict[str, Node]) -> list[Node]:
    """The oldest session of each cycle of parents, flagged."""
    heads: list[Node] = []
    checked: set[int] = set()
    for start in nodes:
        path: dict[int, Node] = {}
        node: Node | None = start
        while node is not None and id(node) not in checked and id(node) not in path:
            path[id(node)] = node
            node = by_id.get(node.session.parent or "")
        if node is not None and id(node) in path:
            on_path = list(path.values())
            head = min(on_path[on_path.index(node) :], key=lambda each: age_key(each.session))
            head.flag = "cycle"
            heads.append(head)
        checked.update(path)
    return heads
