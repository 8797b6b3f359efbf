"""`work close`: end a work session as completed."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.work import places
from sessionary.layouts.maestro.records import document_of


@click.command(
    "close",
    epilog="""\b
Examples:
  sessionary work close db5b5fab
  sessionary work close latest --json | jq -r .closed_at
""",
)
@places.session
@places.root
@options.json_result
def close_command(session: str, root: Path | None, json_: bool) -> int:
    """End a work session as completed.

    Refused if it has already ended, or while a session that it started is running or paused; these are named.
    Sub-work with a result for its parent is closed by `work subwork close`.

    There is no undo: a completed session stays completed.
    """
    store = places.store_at(root)
    closed = store.close(store.resolve(session))
    if json_:
        output.value(document_of(closed))
    else:
        places.done(f"{closed.session_id} is {closed.status}")
    return 0
