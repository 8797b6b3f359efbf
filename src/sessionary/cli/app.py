"""The top-level group. Each command is in a separate module, imported only when it is called or listed."""

from __future__ import annotations

from itertools import chain
from typing import Any

import click

from sessionary.cli import output
from sessionary.cli.lazy import LazyGroup, command, places_in
from sessionary.version import __version__

SECTIONS = {
    "Find and read": tuple("list show open search serve tree stats events diff sql doctor".split()),
    "Check and repair": ("check", "repair", "restore-backup"),
    "Change": ("rename", "tag", "star", "fork", "rewind", "trash", "mv", "undo"),
    "Keep and share": ("archive", "export", "import", "sync", "mcp"),
    "Sessions of a project": ("work", "brainstorm", "feature"),
    "Try it": ("demo",),
}
"""The commands in the order of the help."""

COMMANDS = tuple(chain.from_iterable(SECTIONS.values()))


_MODULES = {
    **dict.fromkeys(("rename", "tag", "star", "fork", "rewind", "restore-backup"), "changes_cmd"),
    "trash": "undo_cmd",
    **dict.fromkeys(("work", "brainstorm", "feature", "archive", "sync"), "groups"),
}
"""The modules of commands that share one; every other command has a module of its own."""


class Commands(LazyGroup):
    """The group of all commands."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        # The version and the help of the group are printed in here, by click itself.
        with output.refusals():
            return super().make_context(*args, **kwargs)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands into the help, by section."""
        width = max(map(len, COMMANDS))
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [
                        (name.ljust(width), one.get_short_help_str(formatter.width - width - 4))
                        for name, one in commands
                        if one is not None
                    ]
                )


@command(
    "cli",
    "sessionary list                    all sessions, newest first",
    "sessionary show 3f0c81d2           read a session",
    "sessionary open 3f0c81d2           continue it in its agent",
    'sessionary search "race condition" find messages by words',
    "sessionary check                   find damage",
    "sessionary repair 3f0c81d2         repair it",
    "sessionary undo                    undo the last change",
    "sessionary demo                    watch a save being killed and recovered",
    cls=Commands,
    places=places_in("sessionary.cli", {name: _MODULES.get(name, f"{name}_cmd") for name in COMMANDS}),
    short={"resume": "open"},
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="sessionary %(version)s")
@click.option("--debug", is_flag=True, help="Print the traceback of a bug in Sessionary.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> int:
    """List, read, search, check and repair the sessions of coding agents.

    Results go to standard output, everything else to standard error. A command that changes a session prints
    how to undo it. Without a command, on a terminal: the newest sessions, and what needs attention.
    """
    if context.invoked_subcommand is not None:
        return 0
    if not output.is_terminal():
        raise click.exceptions.NoArgsIsHelpError(context)
    from sessionary.cli.list_cmd import overview  # here, as the commands are

    return overview()
