"""`work subwork`: a part of a session's work in a session of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sessionary.cli import options, output, table
from sessionary.cli.formatting import count
from sessionary.cli.lazy import SuggestingGroup, command
from sessionary.cli.table import Column
from sessionary.cli.text import fit, harmless, one_line
from sessionary.cli.work import places, render, show_cmd
from sessionary.errors import Invalid
from sessionary.layouts.maestro.records import WorkSession, document_of
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.subwork import ENDS, Closed
from sessionary.workspace import work

_parent = click.argument("parent", metavar="PARENT", shell_complete=places.complete)
_child = click.argument("child", metavar="CHILD", shell_complete=places.complete)


@click.group("subwork", cls=SuggestingGroup)
def subwork_command() -> None:
    """Do a part of the work in a session of its own.

    Its result is handed back to the parent once. An id may be shortened; `latest` is the session that changed last.
    """


@command(
    "start",
    "sessionary work subwork start db5b --purpose 'Check it' --context file:a.txt",
    group=subwork_command,
)
@_parent
@places.on_store
@click.option("--purpose", required=True, metavar="TEXT", help="What the sub-work is for.")
@places.context("Where it happens.  [default: that of the parent]")
@options.flag("--no-pause-parent", help="Keep the parent running.")
@options.json_result
def start_command(
    parent: str, store: WorkStore, purpose: str, context: dict[str, str] | None, no_pause_parent: bool
) -> int:
    """Start sub-work below PARENT.

    PARENT is paused. Prints the id of the new session.

    This cannot be undone; `subwork close` ends it, also as failed with `--status failed`.
    """
    above = store.resolve(parent)
    child = store.start_subwork(above, purpose, context, pause_parent=not no_pause_parent)
    document = document_of(child) | {"path": store.folder(child.session_id)}
    parent_state = harmless(f"its parent {above} is {store.load(above).status}")
    return output.shown(document, [child.session_id], asides=[parent_state])


@command("list", "sessionary work subwork list db5b5fab", group=subwork_command)
@_parent
@places.on_store
@options.as_json("the sessions", "one session")
def list_command(parent: str, store: WorkStore) -> int:
    """List the sub-work of PARENT, newest first."""
    above = store.resolve(parent)
    children = store.children(above)[::-1]
    none = None if children else f"No sub-work below {one_line(above)}."
    return output.listed(map(document_of, children), _table(children), none)


@command("show", "sessionary work subwork show 2274ea18", group=subwork_command)
@_child
@places.on_store
@options.json_result
def show_command(child: str, store: WorkStore) -> int:
    """Show sub-work with its result."""
    return show_cmd.show(work.details_of(store, child))


@command(
    "close",
    "sessionary work subwork close 2274 --summary 'The licence is fine'",
    "sessionary work subwork close 2274 --summary 'No answer' --status partial",
    group=subwork_command,
)
@_child
@places.on_store
@click.option("--summary", required=True, metavar="TEXT", help="The result, for the parent.")
@options.choice(
    "--status",
    default="ok",
    among=list(ENDS),
    help="ok completes the session, failed fails it, partial interrupts it.",
)
@options.flag("--no-resume-parent", help="Leave the parent paused.")
@options.json_result
def close_command(child: str, store: WorkStore, summary: str, status: str, no_resume_parent: bool) -> int:
    """Close sub-work and hand its result to the parent.

    The result becomes one breadcrumb of the parent. The parent resumes if no other session below it is open.
    If interrupted or called again, it completes the remaining steps; the parent gets the result once.

    This cannot be undone: the parent may have read the result.
    """
    session = store.find(child)
    if session.parent is None:  # a parent, named by mistake, would be ended instead of its sub-work
        raise Invalid(
            f"session {session.session_id} has no parent, so it is not sub-work",
            session=session.session_id,
            hint="give the id of the sub-work, or use `work close`",
        )
    closed = store.close_subwork(session.session_id, summary, status, resume_parent=not no_resume_parent)
    if output.is_json():
        output.value(_closed(closed))
        return places.print_problems(())
    output.lines(places.changed(closed.session))
    output.lines(harmless(f"  {text}") for text in _effect(closed))
    return places.print_problems(closed.problems)


@command("resume-parent", "sessionary work subwork resume-parent 2274ea18", group=subwork_command)
@_child
@places.on_store
@options.json_result
def resume_parent_command(child: str, store: WorkStore) -> int:
    """Resume the paused parent of CHILD. Refused while a session below it is open.

    This cannot be undone; the parent can be paused again.
    """
    parent = store.resume_parent(store.resolve(child))
    return output.shown(document_of(parent), places.changed(parent))


def _effect(closed: Closed) -> list[str]:
    """The effect on the parent."""
    if closed.parent is None:
        return []
    lines = ["the parent has its result" + ("" if closed.handed_over else " already")]
    if closed.still_open:
        lines.append(
            f"the parent is {closed.parent.status}: {count(len(closed.still_open), 'session')} below it open"
        )
    elif closed.resumed:
        lines.append("the parent is running again")
    return lines


def _closed(closed: Closed) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return document_of(closed.session) | {
        "parent_status": closed.parent.status if closed.parent else None,
        "breadcrumb_id": closed.breadcrumb_id,
        "handed_over": closed.handed_over,
        "parent_resumed": closed.resumed,
        "still_open": closed.still_open,
        "problems": [problem.as_dict() for problem in closed.problems],
    }


def _table(children: list[WorkSession]) -> Iterator[str]:
    columns = [
        Column("ID", list(map(render.short_id, children))),
        Column("STATUS", list(map(render.status, children))),
        Column("CONTEXT", [fit(render.context(child) or "-", 24) for child in children]),
        Column("PURPOSE", list(map(render.label, children))),
    ]
    return table.lines(columns, output.room(), stretch="PURPOSE")
