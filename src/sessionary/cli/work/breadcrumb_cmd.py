"""`work breadcrumb`: add a breadcrumb to a work session, or move stray ones into it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.formatting import count
from sessionary.cli.suggesting import SuggestingGroup
from sessionary.cli.text import one_line
from sessionary.cli.work import places
from sessionary.errors import NotFound
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.lost import move_lost
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.store import WorkStore


@click.group("breadcrumb", cls=SuggestingGroup)
def breadcrumb_command() -> None:
    """Add a breadcrumb to a work session, or move breadcrumbs that belong to no session into one."""


@breadcrumb_command.command(
    "add",
    epilog="""\b
Examples:
  sessionary work breadcrumb add --cookie "$ID" --prompt 'Staging is up'
  sessionary work breadcrumb add --cookie "$ID" --prompt 'Which way?' \\
      --response 'The left one' --kind decision --tag routing
""",
)
@places.root
@click.option("--cookie", required=True, metavar="ID", help="The cookie: the whole id of the session.")
@click.option("--prompt", required=True, metavar="TEXT", help="The question, or a note.")
@click.option("--response", default="", metavar="TEXT", help="The answer.")
@click.option("--model", default="manual", show_default=True, metavar="NAME", help="The model that answered.")
@click.option(
    "--depth", type=click.IntRange(0), metavar="N", help="The depth level.  [default: that of the session]"
)
@click.option("--kind", default="note", show_default=True, metavar="WORD", help="note, decision, result, …")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="A tag to find it by; may be repeated.")
@options.json_result
def add_command(
    root: Path | None,
    cookie: str,
    prompt: str,
    response: str,
    model: str,
    depth: int | None,
    kind: str,
    tags: tuple[str, ...],
    json_: bool,
) -> int:
    """Post a breadcrumb to the mailbox of a session.

    Refused without the cookie of an open session. Prints the id of the breadcrumb. Tokens and cost are
    unknown and left empty.

    There is no undo: the message may have been applied already.
    """
    store = places.store_at(root)
    session = _session_of(store, cookie)
    crumb = create_breadcrumb(
        prompt=prompt,
        response=response,
        tools_called=[],
        files_modified=[],
        parent_session_id=session.parent,
        depth_level=store.depth(cookie) if depth is None else depth,
        model_used=model,
        token_count={"input": 0, "output": 0},
        kind=kind,
        tags=list(tags),
    )
    path = store.post(crumb, cookie)
    if json_:
        output.value({
            "breadcrumb_id": crumb.breadcrumb_id,
            "session_id": session.session_id,
            "timestamp": crumb.timestamp,
            "depth_level": crumb.depth_level,
            "path": path,
        })  # fmt: skip
    else:
        output.line(crumb.breadcrumb_id)
        output.aside(one_line(path))
    return 0


@breadcrumb_command.command(
    "move",
    epilog="""\b
Example:
  sessionary work breadcrumb move latest db5b5fab
""",
)
@click.argument("folder", metavar="FOLDER")
@places.session
@places.root
@options.json_result
def move_command(folder: str, session: str, root: Path | None, json_: bool) -> int:
    """Move breadcrumbs that belong to no session into one.

    FOLDER is a folder below the sessions that has breadcrumbs but is not a session: a sender created it under
    a wrong session id. ID may be the beginning of an id, or `latest`. Nothing is overwritten, and consumers
    of the session apply the breadcrumbs. There is no undo.
    """
    store = places.store_at(root)
    session_id = store.resolve(session)
    moved = move_lost(store.fs, os.path.abspath(store.root), folder, session_id)
    if json_:
        output.value({"session_id": session_id, "paths": moved})
    else:
        places.done(f"{count(len(moved), 'breadcrumb')} moved into {session_id}")
    return 0


def _session_of(store: WorkStore, cookie: str) -> WorkSession:
    """The session of a cookie. A shortened cookie is refused: a typing error could name another session."""
    try:
        return store.load(cookie)
    except NotFound as error:
        error.message = f"no work session with the cookie {cookie} in {store.root}"
        error.hint = "the cookie is the whole id of the session; see `work show`"
        raise
