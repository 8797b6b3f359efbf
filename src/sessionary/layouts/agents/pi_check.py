"""Check for what Pi refuses: a file without a header, content of another type, compactions without their entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.layouts.agents.id_check import id_problems
from sessionary.layouts.agents.tree_check import TreeCheck
from sessionary.model import Problem, Record, SessionRef, Severity
from sessionary.transcript.branches import Node


class PiCheck(TreeCheck):
    """Findings of a check in the records of one session.

    Args:
        ref: the session.
        node: a record as a node of the tree.
        root: the parent that the first entries state.
    """

    def __init__(self, ref: SessionRef, node: Callable[[dict[str, Any]], Node | None], root: str) -> None:
        super().__init__(ref, self._below_root)
        self._entry, self._root = node, root
        self._known: set[str] = set()
        self._stated: str | None = None
        self._is_first = True

    def stored(self, found: Record) -> None:
        super().stored(found)
        entry, is_first, self._is_first = found.value, self._is_first, False
        kind, message = text_or_none(entry.get("type")), object_of(entry.get("message"))
        if is_first and kind == "session":
            self._stated = text_or_none(entry.get("id"))
        elif is_first:
            words = "the file does not begin with a header: Pi does not open it"
            self.refuse("no_header", Severity.stops_resume, found, words)
        self._known.update(filter(None, (text_or_none(entry.get("id")),)))
        role = message.get("role")
        if role in ("assistant", "toolResult") and not isinstance(message.get("content"), list):
            words = f"the content of a message of the role {role} is not a list: Pi fails on it"
            self.refuse("bad_content", Severity.stops_resume, found, words)
        kept = text_or_none(entry.get("firstKeptEntryId"))
        if kind == "compaction" and kept is not None and kept not in self._known:
            words = f"the compaction keeps the entry {kept} and what follows, and that is missing"
            self.refuse("missing_entry", Severity.hides_data, found, words)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from id_problems(self.ref, self._stated)

    def _below_root(self, record: dict[str, Any]) -> Node | None:
        """A record as a node; the first entries have no parent, or the header."""
        found = self._entry(record)
        is_below_root = found is not None and found.parent in (self._root, self._stated)
        return replace(found, parent=None) if found and is_below_root else found
