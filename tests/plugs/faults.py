"""Six faults of each store, planted one at a time: the shared scripts and the contracts of its framework find each.

A plugin of pytest: `SESSIONARY_FAULT` names the fault that is planted in the process, `SESSIONARY_FRAMEWORK` the
framework. Faults that are below all stores are planted there, the others in the module of the framework.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import uuid4

from sessionary.layouts.records import checkpoints, journal, state
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.plugs import storing

FAULTS = (
    "loses_nul",
    "stores_a_repetition",
    "overwrites_another_writer",
    "reverses",
    "mixes_names",
    "leaves_a_part_of_what_is_deleted",
)

Plug = Any
"""The module of a framework."""


def _around(place: Any, name: str, wrap: Callable[..., Any]) -> None:
    """Replace a function; `wrap` is called with the one that was there before the arguments."""
    before = getattr(place, name)

    def replaced(*args: Any, **options: Any) -> Any:
        return wrap(before, *args, **options)

    setattr(place, name, replaced)


def _async_around(place: Any, name: str, wrap: Callable[..., Any]) -> None:
    """The same for a coroutine function."""
    before = getattr(place, name)

    async def replaced(*args: Any, **options: Any) -> Any:
        return await wrap(before, *args, **options)

    setattr(place, name, replaced)


def loses_nul(name: str, plug: Plug) -> None:
    """The character NUL is left out of texts."""
    if name == "langgraph":
        _around(plug.DurableSaver, "_element", lambda before, self, value: before(self, _without_nul(value)))
    else:
        _around(journal, "encode_value", lambda before, value: before(value).replace(b"\\u0000", b""))


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


def stores_a_repetition(name: str, plug: Plug) -> None:
    """What is written again, as after a lost acknowledgement, is stored again; without ids, each write is."""
    if name == "openai-agents":

        async def twice(before: Any, self: Any, items: Any) -> None:
            await before(self, items)
            await before(self, items)

        _async_around(plug.DurableSession, "add_items", twice)
    elif name == "claude-agent-sdk":
        plug._new = lambda stored, entries: list(entries)
    elif name == "langgraph":
        _around(
            plug.DurableSaver,
            "put_writes",
            lambda before, self, config, writes, task_id, task_path="": before(
                self, config, writes, f"{task_id}-{uuid4()}", task_path
            ),
        )
    elif name == "google-adk":
        _around(
            plug.DurableSessionService,
            "_append",
            lambda before, self, session, event: before(
                self, session, event.model_copy(update={"id": str(uuid4())})
            ),
        )
    else:

        def again(before: Any, self: Any, record: Any, new: list[Any], expected: Any) -> None:
            for entry in list(new):
                new.append(replace(entry, id=str(uuid4()), parent_id=record.head_id))
                record = replace(record, head_id=new[-1].id)
            before(self, record, new, expected)

        _around(plug.DurableConversationStore, "_write", again)


def overwrites_another_writer(name: str, plug: Plug) -> None:
    """A writer does not see what others have written since it has read; of LangGraph, the last write of a task wins."""

    def refreshed(before: Any, self: RecordJournal, written: bytes = b"") -> Any:
        return before(self, written) if written or not self._end else self._journal.look()

    def last_wins(
        before: Any, self: Any, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        named = config["configurable"]
        table = checkpoints.name_of("writes", named["checkpoint_ns"], named["checkpoint_id"])

        def forget(stored: state.State) -> Change:
            return Change(unset={table: [key for key in stored.tables.get(table, ()) if task_id in key]})

        self.journals.of(named["thread_id"]).change(forget)
        before(self, config, writes, task_id, task_path)

    if name == "langgraph":
        _around(plug.DurableSaver, "put_writes", last_wins)
    else:
        _around(RecordJournal, "_refresh", refreshed)


def reverses(name: str, plug: Plug) -> None:
    """What was written last is read first; of LangGraph, pending writes."""
    if name == "langgraph":
        _around(plug.DurableSaver, "_writes", lambda before, *args: before(*args)[::-1])
    elif name == "pydantic-ai":
        _around(plug, "_history", lambda before, *args: (before(*args) or [])[::-1] or None)
    else:
        _around(state.State, "stored", lambda before, *args: before(*args)[::-1])


def mixes_names(name: str, plug: Plug) -> None:
    """The scope of a name does not count; of a store without scopes, upper and lower case are the same."""
    if name == "langgraph":
        _around(plug, "_named", lambda before, config: (before(config)[0], ""))
    elif name == "pydantic-ai":
        _around(
            plug.DurableConversationStore,
            "_records",
            lambda before, self, scope, limit: before(self, None, limit),
        )
    elif name == "openai-agents":
        _around(
            plug,
            "RecordJournal",
            lambda before, folder, framework, session_id, **how: before(
                folder, framework, session_id.lower(), **how
            ),
        )
    else:
        _around(
            storing.Journals,
            "of",
            lambda before, self, session_id, *scope: before(self, session_id, *("" for _ in scope)),
        )


def leaves_a_part_of_what_is_deleted(name: str, plug: Plug) -> None:
    """The items are deleted, and what else is stored of a session stays; of items alone, the first one stays."""
    if name == "openai-agents":

        async def clear(before: Any, self: Any) -> None:
            self.journal.change(lambda stored: Change(drop=[(1, stored.next_item)]))

        _async_around(plug.DurableSession, "clear_session", clear)
    elif name == "claude-agent-sdk":
        plug.DurableSessionStore._delete = lambda self, key: self._journal(key).delete()
    else:
        _around(
            RecordJournal,
            "delete",
            lambda before, self, check=None: self.change(lambda stored: Change(drop=[(0, stored.next_item)])),
        )


def plant(fault: str, framework: str) -> None:
    """Plant a fault in this process."""
    globals()[fault](framework, import_module(f"sessionary.plugs.{framework.replace('-', '_')}"))


def pytest_configure() -> None:
    plant(os.environ["SESSIONARY_FAULT"], os.environ["SESSIONARY_FRAMEWORK"])
