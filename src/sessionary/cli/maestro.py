"""The program `maestro`: the commands of `sessionary work` under the names that the original has for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from sessionary import __version__
from sessionary.cli.errors import run
from sessionary.cli.work.groups import PlacedGroup
from sessionary.cli.work_cmd import SHORT, SUBWORK, WORK

NAME = "maestro"


@click.group(
    NAME,
    cls=PlacedGroup,
    places={
        "wsession": "sessionary.cli.maestro:wsession_command",
        "work": "sessionary.cli.maestro:work_command",
    },
    short={"ws": "wsession"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  maestro wsession list
  maestro wsession show latest
  maestro work subwork start latest --purpose 'Check the licence'
""",
)
@click.version_option(__version__, message="maestro (sessionary %(version)s)")
@click.option("--debug", is_flag=True, help="On a bug in Sessionary, print where it happened.")
def maestro(debug: bool) -> None:
    """Work sessions of Maestro, as Sessionary keeps them. `sessionary work` has the same commands."""


@click.command(
    "wsession", cls=PlacedGroup, places=WORK, short=SHORT, called=("sessionary work", "maestro wsession")
)
def wsession_command() -> None:
    """Look into work sessions, leave breadcrumbs, apply what comes."""


@click.command("work", cls=PlacedGroup, places=SUBWORK, called=("sessionary work", "maestro work"))
def work_command() -> None:
    """Do a piece of a session's work in a session of its own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with `argv` (default: that of the process) and return its exit code."""
    return run(sys.argv[1:] if argv is None else list(argv), maestro, NAME)
