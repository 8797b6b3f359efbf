"""The group of all commands. Each lies in a module of its own, imported only when it is called or listed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from sessionary import __version__
from sessionary.cli import output
from sessionary.cli.suggesting import SuggestingGroup

# In the order of the help: what one needs first stands first.
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
    """Whoever read our output has closed the pipe.

    An error of our own, because click ends the process on the plain one, with the exit code of a bug.
    """


class Commands(SuggestingGroup):
    """Loads the command that is asked for, so that `list` does not pay for the others."""

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
  sessionary list                    what there is, newest first
  sessionary show 3f0c81d2           read a session
  sessionary search "race condition" find messages by their words
  sessionary check                   find what is damaged
  sessionary repair 3f0c81d2         put it right
  sessionary undo                    take the last change back
  sessionary demo                    watch a save being killed and recovered
""",
)
@click.version_option(__version__, message="sessionary %(version)s")
@click.option("--debug", is_flag=True, help="On a bug in Sessionary, print where it happened.")
def cli(debug: bool) -> None:
    """Where agent sessions live: list them, read them, search them, find what is damaged, put it right.

    Results go to standard output, everything else to standard error. What changes a session says how to undo it.
    """
