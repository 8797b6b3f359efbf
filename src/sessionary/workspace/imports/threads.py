"""Threads in a database of LangGraph. LangGraph alone can decode them, so the plug of this package takes them over."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from sessionary.errors import Unsupported
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.sqlite import Database
from sessionary.model import Problem
from sessionary.workspace.imports.taking_over import ADDED, EXTENDED, UNCHANGED, ImportedSession

TABLES = frozenset(("checkpoints", "writes"))


def threads(database: Database, home: str) -> Iterator[ImportedSession | Problem]:
    """Store what the journals of the threads lack.

    Raises:
        Unsupported: LangGraph is not installed.
    """
    try:
        # The plugs are above this package, which loads none of them but here.
        plug = import_module("sessionary.plugs.langgraph_import")
    except ImportError as error:
        hint = "pip install 'sessionary[langgraph]' in the environment of the agent, and import there"
        words = f"{database.path} is a database of LangGraph, which cannot be loaded: {error}"
        raise Unsupported(words, operation="import", path=database.path, hint=hint) from error
    for found in plug.take_over(database, home):
        if isinstance(found, Problem):
            yield found
        else:
            thread_id, existed, added = found
            state = UNCHANGED if not added else EXTENDED if existed else ADDED
            yield ImportedSession(thread_id, LANGGRAPH, state, added)
