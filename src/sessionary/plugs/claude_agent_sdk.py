"""A `SessionStore` for the Claude Agent SDK that survives crashes and many processes.

from claude_agent_sdk import ClaudeAgentOptions
from sessionary.plugs.claude_agent_sdk import DurableSessionStore

options = ClaudeAgentOptions(session_store=DurableSessionStore())
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from claude_agent_sdk import fold_session_summary

from sessionary.disk.fs import OS_FS, stat_or_none
from sessionary.layouts.records.journal import Change, newest_change
from sessionary.layouts.records.names import CLAUDE
from sessionary.layouts.records.state import State
from sessionary.layouts.records.values import decode_value
from sessionary.plugs.storing import Journals, in_thread

_SUMMARY, _ENTRY = "summary", "entry"
_log = logging.getLogger(__name__)

Key = Mapping[str, str]


class DurableSessionStore:
    """The transcripts of sessions and of their sub-agents, each in a journal of records.

    It has all methods of the protocol `SessionStore` of the SDK, the optional ones too.

    An entry with the ``uuid`` of a stored entry is stored once: if its content differs, the first one is kept, and a
    warning is logged. Entries without one are all stored.

    Args:
        folder: the folder of the sessions; by default ``claude-agent-sdk`` below the data folder of Sessionary.
        durability: ``full`` (default: what `append` acknowledged survives a power cut), ``batch`` or ``none``.
        chain: whether the records of new sessions form a hash chain, which `sessionary check --chain` verifies.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None = None, *, durability: str = "full", chain: bool = False
    ) -> None:
        self.journals: Journals = Journals(CLAUDE, folder, durability, chain)

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Add entries at the end: all of them, or none.

        Durability: that of the store; see the class.

        Raises:
            Invalid: an entry is not JSON.
            Locked: another process holds the session.
            StorageFailed: the system denied the write; `outcome` states whether the entries may be stored.
        """
        if entries:
            await in_thread(self._append, key, entries)

    def _append(self, key: Key, entries: Sequence[Any]) -> None:
        def decide(state: State) -> Change | None:
            new = _new(state, entries)
            if not new:
                return None
            keys = [entry.get("uuid") for entry in new]
            if _is_nested(key):
                return Change(add=new, keys=keys)
            folded: Any = fold_session_summary(state.value(_SUMMARY, _ENTRY), dict(key), new)
            return Change(add=new, keys=keys, set={_SUMMARY: {_ENTRY: folded}})

        self._journal(key).change(decide)

    async def load(self, key: Any) -> list[Any] | None:
        """All entries in the order of their writing; None if there are none.

        Raises:
            StorageFailed: the file cannot be read.
        """
        return await in_thread(self._journal(key).read, lambda state: state.values() or None)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """The sessions of a project, without those of sub-agents: their ids, and when they changed, in milliseconds.

        Raises:
            StorageFailed: the folder cannot be looked into.
        """
        return await in_thread(self._listed, project_key)

    def _listed(self, project_key: str) -> list[Any]:
        return [
            {"session_id": session_id, "mtime": _changed(path)}
            for session_id, path in self.journals.sessions(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """What the SDK knows of each session of a project, as it was folded with the last write.

        Raises:
            StorageFailed: a file cannot be read.
        """
        return await in_thread(self._summaries, project_key)

    def _summaries(self, project_key: str) -> list[Any]:
        found = []
        for session_id, path in self.journals.sessions(project_key):
            newest = newest_change(path)
            stored = None if newest is None else newest.set.get(_SUMMARY, {}).get(_ENTRY)
            if stored is not None:
                entry = decode_value(bytes(stored))
            else:  # the last record was damaged, or is a snapshot
                journal = self.journals.of(session_id, project_key)
                entry = journal.read(lambda state: state.value(_SUMMARY, _ENTRY))
            if entry is not None:
                found.append({**entry, "mtime": _changed(path)})
        return found

    async def delete(self, key: Any) -> None:
        """Delete a session with those of its sub-agents, or that of one sub-agent. A missing one is not an error.

        Durability: when this returns, the deletion survives a power cut.
        """
        await in_thread(self._delete, key)

    def _delete(self, key: Key) -> None:
        self._journal(key).delete()
        if not _is_nested(key):
            scope = (key["project_key"], key["session_id"])
            for subpath, _ in list(self.journals.sessions(*scope)):
                self.journals.of(subpath, *scope).delete()

    async def list_subkeys(self, key: Any) -> list[str]:
        """The sub-agents of a session, by their paths."""
        return await in_thread(self._subkeys, key)

    def _subkeys(self, key: Key) -> list[str]:
        return [subpath for subpath, _ in self.journals.sessions(key["project_key"], key["session_id"])]

    def _journal(self, key: Key) -> Any:
        if _is_nested(key):
            return self.journals.of(key["subpath"], key["project_key"], key["session_id"])
        return self.journals.of(key["session_id"], key["project_key"])


def _is_nested(key: Key) -> bool:
    return key.get("subpath") is not None


def _new(state: State, entries: Sequence[Any]) -> list[Any]:
    """The entries that are not stored yet. Of several with one uuid the first one counts."""
    new: list[Any] = []
    added: dict[str, Any] = {}
    for entry in entries:
        uuid = entry.get("uuid")
        if uuid is None:
            new.append(entry)
            continue
        number = state.keys.get(uuid)
        stored = added.get(uuid) if number is None else decode_value(bytes(state.items[number]))
        if stored is None:
            added[uuid] = entry
            new.append(entry)
        elif stored != entry:
            _log.warning(
                "an entry with the uuid %s is stored with other content; the first one is kept", uuid
            )
    return new


def _changed(path: str) -> int:
    """When a file changed, in milliseconds since 1970; 0 if it is gone."""
    found = stat_or_none(OS_FS, path)
    return 0 if found is None else found.st_mtime_ns // 1_000_000
