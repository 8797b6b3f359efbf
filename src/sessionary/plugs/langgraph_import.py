"""Take over the threads in a database of LangGraph's `SqliteSaver`; `sessionary import` loads this, nothing else does.

A checkpoint is decoded by LangGraph and stored as `DurableSaver` stores it, so this runs in the environment of the
agent: the classes of what it holds must be importable there. Pending writes are copied as they are serialised.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sessionary.layouts.records.checkpoints import Place, Write, put_writes, typed
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.records.state import State
from sessionary.layouts.sqlite import Database
from sessionary.model import Problem, Severity
from sessionary.plugs.langgraph import DurableSaver

_CHECKPOINTS = """SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id"""
_WRITES = """SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value, {task_path}
FROM writes WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id, task_id, idx"""


def take_over(database: Database, home: str) -> Iterator[tuple[str, bool, int] | Problem]:
    """Store what the journals of the threads lack.

    Yields:
        for each thread its id, whether it was there, and the number of checkpoints and writes that were added; and a
        problem for each checkpoint that cannot be decoded.

    Raises:
        as `Database.fetch`; Locked, StorageFailed: as `DurableSaver.put`.
    """
    saver = DurableSaver(os.path.join(home, LANGGRAPH))
    has_path = "task_path" in database.columns("writes")
    writes = _WRITES.format(task_path="task_path" if has_path else "''")
    try:
        for (thread_id,) in database.fetch("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"):
            existed = any(True for _ in saver.list(_named(thread_id), limit=1))
            known = {_place(one.config) for one in saver.list(_named(thread_id))} if existed else set()
            added = 0
            for row in database.fetch(_CHECKPOINTS, (thread_id,)):
                if row[:2] in known:
                    continue
                namespace, _, parent, kind, data, metadata = row
                try:
                    checkpoint = saver.serde.loads_typed((kind, data))
                    described = json.loads(metadata or b"{}")
                except Exception as error:  # noqa: BLE001 - whatever a class of the agent raises
                    words = f"checkpoint {row[1]} of thread {thread_id} cannot be decoded: {error}"
                    yield Problem.of_file("bad_row", Severity.lost_data, database.path, words)
                    continue
                saver.put(_named(thread_id, namespace, parent), checkpoint, described, {})
                added += 1
            journal = saver.journals.of(thread_id)
            for row in database.fetch(writes, (thread_id,)):
                namespace, checkpoint_id, task_id, index, channel, kind, data, path = row
                place, stored = Place(namespace, checkpoint_id), (channel, typed(kind, data), path)
                added += _put_write(journal, place, {(task_id, index): stored})
            yield thread_id, existed, added
    finally:
        saver.journals.close()


def _put_write(journal: RecordJournal, place: Place, write: Mapping[tuple[str, int], Write]) -> bool:
    """Store a pending write; False if it is stored already."""
    change: Change | None = None

    def decide(state: State) -> Change | None:
        nonlocal change
        change = put_writes(state, place, write)
        return change

    journal.change(decide)
    return change is not None


def _named(thread_id: str, *names: str) -> Any:
    keys = ("checkpoint_ns", "checkpoint_id")
    return {"configurable": {"thread_id": thread_id, **dict(zip(keys, names, strict=False))}}


def _place(config: Any) -> tuple[str, str]:
    named = config["configurable"]
    return named["checkpoint_ns"], named["checkpoint_id"]
