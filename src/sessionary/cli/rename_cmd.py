"""`sessionary rename`: change the name of a session."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, completing, formatting, homes, options
from sessionary.cli.targets import to_change
from sessionary.cli.text import one_line


@click.command(
    "rename",
    epilog="""\b
Examples:
  sessionary rename 3f0c81d2 'The login race'
  sessionary rename latest --clear           the title is the first message again
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.changeable())
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
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session)
    before = workspace.rename(ref, name)
    what = "has no name now" if name is None else f"is now named {one_line(name)}"
    return changing.finish(
        {"id": ref.session_id, "path": ref.locator, "name": name, "before": before},
        changing.done(f"{one_line(ref.session_id)} {what}"),
        json_=json_,
        undo=formatting.command(home, "rename", word, "--clear" if before is None else before),
    )
