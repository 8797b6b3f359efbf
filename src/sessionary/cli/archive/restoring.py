"""`sessionary archive restore` and `sessionary archive rm`."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, formatting, homes, options, output
from sessionary.cli.archive import entries
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless, one_line, short_path


@command(
    "restore",
    "sessionary archive restore 3f0c81d2            back into the store of its agent",
    "sessionary archive restore 3f0c81d2 --to /tmp/old",
    "sessionary archive restore 3f0c81d2 --to /tmp/old --version 1",
    "sessionary list --home /tmp/old",
)
@click.argument("session", metavar="ID", shell_complete=entries.completed)
@entries.folder
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write below this folder instead of the store.",
)
@click.option(
    "--version", type=click.IntRange(1), metavar="N", help="The version, as `archive list ID` numbers it."
)
@options.json_result
def restore_command(
    session: str, folder: Path | None, to: Path | None, version: int | None, json_: bool
) -> int:
    """Write the files of an archived session, byte for byte; by default those of its longest version.

    Nothing is ever replaced: if one of the files exists, nothing is written. The files get new times, so that the
    agent does not delete them at once. Without --to they are written into the store of the agent, which is possible
    where each session is a file of its own. Of a session in a database, --to gets its rows, as lines of JSON and as
    a database. There is no undo: the files that were written are printed.
    """
    archive = homes.workspace(None, must_exist=False).archive(folder)
    entry = archive.find(session)
    done = archive.restore(entry, to, version=version)
    if json_:
        output.value({"id": done.session_id, "kind": entry.kind, "paths": done.paths, "listed": done.listed})
        return 0
    words = f"{one_line(done.session_id)} restored: {formatting.count(len(done.paths), 'file')}"
    output.lines(changing.done(words))
    for path in done.paths[:5]:
        output.line(f"  {harmless(short_path(path))}")
    if len(done.paths) > 5:
        output.line(f"  and {len(done.paths) - 5:,} more")
    if done.listed is not None:
        output.aside(f"{done.listed}.")
    return 0


@command(
    "rm",
    "sessionary archive rm 3f0c81d2",
    "sessionary archive rm 3f0c81d2 77aa99bb --yes",
)
@click.argument("sessions", nargs=-1, required=True, metavar="ID...", shell_complete=entries.completed)
@entries.folder
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@options.json_result
def rm_command(sessions: tuple[str, ...], folder: Path | None, yes: bool, json_: bool) -> int:
    """Remove sessions from the archive, with all of their versions. There is no undo.

    A session whose source is present is archived again by the next run.
    """
    workspace = homes.workspace(None, must_exist=False)
    archive = workspace.archive(folder)
    chosen = list({entry.name: entry for entry in map(archive.find, sessions)}.values())
    left = archive.left()
    if not yes:
        refusal = click.UsageError("rm deletes permanently; without a terminal, add --yes")
        only = sum(one.name in left for one in chosen)
        lost = f", {only:,} of which exist nowhere else" if only else ""
        size = formatting.size(sum(one.size for one in chosen))
        what = f"{formatting.count(len(chosen), 'archived session')}, {size}{lost}"
        if not changing.confirmed(f"Permanently delete {what}?", refusal):
            return changing.DECLINED
    for entry in chosen:
        archive.remove(entry)
    if json_:
        output.value({"removed": [entry.session_id for entry in chosen]})
    else:
        output.lines(changing.done(f"removed from the archive: {formatting.count(len(chosen), 'session')}"))
    return 0
