"""`sessionary trash` and `sessionary undo`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output, table
from sessionary.cli.changing import print_command
from sessionary.cli.lazy import command
from sessionary.cli.param_types import When
from sessionary.cli.table import Column
from sessionary.cli.targets import is_path, project_names, report_failure, to_change
from sessionary.cli.text import harmless, one_line
from sessionary.errors import NotFound, SessionaryError
from sessionary.layouts.amplifier.transactions import Undone
from sessionary.layouts.amplifier.undo_index import CONFLICT, TRASH
from sessionary.layouts.base import Capability
from sessionary.model import SessionRef
from sessionary.workspace import Change, Trashed, Workspace, gathered
from sessionary.workspace.changes import REWIND


@command(
    "trash",
    "sessionary trash 3f0c81d2 77aa99bb",
    "sessionary trash --list",
    "sessionary undo 3f0c81d2                   back from the trash",
    "sessionary trash --empty --older-than 30d  delete permanently",
)
@click.argument(
    "sessions", nargs=-1, metavar="[ID | DIR]...", shell_complete=completing.sessions(Capability.TRASH)
)
@options.home
@options.flag("--list", "list_", help="List the trash of all projects.")
@options.flag("--empty", help="Delete the trash permanently.")
@click.option(
    "--older-than",
    type=When(),
    metavar="TIME",
    help="With --list or --empty: only sessions trashed before this time: 30d.",
)
@options.flag("--yes", help="With --empty: do not ask for confirmation.")
@options.json_flag("--jsonl", help="With --list: print JSON Lines, one session per line.")
@options.json_result
def trash_command(
    sessions: tuple[str, ...], list_: bool, empty: bool, older_than: datetime | None, yes: bool
) -> int:
    """Move sessions to the trash, from which undo restores them.

    Their forks and the sessions of their sub-agents stay. The trash is never emptied automatically. Of the sessions
    of a project, only brainstorms that have ended can be moved; `sessionary feature archive` does that with a feature.

    Undo: `sessionary undo ID`; the command is printed. --empty cannot be undone.
    """
    _one_job(sessions, list_, empty, older_than, yes)
    if output.wants("jsonl") and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace()
    if sessions:
        return _trash(workspace, sessions)
    rows, failure = gathered(workspace.trashed(older_than))
    if empty:
        return _empty(workspace, rows, yes) or report_failure(failure, "destroyed")
    titles = [_title(workspace, row) for row in rows]
    none = None if rows else "The trash is empty" + (" of sessions that old." if older_than else ".")
    documents = map(_trashed_object, rows, titles)
    output.listed(documents, _trash_table(rows, titles), none)
    return report_failure(failure, "shown")


def _one_job(
    sessions: tuple[str, ...], list_: bool, empty: bool, older_than: datetime | None, yes: bool
) -> None:
    if bool(sessions) + list_ + empty != 1:
        raise click.UsageError("give exactly one of: sessions, --list, --empty")
    if older_than is not None and sessions:
        raise click.UsageError("--older-than needs --list or --empty")
    if yes and not empty:
        raise click.UsageError("--yes needs --empty")


# -- move to the trash


def _trash(workspace: Workspace, words: Iterable[str]) -> int:
    """All words are resolved before anything moves: a mistyped one moves nothing."""
    found = {one.ref.locator: one for one in (to_change(workspace, word, Capability.TRASH) for word in words)}
    moved: list[tuple[SessionRef, str, str]] = []
    failed = False
    for ref, word in found.values():
        try:
            moved.append((ref, workspace.trash(ref), formatting.command("undo", word)))
        except SessionaryError as error:
            if len(found) == 1:
                raise
            failed = True
            if output.is_json():
                output.problem(error.as_dict() | {"exit_code": error.exit_code})
            else:
                output.aside(harmless(f"sessionary: {error.message}"))
    if output.is_json():
        output.value(
            [
                {"id": ref.session_id, "project": ref.project, "path": path, "undo": undo}
                for ref, path, undo in moved
            ]
        )
    else:
        for ref, _, undo in moved:
            output.lines(changing.done(f"{one_line(ref.session_id)} moved to the trash"))
            print_command("undo", undo)
    return options.PARTLY if failed else 0


# -- list the trash


def _trashed_object(row: Trashed, title: str | None) -> dict[str, Any]:
    """A session in the trash, with the field names of docs/cli-json.md."""
    return {
        "id": row.ref.session_id,
        "project": row.ref.project,
        "title": title,
        "trashed": row.when,
        "size": row.size,
        "path": row.stored.locator,
    }


def _title(workspace: Workspace, row: Trashed) -> str | None:
    try:
        return workspace.summary(row.stored).title
    except SessionaryError:
        return None


def _trash_table(rows: list[Trashed], titles: list[str | None]) -> Iterator[str]:
    now = datetime.now(UTC)
    columns = [
        Column("ID", [one_line(row.ref.session_id) for row in rows]),
        Column("WHEN", [formatting.ago(row.when, now) for row in rows]),
        Column("SIZE", [formatting.size(row.size) for row in rows], right=True),
        Column("TITLE", [one_line(title or "-") for title in titles]),
    ]
    return table.lines(columns, output.room())


# -- empty the trash


def _empty(workspace: Workspace, rows: list[Trashed], yes: bool) -> int:
    size = sum(row.size for row in rows)
    what = f"{formatting.count(len(rows), 'session')}, {formatting.size(size)}"
    refusal = click.UsageError("--empty deletes sessions permanently; without a terminal, add --yes")
    if rows and not yes and not changing.confirmed(f"Permanently delete {what}?", refusal):
        return changing.DECLINED
    gone = workspace.empty_trash(rows)
    if output.is_json():
        output.value({"destroyed": [one.ref.session_id for one in gone], "size": size})
    elif gone:
        output.lines(changing.done(f"permanently deleted: {what}"))
    else:
        output.aside("Nothing to delete.")
    return 0


@command(
    "undo",
    "sessionary undo                            show the last change of all, and ask",
    "sessionary undo 3f0c81d2                   the last change of this session",
    "sessionary undo --list                     all changes that can be undone",
    "sessionary undo --list 3f0c81d2 --json",
)
@click.argument(
    "session", metavar="[ID | DIR]", required=False, shell_complete=completing.sessions(Capability.TRASH)
)
@options.home
@options.flag("--list", "list_", help="List the changes that can be undone, newest first.")
@options.json_flag("--jsonl", help="With --list: print JSON Lines, one change per line.")
@options.json_result
def undo_command(session: str | None, list_: bool) -> int:
    """Undo the last change, or restore a trashed session.

    A change is a rewind, a repair, a restored backup, an undo or a conflict. A conflict is a save that replaced
    messages of another program: both versions are kept, and undo restores the other version. Messages added to
    the session since then are kept.

    Without an ID the last change of all sessions is shown and, on a terminal, undone after confirmation;
    elsewhere an ID is needed.

    Undo: a second `sessionary undo ID` of the same session redoes the change. A restored session goes back to
    the trash by `sessionary trash ID`. The command is printed.
    """
    if output.wants("jsonl") and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace()
    ref, word = (None, None) if session is None else _named(workspace, session)
    rows, failure = gathered(workspace.undoable(ref))
    if list_:
        none = None if rows else "Nothing to undo."
        output.listed(map(_change_object, rows), _changes_table(rows), none)
        return report_failure(failure, "shown")
    if failure is not None:  # the last change of all may be in a folder that could not be read
        failure.hint = "`sessionary undo ID` undoes the last change of one session"
        raise failure
    if not rows:
        whose = "" if session is None else f" of {session}"
        raise NotFound(f"nothing to undo{whose}", hint="`sessionary undo --list` shows all changes")
    if session is None and not _agreed(workspace, rows[0]):
        return changing.DECLINED
    return _undo(workspace, rows[0], word or rows[0].ref.session_id)


def _named(workspace: Workspace, word: str) -> tuple[SessionRef, str]:
    """The session that a word names, which may be in the trash, and its name on a command line."""
    if is_path(word):
        path = os.path.abspath(os.path.expanduser(word))
        return workspace.find_changed(path), path
    ref = workspace.find_changed(word)
    return ref, ref.session_id


def _agreed(workspace: Workspace, row: Change) -> bool:
    """Show the last change of all sessions and ask for confirmation: it may be of another session than meant.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    what = f"{row.operation}{_about(row)} of {row.ref.session_id}"
    if output.is_json() or not sys.stdin.isatty():
        back = formatting.command("undo", row.ref.session_id)
        raise click.UsageError(
            f"without a terminal, give an ID; the last change is the {what}, undone by `{one_line(back)}`"
        )
    project = project_names(workspace, [row.ref.project])[row.ref.project]
    output.aside(harmless(f"Last change: {what}"))
    output.aside(harmless(f"  {changing.at(row.when)}, in {project}"))
    return changing.confirmed("Undo it?")


def _change_object(row: Change) -> dict[str, Any]:
    """A change that can be undone, with the field names of docs/cli-json.md."""
    return {
        "id": row.ref.session_id,
        "project": row.ref.project,
        "operation": row.operation,
        "at": row.when,
        "next": row.next,
        "size": row.size,
        "kept_in": row.kept_in,
        "facts": row.facts,
    }


def _changes_table(rows: list[Change]) -> Iterator[str]:
    now = datetime.now(UTC)
    columns = [
        Column("  ID", [f"{'▶' if row.next else ' '} {one_line(row.ref.session_id)}" for row in rows]),
        Column("WHEN", [formatting.ago(row.when, now) for row in rows]),
        Column("WHAT", [one_line(f"{row.operation}{_about(row)}") for row in rows]),
        Column("SIZE", [formatting.size(row.size) for row in rows], right=True),
    ]
    return table.lines(columns, output.room())


def _about(one: Change) -> str:
    facts = one.facts
    if one.operation == "rewind":
        return f" to turn {facts.get('to_turn', '?')}"
    if one.operation == "undo":
        return f" of {facts.get('operation', '?')}"
    return ""


def _undo(workspace: Workspace, row: Change, word: str) -> int:
    undone = workspace.undo(row)
    fields = asdict(undone)
    return changing.finish(
        {"id": fields.pop("session_id"), "path": row.ref.locator}
        | fields
        | {"operation": row.operation, "at": row.when},
        _undone_lines(row, undone),
        undo=_redo(workspace, row, word),
    )


def _redo(workspace: Workspace, row: Change, word: str) -> str:
    """The command that undoes an undo; a layout that keeps none of that makes the change again."""
    if row.operation == TRASH:
        return formatting.command("trash", word)
    if row.operation == REWIND and not any(workspace.undoable(row.ref)):
        return formatting.command("rewind", word, str(row.facts["to_turn"]))
    return formatting.command("undo", word)


def _undone_lines(one: Change, undone: Undone) -> Iterator[str]:
    name = one_line(one.ref.session_id)
    words = {
        TRASH: " is restored from the trash",
        CONFLICT: " has the version again that a save replaced",
    }.get(one.operation, f": the {one.operation}{_about(one)} of {changing.at(one.when)} is undone")
    yield from changing.done(name + words)
    since = [
        formatting.count(number, what)
        for number, what in ((undone.messages_since, "message"), (undone.events_since, "event"))
        if number
    ]
    if undone.metadata_since:
        since.append("a change of metadata.json")
    if since:
        yield from changing.set_in(
            f"  kept separately, since it is newer than the change: {', '.join(since)}"
        )
    if undone.events_left:
        yield "  the event log was replaced since then, and is unchanged"
