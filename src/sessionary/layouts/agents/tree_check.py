"""Faults of records that form a tree, of any agent that stores them so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sessionary.layouts.agents.log_check import LogCheck
from sessionary.layouts.files import mended_copy
from sessionary.model import Problem, Record, SessionRef, Severity
from sessionary.transcript.branches import Node


class TreeCheck(LogCheck):
    """As `LogCheck`; also reports faults of the tree.

    Args:
        node: a record as a node below the parent from which its agent continues it; None for any other record.
    """

    def __init__(
        self, ref: SessionRef, node: Callable[[dict[str, Any]], Node | None], *, versions: bool = False
    ) -> None:
        super().__init__(ref, versions=versions)
        self._node = node
        self._places: dict[str, tuple[int, int]] = {}
        self._parents: dict[str, str] = {}

    def stored(self, found: Record) -> None:
        super().stored(found)
        one = self._node(found.value)
        if one is not None and one.id not in self._places:
            self._places[one.id] = (found.line, found.byte)
            if one.parent is not None:
                self._parents[one.id] = one.parent

    def problems(self) -> Iterator[Problem]:
        """Also records that are their own parent or ancestor, and records whose parent is not in the file.

        The agent follows the parents from the newest record back: it shows nothing before such a record.
        """
        yield from super().problems()
        rings = _rings(self._parents)
        path, remedy = self.ref.locator, mended_copy(self.ref)
        for name, (line, byte) in self._places.items():
            parent = self._parents.get(name)
            if parent == name:
                words = "a record is its own parent: the agent shows nothing before it"
                yield Problem("self_parent", Severity.hides_data, path, line, byte, words, remedy)
            elif name in rings:
                words = (
                    f"the parents of {rings[name]} records form a ring: the agent shows nothing before them"
                )
                yield Problem("parent_cycle", Severity.hides_data, path, line, byte, words, remedy)
            elif parent is not None and parent not in self._places:
                words = f"its parent {parent} is not in the file: the agent shows nothing before it"
                yield Problem("missing_parent", Severity.hides_data, path, line, byte, words, remedy)


def _rings(parents: dict[str, str]) -> dict[str, int]:
    """The first record of each ring of several records, and the length of the ring."""
    rings: dict[str, int] = {}
    done: set[str] = set()
    for start in parents:
        path: dict[str, int] = {}
        at: str | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = parents.get(at)
        if at is not None and at in path and len(path) - path[at] > 1:
            rings[list(path)[path[at]]] = len(path) - path[at]
        done.update(path)
    return rings
