"""`sync push`, `sync pull` and `sync status`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from sessionary.cli import options
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import print_result, together
from sessionary.sync.engine import QUIET


@click.command(
    "push",
    epilog="""\b
Examples:
  sessionary sync push
  sessionary sync push --json | jq .cost
""",
)
@places.home
@places.root
@places.settings_file
@click.option(
    "--many-deletions", is_flag=True, help="Push deletions even if half of all sessions were deleted at once."
)
@options.json_result
def push_command(
    home: Path | None, root: Path, settings_path: Path | None, many_deletions: bool, json_: bool
) -> int:
    """Upload new data, and again what the remote has lost.

    A session that was continued elsewhere in the meantime is not changed: `sync pull` reconciles both.
    Exit code 3: some sessions failed, or are held back because a file is damaged or behind a symbolic link.

    There is no undo: other machines may have downloaded it.
    """
    here = places.here_of(home, root, settings_path)
    with places.connected(here, "pushing") as line:
        places.finish_removal(here.settings, line)
        engines = here.engines(line, allow_many_deletions=many_deletions)
        result = together(((engine.layout.name, engine.push(look=True)) for engine in engines), line.spared)
    return print_result(result, here, json_=json_)


@click.command(
    "pull",
    epilog="""\b
Examples:
  sessionary sync pull
  sessionary sync pull --root ~/code/shop     its work sessions, brainstorms and features, too
""",
)
@places.home
@places.root
@places.settings_file
@places.quiet
@options.json_result
def pull_command(home: Path | None, root: Path, settings_path: Path | None, quiet: float, json_: bool) -> int:
    """Download new data from the remote.

    A session that was continued on two machines is kept in both versions: the local one becomes a sibling
    with an id of its own. A session that an agent has open is not changed, and sessions of a project that is
    not on this machine are held back. Exit code 3: some sessions failed, or are held back because a file is
    damaged or behind a symbolic link.

    There is no undo of a whole pull; replaced versions are kept, and reported.
    """
    here = places.here_of(home, root, settings_path, quiet)
    with places.connected(here, "pulling") as line:
        places.finish_removal(here.settings, line)
        pulled = ((engine.layout.name, here.pull(engine)) for engine in here.engines(line))
        result = together(chain(pulled, here.strangers(line)), line.spared)
    return print_result(result, here, json_=json_)


@click.command(
    "status",
    epilog="""\b
Examples:
  sessionary sync status
  sessionary sync status --all --json
""",
)
@places.home
@places.root
@places.settings_file
@click.option("--all", "all_", is_flag=True, help="Also print sessions that are in sync.")
@options.as_json("the sessions", "one session")
def status_command(
    home: Path | None, root: Path, settings_path: Path | None, all_: bool, json_: bool, jsonl: bool
) -> int:
    """Show the state of every session: in step, ahead, behind, diverged, never synced or held back.

    Changes nothing, neither locally nor on the remote. Exit code 3: as for `sync push`.
    """
    options.one_format(json_, jsonl)
    here = places.here_of(home, root, settings_path, QUIET)
    with places.connected(here, "looking") as line:
        found = ((engine.layout.name, engine.status()) for engine in here.engines(line, keep=False))
        result = together(chain(found, here.strangers(line)), line.spared)
    return print_result(result, here, json_=json_, jsonl=jsonl, all_=all_)
