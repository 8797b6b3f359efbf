"""`work breadcrumbs`: the breadcrumbs of a work session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.text import one_line
from sessionary.cli.work import entries, facts, places, render
from sessionary.layouts.maestro.costs import summarise
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
@click.option("--summary", is_flag=True, help="Only the totals.")
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Only this depth level.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N oldest.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the N newest.")
@click.option("--include-children", is_flag=True, help="Include all sessions below it.")
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
    """List the breadcrumbs of a work session, oldest first.

    ID may be the beginning of an id, or `latest`. In brackets are the time and the file name, in UTC, or in
    local time if the times of the session have no zone.
    """
    options.one_format(json_, jsonl)
    if summary and jsonl:
        raise click.UsageError("--summary is not a list; use --json")
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
    return places.print_problems(problems)


def cut(found: Found, limit: int | None, tail: int | None) -> Found:
    """The first or last N, if a limit was given."""
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
