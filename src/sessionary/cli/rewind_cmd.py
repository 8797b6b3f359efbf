"""`sessionary rewind`: remove the last turns of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.progress import waiting
from sessionary.cli.targets import to_change
from sessionary.cli.text import fit, one_line
from sessionary.layouts.amplifier import Rewound
from sessionary.model import PERSON, SessionRef
from sessionary.workspace import Workspace

_SHOWN = 12


@click.command(
    "rewind",
    epilog="""\b
Examples:
  sessionary rewind 3f0c81d2 3 --dry-run     show what would be removed
  sessionary rewind 3f0c81d2 3
  sessionary undo 3f0c81d2                   bring it back
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.changeable())
@click.argument("turn", type=click.IntRange(0), metavar="TURN")
@options.home
@options.dry_run
@options.json_result
def rewind_command(session: str, turn: int, home: Path | None, dry_run: bool, json_: bool) -> int:
    """Rewind a session to the end of TURN; 0 is the state before its first turn.

    Messages and events of later turns are removed, and kept for `sessionary undo`. There is no confirmation:
    use --dry-run first. Close the session in its agent before, and resume it afterwards. Sessions of
    sub-agents stay.

    Undo: `sessionary undo ID`; the command is printed.
    """
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session)
    with waiting("rewinding"):
        done = workspace.rewind(ref, turn, dry_run=dry_run)
    going = list(_going(workspace, ref, turn)) if dry_run else []
    fields = asdict(done)
    return changing.finish(
        {"id": fields.pop("session_id"), "path": ref.locator}
        | fields
        | ({"would_go": going} if dry_run else {}),
        _told(done, going),
        json_=json_,
        undo=formatting.command(home, "undo", word) if done.kept_in is not None else None,
        dry_run=dry_run,
    )


def _going(workspace: Workspace, ref: SessionRef, turn: int) -> Iterator[dict[str, Any]]:
    """The turns that would be removed, each by what the user said."""
    for one in workspace.messages(ref):
        if one.message.origin == PERSON and one.turn > turn:
            text = one_line(one.message.text)[:200]
            yield {"turn": one.turn, "index": one.index, "timestamp": one.message.time, "text": text}


def _told(done: Rewound, going: list[dict[str, Any]]) -> Iterator[str]:
    if not done.changed:
        yield from changing.done(f"already ends with turn {done.to_turn}: nothing to do")
        return
    turns = formatting.count(done.turns_before - done.to_turn, "turn")
    counts = f"{formatting.count(done.messages_dropped, 'message')}, {formatting.count(done.events_dropped, 'event')}"
    if done.dry_run:
        yield from changing.set_in(f"Would rewind {one_line(done.session_id)} to turn {done.to_turn}")
        yield f"  {turns} of {done.turns_before} would be removed: {counts}"
        yield from _listed(going)
    else:
        yield from changing.done(f"{one_line(done.session_id)} now ends with turn {done.to_turn}")
        yield f"  {turns} of {done.turns_before} removed: {counts}"
    if done.events_dropped_by_time:
        yield f"  {done.events_dropped_by_time:,} of the events were matched by time alone"
    if not done.events_told:
        yield "  the events cannot be matched to turns: the event log is unchanged"
    yield f"  {formatting.count(done.messages_kept, 'message')} {'would stay' if done.dry_run else 'stay'}"


def _listed(going: list[dict[str, Any]]) -> Iterator[str]:
    now = datetime.now(UTC)
    for one in going[:_SHOWN]:
        time = "" if one["timestamp"] is None else formatting.stamp(one["timestamp"], now) + "  "
        yield fit(f"    {one['turn']:>4}  {time}{one['text']}", output.width())
    if going[_SHOWN:]:
        yield f"    … {formatting.count(len(going) - _SHOWN, 'more turn')}"
