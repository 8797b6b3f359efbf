"""`work show`: show and export one work session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sessionary.cli import options, output
from sessionary.cli.text import fit, one_line
from sessionary.cli.work import exports, facts, places, render, standing
from sessionary.cli.work.exports import Whole
from sessionary.layouts.maestro.costs import tokens
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import parse_time
from sessionary.layouts.maestro.tree import age_key
from sessionary.mailbox.consumers import statuses_of
from sessionary.model import Problem

LAST = 3


@click.command(
    "show",
    epilog="""\b
Examples:
  sessionary work show latest
  sessionary work show db5b5fab --all
  sessionary work show db5b5fab --export-md report.md
  sessionary work show db5b5fab --json | jq .statistics
""",
)
@places.session
@places.root
@click.option("--all", "all_", is_flag=True, help=f"Show all breadcrumbs, not only the last {LAST}.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Show the last N breadcrumbs.")
@click.option("--export-json", metavar="FILE", help="Write everything as JSON to FILE, which must not exist.")
@click.option("--export-md", metavar="FILE", help="Write a Markdown report to FILE, which must not exist.")
@options.json_result
def show_command(
    session: str,
    root: Path | None,
    all_: bool,
    tail: int | None,
    export_json: str | None,
    export_md: str | None,
    json_: bool,
) -> int:
    """Show a work session with its last breadcrumbs and its statistics.

    Its entities, its parent and its children come first.

    ID may be the beginning of an id, or `latest`. Breadcrumbs are listed newest first.
    """
    if all_ and tail is not None:
        raise click.UsageError("--all and --tail exclude each other")
    store = places.store_at(root)
    whole, problems = look_at(store, session)
    for path, made in ((export_json, exports.to_json), (export_md, exports.to_markdown)):
        if path is not None:
            exports.write(path, made(whole))
            output.aside(f"Session exported to {one_line(path)}")
    if json_:
        output.value(as_object(store, whole, problems))
    else:
        with output.paged():
            output.lines(page(whole, None if all_ else LAST if tail is None else tail))
    return places.print_problems(problems)


def look_at(store: WorkStore, word: str) -> tuple[Whole, list[Problem]]:
    """The session that a word names, with everything recorded about it, and problems of reading."""
    session = store.find(word)
    look = store.breadcrumbs(session.session_id)
    scan = store.scan()
    children = sorted((each for each in scan.sessions if each.parent == session.session_id), key=age_key)
    unseen = [problem for problem in scan.problems if problem.code == "unreadable_folder"]
    statuses = statuses_of(store.folder(session.session_id))
    problems = [*look.problems, *unseen, *(found for status in statuses for found in status.problems)]
    return Whole(session, look.breadcrumbs, children, statuses), list(dict.fromkeys(problems))


def as_object(store: WorkStore, whole: Whole, problems: list[Problem]) -> dict[str, Any]:
    """The export, with the folder of the session and problems of reading."""
    return exports.as_object(whole) | {
        "path": store.folder(whole.session.session_id),
        "consumers": [standing.as_object(status) for status in whole.consumers],
        "problems": [problem.as_dict() for problem in problems],
    }


def page(whole: Whole, last: int | None) -> Iterator[str]:
    """The page, cut to the width of a terminal."""
    room = output.room()
    for line in _page(whole, last):
        yield line if room is None or line.startswith("\x1b") else fit(line, room)


def _page(whole: Whole, last: int | None) -> Iterator[str]:
    session, rule = whole.session, "═" * output.width()
    yield rule
    yield output.paint(f"Session: {one_line(session.session_id)}", "bold")
    yield rule
    yield ""
    yield from _basics(session)
    yield from _block("Related Entity:", (
        f"{one_line(key.replace('_', ' ').title())}: {one_line(str(text))}"
        for key, text in session.related_entity.items()
    ))  # fmt: skip
    yield from _block("Result:", _result(session))
    if session.parent:
        yield from _block("Parent Session:", [f"ID:             {one_line(session.parent)}"])
    yield from _block("Child Sessions:", (
        f"- {render.sign(child)} {one_line(child.session_id)} "
        f"({one_line(child.session_type)}: {render.label(child)}) [{one_line(child.status)}]"
        for child in whole.children
    ))  # fmt: skip
    yield "Breadcrumbs:"
    yield f"  Total: {len(whole.crumbs)}"
    shown = whole.crumbs if last is None else whole.crumbs[-last:] if last else []
    if shown:
        yield "  Latest:"
        yield from (f"    - {_short(crumb)}" for crumb in reversed(shown))
    yield ""
    yield from _block("Mailbox:", standing.lines(whole.consumers))
    yield "Statistics:"
    yield from _figures(whole.statistics)


def _block(head: str, lines: Iterator[str] | list[str]) -> Iterator[str]:
    """A heading with lines below it; nothing without lines."""
    found = list(lines)
    if found:
        yield head
        yield from (f"  {line}" for line in found)
        yield ""


def _basics(session: WorkSession) -> Iterator[str]:
    facts_ = {
        "Type": session.session_type,
        "Status": session.status,
        "Created": session.created,
        "Modified": session.modified,
        "Closed": session.closed_at or "",
        "Cookie": str(session.metadata.get("cookie") or session.session_id),
        "Duration": render.lasted(session),
        "Purpose": session.purpose or "",
        "Context": render.context(session),
    }
    yield from _block(
        "Basic Information:",
        [f"{name + ':':<16}{one_line(text)}" for name, text in facts_.items() if text],
    )


def _result(session: WorkSession) -> Iterator[str]:
    """The result of sub-work, or the reason of an interruption."""
    for key, name in (
        ("result_status", "Status"),
        ("result_summary", "Summary"),
        ("interruption_reason", "Reason"),
    ):
        if session.metadata.get(key):
            yield f"{name + ':':<16}{one_line(str(session.metadata[key]))}"


def _short(crumb: Breadcrumb) -> str:
    when = parse_time(crumb.timestamp)
    time = f"{when:%Y%m%d %H:%M:%S}" if when else one_line(crumb.timestamp)
    count = tokens(crumb, "input") + tokens(crumb, "output")
    return f"{time} - {one_line(crumb.model_used)} ({count} tokens)"


def _figures(sums: dict[str, Any]) -> Iterator[str]:
    given, taken = sums["total_tokens_input"], sums["total_tokens_output"]
    cost = facts.cost_in_words(sums, render.dollars(sums["estimated_cost"], 2))
    yield f"  Total breadcrumbs:     {sums['total_breadcrumbs']:,}"
    yield f"  Total tokens:          {given + taken:,} (input: {given:,}, output: {taken:,})"
    yield f"  Estimated cost:        {cost}"
    yield f"  Files modified:        {sums['files_modified']:,}"
    yield f"  Tools called:          {sums['tools_called']:,}"
    yield f"  Duration (seconds):    {int(sums['duration_seconds'])}"
    yield f"  Success rate:          {sums['success_rate']:.1f}%"
