"""`sessionary restore-backup`: restore the previous version of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from sessionary.cli import changing, completing, formatting, homes, options
from sessionary.cli.progress import waiting
from sessionary.cli.targets import to_change
from sessionary.cli.text import one_line
from sessionary.layouts.amplifier import Restored


@click.command(
    "restore-backup",
    epilog="""\b
Examples:
  sessionary restore-backup 3f0c81d2 --dry-run
  sessionary restore-backup 3f0c81d2 --metadata
  sessionary undo 3f0c81d2                   as it was before
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.changeable())
@options.home
@click.option("--metadata", is_flag=True, help="Restore metadata.json, not the transcript.")
@options.dry_run
@options.json_result
def restore_backup_command(
    session: str, home: Path | None, metadata: bool, dry_run: bool, json_: bool
) -> int:
    """Replace the transcript by its backup, which is older and may lack the last messages.

    If a transcript is damaged, `sessionary repair` keeps more of it.

    Undo: `sessionary undo ID`; the command is printed.
    """
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session)
    with waiting("restoring"):
        done = workspace.restore_backup(ref, "metadata" if metadata else "transcript", dry_run=dry_run)
    fields = asdict(done)
    return changing.finish(
        {"id": fields.pop("session_id"), "path": ref.locator} | fields,
        _told(done),
        json_=json_,
        undo=formatting.command(home, "undo", word) if done.kept_in is not None else None,
        dry_run=dry_run,
    )


def _told(done: Restored) -> Iterator[str]:
    file = "metadata.json" if done.which == "metadata" else "transcript.jsonl"
    if not done.changed:
        yield from changing.done(f"{file} equals its backup: nothing to do")
        return
    name = one_line(done.session_id)
    if done.dry_run:
        yield from changing.set_in(f"Would restore {file} of {name}")
    else:
        yield from changing.done(f"{name}: {file} is restored")
    if done.which == "transcript":
        after = formatting.count(done.messages_after, "message")
        verb = "would be" if done.dry_run else "is" if done.messages_after == 1 else "are"
        yield from changing.set_in(f"  {after} {verb} in it; {done.messages_before:,} could be read before")
