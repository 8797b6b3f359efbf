"""`sessionary undo`: undo the last change of a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import print_command
from sessionary.cli.choice import all_refs, joined, project_names, stores, tell_partly
from sessionary.cli.targets import AGENTS, granted
from sessionary.cli.text import column, fit, harmless, one_line
from sessionary.disk.fs import OS_FS
from sessionary.errors import AmbiguousId, NotFound, StorageFailed
from sessionary.layouts.amplifier import SessionStore, Undone, is_top_level_session, trash
from sessionary.layouts.amplifier.undo_index import CONFLICT, TRASH, Undoable, undoable
from sessionary.layouts.base import Capability
from sessionary.layouts.session_ids import LATEST, ids_named
from sessionary.workspace import Workspace


class _Place(NamedTuple):
    """A session, in place or in the trash: its project, folder and name."""

    project: str | None
    root: str
    session_id: str
    word: str


class _Row(NamedTuple):
    """A change that can be undone, and where."""

    place: _Place
    one: Undoable


@click.command(
    "undo",
    epilog="""\b
Examples:
  sessionary undo                            show the last change of all, and ask
  sessionary undo 3f0c81d2                   the last change of this session
  sessionary undo --list                     all changes that can be undone
  sessionary undo --list 3f0c81d2 --json
""",
)
@click.argument("session", metavar="[ID | DIR]", required=False, shell_complete=completing.of_agents())
@options.home
@click.option("--list", "list_", is_flag=True, help="List the changes that can be undone, newest first.")
@click.option("--jsonl", is_flag=True, help="With --list: print JSON Lines, one change per line.")
@options.json_result
def undo_command(session: str | None, home: Path | None, list_: bool, jsonl: bool, json_: bool) -> int:
    """Undo the last rewind, repair, restored backup, undo or conflict, or restore a session from the trash.

    A conflict is a save that replaced what another program had stored: both versions are kept, and undo
    restores the other one. Messages added to the session since then are kept.

    Without an ID the last change of all sessions is shown and, on a terminal, undone after confirmation;
    elsewhere an ID is needed.

    Undo: a second `sessionary undo ID` of the same session redoes the change. A restored session goes back to
    the trash by `sessionary trash ID`. The command is printed.
    """
    options.one_format(json_, jsonl)
    if jsonl and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace(home)
    closed: list[StorageFailed] = []
    rows = _rows(workspace, None if session is None else _named(workspace, session), closed)
    if list_:
        if json_ or jsonl:
            output.items(map(_object, rows), jsonl=jsonl)
        else:
            with output.paged():
                output.lines(_listed(rows))
            if not rows:
                output.aside("Nothing to undo.")
        return tell_partly(joined(closed), "shown")
    if failure := joined(closed):  # the last change of all may be in a folder that could not be read
        failure.hint = "`sessionary undo ID` undoes the last change of one session"
        raise failure
    if not rows:
        whose = "" if session is None else f" of {session}"
        raise NotFound(f"nothing to undo{whose}", hint="`sessionary undo --list` shows all changes")
    if session is None and not _agreed(workspace, rows[0], home, json_):
        return changing.DECLINED
    _undo(rows[0], home, json_)
    return 0


def _agreed(workspace: Workspace, row: _Row, home: Path | None, json_: bool) -> bool:
    """Show the last change of all sessions and ask for confirmation: it may be of another session than meant.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    what = f"{row.one.operation}{_about(row.one)} of {row.one.session_id}"
    if json_ or not sys.stdin.isatty():
        back = formatting.command(home, "undo", row.one.session_id)
        raise click.UsageError(
            f"without a terminal, give an ID; the last change is the {what}, undone by `{one_line(back)}`"
        )
    project = project_names(workspace, [row.place.project])[row.place.project]
    output.aside(harmless(f"Last change: {what}"))
    output.aside(harmless(f"  {changing.at(row.one.when)}, in {project}"))
    return changing.confirmed("Undo it?")


# -- which


def _named(workspace: Workspace, word: str) -> _Place:
    """Return the session that a word names, which may be in the trash.

    Raises:
        NotFound: no session matches.
        AmbiguousId: several sessions match, including those in the trash.
    """
    if changing.is_path(word):
        path = os.path.abspath(os.path.expanduser(word))
        root, session_id = os.path.split(path)
        if os.path.isdir(path) or trash.newest(OS_FS, root, session_id) is not None:
            return _Place(None, root, session_id, path)
        raise NotFound(f"no session in {word}, nor in the trash beside it", path=path)
    closed: list[StorageFailed] = []
    if word == LATEST and (trashed := _trashed_last(workspace, closed)) is not None:
        return trashed
    gone = _in_trash(workspace, word, closed)
    found = _found(workspace, word, gone, joined(closed))
    if len(found) > 1:
        names = project_names(workspace, {one.project for one in found if one.project is not None})
        matches = sorted(f"{one.session_id}  {names.get(one.project, '')}".rstrip() for one in found)
        raise AmbiguousId(
            f"{len(found)} sessions, in place or in the trash, match {word}",
            session=word,
            details={"matches": matches, "count": len(matches)},
            hint="give more of the id",
        )
    return found[0]


def _trashed_last(workspace: Workspace, closed: list[StorageFailed]) -> _Place | None:
    """The session that was trashed last, if no session in place has changed since: `latest` means that one."""
    rows = [row for row in _rows(workspace, None, closed) if row.one.operation == TRASH and row.one.when]
    if not rows:
        return None
    changed = [one.updated for one in workspace.summaries() if one.updated and one.ref.kind == AGENTS]
    trashed = rows[0].one.when
    return rows[0].place if trashed is not None and all(time < trashed for time in changed) else None


def _is_begun(workspace: Workspace, word: str) -> bool:
    """True if a session in place wins over those of sub-agents, whose ids may begin with its own."""
    return any(
        ref.session_id.casefold().startswith(word.casefold())
        and (len(ref.session_id) == len(word) or not workspace.is_nested(ref))
        for ref in all_refs(workspace)[0]
    )


def _found(
    workspace: Workspace, word: str, gone: list[_Place], failure: StorageFailed | None
) -> list[_Place]:
    """The sessions in place and in the trash that match a word."""
    begun = [one for one in gone if is_top_level_session(one.session_id)]
    if begun and not _is_begun(workspace, word):
        return begun
    try:
        ref = granted(workspace, workspace.find(word, kind=AGENTS), Capability.CHANGES, "undo")
    except (NotFound, StorageFailed) as error:
        if not gone:
            raise failure or error from None
        return gone
    here = _Place(ref.project, os.path.dirname(ref.locator), ref.session_id, ref.session_id)
    return (
        [here]
        if ref.session_id.casefold() == word.casefold()
        else [here, *(one for one in gone if one != here)]
    )


def _in_trash(workspace: Workspace, word: str, closed: list[StorageFailed]) -> list[_Place]:
    """The sessions in the trash with this name; else those whose ids begin with it."""
    found = {
        _Place(project, root, one.session_id, one.session_id): None
        for project, root in stores(workspace, closed)
        for one in trash.trashed(OS_FS, root, closed)
    }
    named = set(ids_named(word, {one.session_id for one in found}))
    return [one for one in found if one.session_id in named]


def _rows(workspace: Workspace, place: _Place | None, closed: list[StorageFailed]) -> list[_Row]:
    """The changes that can be undone, newest first; errors of unreadable folders are added to `closed`."""
    if place is not None:
        return [_Row(place, one) for one in undoable(place.root, place.session_id)]
    rows = [
        _Row(_Place(project, root, one.session_id, one.session_id), one)
        for project, root in stores(workspace, closed)
        for one in undoable(root, closed=closed)
    ]
    return sorted(rows, key=lambda row: (row.one.at, row.one.next), reverse=True)


# -- what


def _object(row: _Row) -> dict[str, Any]:
    """A change that can be undone, with the field names of docs/cli-json.md."""
    return {
        "id": row.one.session_id,
        "project": row.place.project,
        "operation": row.one.operation,
        "at": row.one.when,
        "next": row.one.next,
        "size": row.one.size,
        "kept_in": row.one.kept_in,
        "facts": row.one.facts,
    }


def _listed(rows: list[_Row]) -> Iterator[str]:
    if not rows:
        return
    now = datetime.now(UTC)
    columns = [
        column(["ID", *[one_line(row.one.session_id) for row in rows]]),
        column(["WHEN", *[formatting.ago(row.one.when, now) for row in rows]]),
        column(["WHAT", *[one_line(f"{row.one.operation}{_about(row.one)}") for row in rows]]),
        column(["SIZE", *[formatting.size(row.one.size) for row in rows]], right=True),
    ]
    room = output.room()
    signs = [" ", *["▶" if row.one.next else " " for row in rows]]
    for number, (sign, *cells) in enumerate(zip(signs, *columns, strict=True)):
        line = f"{sign} {'  '.join(cells)}"
        line = line if room is None else fit(line, room)
        yield output.paint(line, "bold") if not number else line


def _about(one: Undoable) -> str:
    facts = one.facts
    if one.operation == "rewind":
        return f" to turn {facts.get('to_turn', '?')}"
    if one.operation == "undo":
        return f" of {facts.get('operation', '?')}"
    return ""


# -- undo


def _undo(row: _Row, home: Path | None, json_: bool) -> None:
    store = SessionStore(row.place.root)
    word, one = row.place.word, row.one
    undone: Undone | None = None
    if one.operation == CONFLICT:
        store.restore_conflict(one.session_id)
        kept_in = next(iter(store.last_report.conflicts), None)
    else:
        store.undo(one.session_id)
        undone = store.last_report.undone
        kept_in = None if undone is None else undone.kept_in
    back = formatting.command(home, "trash" if one.operation == TRASH else "undo", word)
    folder = os.path.join(row.place.root, one.session_id)
    if json_:
        output.value({
            "id": one.session_id,
            "path": folder,
            "operation": one.operation,
            "at": one.when,
            "messages_since": 0 if undone is None else undone.messages_since,
            "events_since": 0 if undone is None else undone.events_since,
            "metadata_since": undone is not None and undone.metadata_since,
            "events_left": undone is not None and undone.events_left,
            "kept_in": kept_in,
            "undo": back,
        })  # fmt: skip
        return
    output.lines(_told(one, undone))
    print_command("undo", back)


def _told(one: Undoable, undone: Undone | None) -> Iterator[str]:
    name = one_line(one.session_id)
    words = {
        TRASH: " is restored from the trash",
        CONFLICT: " has the version again that a save replaced",
    }.get(one.operation, f": the {one.operation}{_about(one)} of {changing.at(one.when)} is undone")
    yield from changing.done(name + words)
    if undone is None:
        return
    since = [
        formatting.count(number, what)
        for number, what in ((undone.messages_since, "message"), (undone.events_since, "event"))
        if number
    ]
    if undone.metadata_since:
        since.append("a change of metadata.json")
    if since:
        yield from changing.set_in(f"  set aside, since it is newer than the change: {', '.join(since)}")
    if undone.events_left:
        yield "  the event log was replaced since then, and is unchanged"
