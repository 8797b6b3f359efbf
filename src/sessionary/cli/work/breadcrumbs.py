"""`work breadcrumbs`, `timeline` and `breadcrumb`: list breadcrumbs, show them in time, add and move them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from sessionary.cli import options, output
from sessionary.cli.changing import done
from sessionary.cli.formatting import count
from sessionary.cli.lazy import SuggestingGroup, command
from sessionary.cli.text import one_line
from sessionary.cli.work import places, render
from sessionary.errors import NotFound
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.costs import summarise
from sessionary.layouts.maestro.lost import move_lost
from sessionary.layouts.maestro.records import WorkSession, crumb_document
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import parse_time, session_zone
from sessionary.model import Problem
from sessionary.workspace import work

_selection = options.together(
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N oldest."),
    click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the N newest."),
    options.flag("--include-children", help="Include all sessions below it."),
)


def _selected(
    session: str,
    store: WorkStore,
    *,
    limit: int | None,
    tail: int | None,
    include_children: bool,
    depth: int | None = None,
) -> tuple[WorkSession, work.Owned, list[Problem]]:
    """A session, its breadcrumbs, optionally with those of all sessions below it, and problems of reading."""
    if limit is not None and tail is not None:
        raise click.UsageError("--limit and --tail exclude each other")
    top = store.find(session)
    sessions, problems = work.family_of(store, top, below=include_children)
    found, more = work.crumbs_of(store, sessions, depth=depth)
    return top, found[:limit] if tail is None else found[-tail:], [*problems, *more]


@command(
    "breadcrumbs",
    "sessionary work breadcrumbs latest --tail 5",
    "sessionary work breadcrumbs db5b5fab --summary",
    "sessionary work breadcrumbs db5b5fab --json | jq -r '.[].prompt'",
)
@places.session
@places.on_store
@options.flag("--summary", help="Only the totals.")
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Only this depth level.")
@_selection
@options.as_json("them", "one breadcrumb")
def breadcrumbs_command(
    session: str, store: WorkStore, summary: bool, depth: int | None, include_children: bool, **which: Any
) -> int:
    """List the breadcrumbs of a work session, oldest first.

    ID may be the beginning of an id, or `latest`. In brackets are the time and the file name, in UTC, or in
    local time if the times of the session have no zone.
    """
    if summary and output.wants("jsonl"):
        raise click.UsageError("--summary is not a list; use --json")
    top, found, problems = _selected(session, store, include_children=include_children, depth=depth, **which)
    if output.wants("json") and summary:
        output.value(summarise([crumb for crumb, _ in found]))
    else:
        documents = (crumb_document(crumb) | {"session_id": owner.session_id} for crumb, owner in found)
        texts = _summed(top, found) if summary else _listed(top, found, depth, include_children)
        output.listed(documents, texts, None)
    return places.print_problems(problems)


def _listed(top: WorkSession, found: work.Owned, depth: int | None, include_children: bool) -> Iterator[str]:
    yield render.head(f"Breadcrumbs for Session: {one_line(top.session_id)}")
    if depth is not None:
        yield f"Depth Level: {depth}"
    yield f"Found {len(found)} breadcrumb(s)"
    yield "─" * output.width()
    for number, (crumb, owner) in enumerate(found, 1):
        yield from render.listed(number, crumb, owner if include_children else None)
        yield ""


def _summed(top: WorkSession, found: work.Owned) -> Iterator[str]:
    crumbs = [crumb for crumb, _ in found]
    sums = summarise(crumbs)
    tokens = sums["total_tokens"]
    yield render.head(f"Breadcrumb Summary for Session: {one_line(top.session_id)}")
    yield f"Total Breadcrumbs: {len(crumbs)}"
    yield f"Total Tokens: Input: {tokens['input']}, Output: {tokens['output']}"
    yield f"Total Cost: {render.known_cost(sums, render.dollars(sums['total_cost']))}"
    yield f"Duration: {sums['duration']:.2f} seconds ({render.span(sums['duration'])})"


@command(
    "timeline",
    "sessionary work timeline latest",
    "sessionary work timeline db5b5fab --include-children --tail 10",
    "sessionary work timeline latest --json | jq -r '.events[] | .time'",
)
@places.session
@places.on_store
@_selection
@options.as_json("them", "one event")
def timeline_command(session: str, store: WorkStore, include_children: bool, **which: Any) -> int:
    """Show the events of a work session in time.

    At the right is the time since the previous event. The line at the top shows the distribution of the
    events: each mark is one or more of them.
    """
    top, found, problems = _selected(session, store, include_children=include_children, **which)
    times = [parse_time(crumb.timestamp, session_zone(owner.created)) for crumb, owner in found]
    if output.is_json():
        document = {"session_id": top.session_id, "events": _events(found, times)}
        output.holding(document, "events")
    else:
        with output.paged():
            output.lines(_in_time(top, found, times, include_children))
    return places.print_problems(problems)


def _events(found: work.Owned, times: list[datetime | None]) -> list[dict[str, object]]:
    return [
        crumb_document(crumb) | {"session_id": owner.session_id, "time": time, "seconds_later": gap}
        for (crumb, owner), time, gap in zip(found, times, _gaps(times), strict=True)
    ]


def _gaps(times: list[datetime | None]) -> Iterator[float | None]:
    """The seconds since the previous time, of each."""
    last: datetime | None = None
    for time in times:
        yield (time - last).total_seconds() if time and last else None
        last = time or last


def _in_time(
    top: WorkSession, found: work.Owned, times: list[datetime | None], include_children: bool
) -> Iterator[str]:
    yield render.head(f"Timeline for Session: {one_line(top.session_id)}")
    yield f"Total Events: {len(found)}"
    known = [time for time in times if time is not None]
    if len(known) > 1:
        yield _strip(known, output.width())
    else:
        yield "─" * output.width()
    for number, ((crumb, owner), gap) in enumerate(zip(found, _gaps(times), strict=True), 1):
        later = "" if gap is None else f"+{render.span(gap)}"
        yield from render.in_time(number, crumb, owner if include_children else None, later)
        yield ""


def _strip(times: list[datetime], width: int) -> str:
    """A line of `width` cells with marks between the first and the last time."""
    first, last = min(times), max(times)
    total = (last - first).total_seconds()
    length = f" {render.span((last.replace(microsecond=0) - first.replace(microsecond=0)).total_seconds())}"
    cells = ["─"] * (width - len(length))
    for time in times:
        share = (time - first).total_seconds() / total if total else 0.0
        cells[round(share * (len(cells) - 1))] = "●"
    return "".join(cells) + length


@click.group("breadcrumb", cls=SuggestingGroup)
def breadcrumb_command() -> None:
    """Add a breadcrumb to a work session, or move stray ones.

    Stray breadcrumbs belong to no session.
    """


@command(
    "add",
    "sessionary work breadcrumb add --cookie \"$ID\" --prompt 'Staging is up'",
    "sessionary work breadcrumb add --cookie \"$ID\" --prompt 'Which way?' \\",
    "    --response 'The left one' --kind decision --tag routing",
    group=breadcrumb_command,
)
@places.on_store
@click.option("--cookie", required=True, metavar="ID", help="The cookie: the whole id of the session.")
@click.option("--prompt", required=True, metavar="TEXT", help="The question, or a note.")
@click.option("--response", default="", metavar="TEXT", help="The answer.")
@click.option("--model", default="manual", show_default=True, metavar="NAME", help="The model that answered.")
@click.option(
    "--depth", type=click.IntRange(0), metavar="N", help="The depth level.  [default: that of the session]"
)
@click.option("--kind", default="note", show_default=True, metavar="WORD", help="note, decision, result, …")
@options.repeated("--tag", "tags", metavar="WORD", help="A tag to find it by.")
@options.json_result
def add_command(
    store: WorkStore,
    cookie: str,
    prompt: str,
    response: str,
    model: str,
    depth: int | None,
    kind: str,
    tags: tuple[str, ...],
) -> int:
    """Post a breadcrumb to the mailbox of a session.

    Refused without the cookie of an open session. Prints the id of the breadcrumb. Tokens and cost are
    unknown and left empty.

    This cannot be undone: the message may have been applied already.
    """
    try:  # a shortened cookie is refused: a typing error could name another session
        session = store.load(cookie)
    except NotFound as error:
        error.message = f"no work session with the cookie {cookie} in {store.root}"
        error.hint = "the cookie is the whole id of the session; see `work show`"
        raise
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
    names = ("breadcrumb_id", "timestamp", "depth_level")
    document = {name: getattr(crumb, name) for name in names}
    document |= {"session_id": session.session_id, "path": path}
    return output.shown(document, [crumb.breadcrumb_id], asides=[one_line(path)])


@command("move", "sessionary work breadcrumb move latest db5b5fab", group=breadcrumb_command)
@click.argument("folder", metavar="FOLDER")
@places.session
@places.on_store
@options.json_result
def move_command(folder: str, session: str, store: WorkStore) -> int:
    """Move breadcrumbs that belong to no session into one.

    FOLDER is a folder below the sessions that has breadcrumbs but is not a session: a sender created it under
    a wrong session id. ID may be the beginning of an id, or `latest`. Nothing is overwritten, and consumers
    of the session apply the breadcrumbs. This cannot be undone.
    """
    session_id = store.resolve(session)
    moved = move_lost(store.fs, os.path.abspath(store.root), folder, session_id)
    text = one_line(f"{count(len(moved), 'breadcrumb')} moved into {session_id}")
    return output.shown({"session_id": session_id, "paths": moved}, done(text))
