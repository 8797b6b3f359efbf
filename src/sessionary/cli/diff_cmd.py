"""`sessionary diff`: compare two sessions, or branches of one."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sessionary.cli import completing, formatting, homes, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.spending_tables import cost_text
from sessionary.cli.targets import session, with_number
from sessionary.cli.text import fit, one_line
from sessionary.workspace import documents
from sessionary.workspace.comparing import Comparison, Side

_SHOWN = 20


@command(
    "diff",
    "sessionary diff 3f0c81d2 9c1d2e3f        a session and its fork",
    "sessionary diff 3f0c81d2 3f0c81d2@1 a session and its first abandoned branch",
    "sessionary diff 3f0c81d2 9c1d2e3f --json | jq .files",
)
@click.argument("a", metavar="A[@BRANCH]", shell_complete=completing.sessions())
@click.argument("b", metavar="B[@BRANCH]", shell_complete=completing.sessions())
@options.home
@options.json_result
def diff_command(a: str, b: str) -> int:
    """Compare two sessions, or two branches of one.

    Compares turns, tools, files, errors, tokens and cost. ID@1 is the first abandoned branch of a session,
    for example after a rewind, from the start of the session. Files are those in the arguments of tool calls.
    Tokens of a session include all its branches.
    """
    workspace = homes.workspace()
    (one, branch), (other, left) = (with_number(session, workspace, word, "@") for word in (a, b))
    found = workspace.diff(one, other, branch=branch or 0, other_branch=left or 0)
    document = documents.of_comparison(found)
    if output.is_json():
        output.value(document)
        return 0
    short = workspace.short_ids([one, other])
    names = [
        one_line(short[side.ref]) + (f"@{side.branch}" if side.branch else "") for side in (found.a, found.b)
    ]
    output.lines(_table(names, list(_facts(found))))
    for what, name in (("tool", "name"), ("file", "file")):
        rows = documents.most_different(document[what + "s"])
        counts = [(one_line(row[name]), f"{row['a']:,}", f"{row['b']:,}") for row in rows]
        if counts:
            output.line()
            output.lines(_table(names, counts[:_SHOWN], what.upper()))
        if counts[_SHOWN:]:
            left_out = formatting.count(len(counts) - _SHOWN, f"more {what}")
            output.line(f"… {left_out}: --json lists all")
    return 0


Row = tuple[str, str, str]


def _facts(found: Comparison) -> Iterator[Row]:
    a, b = found.a, found.b
    yield "title", one_line(a.title or "-"), one_line(b.title or "-")
    yield "turns", f"{a.turns:,}", f"{b.turns:,}"
    yield "equal turns", f"{found.equal_turns:,}", f"{found.equal_turns:,}"
    yield "messages", f"{a.messages:,}", f"{b.messages:,}"
    yield "errors", f"{a.errors:,}", f"{b.errors:,}"
    yield "tokens", f"{a.spending.usage.tokens:,}", f"{b.spending.usage.tokens:,}"
    yield "cost", cost_text(a.spending), cost_text(b.spending)
    yield "models", _models(a), _models(b)


def _models(side: Side) -> str:
    return ", ".join(map(one_line, side.models)) or "-"


def _table(names: list[str], rows: list[Row], head: str = "") -> Iterator[str]:
    """Rows with a name and a value for each side; with a heading, the names get the rest of the width."""
    labels, *sides = zip(*rows, strict=True)
    room = output.room()
    width = None if room is None or head else (room - max(map(len, labels)) - 4) // 2
    columns = [table.Column(head, labels)]
    for name, texts in zip(names, sides, strict=True):
        columns.append(table.Column(name, texts if width is None else [fit(text, width) for text in texts]))
    return table.lines(columns, room, stretch=head or None, keep_end=True)
