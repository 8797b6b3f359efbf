"""The program `maestro`: the commands of `sessionary work` under the names of the original program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from sessionary.cli.errors import run
from sessionary.cli.groups import SHORT, SUBWORK, WORK
from sessionary.cli.lazy import LazyGroup, command
from sessionary.version import __version__

POLLING = {
    word: WORK[word] for word in ("pending", "status", "consume", "watch", "revive", "quarantine", "ledger")
}

NAME = "maestro"


@command(
    NAME,
    "maestro wsession list",
    "maestro wsession show latest",
    "maestro work",
    "maestro work subwork start latest --purpose 'Check the licence'",
    cls=LazyGroup,
    places={
        "wsession": "sessionary.cli.maestro:wsession_command",
        "work": "sessionary.cli.maestro:work_command",
    },
    short={"ws": "wsession"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="maestro (sessionary %(version)s)")
@click.option("--debug", is_flag=True, help="Print the traceback of a bug in Sessionary.")
def maestro(debug: bool) -> None:
    """Manage work sessions of Maestro. `sessionary work` has the same commands."""


@click.command(
    "wsession", cls=LazyGroup, places=WORK, short=SHORT, called=("sessionary work", "maestro wsession")
)
def wsession_command() -> None:
    """List and show work sessions, leave breadcrumbs, apply messages."""


@command(
    "work",
    "maestro work                           apply messages to the latest session",
    "maestro work watch db5b5fab --exec './apply.sh'",
    cls=LazyGroup,
    places={**POLLING, **SUBWORK},
    called=("sessionary work", "maestro work"),
    invoke_without_command=True,
)
@click.pass_context
def work_command(ctx: click.Context) -> int | None:
    """Apply messages to the log of a work session, and do sub-work in sessions of their own.

    Without a command, the mailbox of the latest session is polled until Ctrl-C, as by `watch latest`.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from sessionary.cli.work.delivering import watch_command

    code: int = ctx.invoke(watch_command, session="latest")
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with `argv` (default: that of the process) and return its exit code."""
    return run(sys.argv[1:] if argv is None else list(argv), maestro, NAME)
