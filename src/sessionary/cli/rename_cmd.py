"""`sessionary rename`: change the name of a session."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import chosen, print_command
from sessionary.cli.text import one_line
from sessionary.layouts.amplifier import SessionStore

_NAME = "name"


@click.command(
    "rename",
    epilog="""\b
Examples:
  sessionary rename 3f0c81d2 'The login race'
  sessionary rename latest --clear           the title is the first message again
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.of_agents())
@click.argument("name", metavar="NAME", required=False)
@options.home
@click.option("--clear", is_flag=True, help="Remove the name.")
@options.json_result
def rename_command(session: str, name: str | None, home: Path | None, clear: bool, json_: bool) -> int:
    """Set the name of a session, which is its title in lists. The id does not change.

    Undo: set the old name again; the command is printed.
    """
    if clear == (name is not None):
        raise click.UsageError("give a NAME, or --clear")
    if name is not None and not name.strip():
        raise click.UsageError("NAME is empty; --clear removes the name")
    target = chosen(homes.workspace(home), session, "rename")
    store, session_id = SessionStore(target.root), os.path.basename(target.folder)
    before = store.get_metadata(session_id).get(_NAME)
    before = before if isinstance(before, str) and before.strip() else None
    store.update_metadata(session_id, {_NAME: name})
    undo = formatting.command(home, "rename", target.word, "--clear" if before is None else before)
    if json_:
        output.value({
            "id": target.session_id, "path": target.folder, "name": name, "before": before, "undo": undo,
        })  # fmt: skip
    else:
        what = "has no name now" if name is None else f"is now named {one_line(name)}"
        output.lines(changing.done(f"{one_line(target.session_id)} {what}"))
        print_command("undo", undo)
    return 0
