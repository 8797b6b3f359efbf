"""A session service for the Google Agent Development Kit that survives crashes and many processes.

    from google.adk.runners import Runner
    from sessionary.plugs.google_adk import DurableSessionService

    runner = Runner(agent=agent, app_name="app", session_service=DurableSessionService())

`adk web --session_service_uri=sessionary://` finds it by a `services.yaml` beside the agent.
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions import _session_util
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State as Prefixes
from msgspec import Raw

from sessionary.layouts.records.journal import Change
from sessionary.layouts.records.names import ADK
from sessionary.layouts.records.state import State
from sessionary.layouts.records.values import decode_value
from sessionary.plugs.storing import Journals, folder_of, in_thread

_STATE, _SESSION, _UPDATED = "state", "session", "updated"
_SHARED = "state"
_NO_EVENTS = GetSessionConfig(num_recent_events=0)
_STALE = (
    "The session has been modified in storage since it was loaded. "
    "Get it again with get_session before appending more events."
)


class DurableSessionService(BaseSessionService):  # type: ignore[misc]
    """Sessions with their events and state, in a journal of records for each session.

    An event and what it changes in the state of its session are one transaction. State of the user and of the
    application is stored before the event, so that an event that is acknowledged never lacks it.

    Args:
        folder: the folder of the sessions; by default ``google-adk`` below the data folder of Sessionary.
        durability: ``full`` (default: what `append_event` acknowledged survives a power cut), ``batch`` or ``none``.
        chain: whether the records of new sessions form a hash chain, which `sessionary check --chain` verifies.
        uri: ``sessionary://`` for the default folder, or ``sessionary:///path/of/a/folder``; as ADK passes it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        durability: str = "full",
        chain: bool = False,
        uri: str | None = None,
        **_: Any,
    ) -> None:
        if folder is None and uri is not None and (path := unquote(urlsplit(uri).path)):
            folder = path
        self.journals: Journals = Journals(ADK, folder, durability, chain)
        self._shared = Journals(ADK, os.path.join(folder_of(ADK, folder), _SHARED), durability)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Any:
        """Create a session.

        Raises:
            AlreadyExistsError: the user has a session with this id.
            StorageFailed: the system denied the write.
        """
        name = (session_id or "").strip() or platform_uuid.new_uuid()
        return await in_thread(self._create, app_name, user_id, name, state or {})

    def _create(self, app_name: str, user_id: str, session_id: str, state: dict[str, Any]) -> Any:
        deltas = _session_util.extract_json_safe_state_delta(state)

        def decide(stored: State) -> Change:
            if stored.exists:
                raise AlreadyExistsError(f"Session with id {session_id} already exists.")
            self._share(app_name, user_id, deltas)
            updated = {_UPDATED: platform_time.get_time()}
            return Change(set={_SESSION: updated, _STATE: deltas["session"]})

        journal = self.journals.of(session_id, app_name, user_id)
        with journal.guard:
            journal.change(decide)
            return self._session(app_name, user_id, session_id)

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, config: Any = None) -> Any:
        """A session with its events and state; None if there is none."""
        return await in_thread(self._session, app_name, user_id, session_id.strip(), config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> Any:
        """The sessions of a user, else of all users of an application, without events; the last changed one last."""
        return await in_thread(self._list, app_name, user_id)

    def _list(self, app_name: str, user_id: str | None) -> Any:
        found = [
            self._session(*scope, name, _NO_EVENTS)
            for name, scope in list(self.journals.all())
            if scope[0] == app_name and len(scope) == 2 and user_id in (None, scope[1])
        ]
        sessions = [one for one in found if one is not None]
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session. A missing one is not an error; the state of the user and of the application stays."""
        await in_thread(self.journals.of(session_id.strip(), app_name, user_id).delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user, without the prefix of its keys."""
        return await in_thread(self._shared.of(user_id, app_name).read, _state_of)

    async def append_event(self, session: Any, event: Any) -> Any:
        """Add an event to a session, with what it changes in the state.

        An event that is equal to a stored one of the same id is stored once.

        Durability: that of the service; see the class.

        Raises:
            StaleSessionError: the session was changed since it was loaded (ValueError).
            SessionNotFoundError: the session does not exist.
            Locked: another process holds the session.
            StorageFailed: the system denied the write; `outcome` states whether the event may be stored.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        if await in_thread(self._append, session, event):
            self._commit_event_to_session(session, event)
        return event

    def _append(self, session: Any, event: Any) -> bool:
        """Store an event; False if it is stored already."""
        dumped = event.model_dump(mode="json", exclude_none=True)
        deltas = _session_util.extract_json_safe_state_delta(
            event.actions.state_delta if event.actions else {}
        )

        def decide(state: State) -> Change | None:
            if not state.exists:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            number = state.keys.get(event.id)
            if number is not None and decode_value(bytes(state.items[number])) == dumped:
                return None
            if session._storage_update_marker not in (None, str(state.next_line)):
                raise StaleSessionError(_STALE)
            if session._storage_update_marker is None and not _is_current(state, session):
                raise StaleSessionError(_STALE)
            self._share(session.app_name, session.user_id, deltas)
            key = event.id if number is None else None
            changed = {_SESSION: {_UPDATED: event.timestamp}}
            if deltas["session"]:
                changed[_STATE] = deltas["session"]
            return Change(add=[dumped], keys=[key], set=changed)

        journal = self.journals.of(session.id.strip(), session.app_name, session.user_id)
        with journal.guard:  # the marker changes with the state: branches of one run share the session
            before = journal.read(lambda state: state.next_line)
            after = journal.change(decide).next_line
            if session._storage_update_marker is not None or after != before:
                session._storage_update_marker = str(after)
            session.last_update_time = event.timestamp
            return after != before

    async def flush(self) -> None:
        """Flush what is pending at the levels below ``full``."""
        await in_thread(self.close)

    def close(self) -> None:
        """Flush what is pending, and close all files. The next call opens them again."""
        self.journals.close()
        self._shared.close()

    def _share(self, app_name: str, user_id: str, deltas: Mapping[str, Any]) -> None:
        """Store state of the application and of the user. The session is locked before, the application last."""
        if deltas["user"]:
            self._shared.of(user_id, app_name).change(lambda _: Change(set={_STATE: deltas["user"]}))
        if deltas["app"]:
            self._shared.of(app_name).change(lambda _: Change(set={_STATE: deltas["app"]}))

    def _session(
        self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Any:
        """A session as it is stored; None if there is none."""

        def select(state: State) -> tuple[int, Any, float, list[Raw]]:
            updated = state.value(_SESSION, _UPDATED) or 0.0
            return state.next_line if state.exists else 0, _state_of(state), updated, _events(state, config)

        journal = self.journals.of(session_id, app_name, user_id)
        marker, state, updated, stored = journal.read(select)
        if not marker:
            return None
        for prefix, shared in (
            (Prefixes.APP_PREFIX, self._shared.of(app_name)),
            (Prefixes.USER_PREFIX, self._shared.of(user_id, app_name)),
        ):
            state.update({prefix + key: value for key, value in shared.read(_state_of).items()})
        session = Session(
            id=session_id,
            app_name=app_name,
            user_id=user_id,
            state=state,
            events=[Event.model_validate(decode_value(bytes(one))) for one in stored],
            last_update_time=updated,
        )
        session._storage_update_marker = str(marker)
        return session


def _state_of(state: State) -> dict[str, Any]:
    return state.table(_STATE)


def _is_current(state: State, session: Any) -> bool:
    """Whether a session without a marker, as it was made by hand, has the events that are stored."""
    stored = state.value(_SESSION, _UPDATED) or 0.0
    return stored <= session.last_update_time or len(state.items) == len(session.events)


def _events(state: State, config: GetSessionConfig | None) -> list[Raw]:
    events = state.stored(config.num_recent_events if config else None)
    if config is None or config.after_timestamp is None:
        return events
    first = len(events)
    while first and decode_value(bytes(events[first - 1]))["timestamp"] >= config.after_timestamp:
        first -= 1
    return events[first:]
