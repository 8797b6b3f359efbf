"""`sessionary show`: read a session, or any file of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NoReturn

import click

from sessionary.cli import collect_garbage, completing, formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.page import Page
from sessionary.cli.targets import names_of, resolve, with_number
from sessionary.cli.text import cells, fit, harmless, one_line, short_path
from sessionary.errors import Invalid
from sessionary.model import Problem, Severity, Summary
from sessionary.transcript.typed import Numbered
from sessionary.workspace import Target, Workspace, documents

AROUND = 3
LARGE = 8 << 20
"""Bytes of a session that take more than a tenth of a second to read."""

_TURNS = re.compile(r"(-?\d+)|(-?\d+)?\.\.(-?\d+)?")

Turns = tuple[int, int | None]


class TurnRange(click.ParamType[Turns]):
    """``3``, ``3..7``, ``3..`` or ``..7``; negative numbers count from the last turn, which is -1."""

    name = "turns"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Turns:
        match = _TURNS.fullmatch(value)
        if match is None or value == "..":
            self.fail(f"{value!r} is not a range of turns; write 3, 3..7, 3.., ..7, -1 or -3..", param, ctx)
        if match[1]:
            return int(match[1]), int(match[1])
        first, last = int(match[2] or 0), int(match[3]) if match[3] else None
        if last is not None and last < first and (last < 0) == (first < 0):
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return first, last


@command(
    "show",
    "sessionary show 3f0c81d2",
    "sessionary show 3f0c81d2 --turns 3..7 --full | less -R",
    "sessionary show latest --turns -1  the last turn",
    "sessionary show latest --tail 5",
    "sessionary show latest --follow --tail 5  until Ctrl-C",
    "sessionary show 3f0c81d2:14 --raw --around 0  the stored record",
    "sessionary show 3f0c81d2:14        the message of a search hit",
    "sessionary show ~/backup/session.jsonl",
    "sessionary show 3f0c81d2 --json | jq -r '.messages[] | select(.role == \"user\") | .text'",
)
@click.argument("target", metavar="ID[:INDEX] | FILE | DIR", shell_complete=completing.sessions(files=True))
@options.home
@click.option(
    "--turns",
    type=TurnRange(),
    metavar="M..N",
    help="Only these turns; a turn begins with a user message. -1 is the last turn, -3.. the last three.",
)
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N messages.")
@click.option(
    "--around",
    type=click.IntRange(0),
    metavar="N",
    help=f"With ID:INDEX, show N messages before and after it.  [default: {AROUND}]",
)
@options.flag("--full", help="Show everything: whole tool results, thinking, and text added by hooks.")
@options.flag(
    "--branches",
    help="Also show messages outside of the conversation: on abandoned branches, and of sub-agents.",
)
@options.flag("--follow", "-f", help="Print new messages as the agent writes them, until Ctrl-C.")
@options.flag("--raw", help="Print the stored record of each message, unchanged, one per line.")
@options.as_json("the messages", "one message")
def show_command(
    target: str,
    turns: Turns | None,
    tail: int | None,
    around: int | None,
    full: bool,
    branches: bool,
    follow: bool,
    raw: bool,
) -> int:
    """Show the messages of a session, or of a JSON Lines file.

    ID may be the beginning of an id; DIR is the folder of a session. ID:INDEX, as printed by `sessionary
    search`, shows that message in full with the messages around it.

    The first messages of a large session that was never listed are printed before it is read to its end, under
    a heading without title and counts.

    With --follow, a tool call is printed with its result, and --jsonl prints each message as it is written. A message
    that its agent extends or changes is printed again, with those parts only.

    With --raw, a record that holds several messages is printed once; only encryption keys are masked.
    """
    workspace = homes.workspace()
    found, index = with_number(resolve, workspace, target, ":")
    if index is None and around is not None:
        raise click.UsageError("--around needs ID:INDEX")
    if sum(one is not None for one in (index, turns, tail)) > 1:
        raise click.UsageError("--turns, --tail and ID:INDEX exclude each other")
    if raw and (output.is_json() or full):
        raise click.UsageError("--raw excludes --json, --jsonl and --full")
    if follow and (output.wants("json") or branches or turns is not None or index is not None):
        raise click.UsageError("--follow excludes --json, --branches, --turns and ID:INDEX")
    if follow:
        _follow(workspace, found, tail, full=full, raw=raw)
    at_most = None if output.is_json() or raw else LARGE
    summary = None if isinstance(found, Path) else workspace.summary(found, at_most=at_most)
    messages = workspace.messages(
        found,
        -tail if tail is not None else index or 0,
        around=None if index is None else AROUND if around is None else around,
        turns=turns,
        preceding=not (output.is_json() or raw),
        asides=branches,
        inherited=True,
    )

    @cache
    def problems() -> list[Problem]:
        if isinstance(found, Path) or summary is None:
            return list(workspace.check(found))
        return (workspace.summary(found) if summary.unread else summary).problems

    if output.is_json() or raw:
        _print_records(workspace, found, messages, problems(), raw=raw)
    else:
        now, draw = datetime.now(UTC), output.is_terminal()
        page = Page(output.width(), full=full, now=now, marked=index, draw=draw)
        with output.paged():
            _print(_head(workspace, summary), page.lines(messages))
    _print_problems(problems(), found)
    return 0


def _print_records(
    workspace: Workspace, found: Target, messages: Iterator[Numbered], problems: list[Problem], *, raw: bool
) -> None:
    """Print messages for programs: as they are stored, or as JSON."""
    if raw:
        with output.paged():
            _print_raw(workspace, found, messages)
    elif output.wants("jsonl"):
        output.values(map(documents.of_message, messages))
    else:
        output.value({
            "id": found.name if isinstance(found, Path) else found.session_id,
            "messages": list(map(documents.of_message, messages)),
            "problems": list(map(documents.of_problem, problems)),
        })  # fmt: skip


def _follow(workspace: Workspace, found: Target, tail: int | None, *, full: bool, raw: bool) -> NoReturn:
    """Print a session and what is added to it, until the user interrupts.

    Raises:
        Invalid: it is a file.
        NotFound: the session is gone.
    """
    if isinstance(found, Path):
        raise Invalid(
            f"--follow needs a session: {found} is a file", path=found, hint="give the id of a session"
        )
    collect_garbage()
    is_page = not (raw or output.wants("jsonl"))
    messages = workspace.follow(found, -(tail or 0), preceding=is_page, idle=output.flush)
    if not is_page:
        _print_records(workspace, found, messages, [], raw=raw)
    else:
        page = Page(output.width(), full=full, now=datetime.now(UTC), draw=output.is_terminal())
        _print(_head(workspace, workspace.summary(found, at_most=LARGE)), page.lines(messages))
    raise AssertionError("a session that is followed has no end")


def _print_raw(workspace: Workspace, found: Target, messages: Iterable[Numbered]) -> None:
    """Print the stored records of each message once."""
    before = None
    for place in (place for one in messages for place in (one.message.place, *one.message.further)):
        if place == before:
            continue
        before = place
        output.stored(workspace.raw(found, place))


def _print(head: Iterator[str], page: Iterator[str]) -> None:
    first = next(page, None)  # if nothing can be shown, only the error is printed
    output.lines(head)
    for line in chain(() if first is None else (first,), page):
        output.line(line)


def _head(workspace: Workspace, summary: Summary | None) -> Iterator[str]:
    """The heading of a session: title, tags, id, counts and place."""
    if summary is None:
        return
    if summary.title:
        star = "★ " if summary.starred else ""
        yield output.paint(fit(star + one_line(summary.title), output.width()), "bold")
    if summary.tags:
        yield fit(one_line(" ".join(f"#{tag}" for tag in summary.tags)), output.width())
    yield one_line(summary.ref.session_id)
    facts = [formatting.size(summary.size), "not counted yet"]
    if not summary.unread:
        facts = [
            formatting.count(summary.messages, "message"),
            formatting.count(summary.turns, "turn"),
            formatting.size(summary.size),
            formatting.verdict(summary.health),
        ]
    room = output.width() - sum(map(cells, facts)) - 3 * len(facts)
    if not summary.unread:
        facts[-1] = output.paint(facts[-1], formatting.colour(summary.health))
    name = names_of(workspace, [summary])(summary)
    name = "" if name == "-" else name
    project = fit(one_line(name), room, keep_end=True) if room >= 4 else ""
    yield " · ".join([project, *facts] if project else facts)
    yield harmless(short_path(summary.ref.locator))  # never cut, since it is to be copied


def _print_problems(problems: list[Problem], found: Target) -> None:
    """Report on standard error that something is not shown."""
    count = sum(problem.severity > Severity.note for problem in problems)
    if count:
        name = str(found) if isinstance(found, Path) else found.session_id
        look = one_line(formatting.command("check", name))
        output.aside(f"{formatting.count(count, 'problem')} found; run `{look}` for details")
