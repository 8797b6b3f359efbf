"""Check for what Qwen Code refuses in a session, or stores elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from sessionary.disk.fs import Fs, is_file
from sessionary.layouts.agents.fields import text_or_none
from sessionary.layouts.agents.id_check import id_problems
from sessionary.layouts.agents.log_check import LogCheck
from sessionary.layouts.agents.tree_check import TreeCheck
from sessionary.model import Problem, Record, SessionRef, Severity
from sessionary.transcript.branches import Node


class QwenCheck(LogCheck):
    """Findings of a check in the records of one session.

    Args:
        ref: the session.
        node: a record as a node of the tree.
        fs: the file system.
    """

    def __init__(self, ref: SessionRef, node: Callable[[dict[str, Any]], Node | None], fs: Fs) -> None:
        super().__init__(ref, versions=True)
        self._fs = fs
        self._tree = TreeCheck(ref, node)
        self._stated: str | None = None
        self._managed = 0

    def stored(self, found: Record) -> None:
        super().stored(found)
        self._tree.take(found)
        self._stated = text_or_none(found.value.get("sessionId")) or self._stated
        self._managed += str(found.value.get("subtype")).startswith("managed_session_")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from self._tree.problems()
        path = self.ref.locator
        if self._managed:
            words = "a managed session: Qwen Code keeps records of it in another log, which is not read"
            yield Problem.of_file("managed_session", Severity.note, path, words, "none needed")
        if "/chats/" in path:
            beside = f"{os.path.dirname(path)}/{self._stated}.jsonl"
            yield from id_problems(self.ref, self._stated, is_there=is_file(self._fs, beside))
