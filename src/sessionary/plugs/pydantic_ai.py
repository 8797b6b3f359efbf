"""A `ConversationStore` for pydantic-ai that survives crashes and many processes.

from sessionary.plugs.pydantic_ai import DurableConversationStore

store = DurableConversationStore()
conversation = await store.load("customer-1") or Conversation(conversation_id="customer-1")
await store.save(await agent.run("Hello", conversation=conversation))
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder
from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.names import PYDANTIC
from sessionary.layouts.records.state import Ranges, State
from sessionary.layouts.records.values import as_json
from sessionary.layouts.records.view import AFTER, HEAD, VIEW, shown_in
from sessionary.plugs.storing import Journals, in_thread

_RECORD = "record"
_ENTRIES = TypeAdapter(list[ConversationEntry])
_RECORDS = TypeAdapter(ConversationRecord)
_REMEMBERED = 10_000


class DurableConversationStore(ConversationStore):  # type: ignore[misc]
    """Conversations with their branches, in a journal of records for each.

    A fork has copies of the entries that it shares, under their ids: it stays whole when the conversation that it was
    forked from is deleted. Deleting a conversation deletes its entries and its branches.

    Args:
        folder: the folder of the conversations; by default ``pydantic-ai`` below the data folder of Sessionary.
        durability: ``full`` (default: what `save` acknowledged survives a power cut), ``batch`` or ``none``.
        chain: whether the records of new sessions form a hash chain, which `sessionary check --chain` verifies.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None = None, *, durability: str = "full", chain: bool = False
    ) -> None:
        self.journals: Journals = Journals(PYDANTIC, folder, durability, chain)
        self._conversations: dict[str, str] = {}

    async def read_record(self, conversation_id: str) -> Any:
        """The record of a conversation; None if there is none.

        Raises:
            StorageFailed: the file cannot be read.
        """
        return await in_thread(self._record, conversation_id)

    def _record(self, conversation_id: str) -> Any:
        record = self.journals.of(conversation_id).read(_record_of)
        if record is not None:
            self._remember(conversation_id, record)
        return record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[Any]:
        """The records of all conversations, or of a scope, the last saved first."""
        return await in_thread(self._records, scope, limit)

    def _records(self, scope: str | None, limit: int | None) -> Sequence[Any]:
        found = [
            record for one, _ in list(self.journals.sessions()) if (record := self._record(one)) is not None
        ]
        found = [record for record in found if scope in (None, record.scope)]
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    async def write_record(
        self, record: Any, *, new_entries: Sequence[Any] = (), expected_revision: str | None
    ) -> None:
        """Store a record and new entries: both, or neither.

        Durability: that of the store; see the class.

        Raises:
            ConversationConflict: the stored revision is another one, or the entry at the head is gone.
            Locked: another process holds the conversation.
            StorageFailed: the system denied the write; `outcome` states whether it may be stored.
        """
        await in_thread(self._write, record, list(new_entries), expected_revision)

    def _write(self, record: Any, new: list[Any], expected: str | None) -> None:
        journal = self.journals.of(record.conversation_id)
        shared = self._shared(journal, record, new)
        dumped = _ENTRIES.dump_python([*shared, *new], mode="json")

        def decide(state: State) -> Change:
            if _revision(state) != expected:
                raise ConversationConflict(record.conversation_id)
            given = {None, *(entry["id"] for entry in dumped)}
            if record.head_id not in given and record.head_id not in state.keys:
                raise ConversationConflict(record.conversation_id)
            added = [entry for entry in dumped if entry["id"] not in state.keys]
            head, after = _line(state, record.head_id, added)
            stored = {_RECORD: {_RECORD: _RECORDS.dump_python(record, mode="json")}, VIEW: {HEAD: head}}
            if record.forked_from is not None:
                stored[VIEW]["parent"] = record.forked_from
            if after:
                stored[AFTER] = after
            return Change(add=added, keys=[entry["id"] for entry in added], set=stored)

        journal.change(decide)
        self._remember(record.conversation_id, record)

    def _shared(self, journal: RecordJournal, record: Any, new: Sequence[Any]) -> list[Any]:
        """The entries of a new fork that it shares with the conversation it was forked from."""
        if record.forked_from is None or record.head_id is None or record.head_id in {one.id for one in new}:
            return []
        if journal.read(lambda state: record.head_id in state.keys):
            return []
        source = self.journals.of(record.forked_from)
        return source.read(lambda state: _history(state, record.head_id, None)) or []

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation with all its entries.

        Durability: when this returns, the deletion survives a power cut.

        Raises:
            ConversationConflict: the stored revision is another one.
        """

        def check(state: State) -> None:
            if _revision(state) != expected_revision:
                raise ConversationConflict(conversation_id)

        await in_thread(self.journals.of(conversation_id).delete, check)

    async def read_entry(self, entry_id: str) -> Any:
        """The entry of this id.

        Raises:
            KeyError: no conversation has it.
        """
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[Any]:
        """The entries up to one, in order, or the last ones of them.

        Raises:
            KeyError: no conversation has the entry.
        """
        return [] if head_id is None else await in_thread(self._read_history, head_id, limit)

    def _read_history(self, head_id: str, limit: int | None) -> list[Any]:
        for conversation_id in self._candidates(head_id):
            journal = self.journals.of(conversation_id)
            found = journal.read(lambda state: _history(state, head_id, limit))
            if found is not None:
                return found
        raise KeyError(head_id)

    def _candidates(self, entry_id: str) -> Iterator[str]:
        """The conversations that may have an entry: the one that was read with it, and then all."""
        named = self._conversations.get(entry_id)
        if named is not None:
            yield named
        yield from [one for one, _ in self.journals.sessions() if one != named]

    def _remember(self, conversation_id: str, record: Any) -> None:
        if len(self._conversations) > _REMEMBERED:
            self._conversations.clear()  # they are found without it, only more slowly
        for entry_id in (record.head_id, *record.branches):
            if entry_id is not None:
                self._conversations[entry_id] = conversation_id

    def close(self) -> None:
        """Flush what is pending, and close all files. The next call opens them again."""
        self.journals.close()


def _record_of(state: State) -> Any:
    stored = state.tables.get(_RECORD, {}).get(_RECORD)
    return None if stored is None else _RECORDS.validate_json(as_json(bytes(stored)))


def _revision(state: State) -> str | None:
    stored = state.value(_RECORD, _RECORD)
    return None if stored is None else stored["revision"]


def _line(
    state: State, head_id: str | None, added: Sequence[Any]
) -> tuple[int | None, dict[str, int | None]]:
    """The number of the head, and that of the parent of each item that does not follow the one before it."""
    numbers = {entry["id"]: number for number, entry in enumerate(added, state.next_item)}

    def number_of(entry_id: str) -> int | None:
        return numbers.get(entry_id, state.keys.get(entry_id))

    parents = {number: entry["parent_id"] for number, entry in enumerate(added, state.next_item)}
    if HEAD not in state.tables.get(VIEW, {}):  # an earlier version stored the ranges of the line
        parents |= {number: _parent(item).parent_id for number, item in state.items.items()}
    after: dict[str, int | None] = {}
    for number, parent in parents.items():
        before = None if parent is None else number_of(parent)
        if before != number - 1 and (before is not None or (parent is None and number)):
            after[str(number)] = before  # a parent that is damaged is taken for the item before
    return None if head_id is None else number_of(head_id), after


class _Parent(Struct):
    """What an entry names as the entry before it."""

    parent_id: str | None


_parent = Decoder(_Parent).decode


def _history(state: State, head_id: str, limit: int | None) -> list[Any] | None:
    """The entries up to one; None if the conversation does not have it.

    Where an entry was damaged, the history continues with the one that was stored before it.
    """
    number = state.keys.get(head_id)
    if number is None:
        return None
    found: list[Raw] = []
    while number is not None and (limit is None or len(found) < limit):
        found.append(state.items[number])
        parent = _parent(found[-1]).parent_id
        known = state.keys.get(parent) if parent is not None else None
        number = _shown_before(state, number) if parent is not None and known is None else known
    entries: list[Any] = _ENTRIES.validate_json(as_json(b"[%s]" % b",".join(reversed(found))))
    return entries


def _shown_before(state: State, number: int) -> int | None:
    """The last item of the history that was stored before another one; None if there is none."""
    shown = Ranges(shown_in(state.tables) or [])
    return max((one for one in state.items if one < number and one in shown), default=None)
