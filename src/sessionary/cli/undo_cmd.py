"""`sessionary undo`: undo the last change of a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output, table
from sessionary.cli.choice import project_names, tell_partly
from sessionary.cli.table import Column
from sessionary.cli.targets import is_path
from sessionary.cli.text import harmless, one_line
from sessionary.errors import NotFound
from sessionary.layouts.amplifier import Undone
from sessionary.layouts.amplifier.undo_index import CONFLICT, TRASH
from sessionary.model import SessionRef
from sessionary.workspace import Change, Workspace, gathered


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
@click.argument("session", metavar="[ID | DIR]", required=False, shell_complete=completing.changeable())
@options.home
@click.option("--list", "list_", is_flag=True, help="List the changes that can be undone, newest first.")
@click.option(
    "--jsonl",
    is_flag=True,
    callback=options.one_format,
    help="With --list: print JSON Lines, one change per line.",
)
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
    if jsonl and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace(home)
    ref, word = (None, None) if session is None else _named(workspace, session)
    rows, failure = gathered(workspace.undoable(ref))
    if list_:
        if json_ or jsonl:
            output.items(map(_object, rows), jsonl=jsonl)
        else:
            with output.paged():
                output.lines(_listed(rows) if rows else ())
            if not rows:
                output.aside("Nothing to undo.")
        return tell_partly(failure, "shown")
    if failure is not None:  # the last change of all may be in a folder that could not be read
        failure.hint = "`sessionary undo ID` undoes the last change of one session"
        raise failure
    if not rows:
        whose = "" if session is None else f" of {session}"
        raise NotFound(f"nothing to undo{whose}", hint="`sessionary undo --list` shows all changes")
    if session is None and not _agreed(workspace, rows[0], home, json_):
        return changing.DECLINED
    return _undo(workspace, rows[0], word or rows[0].ref.session_id, home, json_)


def _named(workspace: Workspace, word: str) -> tuple[SessionRef, str]:
    """The session that a word names, which may be in the trash, and its name on a command line."""
    if is_path(word):
        path = os.path.abspath(os.path.expanduser(word))
        return workspace.find_changed(path), path
    ref = workspace.find_changed(word)
    return ref, ref.session_id


def _agreed(workspace: Workspace, row: Change, home: Path | None, json_: bool) -> bool:
    """Show the last change of all sessions and ask for confirmation: it may be of another session than meant.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    what = f"{row.operation}{_about(row)} of {row.ref.session_id}"
    if json_ or not sys.stdin.isatty():
        back = formatting.command(home, "undo", row.ref.session_id)
        raise click.UsageError(
            f"without a terminal, give an ID; the last change is the {what}, undone by `{one_line(back)}`"
        )
    project = project_names(workspace, [row.ref.project])[row.ref.project]
    output.aside(harmless(f"Last change: {what}"))
    output.aside(harmless(f"  {changing.at(row.when)}, in {project}"))
    return changing.confirmed("Undo it?")


def _object(row: Change) -> dict[str, Any]:
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


def _listed(rows: list[Change]) -> Iterator[str]:
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


def _undo(workspace: Workspace, row: Change, word: str, home: Path | None, json_: bool) -> int:
    undone = workspace.undo(row)
    fields = asdict(undone)
    return changing.finish(
        {"id": fields.pop("session_id"), "path": row.ref.locator}
        | fields
        | {"operation": row.operation, "at": row.when},
        _told(row, undone),
        json_=json_,
        undo=formatting.command(home, "trash" if row.operation == TRASH else "undo", word),
    )


def _told(one: Change, undone: Undone) -> Iterator[str]:
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
        yield from changing.set_in(f"  set aside, since it is newer than the change: {', '.join(since)}")
    if undone.events_left:
        yield "  the event log was replaced since then, and is unchanged"
