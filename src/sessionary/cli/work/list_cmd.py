"""`work list`: the table of work sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import formatting, options, output
from sessionary.cli.text import cells, column, fit, one_line
from sessionary.cli.when import When
from sessionary.cli.work import places, render
from sessionary.layouts.maestro.records import STATUSES, WorkSession, document_of
from sessionary.layouts.maestro.times import parse_time
from sessionary.layouts.maestro.tree import age_key, latest_key

_ORDERS: dict[str, Callable[[WorkSession], Any]] = {
    "created": age_key,
    "modified": latest_key,
    "status": lambda session: (session.status, age_key(session)),
    "type": lambda session: (session.session_type, age_key(session)),
}
_FIRST = datetime.min.replace(tzinfo=UTC)


@click.command(
    "list",
    epilog="""\b
Examples:
  sessionary work list
  sessionary work list --status running --sort-by created
  sessionary work list --json | jq -r '.[] | .session_id + " " + .state'
""",
)
@places.root
@click.option("--type", "type_", metavar="TYPE", help="Only this type: work_track, work_task, fix, …")
@click.option("--status", type=click.Choice(sorted(STATUSES)), help="Only this status.")
@click.option("--since", type=When(), metavar="TIME", help="Created since: 3d, yesterday, 2026-03-14.")
@click.option("--entity", metavar="TEXT", help="Only sessions whose entities contain TEXT.")
@click.option(
    "--sort-by",
    type=click.Choice(list(_ORDERS)),
    default="modified",
    show_default=True,
    help="Sort order: newest first, text from A to Z.",
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@options.as_json("the sessions", "one session")
def list_command(
    root: Path | None,
    type_: str | None,
    status: str | None,
    since: datetime | None,
    entity: str | None,
    sort_by: str,
    reverse: bool,
    json_: bool,
    jsonl: bool,
) -> int:
    """List work sessions, newest first.

    Sub-work is listed too. The id in the list, or its beginning, names the session. WHEN is the last change;
    with `--sort-by created` the creation.
    """
    options.one_format(json_, jsonl)
    store = places.store_at(root)
    scan = store.scan()
    folders = {id(session): folder for session, folder in zip(scan.sessions, scan.folders, strict=True)}
    found = [
        session
        for session in scan.sessions
        if type_ in (None, session.session_type)
        and status in (None, session.status)
        and (since is None or (parse_time(session.created) or _FIRST) >= since)
        and (entity is None or entity in str(session.related_entity))
    ]
    found.sort(key=_ORDERS[sort_by], reverse=reverse != (sort_by in ("created", "modified")))
    if json_ or jsonl:
        output.items(
            (document_of(session) | {"path": folders[id(session)]} for session in found), jsonl=jsonl
        )
    elif found:
        with output.paged():
            output.lines(table(found, "created" if sort_by == "created" else "modified"))
    elif scan.sessions:
        output.aside(f"No work sessions match these filters ({len(scan.sessions):,} in total).")
    else:
        places.none_there(store)
    return places.print_problems(scan.problems)


def table(sessions: list[WorkSession], when: str) -> Iterator[str]:
    """The sessions as lines, cut only on a terminal.

    Args:
        sessions: the sessions.
        when: the time to show: ``created`` or ``modified``.
    """
    now = datetime.now(UTC)
    columns = [
        column(["ID", *[render.short_id(session) for session in sessions]]),
        column(["TYPE", *[fit(one_line(session.session_type), 16) for session in sessions]]),
        column(["STATUS", *[render.status(session) for session in sessions]]),
        column(["WHEN", *[formatting.ago(parse_time(getattr(session, when)), now) for session in sessions]]),
    ]
    about = ["ENTITY", *[render.entity(session) for session in sessions]]
    status = columns[2]
    room = output.room()
    if room is not None:
        if sum(cells(texts[0]) + 2 for texts in columns) + len("ENTITY") > room:
            del columns[1]  # the status is more informative than the type
        left = max(room - sum(cells(texts[0]) + 2 for texts in columns), 8)
        about = [fit(text, left) for text in about]
    paint = output.painter()
    header, *rows = zip(*columns, about, strict=True)
    yield render.head("  ".join(header))
    for session, row, state in zip(sessions, rows, status[1:], strict=True):
        yield render.cut("  ".join(row)).replace(state, paint(state, render.colour(session)), 1)
