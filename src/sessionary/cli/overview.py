"""The output of `sessionary` without a command: the newest sessions, and those that are damaged or deleted soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from sessionary.cli import formatting, homes, output, table
from sessionary.cli.list_cmd import columns
from sessionary.cli.targets import NONE_YET, all_summaries, names_of, report_failure
from sessionary.cli.text import cells, one_line
from sessionary.layouts.clock import believed
from sessionary.model import SessionRef, Summary

_NEWEST = 5
_NAMED = 2
"""How many of the damaged sessions, and of those that will be deleted, are named."""


def overview() -> int:
    """Print the overview; return the exit code."""
    workspace = homes.workspace()
    summaries, failure = all_summaries(workspace)
    own = sorted(
        (one for one in summaries if not one.nested), key=lambda one: believed(one.updated), reverse=True
    )
    if not own:
        output.line(NONE_YET)
        output.line("`sessionary demo` shows what Sessionary does, `sessionary --help` all commands.")
        return report_failure(failure, "shown")
    short = workspace.short_ids([one.ref for one in own])
    kinds = len({one.ref.kind for one in own})
    of_kinds = "" if kinds == 1 else f" of {formatting.count(kinds, 'kind')}"
    output.line(output.paint(f"{formatting.count(len(own), 'session')}{of_kinds}", "bold"))
    output.line()
    rows = [(one, short[one.ref], 0) for one in own[:_NEWEST]]
    drop = ("TURNS", "SIZE", "MSGS", "PROJECT", "HEALTH")
    output.lines(
        table.lines(
            list(columns(rows, names_of(workspace, own[:_NEWEST]))), output.room(), stretch="TITLE", drop=drop
        )
    )
    damaged = [one for one in own if one.health not in formatting.WELL]
    output.lines(_named("damaged", damaged, short, "red"))
    doctor = workspace.doctor(now=datetime.now(UTC))
    leaving = [one for agent in doctor.agents for one in agent.leaving]
    output.lines(_named("deleted soon by their agents", leaving, short, "yellow"))
    if unkept := workspace.archived.lacks(leaving):
        output.line(f"{len(unkept):,} of them not archived: sessionary archive run")
    output.line()
    first = short[own[0].ref]
    output.line(
        f"sessionary show {first} · sessionary search WORDS · sessionary {'check' if damaged else 'list'}"
    )
    return report_failure(failure, "shown")


def _named(what: str, found: list[Summary], short: dict[SessionRef, str], colour: str) -> Iterator[str]:
    if not found:
        return
    head = f"{len(found):,} {what}"
    names = [one_line(short.get(one.ref, one.ref.session_id)) for one in found[:_NAMED]]
    room = output.room() or output.WIDEST
    while names and cells(_with_more(head, names, len(found))) > room:
        names.pop()
    yield ""
    yield output.paint(head, colour) + _with_more("", names, len(found))


def _with_more(head: str, names: list[str], total: int) -> str:
    """The names behind a head, and how many more there are."""
    left = total - len(names)
    more = f" and {left:,} more" if left else ""
    return f"{head}: {', '.join(names)}{more}" if names else head
