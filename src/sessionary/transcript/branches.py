"""The line of a conversation that is a tree: which of its records were rewound or abandoned."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

RECENT = 64
"""The number of last records that a `Tip` knows. A record whose parent is not among them may begin a branch."""


class Node(Struct, frozen=True, gc=False):
    """A record as a node of the tree.

    Attributes:
        id: its id.
        parent: the id of the record before it.
        speaks: the user or the agent speaks, so the conversation continues from here.
        stays: it belongs to its parent, as the result of a tool or a block of a response, and stays on the line with
            it.
        shown: it counts among those that are not shown, if it is off the line.
    """

    id: str
    parent: str | None
    speaks: bool = True
    stays: bool = False
    shown: bool = True


class Tip(Struct, array_like=True):
    """The end of the line, from which it can be continued.

    Attributes:
        recent: the last records of the store, the newest last: a digest of the id of each, and whether it is on the
            line (True), belongs to a record of the line and stays with it (None), or is off the line (False).
        missing: digests of the parents of records that are not stored; one that comes later would join its branch to
            the line.
    """

    recent: list[tuple[bytes, bool | None]] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)

    def extend(self, node: Node) -> bool:
        """Add a record that was stored after the others.

        Returns:
            False if the tip alone does not determine the line: the record begins a branch, or is stored twice.
        """
        from sessionary.codec.seen import digest_of  # here, since a list that reads nothing needs none

        known, own = [one for one, _ in self.recent], digest_of(node.id)
        before = None if node.parent is None else digest_of(node.parent)
        at = known.index(before) if before in known else -1
        # What comes after the parent stays with the line only if it belongs to records before it.
        behind = [on for _, on in self.recent[at + 1 :] if on is not False]
        continues = at >= 0 and self.recent[at][1] is not False and True not in behind
        if own in known or own in self.missing or (known and not (continues and (node.speaks or not behind))):
            return False
        if before is not None and not known:
            self.missing.append(before)
        self.recent = [*self.recent[1 - RECENT :], (own, None if node.stays and before is not None else True)]
        return True


class Tree:
    """All records of a conversation that is a tree. Keeps two ids of each."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._stays: dict[str, str] = {}
        self._awaited: set[str] = set()  # parents that were named before they were stored
        self._leaf: str | None = None
        self._last: str | None = None
        self.is_straight = True
        """True as long as each record follows the one before it, and none is stored twice: all are on the line."""

    def add(self, node: Node) -> bool:
        """Add the next record in the order of the store; False if one of this id was added."""
        record, parent, parents = node.id, node.parent, self._parents
        if record in parents:
            self.is_straight = False
            return False  # stored twice: the first one counts
        if parent == self._last:
            parent = self._last  # one string for both
        else:
            self.is_straight = False
            if parent is not None and parent != record and parent not in parents:
                self._awaited.add(parent)
        parents[record] = parent
        self._last = record
        # A record behind the end of the line may be stored before it: the line still ends there.
        is_before = record in self._awaited and record in _line(parents, self._leaf)
        if (node.speaks or self._leaf == parent) and not is_before:
            self._leaf = record
        if node.stays and parent is not None:
            self._stays[record] = parent
        return True

    def abandoned(self) -> set[str]:
        """The records that are off the line that ends with the last one."""
        if self.is_straight:
            return set()
        gone = abandoned(self._parents, self._leaf)
        for record, parent in self._stays.items():
            if parent not in gone:
                gone.discard(record)
        return gone

    def tip(self, gone: set[str]) -> Tip:
        """The tip of the line, given the records that are off it."""
        from sessionary.codec.seen import digest_of  # as above

        last = list(self._parents)[-RECENT:]
        if self.is_straight:
            return Tip([(digest_of(one), None if one in self._stays else True) for one in last])
        line = set(_line(self._parents, self._leaf))
        stays: set[str] = set()
        for record, parent in self._stays.items():
            if record not in gone and (parent in line or parent in stays):
                stays.add(record)
        missing = {one for one in self._parents.values() if one is not None and one not in self._parents}
        recent = [(digest_of(one), None if one in stays else one in line) for one in last]
        return Tip(recent, sorted(map(digest_of, missing)))


def abandoned(parents: Mapping[str, str | None], leaf: str | None) -> set[str]:
    """The records that branch off the line from the root to the leaf.

    A record whose ancestors do not meet the line belongs to an earlier piece of the conversation (before a compaction,
    or before a link that is missing), and stays.

    Args:
        parents: the parent of each record, by id, in the order of the file.
        leaf: the record with which the conversation ends now; None if there is none.
    """
    line = set(_line(parents, leaf))
    off: dict[str, bool] = dict.fromkeys(line, True)
    gone: set[str] = set()
    for record in parents:
        path: list[str] = []
        step: str | None = record
        while step is not None and step in parents and step not in off and step not in path:
            path.append(step)
            step = parents[step]
        meets = step is not None and off.get(step, False)
        off.update(dict.fromkeys(path, meets))
        if meets and record not in line:
            gone.add(record)
    return gone


def _line(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    """The records from the leaf to its root."""
    line: dict[str, None] = {}
    at = leaf
    while at is not None and at in parents and at not in line:  # parents may form a ring
        line[at] = None
        at = parents[at]
    return list(line)
