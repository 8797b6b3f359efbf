"""`work breadcrumbs`: the breadcrumbs of a work session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.text import one_line
from sessionary.cli.work import entries, facts, places, render
from sessionary.layouts.maestro.query import summarise
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, crumb_document

Found = list[tuple[Breadcrumb, WorkSession]]


@click.command(
    "breadcrumbs",
    epilog="""\b
Examples:
  sessionary work breadcrumbs latest --tail 5
  sessionary work breadcrumbs db5b5fab --summary
  sessionary work breadcrumbs db5b5fab --json | jq -r '.[].prompt'
""",
)
@places.session
@places.root
@click.option("--summary", is_flag=True, help="Only what they add up to.")
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Only those of this depth level.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N oldest.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the N newest.")
@click.option("--include-children", is_flag=True, help="Those of all sessions below it too.")
@options.as_json("them", "one breadcrumb")
def breadcrumbs_command(
    session: str,
    root: Path | None,
    summary: bool,
    depth: int | None,
    limit: int | None,
    tail: int | None,
    include_children: bool,
    json_: bool,
    jsonl: bool,
) -> int:
    """List the breadcrumbs of a work session, the oldest first.

    ID may be the beginning of an id, or `latest`. What stands in brackets is the time, and the name of the file: in
    UTC, or local where the times of the session name no zone.
    """
    options.one_format(json_, jsonl)
    if summary and jsonl:
        raise click.UsageError("--summary is no list; --json prints it")
    if limit is not None and tail is not None:
        raise click.UsageError("--limit and --tail exclude each other")
    store = places.store_at(root)
    top = store.find(session)
    found, problems = places.chosen(store, top, include_children=include_children, depth=depth)
    found = cut(found, limit, tail)
    if json_ and summary:
        output.value(summarise([crumb for crumb, _ in found]))
    elif json_ or jsonl:
        output.items(
            (crumb_document(crumb) | {"session_id": owner.session_id} for crumb, owner in found), jsonl=jsonl
        )
    else:
        with output.paged():
            output.lines(_summed(top, found) if summary else _listed(top, found, depth, include_children))
    return places.tell(problems)


def cut(found: Found, limit: int | None, tail: int | None) -> Found:
    """The oldest or the newest, if not all."""
    if tail is not None:
        return found[-tail:]
    return found if limit is None else found[:limit]


def _listed(top: WorkSession, found: Found, depth: int | None, include_children: bool) -> Iterator[str]:
    yield render.head(f"Breadcrumbs for Session: {one_line(top.session_id)}")
    if depth is not None:
        yield f"Depth Level: {depth}"
    yield f"Found {len(found)} breadcrumb(s)"
    yield "─" * output.width()
    for number, (crumb, owner) in enumerate(found, 1):
        yield from entries.listed(number, crumb, one_line(owner.session_id) if include_children else None)
        yield ""


def _summed(top: WorkSession, found: Found) -> Iterator[str]:
    crumbs = [crumb for crumb, _ in found]
    sums, stats = summarise(crumbs), facts.statistics(crumbs)
    tokens = sums["total_tokens"]
    yield render.head(f"Breadcrumb Summary for Session: {one_line(top.session_id)}")
    yield f"Total Breadcrumbs: {len(crumbs)}"
    yield f"Total Tokens: Input: {tokens['input']}, Output: {tokens['output']}"
    yield f"Total Cost: {facts.cost_in_words(stats, render.dollars(sums['total_cost']))}"
    yield f"Duration: {sums['duration']:.2f} seconds ({render.span(sums['duration'])})"
