"""`sessionary rewind`: a session as it was when a turn had ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import Chosen, chosen, tell
from sessionary.cli.progress import waiting
from sessionary.cli.said import said
from sessionary.cli.text import fit, one_line
from sessionary.layouts.amplifier import Rewound, rewind
from sessionary.workspace import Workspace

_SHOWN = 12


@click.command(
    "rewind",
    epilog="""\b
Examples:
  sessionary rewind 3f0c81d2 3 --dry-run     what would go
  sessionary rewind 3f0c81d2 3
  sessionary undo 3f0c81d2                   bring it back
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.of_agents())
@click.argument("turn", type=click.IntRange(0), metavar="TURN")
@options.home
@changing.dry_run
@changing.as_json
def rewind_command(session: str, turn: int, home: Path | None, dry_run: bool, json_: bool) -> int:
    """Take a session back to the end of TURN; 0 is the session before its first turn.

    Messages and events of the later turns go, and are kept for `sessionary undo`. Nothing is asked: look with --dry-run
    first. Close the session in its agent before, and resume it afterwards. Sessions of sub-agents stay.

    Undo: `sessionary undo ID`; the line is printed.
    """
    workspace = homes.workspace(home)
    target = chosen(workspace, session, "rewind")
    going = list(_going(workspace, target, turn)) if dry_run else []
    with waiting("rewinding"):
        done = rewind(target.folder, turn, dry_run=dry_run)
    undo = formatting.command(home, "undo", target.word) if done.kept_in is not None else None
    if json_:
        output.value(_object(target, done, going, undo))
        return 0
    output.lines(_told(done, going))
    if undo is not None:
        tell("undo", undo)
    elif dry_run:
        output.aside("nothing was written")
    return 0


def _going(workspace: Workspace, target: Chosen, turn: int) -> Iterator[dict[str, Any]]:
    """The turns that would go, each by what a person said."""
    ref = workspace.ref_for_path(Path(target.folder))
    for message in said(workspace.layout_of(ref).entries(ref)):
        if message.person and message.turn > turn:
            text = one_line(message.text)[:200]
            yield {"turn": message.turn, "index": message.index, "timestamp": message.time, "text": text}


def _object(target: Chosen, done: Rewound, going: list[dict[str, Any]], undo: str | None) -> dict[str, Any]:
    """What was done, with the field names of docs/cli-json.md."""
    fields = asdict(done)
    named = {"id": fields.pop("session_id"), "path": target.folder}
    return named | fields | ({"would_go": going} if done.dry_run else {}) | {"undo": undo}


def _told(done: Rewound, going: list[dict[str, Any]]) -> Iterator[str]:
    if not done.changed:
        yield from changing.done(f"it ends with turn {done.to_turn} already: nothing to do")
        return
    turns = formatting.count(done.turns_before - done.to_turn, "turn")
    counts = f"{formatting.count(done.messages_dropped, 'message')}, {formatting.count(done.events_dropped, 'event')}"
    if done.dry_run:
        yield from changing.set_in(f"Would take {one_line(done.session_id)} back to turn {done.to_turn}")
        yield f"  {turns} of {done.turns_before} would go: {counts}"
        yield from _listed(going)
    else:
        yield from changing.done(f"{one_line(done.session_id)} ends with turn {done.to_turn} now")
        yield f"  {turns} of {done.turns_before} went: {counts}"
    if done.events_dropped_by_time:
        yield f"  {done.events_dropped_by_time:,} of the events are known by their time alone"
    if not done.events_told:
        yield "  nothing tells which turns the events belong to: the event log stays whole"
    yield f"  {formatting.count(done.messages_kept, 'message')} {'would stay' if done.dry_run else 'stay'}"


def _listed(going: list[dict[str, Any]]) -> Iterator[str]:
    now = datetime.now(UTC)
    for one in going[:_SHOWN]:
        time = "" if one["timestamp"] is None else formatting.stamp(one["timestamp"], now) + "  "
        yield fit(f"    {one['turn']:>4}  {time}{one['text']}", output.width())
    if going[_SHOWN:]:
        yield f"    … {formatting.count(len(going) - _SHOWN, 'more turn')}"
