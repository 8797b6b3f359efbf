"""`sessionary work`: work sessions, their breadcrumbs and their mailbox."""

from __future__ import annotations

import click

from sessionary.cli.lazy import LazyGroup, places_in

# In the order of the help: each command and its module.
_MODULES = {
    "list": "list_cmd",
    "show": "show_cmd",
    "tree": "tree_cmd",
    "breadcrumbs": "breadcrumbs_cmd",
    "breadcrumb": "breadcrumb_cmd",
    "timeline": "timeline_cmd",
    "stats": "stats_cmd",
    "start": "lifecycle",
    "pause": "lifecycle",
    "resume": "lifecycle",
    "interrupt": "lifecycle",
    "fail": "lifecycle",
    "close": "close_cmd",
    "pending": "inbox_cmd",
    "status": "inbox_cmd",
    "consume": "consume_cmd",
    "watch": "watch_cmd",
    "revive": "inbox_cmd",
    "quarantine": "inbox_cmd",
    "ledger": "ledger_cmd",
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
