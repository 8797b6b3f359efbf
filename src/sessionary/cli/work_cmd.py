"""`sessionary work`: work sessions, their breadcrumbs and their mailbox."""

from __future__ import annotations

import click

from sessionary.cli.work.groups import PlacedGroup

_WORDS = (
    "list",
    "show",
    "tree",
    "breadcrumbs",
    "breadcrumb",
    "timeline",
    "stats",
    "close",
    "consume",
    "watch",
)
WORK = {word: f"sessionary.cli.work.{word}_cmd:{word}_command" for word in _WORDS}
SUBWORK = {"subwork": "sessionary.cli.work.subwork_cmd:subwork_command"}
SHORT = {"ls": "list", "l": "list", "sh": "show", "tr": "tree"}


@click.command(
    cls=PlacedGroup,
    name="work",
    places={**WORK, **SUBWORK},
    short=SHORT,
    epilog="""\b
Examples:
  sessionary work list
  sessionary work show latest
  sessionary work consume latest --exec './apply.sh'
""",
)
def work_command() -> None:
    """Look into work sessions, and apply what comes.

    They lie in docs/sessions of a project. The same commands are there as `maestro wsession` and `maestro work`,
    unless another program of that name has taken their place.
    """
