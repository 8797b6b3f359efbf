"""`sessionary tag` and `sessionary star`: mark sessions of any agent."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, completing, formatting, homes, options
from sessionary.cli.lazy import command
from sessionary.cli.targets import to_change
from sessionary.cli.text import one_line


@command(
    "tag",
    "sessionary tag 3f0c81d2 bug login",
    "sessionary tag 3f0c81d2 --remove bug",
    "sessionary tag 3f0c81d2               print its tags",
    "sessionary list --tag login",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@options.home
@click.option("--remove", multiple=True, metavar="TAG", help="Remove this tag. May be repeated.")
@options.json_result
def tag_command(
    session: str, tags: tuple[str, ...], home: Path | None, remove: tuple[str, ...], json_: bool
) -> int:
    """Add tags to a session of any agent, or remove them. Without tags: print those that it has.

    Tags are kept in the data folder of Sessionary; the files of the agent stay unchanged. A tag has no blanks and
    no commas.

    Undo: `sessionary tag` with what was removed, and --remove with what was added; the command is printed.
    """
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session, able=None)
    before = workspace.tag(ref, tags, remove) if tags or remove else workspace.label(ref).tags
    after = workspace.label(ref).tags
    undo = None
    if before != after:
        again = [one for one in before if one not in after]
        gone = [part for one in after if one not in before for part in ("--remove", one)]
        undo = formatting.command(home, "tag", word, *again, *gone)
    document = {"id": ref.session_id, "path": ref.locator, "tags": after, "before": before}
    name = one_line(ref.session_id)
    shown = one_line(" ".join(f"#{one}" for one in after))
    text = f"{name} has the tags {shown}" if after else f"{name} has no tags"
    return changing.finish(document, changing.done(text), json_=json_, undo=undo)


@command("star", "sessionary star 3f0c81d2", "sessionary star 3f0c81d2 --remove", "sessionary list --starred")
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@options.home
@click.option("--remove", is_flag=True, help="Take the star away.")
@options.json_result
def star_command(session: str, home: Path | None, remove: bool, json_: bool) -> int:
    """Give a session of any agent a star, or take it away.

    Stars are kept in the data folder of Sessionary; the files of the agent stay unchanged.

    Undo: the same command with --remove, or without; it is printed.
    """
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session, able=None)
    before = workspace.star(ref, on=not remove)
    undo = None
    if before == remove:
        undo = formatting.command(home, "star", word, *(() if remove else ("--remove",)))
    document = {"id": ref.session_id, "path": ref.locator, "starred": not remove, "before": before}
    done = changing.done(f"{one_line(ref.session_id)} has {'no' if remove else 'a'} star")
    return changing.finish(document, done, json_=json_, undo=undo)
