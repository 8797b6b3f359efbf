"""A `Session` for the OpenAI Agents SDK that survives crashes and many processes.

    from agents import Agent, Runner
    from sessionary.plugs.openai_agents import DurableSession

    await Runner.run(agent, "Hello", session=DurableSession("customer-1"))

The SDK is not imported: it accepts any object with the methods of its `Session` protocol.
"""

from __future__ import annotations

import os
from typing import Any

from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.names import OPENAI
from sessionary.layouts.records.state import State
from sessionary.layouts.records.values import decode_value
from sessionary.plugs.storing import folder_of, in_thread


class DurableSession:
    """The items of one conversation, in a journal of records.

    Args:
        session_id: the id; any text.
        folder: the folder of the sessions; by default ``openai-agents`` below the data folder of Sessionary.
        durability: ``full`` (default: what `add_items` acknowledged survives a power cut), ``batch`` (at most 64 calls
            or 200 ms are lost to a power cut, nothing to a crash of the process) or ``none``.
        chain: whether the records of a new session form a hash chain, which `sessionary check --chain` verifies.
        session_settings: the `SessionSettings` of the SDK; its ``limit`` counts where `get_items` is given none.

    Attributes:
        journal: the journal with the items. `journal.skipped` lists damaged records: they stay in the file.
    """

    def __init__(
        self,
        session_id: str,
        folder: str | os.PathLike[str] | None = None,
        *,
        durability: str = "full",
        chain: bool = False,
        session_settings: Any = None,
    ) -> None:
        self.session_id: str = session_id
        self.session_settings: Any = session_settings
        self.journal: RecordJournal = RecordJournal(
            folder_of(OPENAI, folder), OPENAI, session_id, durability=durability, chain=chain
        )

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The newest items, the oldest of them first.

        Args:
            limit: how many; None for the limit of the settings, else all. A negative number means all.

        Raises:
            StorageFailed: the file cannot be read.
        """
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        newest = limit if limit is not None and limit >= 0 else None
        return await in_thread(self.journal.read, lambda state: state.values(newest))

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end: all of them, or none.

        Durability: that of the session; see the class.

        Raises:
            Invalid: an item is not JSON.
            Locked: another process holds the session.
            StorageFailed: the system denied the write; `outcome` states whether the items may be stored.
        """
        if items:
            await in_thread(self.journal.change, lambda state: Change(add=items))

    async def pop_item(self) -> Any | None:
        """Remove the newest item and return it; None if there is none. It stays in the file, outside of the session.

        Raises:
            Locked: another process holds the session.
            StorageFailed: as for `add_items`.
        """
        popped: list[Any] = []

        def decide(state: State) -> Change | None:
            if not state.items:
                return None
            number = next(reversed(state.items))
            popped.append(decode_value(bytes(state.items[number])))
            return Change(drop=[(number, number)])

        await in_thread(self.journal.change, decide)
        return popped[0] if popped else None

    async def clear_session(self) -> None:
        """Remove all items. They stay in the file, outside of the session.

        Raises:
            Locked: another process holds the session.
            StorageFailed: as for `add_items`.
        """

        def decide(state: State) -> Change | None:
            return Change(drop=[(0, state.next_item - 1)]) if state.items else None

        await in_thread(self.journal.change, decide)

    def close(self) -> None:
        """Flush what is pending, and close the files. The next call opens them again.

        Raises:
            StorageFailed: the flush failed.
        """
        self.journal.close()
