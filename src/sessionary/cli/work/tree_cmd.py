"""`work tree`: work sessions below their parents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sessionary.cli import options, output
from sessionary.cli.text import cells, fit, one_line
from sessionary.cli.work import places, render
from sessionary.layouts.maestro.records import STATUSES, document_of
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.tree import Node, forest
from sessionary.model import Problem


@click.command(
    "tree",
    epilog="""\b
Examples:
  sessionary work tree
  sessionary work tree --depth 1 --show-breadcrumbs
  sessionary work tree --json | jq '.[] | select(.flag == "orphan")'
""",
)
@places.root
@click.option(
    "--depth", type=click.IntRange(0), metavar="N", help="Maximum depth; 0 shows only top-level sessions."
)
@click.option("--status", type=click.Choice(sorted(STATUSES)), help="Only this status, with the ancestors.")
@click.option("--show-breadcrumbs", is_flag=True, help="Show the number of breadcrumbs.")
@options.as_json("the sessions", "one session")
def tree_command(
    root: Path | None, depth: int | None, status: str | None, show_breadcrumbs: bool, json_: bool, jsonl: bool
) -> int:
    """Show work sessions below their parents.

    A session whose parent is missing is shown at the top with a note, and so is one that is its own ancestor,
    which can result from edited files.
    """
    options.one_format(json_, jsonl)
    store = places.store_at(root)
    scan = store.scan()
    tops = [top for top in forest(scan.sessions) if _prune(top, status, depth)]
    problems = list(scan.problems)
    counts = _counted(store, tops, problems) if show_breadcrumbs else {}
    if json_ or jsonl:
        output.items(
            (_object(node, level, counts) for top in tops for node, level in top.walk()), jsonl=jsonl
        )
    elif tops:
        with output.paged():
            output.lines(_drawn(tops))
            if show_breadcrumbs:
                output.lines(_counts(tops, counts))
    elif scan.sessions:
        output.aside(f"No {status} work sessions ({len(scan.sessions):,} in total).")
    else:
        places.none_there(store)
    return places.print_problems(problems)


def _prune(top: Node, status: str | None, depth: int | None) -> bool:
    """Remove the sessions that do not match, below this node; False if none is left.

    Without recursion: files may form a chain of a hundred thousand sessions.
    """
    wanted: set[int] = set()
    nodes = list(top.walk())
    for node, level in reversed(nodes):  # children come before their parents
        node.children = [child for child in node.children if id(child) in wanted]
        is_shown = depth is None or level <= depth
        if is_shown and (status in (None, node.session.status) or node.children):
            wanted.add(id(node))
    return id(top) in wanted


def _counted(store: WorkStore, tops: list[Node], problems: list[Problem]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for top in tops:
        for node, _ in top.walk():
            found = store.breadcrumbs(node.session.session_id)
            counts[node.session.session_id] = len(found.breadcrumbs)
            problems += found.problems
    return counts


def _object(node: Node, level: int, counts: dict[str, int]) -> dict[str, Any]:
    """A session with its position, with the field names of docs/cli-json.md."""
    return document_of(node.session) | {
        "depth": level,
        "flag": node.flag,
        "breadcrumbs": counts.get(node.session.session_id),
    }


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
    flag = places.node_flag(node)
    where = render.context(session)
    end = (f" [{where}]" if where else "") + f" [{one_line(session.status)}]" + (f" ({flag})" if flag else "")
    kind, about, name = one_line(session.session_type), render.label(session), one_line(session.session_id)
    if room is not None and len(branch) > room // 3:  # too deep to leave room for the session
        branch = "…" + branch[-(room // 3) + 1 :]
    start = f"{branch}{render.sign(session)} {name[:length]} ({kind}: "
    if room is None:
        return f"{start}{about}){end}"
    return fit(f"{start}{fit(about, max(room - cells(f'{start}){end}'), 4))}){end}", room)


def _counts(tops: list[Node], counts: dict[str, int]) -> Iterator[str]:
    yield ""
    yield "Breadcrumb counts:"
    for top in tops:
        for node, level in top.walk():
            name = one_line(node.session.session_id)
            yield f"{'  ' * min(level + 1, 12)}{name}: {counts[node.session.session_id]} breadcrumbs"
