"""The commands that carry sessions, and tell how they stand."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from sessionary.cli import options
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import tell, together
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
    "--many-deletions", is_flag=True, help="Carry it too if half of all sessions were deleted here at once."
)
@places.as_json
def push_command(
    home: Path | None, root: Path, settings_path: Path | None, many_deletions: bool, json_: bool
) -> int:
    """Send what is new here, and again what the remote has lost of it.

    A session that has gone on elsewhere meanwhile is left alone: `sync pull` brings both together.
    Exit code 3: some sessions failed, or are held back because a file is damaged or lies behind a symbolic link.

    There is no undo: other devices may have fetched it.
    """
    here = places.here_of(home, root, settings_path)
    with places.connected(here, "pushing") as line:
        places.finish_removal(here.settings, line)
        engines = here.engines(line, allow_many_deletions=many_deletions)
        result = together(((engine.layout.name, engine.push(look=True)) for engine in engines), line.spared)
    return tell(result, here, json_=json_)


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
@places.as_json
def pull_command(home: Path | None, root: Path, settings_path: Path | None, quiet: float, json_: bool) -> int:
    """Bring here what is new elsewhere.

    A session that was continued on two machines is kept in both versions: what was here becomes a sibling with an id
    of its own. A session that an agent has open is not touched, and sessions of a project that is not on this machine
    wait. Exit code 3: some sessions failed, or are held back because a file is damaged or lies behind a symbolic link.

    There is no undo of a pull as a whole; what it displaces is kept, and reported.
    """
    here = places.here_of(home, root, settings_path, quiet)
    with places.connected(here, "pulling") as line:
        places.finish_removal(here.settings, line)
        pulled = ((engine.layout.name, here.pull(engine)) for engine in here.engines(line))
        result = together(chain(pulled, here.strangers(line)), line.spared)
    return tell(result, here, json_=json_)


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
@click.option("--all", "all_", is_flag=True, help="Print the sessions that are in step, too.")
@options.as_json("the sessions", "one session")
def status_command(
    home: Path | None, root: Path, settings_path: Path | None, all_: bool, json_: bool, jsonl: bool
) -> int:
    """Tell how every session stands: in step, ahead, behind, diverged, never synced or held back.

    Changes nothing, here or there. Exit code 3: as for `sync push`.
    """
    options.one_format(json_, jsonl)
    here = places.here_of(home, root, settings_path, QUIET)
    with places.connected(here, "looking") as line:
        found = ((engine.layout.name, engine.status()) for engine in here.engines(line, keep=False))
        result = together(chain(found, here.strangers(line)), line.spared)
    return tell(result, here, json_=json_, jsonl=jsonl, all_=all_)
