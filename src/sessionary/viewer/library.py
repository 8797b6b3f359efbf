"""The sessions of all homes, as rows of a list, under keys that stay the same from start to start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from sessionary.errors import NotFound, SessionaryError
from sessionary.escaping import harmless
from sessionary.model import SessionRef, Summary
from sessionary.viewer.listing import row_of
from sessionary.workspace import Workspace, gathered
from sessionary.workspace.filters import by_recency


class Place(NamedTuple):
    """A session, and the workspace that has it."""

    workspace: Workspace
    ref: SessionRef


class _Known(NamedTuple):
    """A session as the last refresh found it.

    Attributes:
        place: the session.
        summary: its summary.
        row: its row of the list, as JSON.
        version: that of the list when the row was made.
        unread: it changed since it was last open.
    """

    place: Place
    summary: Summary
    row: bytes
    version: int
    unread: bool


def key_of(ref: SessionRef) -> str:
    """The key of a session in addresses: ids are not unique, and hold any character."""
    text = f"{ref.kind}\0{ref.locator}\0{ref.session_id}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


class _State(NamedTuple):
    """What the last refresh found, exchanged as a whole: requests are answered while the next one reads.

    Attributes:
        version: another number whenever a row, or the order of the rows, is another one.
        known: the sessions by their keys, the last changed first.
        failures: why sessions or marks are missing.
    """

    version: int
    known: dict[str, _Known]
    failures: list[SessionaryError]


class Library:
    """The sessions; `refresh` reads what changed, all other methods answer from what it found."""

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self.workspaces: Sequence[Workspace] = workspaces
        self._lock = Lock()
        self._state: _State | None = None

    def refresh(self) -> int:
        """Read what changed; return a number that is another one when any row is."""
        with self._lock:
            self._state = self._read(self._state or _State(0, {}, []))
            return self._state.version

    def _read(self, before: _State) -> _State:
        known: dict[str, _Known] = {}
        version = before.version + 1
        is_unread, failures = self._unread()
        for workspace in self.workspaces:
            workspace.rediscover()
            found, failure = gathered(workspace.summaries())
            if failure is not None:
                failures.append(failure)
            prices, paths = workspace.prices(), dict[str, str]()
            for one in found:
                key = key_of(one.ref)
                old = before.known.get(key)
                unread = is_unread(one)
                if old is None or old.summary != one or old.unread != unread:
                    row = row_of(key, one, prices) | {"unread": unread}
                    if one.cwd is None and one.ref.project is not None:
                        row["cwd"] = _path_of(one.ref.project, workspace, paths)
                    old = _Known(Place(workspace, one.ref), one, msgspec.json.encode(row), version, unread)
                known[key] = old
        rank = by_recency()
        ordered = dict(sorted(known.items(), key=lambda item: rank(item[1].summary), reverse=True))
        if before.version and list(ordered.values()) == list(before.known.values()):
            version = before.version
        return _State(version, ordered, failures)

    def _unread(self) -> tuple[Callable[[Summary], bool], list[SessionaryError]]:
        """Whether a session is unread; if that is not known, none is."""
        try:
            return self.workspaces[0].seen.unread(), []
        except SessionaryError as error:
            return lambda _: False, [error]

    def mark_read(self, key: str | None) -> int:
        """Keep that a session is open now, or that all are read; return the version of the list then.

        Raises:
            NotFound: the session is gone.
            Corrupt, Invalid, Locked, StorageFailed: as `Seen.mark`.
        """
        place = None if key is None else self.place(key)
        now = datetime.now(UTC)
        if place is None:
            self.workspaces[0].seen.mark_all(now)
        else:
            one = place.workspace.summary(place.ref)
            place.workspace.seen.mark(one, max(now, one.updated or now))
        with self._lock:
            state = self._state or self._read(_State(0, {}, []))
            read = {
                name: _as_read(one, state.version + 1)
                for name, one in state.known.items()
                if one.unread and (key is None or name == key)
            }
            self._state = state._replace(version=state.version + bool(read), known=state.known | read)
            return self._state.version

    def listed(self, since: int = 0, wanted: Iterable[str] = ()) -> tuple[dict[str, Any], list[bytes]]:
        """The head of the list, and the rows that changed after a version of it as JSON, the last changed first.

        The head has the version, the number of all sessions, what could not be read, and the rows of wanted keys.
        """
        state = self._current()
        failures = [{"message": one.message, "hint": one.hint, "path": one.path} for one in state.failures]
        rows = [msgspec.Raw(state.known[key].row) for key in wanted if key in state.known]
        head = {"version": state.version, "total": len(state.known), "failures": failures, "wanted": rows}
        return head, [one.row for one in state.known.values() if one.version > since]

    def summaries(self) -> list[Summary]:
        """The summary of every session."""
        return [one.summary for one in self._current().known.values()]

    def known(self) -> list[tuple[Place, Summary]]:
        """Every session with its summary, the last changed first."""
        return [(one.place, one.summary) for one in self._current().known.values()]

    def by_workspace(self) -> Iterator[tuple[Workspace, list[Summary]]]:
        """Each workspace with the summaries of its sessions, the last changed first."""
        known = list(self._current().known.values())
        for workspace in self.workspaces:
            yield workspace, [one.summary for one in known if one.place.workspace is workspace]

    def place(self, key: str) -> Place:
        """The session with a key. Raises NotFound if there is none."""
        found = self._current().known.get(key)
        if found is None:
            raise NotFound("no session has this address", hint="it was moved or deleted: reload the list")
        return found.place

    def row(self, place: Place) -> dict[str, Any]:
        """The row of one session as it is now. Raises NotFound if the session is gone."""
        summary = place.workspace.summary(place.ref)
        return row_of(key_of(place.ref), summary, place.workspace.prices())

    def _current(self) -> _State:
        if self._state is None:
            with self._lock:
                if self._state is None:
                    self._state = self._read(_State(0, {}, []))
        return self._state


def _path_of(project: str, workspace: Workspace, known: dict[str, str]) -> str | None:
    """The path of a project, harmless; None if it is unknown. It is looked up once."""
    if project not in known:
        known[project] = workspace.project_paths([project]).get(project, "")
    return harmless(known[project]) or None


def _as_read(known: _Known, version: int) -> _Known:
    row = msgspec.json.decode(known.row) | {"unread": False}
    return known._replace(row=msgspec.json.encode(row), version=version, unread=False)
