"""Changes of a session in the page: those that its layout grants, with a preview and an undo."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sessionary.errors import Invalid, NotFound, Unsupported
from sessionary.escaping import harmless
from sessionary.model import SessionRef
from sessionary.viewer.library import Library, Place, key_of
from sessionary.workspace import Workspace, documents
from sessionary.workspace.changes import ARCHIVE, COPY, EXPORT, FORK, RENAME, REPAIR, REWIND, STAR, TAG, TRASH
from sessionary.workspace.exporting import safe_name
from sessionary.workspace.stores import IN_PROJECTS
from sessionary.xdg import data_folder

Given = dict[str, Any]
Undo = Callable[[], Any]

MENDED = "mended"
"""The folder for repaired copies, below the data folder."""

_LONGEST_DIFF = 50_000
_LONGEST_NAME = 500


class Actions:
    """The actions; each returns what was done, or with `dry_run` what would be.

    Args:
        library: the sessions.
        read_only: refuse every action that changes something.
        now: the clock, for the names of folders.
    """

    def __init__(
        self, library: Library, *, read_only: bool, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._library = library
        self._read_only = read_only
        self._now = now
        self._undo: dict[str, Undo] = {}
        self._planned: dict[SessionRef, str] = {}  # the folders that previews of mended copies named
        self._named: dict[str, Callable[[Place, Given], Given]] = {
            REPAIR: self._repair,
            COPY: self._copy,
            REWIND: self._rewind,
            FORK: self._fork,
            RENAME: self._rename,
            TAG: self._tag,
            STAR: self._star,
            ARCHIVE: self._archive,
            TRASH: self._trash,
        }

    def granted(self, place: Place) -> list[str]:
        """The actions that a session allows."""
        found = place.workspace.operations(place.ref)
        return [
            one for one in (*self._named, EXPORT) if one in found and not (self._read_only and one != EXPORT)
        ]

    def otherwise(self, place: Place) -> list[str] | None:
        """The command that lists what else can be done with a session of a project; None for sessions of agents."""
        return ["sessionary", place.ref.kind, "-h"] if place.ref.kind in IN_PROJECTS else None

    def run(self, name: str, key: str, given: Given) -> Given:
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

    def undo(self, number: str) -> Given:
        """Undo a change of this server.

        Raises:
            NotFound: it was undone, or is of an earlier start.
            Unsupported: the server is read-only.
        """
        self._require_writable()
        if (undo := self._undo.pop(number, None)) is None:
            raise NotFound("nothing to undo", hint="`sessionary undo --list` lists all changes")
        undo()
        self._library.refresh()
        return {"undone": True}

    def _require_writable(self) -> None:
        if self._read_only:
            raise Unsupported("the server is read-only", hint="start `sessionary serve` without --read-only")

    def _kept(self, undo: Undo) -> Given:
        """The number under which a change can be undone."""
        number = secrets.token_hex(8)
        self._undo[number] = undo
        return {"undo": number}

    def _undo_of(self, place: Place, given: Given) -> Given:
        """As `_kept`, for the last change of a session that its store has kept."""
        change = None if _is_dry(given) else next(place.workspace.undoable(place.ref), None)
        return {} if change is None else self._kept(lambda: place.workspace.undo(change))

    # -- each action

    def _repair(self, place: Place, given: Given) -> Given:
        found = place.workspace.repair(place.ref, dry_run=_is_dry(given))
        document: Given = {
            "changed": found.changed,
            "remaining": [documents.of_problem(one) for one in found.remaining],
            "copies": [
                {"name": harmless(os.path.basename(one.path)), "done": one.done} for one in found.copies
            ],
        }
        if found.done is None:
            return document
        done = found.done
        document |= {
            "messages_before": done.messages_before,
            "messages_after": done.messages_after,
            "diff": harmless(done.diff[:_LONGEST_DIFF]),
            "fixes": [{"line": fix.line, "code": fix.code, "what": harmless(fix.what)} for fix in done.fixes],
            "mends": [{"index": one.index, "what": harmless(f"{one.what}: {one.why}")} for one in done.mends],
            "set_aside": done.set_aside,
        }
        return document | (self._undo_of(place, given) if done.kept_in is not None else {})

    def _copy(self, place: Place, given: Given) -> Given:
        """A repaired copy in a new folder of ours; the session itself is only read."""
        base = data_folder()
        if base is None:
            raise Invalid("no home directory for the copy", hint="`sessionary repair ID --out DIR` writes it")
        name = f"{safe_name(f'{place.ref.kind}-{place.ref.session_id}')}-{self._now():%Y%m%dT%H%M%S.%f}"
        folder = self._planned.pop(place.ref, None) or os.path.join(base, MENDED, name)
        if _is_dry(given):
            self._planned[place.ref] = folder
            return {"folder": folder}
        found = place.workspace.mended_copy(place.ref, Path(folder))
        return {
            "folder": found.home,
            "path": harmless(found.copy.locator),
            "mends": [
                {"line": one.line, "code": one.code, "what": harmless(one.what)} for one in found.mends
            ],
            "remaining": [documents.of_problem(one) for one in found.remaining],
            "lost": found.lost,
            "command": ["sessionary", "show", place.ref.session_id, "--home", found.home],
        }

    def _rewind(self, place: Place, given: Given) -> Given:
        count, unit = place.workspace.turns(place.ref)
        if _is_dry(given) and "turn" not in given:
            return {"turns": count, "unit": unit}
        done = place.workspace.rewind(place.ref, _turn_of(given), dry_run=_is_dry(given))
        return {
            "unit": unit,
            "messages_kept": done.messages_kept,
            "messages_dropped": done.messages_dropped,
            "events_dropped": done.events_dropped,
            "turn": done.to_turn,
            "turns": done.turns_before,
        } | (self._undo_of(place, given) if done.kept_in is not None else {})

    def _fork(self, place: Place, given: Given) -> Given:
        turn = None if given.get("turn") is None else _turn_of(given)
        workspace = place.workspace
        if _is_dry(given):
            seen = workspace.preview_fork(place.ref, turn)
            return {
                "turn": seen.turn,
                "turns": seen.turns,
                "messages": seen.messages,
                "open": seen.unanswered,
            }
        made = workspace.fork(place.ref, turn, name=_name_of(given))
        assert made.session_dir is not None  # only a fork in memory has none
        new = workspace.ref_for_path(made.session_dir)
        document: Given = {"id": made.session_id, "messages": made.message_count, "key": key_of(new)}
        if TRASH not in workspace.operations(new):
            return document
        return document | self._kept(lambda: workspace.trash(new))

    def _rename(self, place: Place, given: Given) -> Given:
        name, workspace, ref = _name_of(given), place.workspace, place.ref
        if _is_dry(given):
            return {"before": workspace.summary(ref).title}
        before = workspace.rename(ref, name)
        return {"before": before} | self._kept(lambda: workspace.rename(ref, before))

    def _tag(self, place: Place, given: Given) -> Given:
        wanted = given.get("tags")
        if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
            raise Invalid("the tags are missing", hint="give a list of words")
        before = place.workspace.label(place.ref).tags
        if _is_dry(given):
            return {"before": before}
        _set_tags(place.workspace, place.ref, wanted)
        return {"before": before} | self._kept(lambda: _set_tags(place.workspace, place.ref, before))

    def _star(self, place: Place, given: Given) -> Given:
        workspace, ref, wanted = place.workspace, place.ref, given.get("on") is not False
        if _is_dry(given):
            return {"before": workspace.label(ref).starred}
        before = workspace.star(ref, on=wanted)
        return {"before": before} | self._kept(lambda: workspace.star(ref, on=before))

    def _archive(self, place: Place, given: Given) -> Given:
        archive = place.workspace.archive()
        known = archive.entry_of(place.ref)
        if _is_dry(given):
            return {"folder": harmless(archive.folder), "archived": known is not None}
        entry = archive.keep(place.ref)
        document: Given = {"folder": harmless(archive.folder), "size": entry.size}
        return document if known is not None else document | self._kept(lambda: archive.remove(entry))

    def _trash(self, place: Place, given: Given) -> Given:
        if _is_dry(given):
            summary = place.workspace.summary(place.ref)
            return {"messages": summary.messages, "size": summary.size}
        return {"folder": harmless(place.workspace.trash(place.ref))} | self._undo_of(place, given)


def _is_dry(given: Given) -> bool:
    return given.get("dry_run") is not False


def _turn_of(given: Given) -> int:
    turn = given.get("turn")
    if not isinstance(turn, int) or isinstance(turn, bool):
        raise Invalid("the turn is missing", hint="give a number")
    return turn


def _name_of(given: Given) -> str | None:
    name = given.get("name")
    if name is not None and (not isinstance(name, str) or len(name) > _LONGEST_NAME):
        raise Invalid("the name is not valid", hint=f"give at most {_LONGEST_NAME} characters")
    return (name or "").strip() or None


def _set_tags(workspace: Workspace, ref: SessionRef, wanted: list[str]) -> None:
    """Give a session these tags and no others."""
    before = workspace.label(ref).tags
    workspace.tag(ref, wanted, [one for one in before if one not in wanted])
