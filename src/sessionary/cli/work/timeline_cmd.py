"""`work timeline`: the events of a work session in time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.text import one_line
from sessionary.cli.work import entries, places, render
from sessionary.cli.work.breadcrumbs_cmd import Found, cut
from sessionary.layouts.maestro.records import WorkSession, crumb_document
from sessionary.layouts.maestro.times import parse_time, session_zone


@click.command(
    "timeline",
    epilog="""\b
Examples:
  sessionary work timeline latest
  sessionary work timeline db5b5fab --include-children --tail 10
  sessionary work timeline latest --json | jq -r '.events[] | .time'
""",
)
@places.session
@places.root
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N oldest.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the N newest.")
@click.option("--include-children", is_flag=True, help="Include all sessions below it.")
@options.as_json("them", "one event")
def timeline_command(
    session: str,
    root: Path | None,
    limit: int | None,
    tail: int | None,
    include_children: bool,
    json_: bool,
    jsonl: bool,
) -> int:
    """Show the events of a work session in time.

    At the right is the time since the previous event. The line at the top shows the distribution of the
    events: each mark is one or more of them.
    """
    options.one_format(json_, jsonl)
    if limit is not None and tail is not None:
        raise click.UsageError("--limit and --tail exclude each other")
    store = places.store_at(root)
    top = store.find(session)
    found, problems = places.chosen(store, top, include_children=include_children)
    found = cut(found, limit, tail)
    times = [parse_time(crumb.timestamp, session_zone(owner.created)) for crumb, owner in found]
    if json_ or jsonl:
        document = {"session_id": top.session_id, "events": _events(found, times)}
        output.holding(document, "events", jsonl=jsonl)
    else:
        with output.paged():
            output.lines(_told(top, found, times, include_children))
    return places.print_problems(problems)


def _events(found: Found, times: list[datetime | None]) -> list[dict[str, object]]:
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


def _told(
    top: WorkSession, found: Found, times: list[datetime | None], include_children: bool
) -> Iterator[str]:
    yield render.head(f"Timeline for Session: {one_line(top.session_id)}")
    yield f"Total Events: {len(found)}"
    known = [time for time in times if time is not None]
    if len(known) > 1:
        yield strip(known, output.width())
    else:
        yield "─" * output.width()
    for number, ((crumb, owner), gap) in enumerate(zip(found, _gaps(times), strict=True), 1):
        later = "" if gap is None else f"+{render.span(gap)}"
        yield from entries.in_time(
            number, crumb, one_line(owner.session_id) if include_children else None, later
        )
        yield ""


def strip(times: list[datetime], width: int) -> str:
    """A line of `width` cells with marks between the first and the last time."""
    first, last = min(times), max(times)
    total = (last - first).total_seconds()
    length = f" {render.span((last.replace(microsecond=0) - first.replace(microsecond=0)).total_seconds())}"
    cells = ["─"] * (width - len(length))
    for time in times:
        share = (time - first).total_seconds() / total if total else 0.0
        cells[round(share * (len(cells) - 1))] = "●"
    return "".join(cells) + length
