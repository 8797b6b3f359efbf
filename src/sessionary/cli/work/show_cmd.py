"""`work show`: show one work session, and export it as JSON or Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from sessionary.cli import options, output
from sessionary.cli.lazy import command
from sessionary.cli.text import fit, harmless, one_line
from sessionary.cli.work import places, render
from sessionary.codec import encode_document, sanitize
from sessionary.disk import atomic
from sessionary.errors import AlreadyExists
from sessionary.layouts.maestro.costs import statistics, tokens
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document, document_of
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import parse_time
from sessionary.workspace import work

LAST = 3
_PREVIEW = 200


@command(
    "show",
    "sessionary work show latest",
    "sessionary work show db5b5fab --all",
    "sessionary work show db5b5fab --export-md report.md",
    "sessionary work show db5b5fab --json | jq .statistics",
)
@places.session
@places.on_store
@options.flag("--all", "all_", help=f"Show all breadcrumbs, not only the last {LAST}.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Show the last N breadcrumbs.")
@click.option("--export-json", metavar="FILE", help="Write everything as JSON to FILE, which must not exist.")
@click.option("--export-md", metavar="FILE", help="Write a Markdown report to FILE, which must not exist.")
@options.json_result
def show_command(
    session: str,
    store: WorkStore,
    all_: bool,
    tail: int | None,
    export_json: str | None,
    export_md: str | None,
) -> int:
    """Show a work session with its last breadcrumbs.

    Its entities, its parent and its children come first.

    ID may be the beginning of an id, or `latest`. Breadcrumbs are listed newest first.
    """
    if all_ and tail is not None:
        raise click.UsageError("--all and --tail exclude each other")
    details = work.details_of(store, session)
    if export_json is not None:
        _export(export_json, encode_document(sanitize(_as_object(details))))
    if export_md is not None:
        _export(export_md, "\n".join([*_report(details), ""]).encode("utf-8", "backslashreplace"))
    return show(details, None if all_ else LAST if tail is None else tail)


def show(details: work.Details, last: int | None = LAST) -> int:
    """Print a session, with its last breadcrumbs; return the exit code."""
    if output.is_json():
        output.value(
            _as_object(details)
            | {
                "path": details.folder,
                "consumers": [render.consumer_object(status) for status in details.consumers],
                "problems": [problem.as_dict() for problem in details.problems],
            }
        )
    else:
        room = output.room()
        with output.paged():
            output.lines(
                line if room is None or line.startswith("\x1b") else fit(line, room)
                for line in _page(details, last)
            )
    return places.print_problems(details.problems)


def _as_object(details: work.Details) -> dict[str, Any]:
    """The JSON document of the original: the session's own keys, its breadcrumbs, statistics, and children."""
    return document_of(details.session) | {
        "breadcrumbs": [crumb_document(crumb) for crumb in details.crumbs],
        "statistics": statistics(details.crumbs),
        "child_sessions": [document_of(child) for child in details.children],
    }


def _page(details: work.Details, last: int | None) -> Iterator[str]:
    session, rule = details.session, "═" * output.width()
    yield rule
    yield output.paint(f"Session: {one_line(session.session_id)}", "bold")
    yield rule
    yield ""
    yield from _block("Basic Information:", _facts({
        "Type": session.session_type,
        "Status": session.status,
        "Created": session.created,
        "Modified": session.modified,
        "Closed": session.closed_at,
        "Cookie": session.metadata.get("cookie") or session.session_id,
        "Duration": render.lasted(session),
        "Purpose": session.purpose,
        "Context": render.context(session),
    }))  # fmt: skip
    yield from _block("Related Entity:", (
        f"{one_line(key.replace('_', ' ').title())}: {one_line(str(text))}"
        for key, text in session.related_entity.items()
    ))  # fmt: skip
    yield from _block("Result:", _facts({
        "Status": session.metadata.get("result_status"),
        "Summary": session.metadata.get("result_summary"),
        "Reason": session.metadata.get("interruption_reason"),
    }))  # fmt: skip
    yield from _block("Parent Session:", _facts({"ID": session.parent}))
    yield from _block("Child Sessions:", (
        f"- {render.sign(child)} {one_line(child.session_id)} "
        f"({one_line(child.session_type)}: {render.label(child)}) [{one_line(child.status)}]"
        for child in details.children
    ))  # fmt: skip
    yield "Breadcrumbs:"
    yield f"  Total: {len(details.crumbs)}"
    shown = details.crumbs if last is None else details.crumbs[-last:] if last else []
    if shown:
        yield "  Latest:"
        yield from (f"    - {_short(crumb)}" for crumb in reversed(shown))
    yield ""
    yield from _block("Mailbox:", render.consumers(details.consumers))
    sums = statistics(details.crumbs)
    given, taken = sums["total_tokens_input"], sums["total_tokens_output"]
    used = {"Total Tokens": f"{given + taken:,} (input: {given:,}, output: {taken:,})"}
    yield "Statistics:"
    for name, text in render.figures(sums, used).items():
        yield f"  {name.capitalize() + ':':<23}{text}"


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading with lines below it; nothing without lines."""
    found = list(lines)
    if found:
        yield head
        yield from (f"  {line}" for line in found)
        yield ""


def _facts(facts: dict[str, Any]) -> Iterator[str]:
    return (f"{name + ':':<16}{one_line(str(text))}" for name, text in facts.items() if text)


def _short(crumb: Breadcrumb) -> str:
    when = parse_time(crumb.timestamp)
    time = f"{when:%Y%m%d %H:%M:%S}" if when else one_line(crumb.timestamp)
    count = tokens(crumb, "input") + tokens(crumb, "output")
    return f"{time} - {one_line(crumb.model_used)} ({count} tokens)"


# -- exports


def _export(path: str, data: bytes) -> None:
    """Create the file.

    Durability: when this returns, the file survives a power cut; until then no file of that name exists.

    Raises:
        AlreadyExists: the file exists.
    """
    try:
        atomic.create(os.path.abspath(path), data)
    except AlreadyExists as error:
        error.hint = "choose another file, or move this one"
        raise
    output.aside(f"Session exported to {one_line(path)}")


def _report(details: work.Details) -> Iterator[str]:
    """The Markdown report, with texts cut to a preview."""
    session = details.session
    yield f"# Session Report: {one_line(session.session_id)}"
    yield ""
    yield "## Session Information"
    yield from _items({
        "Type": session.session_type,
        "Status": session.status,
        "Created": session.created or None,
        "Modified": session.modified or None,
        "Duration": render.lasted(session) or None,
        "Purpose": session.purpose or None,
    })  # fmt: skip
    if session.related_entity:
        yield "## Related Entities"
        yield from _items({key: str(text) for key, text in session.related_entity.items()})
    sums = statistics(details.crumbs)
    given, taken = sums["total_tokens_input"], sums["total_tokens_output"]
    used = {"Total Input Tokens": f"{given:,}", "Total Output Tokens": f"{taken:,}"}
    yield "## Statistics"
    yield from _items(render.figures(sums, used))
    yield "## Breadcrumbs"
    for number, crumb in enumerate(details.crumbs, 1):
        yield f"### Breadcrumb {number}: {one_line(crumb.timestamp)}"
        yield from _items({
            "Model": crumb.model_used,
            "Tokens": f"Input: {tokens(crumb, 'input')}, Output: {tokens(crumb, 'output')}",
            "Cost": None if crumb.cost is None else render.dollars(crumb.cost),
            "Error": str(crumb.error) if crumb.error else None,
        })  # fmt: skip
        for name, text in (("Prompt", crumb.prompt), ("Response", crumb.response)):
            yield f"**{name} Preview**:"
            yield from _fenced(text)
            yield ""
        yield "---"
        yield ""


def _items(facts: Mapping[str, str | None]) -> Iterator[str]:
    yield from (
        f"- **{one_line(name)}**: {one_line(text)}" for name, text in facts.items() if text is not None
    )
    yield ""


def _fenced(text: str) -> Iterator[str]:
    """The beginning of a text, in a fence that is longer than any within it."""
    shown = harmless(text[:_PREVIEW]) + ("…" if len(text) > _PREVIEW else "")
    fence = "```"
    while fence in shown:
        fence += "`"
    yield from (fence, shown, fence)
