"""`sessionary show`: read a session, or any file of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import click

from sessionary.cli import options, output, phrases
from sessionary.cli.page import Page
from sessionary.cli.said import Said, as_object, said
from sessionary.cli.targets import Target, resolve
from sessionary.cli.text import cells, fit, one_line
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.model import Entry, Problem, Severity, Summary
from sessionary.workspace import Workspace

_TURNS = re.compile(r"(\d+)|(\d*)\.\.(\d*)")

Turns = tuple[int, int | None]


class TurnRange(click.ParamType[Turns]):
    """``3``, ``3..7``, ``3..`` or ``..7``."""

    name = "turns"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Turns:
        match = _TURNS.fullmatch(value)
        if match is None or value == "..":
            self.fail(f"{value!r} is no range of turns; write 3, 3..7, 3.. or ..7", param, ctx)
        if match[1]:
            return int(match[1]), int(match[1])
        first, last = int(match[2] or 0), int(match[3]) if match[3] else None
        if last is not None and last < first:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return first, last


@click.command(
    "show",
    epilog="""\b
Examples:
  sessionary show 3f0c81d2
  sessionary show 3f0c81d2 --turns 3..7 --full | less -R
  sessionary show ~/backup/session.jsonl
  sessionary show 3f0c81d2 --json | jq -r '.messages[] | select(.role == "user") | .text'
""",
)
@click.argument("target", metavar="ID | FILE | DIR")
@options.home
@click.option(
    "--turns", type=TurnRange(), metavar="M..N", help="Only these turns; a turn begins where a person speaks."
)
@click.option(
    "--full", is_flag=True, help="Fold nothing: whole tool results, thinking, and what hooks added."
)
@options.as_json("the messages", "one message")
def show_command(
    target: str, home: Path | None, turns: Turns | None, full: bool, json_: bool, jsonl: bool
) -> int:
    """Show the conversation of a session, or of any JSON Lines file of messages.

    ID may be the beginning of an id; DIR is the folder of a session.
    """
    options.one_format(json_, jsonl)
    workspace = Workspace(home)
    found = resolve(workspace, target)
    summary = None if isinstance(found, Path) else workspace.layout_of(found).summary(found)
    problems = workspace.check_file(found) if isinstance(found, Path) else summary.problems if summary else []
    messages = _chosen(said(_entries(workspace, found, problems)), turns)
    if jsonl:
        output.values(map(as_object, messages))
    elif json_:
        output.value({
            "id": found.name if isinstance(found, Path) else found.session_id,
            "messages": list(map(as_object, messages)),
            "problems": [problem.as_dict() for problem in problems],
        })  # fmt: skip
    else:
        page = Page(output.width(), full=full, now=datetime.now(UTC)).lines(messages)
        first = next(page, None)  # if nothing can be shown, the error stands alone
        output.lines(_head(summary))
        for line in chain(() if first is None else (first,), page):
            output.line(line)
    _tell(problems, target)
    return 0


def _entries(workspace: Workspace, found: Target, problems: list[Problem]) -> Iterator[Entry]:
    """The records; a file that has none because it is something else, or broken, is an error and not an empty page.

    Raises:
        Corrupt: nothing in it can be read.
    """
    empty = True
    try:
        for entry in (
            workspace.read_file(found)
            if isinstance(found, Path)
            else workspace.layout_of(found).entries(found)
        ):
            empty = False
            yield entry
    except NotFound:
        if isinstance(found, Path):
            raise
    worst = max(problems, key=lambda problem: problem.severity, default=None)
    if empty and worst is not None and worst.severity > Severity.note:
        raise Corrupt(f"{worst.path}: {worst.message}", operation="show", path=worst.path, hint=worst.repair)


def _chosen(messages: Iterable[Said], turns: Turns | None) -> Iterator[Said]:
    """The messages of the wanted turns.

    Raises:
        Invalid: there are no such turns.
    """
    if turns is None:
        yield from messages
        return
    first, last = turns
    turn, none = 0, True
    for message in messages:
        turn = message.turn
        if last is not None and turn > last:
            break
        if turn >= first:
            none = False
            yield message
    if none:
        raise Invalid(
            f"there is no turn {first}: the session has {phrases.count(turn, 'turn')}", operation="show"
        )


def _head(summary: Summary | None) -> Iterator[str]:
    """What the session is, above its conversation."""
    if summary is None:
        return
    if summary.title:
        yield output.paint(fit(one_line(summary.title), output.width()), "bold")
    yield one_line(summary.ref.session_id)
    facts = [
        phrases.count(summary.messages, "message"),
        phrases.count(summary.turns, "turn"),
        phrases.size(summary.size),
        phrases.verdict(summary.health),
    ]
    room = output.width() - sum(map(cells, facts)) - 3 * len(facts)
    facts[-1] = output.paint(facts[-1], phrases.colour(summary.health))
    project = fit(one_line(summary.ref.project or ""), max(room, 4), keep_end=True)
    yield " · ".join([project, *facts] if project else facts)


def _tell(problems: list[Problem], target: str) -> None:
    """Say that something is not shown, on standard error."""
    count = sum(problem.severity > Severity.note for problem in problems)
    if count:
        output.aside(
            f"{phrases.count(count, 'problem')} found; `sessionary check {one_line(target)}` tells more"
        )
