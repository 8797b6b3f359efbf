"""`work list` and `work tree`: the table of work sessions, and work sessions below their parents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

import click

from sessionary.cli import formatting, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.param_types import When
from sessionary.cli.table import Column
from sessionary.cli.text import cells, fit, one_line
from sessionary.cli.work import places, render
from sessionary.layouts.maestro.records import STATUSES, WorkSession, document_of
from sessionary.layouts.maestro.store import Scan, WorkStore
from sessionary.layouts.maestro.times import parse_time
from sessionary.layouts.maestro.tree import ORDERS, Node, forest, ordered, prune


@command(
    "list",
    "sessionary work list",
    "sessionary work list --status running --sort-by created",
    "sessionary work list --json | jq -r '.[] | .session_id + \" \" + .state'",
)
@places.on_store
@click.option("--type", "type_", metavar="TYPE", help="Only this type: work_track, work_task, fix, …")
@click.option("--status", type=click.Choice(sorted(STATUSES)), help="Only this status.")
@click.option("--since", type=When(), metavar="TIME", help="Created since: 3d, yesterday, 2026-03-14.")
@click.option("--entity", metavar="TEXT", help="Only sessions whose entities contain TEXT.")
@options.choice(
    "--sort-by", default="modified", among=list(ORDERS), help="Sort order: newest first, text from A to Z."
)
@options.flag("--reverse", help="Reverse the order.")
@options.as_json("the sessions", "one session")
def list_command(
    store: WorkStore,
    type_: str | None,
    status: str | None,
    since: datetime | None,
    entity: str | None,
    sort_by: str,
    reverse: bool,
) -> int:
    """List work sessions, newest first.

    Sub-work is listed too. The id in the list, or its beginning, names the session. WHEN is the last change;
    with `--sort-by created` the creation.
    """
    scan = store.scan()
    folders = {id(session): folder for session, folder in zip(scan.sessions, scan.folders, strict=True)}
    found = ordered(scan.chosen(type_, status, since, entity), sort_by, reverse=reverse)
    documents = (document_of(session) | {"path": folders[id(session)]} for session in found)
    lines = _table(found, "created" if sort_by == "created" else "modified")
    none = None if found else _none(store, scan, "No work sessions match these filters")
    output.listed(documents, lines, none)
    return places.print_problems(scan.problems)


def _table(sessions: list[WorkSession], when: str) -> Iterator[str]:
    """The sessions with the time that `when` names: ``created`` or ``modified``."""
    now = datetime.now(UTC)
    times = [formatting.ago(parse_time(getattr(session, when)), now) for session in sessions]
    statuses, colours = list(map(render.status, sessions)), list(map(render.colour, sessions))
    columns = [
        Column("ID", list(map(render.short_id, sessions))),
        Column("TYPE", [fit(one_line(session.session_type), 16) for session in sessions]),
        Column("STATUS", statuses, colours=colours),
        Column("WHEN", times),
        Column("ENTITY", list(map(render.entity, sessions))),
    ]
    # The status is more informative than the type.
    return table.lines(columns, output.room(), stretch="ENTITY", drop=["TYPE"], least=len("ENTITY"))


@command(
    "tree",
    "sessionary work tree",
    "sessionary work tree --depth 1 --show-breadcrumbs",
    "sessionary work tree --json | jq '.[] | select(.flag == \"orphan\")'",
)
@places.on_store
@click.option(
    "--depth", type=click.IntRange(0), metavar="N", help="Maximum depth; 0 shows only top-level sessions."
)
@click.option("--status", type=click.Choice(sorted(STATUSES)), help="Only this status, with the ancestors.")
@options.flag("--show-breadcrumbs", help="Show the number of breadcrumbs.")
@options.as_json("the sessions", "one session")
def tree_command(store: WorkStore, depth: int | None, status: str | None, show_breadcrumbs: bool) -> int:
    """Show work sessions below their parents.

    A session whose parent is missing is shown at the top with a note, and so is one that is its own ancestor,
    which can result from edited files.
    """
    scan = store.scan()
    tops = [top for top in forest(scan.sessions) if prune(top, status, depth)]
    nodes = [(node.session, node.flag, level) for top in tops for node, level in top.walk()]
    problems, counts = list(scan.problems), dict[str, int]()
    if show_breadcrumbs:
        for session, _, _ in nodes:
            found = store.breadcrumbs(session.session_id)
            counts[session.session_id] = len(found.breadcrumbs)
            problems += found.problems
    objects = (
        document_of(session) | {"depth": level, "flag": flag, "breadcrumbs": counts.get(session.session_id)}
        for session, flag, level in nodes
    )
    lines: Iterator[str] = _drawn(tops)
    if show_breadcrumbs:
        lines = chain(lines, ["", "Breadcrumb counts:"], (
            f"{'  ' * min(level + 1, 12)}{one_line(session.session_id)}: {counts[session.session_id]} breadcrumbs"
            for session, _, level in nodes
        ))  # fmt: skip
    none = None if tops else _none(store, scan, f"No {status} work sessions")
    output.listed(objects, lines, none)
    return places.print_problems(problems)


def _none(store: WorkStore, scan: Scan, filtered: str) -> str:
    """Words for an empty list: there are no sessions, or none passes the filters."""
    return f"{filtered} ({len(scan.sessions):,} in total)." if scan.sessions else places.no_sessions(store)


def _drawn(tops: list[Node]) -> Iterator[str]:
    """The tree. Ids are shown in full if all of them fit, else all are cut."""
    yield output.paint("Work Sessions", "bold")
    yield "│"
    room = output.room()
    rows = list(_rows(tops))
    length = None
    if room is not None and any(cells(_text(node, branch, None, None)) > room for node, branch in rows):
        length = render.SHORT
    for node, branch in rows:
        line, sign = _text(node, branch, length, room), render.sign(node.session)
        yield line.replace(sign, output.paint(sign, render.colour(node.session)), 1)


def _rows(tops: list[Node]) -> Iterator[tuple[Node, str]]:
    """Every session with the lines that connect it to its ancestors."""
    waiting = [(top, "", top is tops[-1]) for top in reversed(tops)]
    while waiting:
        node, lead, is_last = waiting.pop()
        yield node, lead + ("└─ " if is_last else "├─ ")
        below = lead + ("   " if is_last else "│  ")
        waiting += [(child, below, child is node.children[-1]) for child in reversed(node.children)]


def _text(node: Node, branch: str, length: int | None, room: int | None) -> str:
    """One session. If too narrow, its entities are cut, so that the status stays visible."""
    session = node.session
    flag = ""
    if node.flag is not None:
        missing = f"parent {one_line(session.parent or '')[:8]} is missing"
        flag = f" ({missing if node.flag == 'orphan' else 'is its own ancestor'})"
    where = render.context(session)
    end = (f" [{where}]" if where else "") + f" [{one_line(session.status)}]{flag}"
    kind, about, name = one_line(session.session_type), render.label(session), one_line(session.session_id)
    if room is not None and len(branch) > room // 3:  # too deep to leave room for the session
        branch = "…" + branch[-(room // 3) + 1 :]
    start = f"{branch}{render.sign(session)} {name[:length]} ({kind}: "
    if room is None:
        return f"{start}{about}){end}"
    return fit(f"{start}{fit(about, max(room - cells(f'{start}){end}'), 4))}){end}", room)
