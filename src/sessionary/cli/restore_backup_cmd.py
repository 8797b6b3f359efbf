"""`sessionary restore-backup`: restore the previous version of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import chosen, print_command
from sessionary.cli.progress import waiting
from sessionary.cli.text import one_line
from sessionary.layouts.amplifier import Restored, restore_backup


@click.command(
    "restore-backup",
    epilog="""\b
Examples:
  sessionary restore-backup 3f0c81d2 --dry-run
  sessionary restore-backup 3f0c81d2 --metadata
  sessionary undo 3f0c81d2                   as it was before
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.of_agents())
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
    target = chosen(homes.workspace(home), session, "restore-backup")
    with waiting("restoring"):
        done = restore_backup(target.folder, "metadata" if metadata else "transcript", dry_run=dry_run)
    undo = formatting.command(home, "undo", target.word) if done.kept_in is not None else None
    if json_:
        fields = asdict(done)
        named = {"id": fields.pop("session_id"), "path": target.folder}
        output.value(named | fields | {"undo": undo})
        return 0
    output.lines(_told(done))
    if undo is not None:
        print_command("undo", undo)
    elif dry_run:
        output.aside("Nothing was written.")
    return 0


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
