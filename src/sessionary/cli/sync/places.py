"""The local sessions, the remote, and the folder of the state of a sync command."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from sessionary.cli import homes, options, output
from sessionary.cli.progress import Progress
from sessionary.cli.text import harmless, shell_line
from sessionary.sync.engine import QUIET
from sessionary.sync.remote import Remote
from sessionary.sync.settings import SETTINGS_FILE, Settings
from sessionary.workspace import Workspace, check_folder, syncing
from sessionary.workspace.syncing import Connection, Local, chosen, state_of_commands

settings_option = click.option(
    "--settings",
    "settings_path",
    envvar=SETTINGS_FILE,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings file of `sync init` (default: ~/.config/sessionary/sync.json).",
)
_LOCAL = (
    click.option(
        "--home",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder of the sessions of Amplifier (default: $SESSIONARY_HOME, else ~/.amplifier).",
    ),
    click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        metavar="DIR",
        help="A project folder whose own sessions are synchronised too (default: the current one).",
    ),
    settings_option,
)
_QUIET = options.seconds(
    "--quiet",
    default=QUIET,
    least=0,
    help="Leave sessions alone that changed within this time: an agent may have them open.",
)


def local(*, quiet: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The options that select the local sessions and the remote; the command gets a function that returns `Here`.

    With `quiet`, also the option of that name. The function raises as `here_of`.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(
            home: Path | None, root: Path, settings_path: Path | None, quiet: float = QUIET, **others: Any
        ) -> int:
            return command(select=partial(here_of, home, root, settings_path, quiet), **others)

        return options.together(*_LOCAL, *([_QUIET] if quiet else ()))(run)

    return decorate


@dataclass(frozen=True, slots=True)
class Here(Local):
    """The sessions on this machine, and the options that selected them, for commands to copy."""

    given: tuple[str, ...] = ()

    def command(self, name: str, *words: str) -> str:
        """A command line of `sessionary sync` to copy, with the same options."""
        return shell_line(["sessionary", "sync", name, *words, *self.given])

    def repair(self, kind: str, session: str) -> str | None:
        """The command that repairs a session of this kind; None if there is none."""
        if kind == "amplifier":
            return shell_line(["sessionary", "repair", session, *self.given_as("--home")])
        if kind == "feature":
            return shell_line(["sessionary", "feature", "repair", session, *self.given_as("--root")])
        return None

    def given_as(self, *names: str) -> tuple[str, ...]:
        """The given options that have one of these names, with their values."""
        pairs = zip(self.given[::2], self.given[1::2], strict=True)
        return tuple(word for pair in pairs if pair[0] in names for word in pair)


@contextmanager
def connected(here: Here, doing: str) -> Iterator[Connection]:
    """The remote for the length of a block, with progress."""
    with Progress(doing, None) as progress, syncing.connected(here, progress.advance) as connection:
        yield connection


def here_of(home: Path | None, root: Path, settings_path: Path | None, quiet: float = QUIET) -> Here:
    """The sessions selected by the options of a command.

    A named folder must exist. It may hold no sessions yet: a pull may create the first ones.

    Raises:
        Corrupt, Invalid, NotFound: as `chosen`.
        NotFound: a named folder is missing.
    """
    homes.check_named(home)
    if root != Path():
        check_folder(root, named_by="--root")
    named = (("--home", home), ("--root", None if root == Path() else root), ("--settings", settings_path))
    given = tuple(word for name, path in named if path is not None for word in (name, str(path)))
    workspace = Workspace(homes.folder(home), root.absolute())
    return Here(workspace, chosen(settings_path), state_of_commands(), quiet, given)


def finish_removal(settings: Settings, remote: Remote, sleep: Callable[[float], None] = time.sleep) -> None:
    """Finish a `sync gc` of this machine that was interrupted, and print what failed; see `syncing`."""
    for failure in syncing.finish_removal(settings, remote, sleep):
        output.aside(harmless(f"sessionary: {failure}"))
