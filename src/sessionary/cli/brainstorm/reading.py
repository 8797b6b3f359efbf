"""The commands that read brainstorms: list, show, status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import formatting, options, output, project_options, table
from sessionary.cli.brainstorm import params, render
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.table import Column
from sessionary.cli.text import cells, fit, one_line
from sessionary.layouts.brainstorm.constants import STATUSES
from sessionary.layouts.brainstorm.reading import Row, newest_first
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.texts import sparkline

_BARS = 10


@command(
    "status", "sessionary brainstorm status feature-auth", "sessionary brainstorm status feature-auth --json"
)
@params.slug
@params.store
@params.lang
@options.json_result
def status_command(store: BrainstormStore, slug: str, lang: str) -> int:
    """Show the state of a session and its open questions.

    Prints score, axes, phase, iteration and questions.
    """
    session = store.load(slug, store_migration=False)
    if not output.is_json():
        params.warn(session.problems, lang, slug)
    return output.shown(render.as_object(session), render.state(session, lang=lang))


@command(
    "show",
    "sessionary brainstorm show feature-auth",
    "sessionary brainstorm show feature-auth --json | jq .document.session.ideas",
)
@params.slug
@params.store
@options.json_result
def show_command(store: BrainstormStore, slug: str) -> int:
    """Show a whole session; nothing is changed.

    Prints questions and answers, ideas, techniques and rounds.
    """
    session = store.load(slug, store_migration=False)
    if output.is_json():
        output.value(render.as_object(session, whole=True))
        return 0
    project_options.warn(session.problems)
    with output.paged():
        output.lines(render.page(session))
    return 0


@command(
    "list",
    "sessionary brainstorm list",
    "sessionary brainstorm list --status in_progress --json",
    "sessionary brainstorm list --archived",
)
@params.store
@click.option("--status", type=click.Choice(STATUSES), help="Only this status.")
@options.flag("--archived", help="List archive/ instead, with the names that `restore` takes.")
@options.as_json("the sessions", "one session")
def list_command(store: BrainstormStore, status: str | None, archived: bool) -> int:
    """List the sessions of the project, newest first.

    The bars show the score over the iterations.
    """
    found = store.archived() if archived else store.list()
    rows = newest_first(row for row in found if status in (None, row.status))
    none = "No brainstorm sessions. Start one: `sessionary brainstorm start SLUG`"
    if archived:
        none = "No archived brainstorm sessions."
    documents = (_object(row, archived=archived) for row in rows)
    return output.listed(documents, _table(rows), None if rows else none)


def _object(row: Row, *, archived: bool) -> dict[str, Any]:
    fields = row._asdict() | {"archived": archived, "name": row.name}
    fields["problems"] = [problem.as_dict() for problem in row.problems]
    return {**fields, "health": row.health}


def _table(rows: Sequence[Row]) -> Iterator[str]:
    now = datetime.now(UTC)
    signs = (" " if row.health in ("ok", "note") else formatting.sign(row.health) for row in rows)
    names = [f"{sign} {one_line(row.name)}" for sign, row in zip(signs, rows, strict=True)]
    statuses = [fit(one_line((row.status or "?").replace("_", " ")), 11) for row in rows]
    columns = [
        Column("  ID", names),
        Column("WHEN", [formatting.ago(row.updated, now) for row in rows]),
        Column("EMS", ["?" if row.ems is None else str(row.ems) for row in rows], right=True),
        Column("", [sparkline(row.ems_line[-_BARS:]) for row in rows]),
        Column("ITER", [str(row.iteration or "?") for row in rows], right=True),
        Column("PHASE", [fit(one_line(row.phase or "?"), 11) for row in rows]),
        Column("STATUS", statuses),
    ]
    yield from table.lines(
        columns,
        output.width(),
        stretch="  ID",
        drop=("STATUS", "PHASE", "ITER", "", "EMS"),
        least=max(map(cells, names), default=0),
    )
    for row in rows:
        if not row.readable:
            yield from item("✗ ", f"{row.slug}: {row.problems[0].message}")
