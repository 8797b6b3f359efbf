"""The sessions of all homes, as rows of a list, under keys that stay the same from start to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

from sessionary.errors import NotFound, StorageFailed
from sessionary.escaping import harmless
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Workspace, documents, gathered


class Place(NamedTuple):
    """A session, and the workspace that has it."""

    workspace: Workspace
    ref: SessionRef


class _Known(NamedTuple):
    place: Place
    summary: Summary
    row: dict[str, Any]


def key_of(ref: SessionRef) -> str:
    """The key of a session in addresses: ids are not unique, and hold any character."""
    text = f"{ref.kind}\0{ref.locator}\0{ref.session_id}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


class Library:
    """The sessions; `refresh` reads what changed, all other methods answer from what it found.

    Attributes:
        failures: folders that could not be read by the last refresh.
    """

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self.workspaces: Sequence[Workspace] = workspaces
        self.failures: list[StorageFailed] = []
        self._lock = Lock()
        self._known: dict[str, _Known] | None = None
        self._version = 0

    def refresh(self) -> int:
        """Read what changed; return a number that is another one when any row is."""
        with self._lock:
            return self._read()

    def _read(self) -> int:
        known: dict[str, _Known] = {}
        failures: list[StorageFailed] = []
        before = self._known or {}
        for workspace in self.workspaces:
            found, failure = gathered(workspace.summaries())
            if failure is not None:
                failures.append(failure)
            prices = workspace.prices()
            for one in found:
                key = key_of(one.ref)
                old = before.get(key)
                known[key] = (
                    old
                    if old is not None and old.summary == one
                    else _Known(Place(workspace, one.ref), one, self._row(key, one, prices))
                )
        ordered = dict(sorted(known.items(), key=_rank, reverse=True))
        if self._known is None or list(ordered.values()) != list(before.values()):
            self._version += 1
        self._known, self.failures = ordered, failures
        return self._version

    def rows(self, offset: int, limit: int) -> dict[str, Any]:
        """Some rows, the last changed first, and how many there are."""
        known = self._all()
        rows = [one.row for one in list(known.values())[offset : offset + limit]]
        failures = [{"message": one.message, "hint": one.hint, "path": one.path} for one in self.failures]
        return {"version": self._version, "total": len(known), "rows": rows, "failures": failures}

    def summaries(self) -> list[Summary]:
        """The summary of every session."""
        return [one.summary for one in self._all().values()]

    def by_workspace(self) -> Iterator[tuple[Workspace, list[Summary]]]:
        """Each workspace with the summaries of its sessions, the last changed first."""
        known = list(self._all().values())
        for workspace in self.workspaces:
            yield workspace, [one.summary for one in known if one.place.workspace is workspace]

    def place(self, key: str) -> Place:
        """The session with a key.

        Raises:
            NotFound: there is none.
        """
        found = self._all().get(key)
        if found is None:
            raise NotFound("no session has this address", hint="it was moved or deleted: reload the list")
        return found.place

    def row(self, place: Place) -> dict[str, Any]:
        """The row of one session as it is now.

        Raises:
            NotFound: the session is gone.
        """
        summary = place.workspace.summary(place.ref)
        return self._row(key_of(place.ref), summary, place.workspace.prices())

    def _all(self) -> dict[str, _Known]:
        known = self._known
        if known is None:
            with self._lock:
                if self._known is None:
                    self._read()
                known = self._known
        assert known is not None
        return known

    @staticmethod
    def _row(key: str, summary: Summary, prices: Any) -> dict[str, Any]:
        """A row: the fields of docs/cli-json.md, and those that the page needs beside them."""
        row = documents.of_summary(summary, prices)
        shown = {name: harmless(value) if isinstance(value, str) else value for name, value in row.items()}
        return shown | {
            "models": [harmless(model) for model in summary.models],
            "key": key,
            "nested": summary.nested,
            "listed": summary.listed,
            "problems": len(summary.problems),
        }


def _rank(item: tuple[str, _Known]) -> tuple[float, str]:
    updated = item[1].summary.updated
    return (updated.timestamp() if updated else float("-inf")), item[0]
