"""`sessionary trash`: move sessions to the trash, list it, empty it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import Chosen, chosen, print_command
from sessionary.cli.choice import joined, stores, tell_partly
from sessionary.cli.text import column, fit, harmless, one_line
from sessionary.cli.when import When
from sessionary.disk.fs import OS_FS
from sessionary.errors import SessionaryError, StorageFailed
from sessionary.layouts.amplifier import SessionStore, trash
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.trash import Trashed
from sessionary.layouts.amplifier.undo_index import size_of
from sessionary.layouts.summary import summary_of
from sessionary.workspace import Workspace


class _Row(NamedTuple):
    """A session in the trash, and its project."""

    project: str
    root: str
    one: Trashed


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
@click.argument("sessions", nargs=-1, metavar="[ID | DIR]...", shell_complete=completing.of_agents())
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
@click.option("--jsonl", is_flag=True, help="With --list: print JSON Lines, one session per line.")
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
    options.one_format(json_, jsonl)
    if jsonl and not list_:
        raise click.UsageError("--jsonl needs --list")
    workspace = homes.workspace(home)
    if sessions:
        return _trash(workspace, sessions, home, json_)
    closed: list[StorageFailed] = []
    rows = [row for row in _rows(workspace, closed) if _is_older(row.one, older_than)]
    if empty:
        return _empty(rows, yes, json_) or tell_partly(joined(closed), "destroyed")
    if json_ or jsonl:
        output.items(map(_object, rows), jsonl=jsonl)
    else:
        with output.paged():
            output.lines(_listed(rows))
        if not rows:
            output.aside("The trash is empty" + (" of sessions that old." if older_than else "."))
    return tell_partly(joined(closed), "shown")


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
    found = {target.folder: target for target in (chosen(workspace, word, "trash") for word in words)}
    moved: list[tuple[Chosen, str]] = []
    failed: SessionaryError | None = None
    for target in found.values():
        try:
            moved.append((target, _move(target)))
        except SessionaryError as error:
            if len(found) == 1:
                raise
            failed = error
            if json_:
                output.problem(error.as_dict() | {"exit_code": error.exit_code})
            else:
                output.aside(harmless(f"sessionary: {error.message}"))
    if json_:
        output.value([
            {
                "id": target.session_id,
                "project": target.project,
                "path": path,
                "undo": formatting.command(home, "undo", target.word),
            }
            for target, path in moved
        ])  # fmt: skip
    else:
        for target, _ in moved:
            output.lines(changing.done(f"{one_line(target.session_id)} moved to the trash"))
            print_command("undo", formatting.command(home, "undo", target.word))
    return options.PARTLY if failed is not None else 0


def _move(target: Chosen) -> str:
    SessionStore(target.root).delete(os.path.basename(target.folder))
    there = trash.newest(OS_FS, os.path.realpath(target.root), os.path.basename(target.folder))
    return os.path.join(os.path.realpath(target.root), trash.TRASH, *there) if there else ""


# -- list the trash


def _rows(workspace: Workspace, closed: list[StorageFailed]) -> list[_Row]:
    rows = [
        _Row(project, root, one)
        for project, root in stores(workspace, closed)
        for one in trash.trashed(OS_FS, root, closed)
    ]
    return sorted(rows, key=lambda row: row.one.at, reverse=True)


def _is_older(one: Trashed, limit: datetime | None) -> bool:
    return limit is None or (one.when is not None and one.when < limit)


def _object(row: _Row) -> dict[str, Any]:
    """A session in the trash, with the field names of docs/cli-json.md."""
    return {
        "id": row.one.session_id,
        "project": row.project,
        "title": _title(row.one),
        "trashed": row.one.when,
        "size": size_of(OS_FS, row.one.path),
        "path": row.one.path,
    }


def _title(one: Trashed) -> str | None:
    layout = AmplifierLayout(Path(one.path))
    ref = layout.ref_for_path(Path(one.path))
    try:
        return None if ref is None else summary_of(layout, ref).title
    except SessionaryError:
        return None


def _listed(rows: list[_Row]) -> Iterator[str]:
    if not rows:
        return
    now = datetime.now(UTC)
    columns = [
        column(["ID", *[one_line(row.one.session_id) for row in rows]]),
        column(["WHEN", *[formatting.ago(row.one.when, now) for row in rows]]),
        column(["SIZE", *[formatting.size(size_of(OS_FS, row.one.path)) for row in rows]], right=True),
        ["TITLE", *[one_line(_title(row.one) or "-") for row in rows]],
    ]
    room = output.room()
    for number, cells in enumerate(zip(*columns, strict=True)):
        line = "  ".join(cells)
        line = line if room is None else fit(line, room)
        yield output.paint(line, "bold") if not number else line


# -- empty the trash


def _empty(rows: list[_Row], yes: bool, json_: bool) -> int:
    size = sum(size_of(OS_FS, row.one.path) for row in rows)
    what = f"{formatting.count(len(rows), 'session')}, {formatting.size(size)}"
    if rows and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("--empty deletes sessions permanently; without a terminal, add --yes")
        if not changing.confirmed(f"Permanently delete {what}?"):
            return changing.DECLINED
    gone = []
    for root in {row.root: None for row in rows}:
        gone += trash.empty(OS_FS, root, [row.one for row in rows if row.root == root])
    if json_:
        output.value({"destroyed": [one.session_id for one in gone], "size": size})
    elif gone:
        output.lines(changing.done(f"permanently deleted: {what}"))
    else:
        output.aside("Nothing to delete.")
    return 0
