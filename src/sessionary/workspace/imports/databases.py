"""Sessions in databases of agent frameworks, which are read as they are, and not changed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.codec.times import parse_time
from sessionary.errors import Invalid, Unsupported
from sessionary.layouts.agents.fields import object_of
from sessionary.layouts.records.names import ADK, LANGGRAPH, OPENAI
from sessionary.layouts.sqlite import Database
from sessionary.model import Problem, Severity
from sessionary.workspace.imports.taking_over import (
    ADDED,
    EXTENDED,
    UNCHANGED,
    ImportedSession,
    Source,
    Sources,
)

SHARED = "state"
"""The folder with the state of users and applications, below that of the framework."""
_OPENAI_TABLES = {"agent_sessions", "agent_messages"}
_ADK_TABLES = {"sessions", "events", "app_states", "user_states"}
_OLD_ADK = "its events are pickled; open it once with `adk migrate session`, and import the new database"


def tables_of(database: Database) -> set[str]:
    """The names of the tables. Raises as `Database.fetch`."""
    return {name for (name,) in database.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")}


def recognised(database: Database, tables: set[str]) -> tuple[str, Sources]:
    """The framework of a database, and its sessions.

    Raises:
        Invalid: its framework is unknown, or its version is too old.
    """
    if tables >= _OPENAI_TABLES:
        return OPENAI, _openai(database)
    if tables >= _ADK_TABLES:
        if "event_data" not in database.columns("events"):
            raise Invalid(
                f"{database.path} has an old format", operation="import", path=database.path, hint=_OLD_ADK
            )
        return ADK, _adk(database)
    hint = (
        "databases of the OpenAI Agents SDK with its default tables, of Google ADK and of LangGraph are read"
    )
    raise Invalid(
        f"{database.path} is a database without sessions", operation="import", path=database.path, hint=hint
    )


def _openai(database: Database) -> Sources:
    """Each row of ``agent_messages`` is an item. A row that is not JSON is skipped, as the SDK does, and reported."""
    sessions = database.fetch("SELECT session_id FROM agent_sessions ORDER BY rowid")
    for (session_id,) in sessions:
        rows = database.fetch(
            "SELECT id, CAST(message_data AS BLOB) FROM agent_messages WHERE session_id = ? ORDER BY id",
            (session_id,),
        )
        items = list[Any]()
        for row, stored in rows:
            value = _value(database, "agent_messages", row, stored)
            if isinstance(value, Problem):
                yield value
            else:
                items.append(value[0])
        yield Source(OPENAI, session_id, items)


def _adk(database: Database) -> Sources:
    """The state of applications and users, then the sessions with their events and their state."""
    for app, stored in database.fetch("SELECT app_name, CAST(state AS BLOB) FROM app_states"):
        yield from _state(database, app, stored, ())
    for app, user, stored in database.fetch("SELECT app_name, user_id, CAST(state AS BLOB) FROM user_states"):
        yield from _state(database, user, stored, (app,))
    sessions = database.fetch(
        "SELECT app_name, user_id, id, CAST(state AS BLOB), update_time FROM sessions"
        " ORDER BY app_name, user_id, id"
    )
    for app, user, session_id, stored, updated in sessions:
        yield from _adk_session(database, (app, user), session_id, stored, _seconds(updated))


def _state(database: Database, name: str, stored: bytes | None, scope: tuple[str, ...]) -> Sources:
    value = _value(database, "state", "/".join((*scope, name)), stored)
    if isinstance(value, Problem):
        yield value
    elif object_of(value[0]):
        yield Source(f"{ADK}/{SHARED}", name, (), scope, tables={"state": object_of(value[0])})


def _adk_session(
    database: Database, scope: tuple[str, str], session_id: str, stored: bytes | None, updated: float
) -> Sources:
    rows = database.fetch(
        "SELECT id, invocation_id, CAST(event_data AS BLOB) FROM events"
        " WHERE app_name = ? AND user_id = ? AND session_id = ? ORDER BY timestamp, rowid",
        (*scope, session_id),
    )
    state = _value(database, "sessions", session_id, stored)
    if isinstance(state, Problem):
        yield state
        state = ({},)
    events, keys = list[Any](), list[str | None]()
    for row, invocation, data in rows:
        value = _value(database, "events", row, data)
        if isinstance(value, Problem):
            yield value
        else:
            events.append({**object_of(value[0]), "id": row, "invocation_id": invocation})
            keys.append(row)
    tables = {"session": {"updated": updated}, "state": object_of(state[0])}
    yield Source(ADK, session_id, events, scope, keys, tables)


def _seconds(stored: Any) -> float:
    """The last change of a session in seconds since 1970, from such a number or a time in UTC."""
    if isinstance(stored, float):
        return stored
    time = parse_time(stored)
    return 0.0 if time is None else time.timestamp()


def _value(database: Database, table: str, row: Any, stored: bytes | None) -> tuple[Any] | Problem:
    """A stored JSON text, decoded; a problem if it is invalid."""
    try:
        return (decode(stored or b"null"),)
    except Undecodable as error:
        words = f"row {row} of {table} is not JSON and was not imported: {error}"
        return Problem.of_file("bad_row", Severity.lost_data, database.path, words)


THREAD_TABLES = frozenset(("checkpoints", "writes"))


def threads(database: Database, home: str) -> Iterator[ImportedSession | Problem]:
    """Store what the journals of the threads lack. Raises Unsupported if LangGraph is not installed."""
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
