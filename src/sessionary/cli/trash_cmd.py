"""`sessionary trash`: move sessions to the trash, list it, empty it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output, table
from sessionary.cli.changing import print_command
from sessionary.cli.choice import tell_partly
from sessionary.cli.table import Column
from sessionary.cli.targets import to_change
from sessionary.cli.text import harmless, one_line
from sessionary.cli.when import When
from sessionary.errors import SessionaryError
from sessionary.model import SessionRef
from sessionary.workspace import Trashed, Workspace, gathered


@click.command(
    "trash",
    epilog="""\b
Examples:
  sessionary trash 3f0c81d2 77aa99bb
  sessionary trash --list
  sessionary undo 3f0c81d2                   back from the trash
  sessionary trash --empty --older-than 30d  delete permanently
""",
)
@click.argument("sessions", nargs=-1, metavar="[ID | DIR]...", shell_complete=completing.changeable())
@options.home
@click.option("--list", "list_", is_flag=True, help="List the trash of all projects.")
@click.option("--empty", is_flag=True, help="Delete the trash permanently.")
@click.option(
    "--older-than",
    type=When(),
    metavar="TIME",
    help="With --list or --empty: only sessions trashed before this time: 30d.",
)
@click.option("--yes", is_flag=True, help="With --empty: do not ask for confirmation.")
@click.option(
    "--jsonl",
    is_flag=True,
    callback=options.one_format,
    help="With --list: print JSON Lines, one session per line.",
)
@options.json_result
def trash_command(
    sessions: tuple[str, ...],
    home: Path | None,
    list_: bool,
    empty: bool,
    older_than: datetime | None,
    yes: bool,
    jsonl: bool,
    json_: bool,
) -> int:
    """Move sessions to the trash; `sessionary undo` restores them.

    Their forks and the sessions of their sub-agents stay. The trash is never emptied automatically.

    Undo: `sessionary undo ID`; the command is printed. There is no undo of --empty.
    """
    _one_job(sessions, list_, empty, older_than, yes)
    if jsonl and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace(home)
    if sessions:
        return _trash(workspace, sessions, home, json_)
    rows, failure = gathered(workspace.trashed())
    if older_than is not None:
        rows = [row for row in rows if row.when is not None and row.when < older_than]
    if empty:
        return _empty(workspace, rows, yes, json_) or tell_partly(failure, "destroyed")
    titles = [_title(workspace, row) for row in rows]
    if json_ or jsonl:
        output.items(map(_object, rows, titles), jsonl=jsonl)
    else:
        with output.paged():
            output.lines(_listed(rows, titles) if rows else ())
        if not rows:
            output.aside("The trash is empty" + (" of sessions that old." if older_than else "."))
    return tell_partly(failure, "shown")


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


def _trash(workspace: Workspace, words: Iterable[str], home: Path | None, json_: bool) -> int:
    """All words are resolved before anything moves: a mistyped one moves nothing."""
    found = {one.ref.locator: one for one in (to_change(workspace, word) for word in words)}
    moved: list[tuple[SessionRef, str, str]] = []
    failed = False
    for ref, word in found.values():
        try:
            moved.append((ref, workspace.trash(ref), formatting.command(home, "undo", word)))
        except SessionaryError as error:
            if len(found) == 1:
                raise
            failed = True
            if json_:
                output.problem(error.as_dict() | {"exit_code": error.exit_code})
            else:
                output.aside(harmless(f"sessionary: {error.message}"))
    if json_:
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


def _object(row: Trashed, title: str | None) -> dict[str, Any]:
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


def _listed(rows: list[Trashed], titles: list[str | None]) -> Iterator[str]:
    now = datetime.now(UTC)
    columns = [
        Column("ID", [one_line(row.ref.session_id) for row in rows]),
        Column("WHEN", [formatting.ago(row.when, now) for row in rows]),
        Column("SIZE", [formatting.size(row.size) for row in rows], right=True),
        Column("TITLE", [one_line(title or "-") for title in titles]),
    ]
    return table.lines(columns, output.room())


# -- empty the trash


def _empty(workspace: Workspace, rows: list[Trashed], yes: bool, json_: bool) -> int:
    size = sum(row.size for row in rows)
    what = f"{formatting.count(len(rows), 'session')}, {formatting.size(size)}"
    if rows and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("--empty deletes sessions permanently; without a terminal, add --yes")
        if not changing.confirmed(f"Permanently delete {what}?"):
            return changing.DECLINED
    gone = workspace.empty_trash(rows)
    if json_:
        output.value({"destroyed": [one.ref.session_id for one in gone], "size": size})
    elif gone:
        output.lines(changing.done(f"permanently deleted: {what}"))
    else:
        output.aside("Nothing to delete.")
    return 0
