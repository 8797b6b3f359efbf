"""`sessionary list`: the sessions, newest first; and the overview that `sessionary` prints without a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice

import click

from sessionary.cli import formatting, homes, last_list, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.table import Column
from sessionary.cli.targets import NONE_YET, all_summaries, names_of, report_failure, report_none
from sessionary.cli.text import cells, fit, one_line
from sessionary.errors import NotFound
from sessionary.model import SessionRef, Severity, Summary
from sessionary.workspace import SHORT, Workspace, documents
from sessionary.workspace.filters import HEALTHS, SORTS, WELL, tokens_of
from sessionary.workspace.naming import cut_ids

_GOES_FIRST = ("TURNS", "SIZE", "MSGS", "PROJECT", "KIND", "WHEN", "HEALTH")
"""The columns that are left out when the terminal is narrow, in this order."""

_UNREAD = "…"
"""A value that is unknown, since the session is not read yet."""

_BELOW = 4
"""Lines of the screen below the first rows: the progress, and the command."""

_TITLE = 24
"""Minimum width of a title, in cells, as long as another column can be left out."""


@command(
    "list",
    "sessionary list",
    'sessionary list --since "2 weeks ago" --project app -n 10',
    "sessionary list --health damaged --sort size",
    "sessionary list --all --home /mnt/old-laptop/.amplifier",
    "sessionary list --health lost_data --json | jq -r '.[].id'",
)
@options.home
@options.project
@options.since
@options.until
@options.kinds
@options.model
@click.option("--branch", metavar="NAME", help="Only sessions on this git branch.")
@options.repeated(
    "--health",
    "healths",
    type=click.Choice([word for word in HEALTHS if word != Severity.note.name]),
    help="Only this health; `damaged` is any except ok.",
)
@options.repeated("--tag", "tags", metavar="TAG", help="Only with this tag.")
@options.flag("--starred", help="Only with a star.")
@options.choice(
    "--sort",
    default="changed",
    among=["changed", "date", *(word for word in SORTS if word != "changed")],
    help="Sort order: newest or largest first, text from A to Z; `date` is `changed`.",
)
@click.option("--limit", "-n", type=click.IntRange(0), default=0, metavar="N", help="List at most N; 0: all.")
@options.flag("--all", "-a", "all_", help="Also list the sessions of sub-agents, below their parents.")
@options.flag("--top-level", help="Omit the sessions of sub-agents from --json and --jsonl too.")
@options.as_json("the sessions", "one session")
def list_command(
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    all_: bool,
    top_level: bool,
    kinds: tuple[str, ...],
    model: str | None,
    branch: str | None,
    healths: tuple[str, ...],
    tags: tuple[str, ...],
    starred: bool,
    sort: str,
    limit: int,
) -> int:
    """List sessions, newest first.

    Sessions of sub-agents are only counted, unless --all lists them; --json includes them, each with its
    parent. WHEN is the time of the newest message; order, --since and --until use it. If no message has a
    time, the times of the files are used. A time in the future is ignored and reported as a note by
    `sessionary check`. --since and --until omit sessions of unknown time. KIND is shown if there are several
    kinds. "(archived)" marks a session that is left only in the archive.

    On a terminal, if sessions must be read and that takes more than a second, the newest ones are printed first, with
    "…" for what is not known yet; then the progress, and the complete list. Ctrl-C ends the reading and lists what is
    known. Elsewhere only the complete list is printed.

    On a terminal the rows are numbered: `sessionary show 3` and every other command takes the number of a row in the
    last list of the same terminal instead of an id. Star and tags are shown beside the title.

    HEALTH is the worst problem found: ok; stray (bytes that are not a record); hides (data that other readers
    do not show); stops (the agent cannot resume the session); lost (data is gone). Run `sessionary check` for
    details.
    """
    workspace = homes.workspace()
    choose = partial(
        workspace.list,
        kind=kinds,
        project=project,
        model=model,
        branch=branch,
        health=healths,
        tag=tags,
        starred=starred,
        since=since,
        until=until,
        sort="changed" if sort == "date" else sort,
    )
    print_known = None
    if output.is_terminal() and not output.is_json():
        rows_first = (limit or output.height()) if sort in ("changed", "date") else 0
        print_known = partial(_print_first, workspace, choose, rows_first)
    found, failure = all_summaries(workspace, print_known)
    chosen = choose(summaries=found, failure=failure)
    if output.is_json():
        shown = [one for one in chosen if not (top_level and one.nested)]
        prices = workspace.prices()
        output.items(documents.of_summary(one, prices) for one in shown[: limit or None])
    elif chosen:
        _print(workspace, found, chosen, all_=all_, limit=limit, with_tokens=sort == "tokens")
        _print_left_out(chosen, len(found) - len(chosen), all_=all_, limit=limit)
    elif found:
        output.aside(f"No sessions match these filters ({len(found):,} in total).")
    else:
        report_none(workspace)
    if unread := sum(one.unread for one in found):
        are = "session is" if unread == 1 else "sessions are"
        output.aside(f"{unread:,} {are} not read yet; the next list continues from there")
        raise click.Abort
    return report_failure(failure, "listed")


def _print(
    workspace: Workspace,
    found: list[Summary],
    chosen: list[Summary],
    *,
    all_: bool,
    limit: int,
    with_tokens: bool,
) -> None:
    """Print the table."""
    short = workspace.short_ids([one.ref for one in found])
    shown: Iterator[tuple[Summary, int]] = ((one, 0) for one in chosen if not one.nested)
    if all_:
        from sessionary.workspace.family import below_parents  # here: a plain list does not need it

        shown = below_parents(chosen)
    rows = [(one, short[one.ref], depth) for one, depth in islice(shown, limit or None)]
    drawn = list(columns(rows, names_of(workspace, chosen)))
    if with_tokens:
        counts = [formatting.quantity(tokens_of(one)) for one, _, _ in rows]
        drawn.insert(-2, Column("TOKENS", counts, right=True))
    numbered = last_list.remember([one.ref for one, _, _ in rows])
    if numbered and output.is_terminal():  # a pipe gets the columns that scripts know, in the same order
        numbers = [str(at + 1) if at < numbered else "" for at in range(len(rows))]
        drawn.insert(0, Column("#", numbers, right=True))
    with output.paged():
        _print_table(drawn)


def _print_first(
    workspace: Workspace, choose: Callable[..., list[Summary]], limit: int, known: Sequence[Summary]
) -> None:
    """Print the newest sessions that fit on the screen, before all are read."""
    try:
        chosen = [one for one in choose(summaries=known) if not one.nested]
    except NotFound:
        return  # the project of a session may be known only when it is read
    if some := chosen[: min(max(output.height() - _BELOW, 1), limit)]:
        short = workspace.short_ids([one.ref for one in some])
        _print_table(columns([(one, short[one.ref], 0) for one in some], names_of(workspace, some)))
        output.flush()


def _print_table(drawn: Iterable[Column]) -> None:
    output.lines(table.lines(list(drawn), output.room(), stretch="TITLE", drop=_GOES_FIRST, least=_TITLE))


def columns(rows: list[tuple[Summary, str, int]], project: Callable[[Summary], str]) -> Iterator[Column]:
    """The columns of the table: add one here.

    Args:
        rows: the sessions, with their short ids and their depths below their parents.
    """
    now, room = datetime.now(UTC), output.room()
    some = [summary for summary, _, _ in rows]
    projects = list(map(project, some))
    names = {name: one_line(name) for name in set(projects)}
    if room is not None:
        longest = 14 if room < 100 else 28
        names = {name: fit(shown, longest, keep_end=True) for name, shown in names.items()}
    kinds = [one.ref.kind for one in some]
    ids = [one_line(short) for _, short, _ in rows]
    yield Column("ID", ids if room is None else cut_ids(ids, room // 4))
    if len(set(kinds)) > 1:
        yield Column("KIND", kinds)
    yield Column("WHEN", [formatting.ago(one.updated, now) for one in some])
    yield Column("PROJECT", [names[name] for name in projects])
    yield Column("MSGS", [_UNREAD if one.unread else str(one.messages) for one in some], right=True)
    yield Column("TURNS", [_UNREAD if one.unread else str(one.turns) for one in some], right=True)
    yield Column("SIZE", [formatting.size(one.size) for one in some], right=True)
    colours = ["dim" if one.unread else formatting.colour(one.health) for one in some]
    healths = [_UNREAD if one.unread else formatting.verdict(one.health) for one in some]
    yield Column("HEALTH", healths, colours=colours)
    yield Column("TITLE", [_title(summary, depth) for summary, _, depth in rows])


def _title(summary: Summary, depth: int) -> str:
    """The title; that of a sub-session is indented, that of a fork names its origin."""
    title, parent = summary.title or (_UNREAD if summary.unread else "-"), summary.parent
    if summary.archived:
        title = f"(archived) {title}"
    if summary.starred:
        title = f"★ {title}"
    if summary.tags:
        title = " ".join((title, *(f"#{tag}" for tag in summary.tags)))
    if depth:
        return "  " * (depth - 1) + "└ " + one_line(title)
    if parent and parent != summary.ref.session_id:
        title = f"{title} (from {parent[:SHORT]})"
    return one_line(title)


def _print_left_out(chosen: list[Summary], left_out: int, *, all_: bool, limit: int) -> None:
    """Print how many sessions are not shown and how many are damaged."""
    shown = len(chosen) if all_ else sum(not one.nested for one in chosen)
    if limit and shown > limit:
        output.aside(f"{formatting.count(shown - limit, 'more session')}: raise --limit to show them")
    if left_out:
        do = "session does" if left_out == 1 else "sessions do"
        output.aside(f"{left_out:,} {do} not match these filters")
    if kept := sum(one.archived and not one.nested for one in chosen):
        are = "session is" if kept == 1 else "sessions are"
        output.aside(f"{kept:,} {are} only in the archive; `sessionary archive list --gone` lists them")
    if hidden := len(chosen) - shown:
        output.aside(f"{formatting.count(hidden, 'session')} of sub-agents not shown; --all shows them")
    damaged = sum(one.health not in WELL for one in chosen)
    if damaged:
        look = one_line(formatting.command("check"))
        are = "session is" if damaged == 1 else "sessions are"
        output.aside(f"{damaged:,} {are} damaged; run `{look}` for details")


_NEWEST = 5
_NAMED = 2
"""Most damaged sessions, and most that will be deleted, that are named."""


def overview() -> int:
    """Print the overview; return the exit code."""
    workspace = homes.workspace()
    summaries, failure = all_summaries(workspace)
    own = [one for one in workspace.list(summaries=summaries) if not one.nested]
    if not own:
        output.line(NONE_YET)
        output.line("`sessionary demo` shows what Sessionary does, `sessionary --help` all commands.")
        return report_failure(failure, "shown")
    short = workspace.short_ids([one.ref for one in own])
    kinds = len({one.ref.kind for one in own})
    of_kinds = "" if kinds == 1 else f" of {formatting.count(kinds, 'kind')}"
    output.line(output.paint(f"{formatting.count(len(own), 'session')}{of_kinds}", "bold"))
    output.line()
    newest = own[:_NEWEST]
    _print_table(columns([(one, short[one.ref], 0) for one in newest], names_of(workspace, newest)))
    damaged = [one for one in own if one.health not in WELL]
    output.lines(_named("damaged", damaged, short, "red"))
    doctor = workspace.doctor(now=datetime.now(UTC), summaries=summaries)
    leaving = [one for agent in doctor.agents for one in agent.leaving]
    output.lines(_named("deleted soon by their agents", leaving, short, "yellow"))
    if unkept := sum(agent.unkept for agent in doctor.agents):
        output.line(f"{unkept:,} of them not archived: sessionary archive run")
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
