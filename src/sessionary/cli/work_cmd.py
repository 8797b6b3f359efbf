"""`sessionary work`: work sessions, their breadcrumbs and their mailbox."""

from __future__ import annotations

import click

from sessionary.cli.lazy import LazyGroup, places_in

# In the order of the help: each command and its module.
_MODULES = {
    "list": "listing",
    "show": "show_cmd",
    "tree": "listing",
    "breadcrumbs": "breadcrumbs",
    "breadcrumb": "breadcrumbs",
    "timeline": "breadcrumbs",
    "stats": "stats_cmd",
    "start": "lifecycle",
    "pause": "lifecycle",
    "resume": "lifecycle",
    "interrupt": "lifecycle",
    "fail": "lifecycle",
    "close": "lifecycle",
    "pending": "mailbox_cmd",
    "status": "mailbox_cmd",
    "consume": "delivering",
    "watch": "delivering",
    "revive": "mailbox_cmd",
    "quarantine": "mailbox_cmd",
    "ledger": "mailbox_cmd",
}
WORK = places_in("sessionary.cli.work", _MODULES)
SUBWORK = {"subwork": "sessionary.cli.work.subwork_cmd:subwork_command"}
SHORT = {"ls": "list", "l": "list", "sh": "show", "tr": "tree"}


@click.command(
    cls=LazyGroup,
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
    """Start work sessions, show them, and apply their messages.

    They are stored in docs/sessions of a project. `maestro wsession` and `maestro work` have the same
    commands, unless another program of that name is installed.
    """
