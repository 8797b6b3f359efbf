"""The top-level group. Each command lies in a module of its own, imported only when it is called or listed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from sessionary.cli import output
from sessionary.cli.suggesting import SuggestingGroup
from sessionary.version import __version__

# In the order of the help: the most needed first.
COMMANDS = (
    "list",
    "show",
    "search",
    "events",
    "tree",
    "stats",
    "sql",
    "work",
    "check",
    "repair",
    "rename",
    "fork",
    "rewind",
    "restore-backup",
    "trash",
    "undo",
    "mv",
    "brainstorm",
    "feature",
    "sync",
    "demo",
)


class ReaderGone(Exception):
    """The reader of our output has closed the pipe.

    A separate class, because click ends the process on the plain BrokenPipeError with the exit code of a bug.
    """


class Commands(SuggestingGroup):
    """Loads only the command that is called, so that `list` does not pay for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"sessionary.cli.{name}_cmd")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        # The version and the help of the group are printed in here, by click itself.
        with output.refusals():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  sessionary list                    all sessions, newest first
  sessionary show 3f0c81d2           read a session
  sessionary search "race condition" find messages by words
  sessionary check                   find damage
  sessionary repair 3f0c81d2         repair it
  sessionary undo                    undo the last change
  sessionary demo                    watch a save being killed and recovered
""",
)
@click.version_option(__version__, message="sessionary %(version)s")
@click.option("--debug", is_flag=True, help="Print the traceback of a bug in Sessionary.")
def cli(debug: bool) -> None:
    """List, read, search, check and repair the sessions of coding agents.

    Results go to standard output, everything else to standard error. A command that changes a session prints
    how to undo it.
    """
