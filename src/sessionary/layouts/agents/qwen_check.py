"""Check for what Qwen Code refuses in a session, or stores elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.layouts.agents.fields import text_or_none
from sessionary.layouts.agents.id_check import id_problems
from sessionary.layouts.agents.tree_check import TreeCheck
from sessionary.model import Problem, Record, SessionRef, Severity
from sessionary.transcript.branches import Node


class QwenCheck(TreeCheck):
    """Findings of a check in the records of one session.

    Args:
        ref: the session.
        node: a record as a node of the tree.
        fs: the file system.
    """

    def __init__(self, ref: SessionRef, node: Callable[[dict[str, Any]], Node | None], fs: Fs) -> None:
        super().__init__(ref, node, versions=True)
        self._fs = fs
        self._stated: str | None = None
        self._managed = 0

    def stored(self, found: Record) -> None:
        super().stored(found)
        self._stated = text_or_none(found.value.get("sessionId")) or self._stated
        self._managed += str(found.value.get("subtype")).startswith("managed_session_")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        path = self.ref.locator
        if self._managed:
            words = "a managed session: Qwen Code keeps records of it in another log, which is not read"
            yield Problem.of_file("managed_session", Severity.note, path, words, "none needed")
        if "/chats/" in path:
            yield from id_problems(self.ref, self._stated, self._fs)
