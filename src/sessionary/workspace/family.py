"""Parents and children: sessions below the ones that they were forked from or started by.

Both a fork and the session of a sub-agent name a parent. The parent may be gone, or in another project, and
edited or copied files may name each other in a circle. Every session is shown, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sessionary.model import SessionRef, Summary
from sessionary.workspace.filters import by_recency


@dataclass(slots=True)
class Kin:
    """A session with its parent and children.

    Attributes:
        summary: its summary.
        relation: ``root`` (started by the user), ``fork``, ``sub`` (a sub-agent's) or ``child`` (work within work).
        parent: its parent, if that exists.
        children: its children, oldest first.
        orphan: True if it names a parent that is missing.
        loop: True if it is its own ancestor; it is then shown as if it had no parent.
    """

    summary: Summary
    relation: str
    parent: Kin | None = None
    children: list[Kin] = field(default_factory=list)
    orphan: bool = False
    loop: bool = False

    @property
    def ref(self) -> SessionRef:
        """The session."""
        return self.summary.ref

    @property
    def agents(self) -> list[Kin]:
        """The sessions of its sub-agents."""
        return [one for one in self.children if one.relation == "sub"]

    def has(self, ref: SessionRef) -> bool:
        """True for the session itself and for its descendants."""
        return any(one.ref.locator == ref.locator for one, _ in descent(self))


def families(summaries: Iterable[Summary]) -> list[Kin]:
    """The sessions without a parent, each with its descendants; the one that changed last first."""
    rank = by_recency()
    tops = _tops(sorted(summaries, key=rank))
    return sorted(tops, key=lambda top: max(rank(one.summary) for one, _ in descent(top)), reverse=True)


def kin_of(ref: SessionRef, summaries: Iterable[Summary]) -> Kin | None:
    """A session with its descendants among these sessions; None if it is not one of them."""
    return next((one for top in families(summaries) for one, _ in descent(top) if one.ref == ref), None)


def with_agents(top: Kin) -> Iterator[Kin]:
    """A session, its sub-agents, and their sub-agents in turn. Without recursion: files may form a long chain."""
    todo = [top]
    while todo:
        one = todo.pop()
        yield one
        todo += reversed(one.agents)


def below_parents(summaries: Iterable[Summary]) -> Iterator[tuple[Summary, int]]:
    """The sessions in their order, each with its depth; those of sub-agents follow their parents, or else come last."""
    tops = sorted(_tops(summaries, forks=False), key=lambda top: top.summary.nested)
    return ((one.summary, len(levels)) for top in tops for one, levels in descent(top))


def _tops(summaries: Iterable[Summary], *, forks: bool = True) -> list[Kin]:
    """The sessions without a parent, each with its descendants; children keep the order of the sessions."""
    kin = [Kin(summary, relation_of(summary)) for summary in summaries]
    by_id: dict[str, list[Kin]] = {}
    for one in kin:
        by_id.setdefault(one.ref.session_id, []).append(one)
    tops = [one for one in kin if not ((forks or one.summary.nested) and _joins_parent(one, by_id))]
    seen = {id(one) for top in tops for one, _ in descent(top)}
    for one in reversed(kin):  # the rest are in a circle
        if id(one) not in seen:
            top = _loose_end(one)
            tops.append(top)
            seen |= {id(below) for below, _ in descent(top)}
    return tops


def descent(top: Kin) -> Iterator[tuple[Kin, list[bool]]]:
    """A session and its descendants; for each level above, whether more sessions follow there. No session twice."""
    todo: list[tuple[Kin, list[bool]]] = [(top, [])]
    seen: set[int] = set()
    while todo:
        one, levels = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one, levels
        last = len(one.children) - 1
        todo += [(one.children[at], [*levels, at < last]) for at in range(last, -1, -1)]


def relation_of(summary: Summary) -> str:
    """The relation of a session to its parent, as in `Kin`."""
    if summary.nested:
        return "sub"
    if summary.parent is None:
        return "root"
    return "child" if summary.ref.kind == "work" else "fork"


def _joins_parent(one: Kin, by_id: dict[str, list[Kin]]) -> bool:
    """Add a session to the children of its parent, if that exists; of two with that id, the one in its project."""
    if one.summary.parent is None:
        return False
    parents = by_id.get(one.summary.parent, [])
    if not parents:
        one.orphan = True
        return False
    near = [parent for parent in parents if parent.ref.project == one.ref.project]
    one.parent = (near or parents)[0]
    one.parent.children.append(one)
    return True


def _loose_end(one: Kin) -> Kin:
    """Break the circle that a session is in; return the member that lost its parent."""
    passed: set[int] = set()
    while id(one) not in passed:
        passed.add(id(one))
        assert one.parent is not None, "a session without a parent is at the top already"
        one = one.parent
    assert one.parent is not None
    one.parent.children = [child for child in one.parent.children if child is not one]
    one.parent, one.loop = None, True
    return one
