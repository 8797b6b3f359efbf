"""What the page may change: sessions of layouts that grant it, each change with a preview and an undo."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from sessionary.errors import Invalid, NotFound, Unsupported
from sessionary.escaping import harmless
from sessionary.layouts.base import Capability
from sessionary.viewer.library import Library, Place
from sessionary.workspace import Change, Workspace, documents

_LONGEST_DIFF = 50_000
_LONGEST_NAME = 500


class Actions:
    """The actions; each returns what was done, or with `dry_run` what would be.

    Args:
        library: the sessions.
        read_only: refuse every action.
    """

    def __init__(self, library: Library, *, read_only: bool) -> None:
        self._library = library
        self._read_only = read_only
        self._changes: dict[str, tuple[Workspace, Change]] = {}
        self._named: dict[str, Callable[[Place, dict[str, Any]], dict[str, Any]]] = {
            "repair": self._repair,
            "rewind": self._rewind,
            "rename": self._rename,
            "trash": self._trash,
        }

    def granted(self, place: Place) -> list[str]:
        """The actions that a session allows."""
        if self._read_only or not place.workspace.grants(place.ref, Capability.CHANGES):
            return []
        return [name for name in self._named if place.workspace.allows(place.ref, name)]

    def run(self, name: str, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Carry out an action.

        Raises:
            NotFound: the session or the action does not exist.
            Unsupported: the server is read-only, or the layout does not grant it.
            Invalid: a value is missing or wrong.
            Locked, StorageFailed: the session cannot be written; it is unchanged.
        """
        self._require_writable()
        if name not in self._named:
            raise NotFound(f"no action {name}", hint=f"the actions are {', '.join(self._named)}")
        done = self._named[name](self._library.place(key), given)
        if not _is_dry(given):
            self._library.refresh()
        return done

    def undo(self, number: str) -> dict[str, Any]:
        """Undo a change of this server.

        Raises:
            NotFound: it was undone, or is of an earlier start.
            Unsupported: the server is read-only.
        """
        self._require_writable()
        if number not in self._changes:
            raise NotFound("nothing to undo", hint="`sessionary undo --list` lists all changes")
        workspace, change = self._changes.pop(number)
        undone = workspace.undo(change)
        self._library.refresh()
        return {"operation": undone.operation, "messages_since": undone.messages_since}

    def _require_writable(self) -> None:
        if self._read_only:
            raise Unsupported("the server is read-only", hint="start `sessionary serve` without --read-only")

    def _repair(self, place: Place, given: dict[str, Any]) -> dict[str, Any]:
        found = place.workspace.repair(place.ref, dry_run=_is_dry(given))
        done = found.done
        document: dict[str, Any] = {"remaining": [documents.of_problem(one) for one in found.remaining]}
        if done is not None:
            document |= {
                "changed": done.changed,
                "messages_before": done.messages_before,
                "messages_after": done.messages_after,
                "diff": harmless(done.diff[:_LONGEST_DIFF]),
                "fixes": [
                    {"line": fix.line, "code": fix.code, "what": harmless(fix.what)} for fix in done.fixes
                ],
            }
        return document | self._undo_of(place, given)

    def _rewind(self, place: Place, given: dict[str, Any]) -> dict[str, Any]:
        turn = given.get("turn")
        if not isinstance(turn, int) or isinstance(turn, bool):
            raise Invalid("the turn is missing", hint="give a number")
        done = place.workspace.rewind(place.ref, turn, dry_run=_is_dry(given))
        kept = {"messages_kept": done.messages_kept, "messages_dropped": done.messages_dropped}
        return kept | {"events_dropped": done.events_dropped} | self._undo_of(place, given)

    def _rename(self, place: Place, given: dict[str, Any]) -> dict[str, Any]:
        name = given.get("name")
        if name is not None and (not isinstance(name, str) or len(name) > _LONGEST_NAME):
            raise Invalid("the name is not valid", hint=f"give at most {_LONGEST_NAME} characters")
        if _is_dry(given):
            return {"before": place.workspace.summary(place.ref).title}
        return {"before": place.workspace.rename(place.ref, name or None)}

    def _trash(self, place: Place, given: dict[str, Any]) -> dict[str, Any]:
        if _is_dry(given):
            summary = place.workspace.summary(place.ref)
            return {"messages": summary.messages, "size": summary.size}
        return {"folder": place.workspace.trash(place.ref)} | self._undo_of(place, given)

    def _undo_of(self, place: Place, given: dict[str, Any]) -> dict[str, Any]:
        """The number under which the last change of a session can be undone."""
        change = None if _is_dry(given) else next(place.workspace.undoable(place.ref), None)
        if change is None:
            return {}
        number = secrets.token_hex(8)
        self._changes[number] = place.workspace, change
        return {"undo": number}


def _is_dry(given: dict[str, Any]) -> bool:
    return given.get("dry_run") is not False
