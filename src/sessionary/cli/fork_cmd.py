"""`sessionary fork`: a new session that begins with the first turns of another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import print_command
from sessionary.cli.progress import waiting
from sessionary.cli.targets import to_change
from sessionary.cli.text import fit, one_line
from sessionary.layouts.amplifier import ForkResult, is_top_level_session
from sessionary.model import SessionRef
from sessionary.workspace import ForkPreview


@click.command(
    "fork",
    epilog="""\b
Examples:
  sessionary fork 3f0c81d2                    all turns
  sessionary fork 3f0c81d2 --turn 3 --name 'Another way'
  sessionary fork 3f0c81d2 --turn 3 --dry-run
  sessionary fork 3f0c81d2 --json | jq -r .id
""",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.changeable())
@options.home
@click.option("--turn", type=click.IntRange(1), metavar="N", help="The last turn to copy.  [default: all]")
@click.option("--id", "new_id", metavar="NEW", help="The id of the new session.  [default: a new UUID]")
@click.option("--name", metavar="TEXT", help="Name of the new session.  [default: that of its parent]")
@click.option(
    "--on-incomplete",
    type=click.Choice(["complete", "remove", "error"]),
    default="complete",
    show_default=True,
    help="Tool calls without a result: add one that says so, remove the calls, or refuse.",
)
@click.option("--no-events", is_flag=True, help="Do not copy the event log.")
@options.dry_run
@options.json_result
def fork_command(
    session: str,
    home: Path | None,
    turn: int | None,
    new_id: str | None,
    name: str | None,
    on_incomplete: str,
    no_events: bool,
    dry_run: bool,
    json_: bool,
) -> int:
    """Create a new session from the first turns of another one, which stays unchanged.

    The new session lies in the same project. Name, working directory, configuration and the events of those
    turns are copied.

    Undo: move the new session to the trash; the command is printed.
    """
    if name is not None and not name.strip():
        raise click.UsageError("--name is empty")
    workspace = homes.workspace(home)
    ref, word = to_change(workspace, session)
    by_path = word == ref.locator
    if dry_run:
        seen = workspace.preview_fork(
            ref, turn, session_id=new_id, on_incomplete=on_incomplete, unique=not by_path
        )
        return changing.finish(
            _preview_object(ref, new_id, seen),
            _previewed(ref, seen, on_incomplete),
            json_=json_,
            undo=None,
            dry_run=True,
        )
    with waiting("forking"):
        made = workspace.fork(
            ref,
            turn,
            session_id=new_id,
            name=name,
            on_incomplete=on_incomplete,
            events=not no_events,
            unique=not by_path,
        )
    new = str(made.session_dir) if by_path else made.session_id
    undo = formatting.command(home, "trash", new)
    if json_:
        output.value(_object(ref, made, undo))
        return 0
    output.line(one_line(made.session_id))
    output.lines(_told(ref, made))
    if not is_top_level_session(made.session_id):
        output.aside("note: amplifier reads an id with an underscore as a sub-agent's and does not list it")
    print_command("show it", formatting.command(home, "show", new))
    print_command("undo", undo)
    return 0


def _told(parent: SessionRef, made: ForkResult) -> Iterator[str]:
    turns = formatting.count(made.forked_from_turn, "turn")
    yield from changing.set_in(f"  the first {turns} of {one_line(parent.session_id)}")
    yield f"  {formatting.count(made.message_count, 'message')}, {formatting.count(made.events_count, 'event')}"
    if made.problems:
        yield "  could not be read, and were not copied:"
        yield from changing.not_read(made.problems)


def _object(parent: SessionRef, made: ForkResult, undo: str) -> dict[str, Any]:
    """The new session, with the field names of docs/cli-json.md."""
    return {
        "id": made.session_id,
        "path": str(made.session_dir),
        "parent": parent.session_id,
        "turn": made.forked_from_turn,
        "messages": made.message_count,
        "events": made.events_count,
        "dry_run": False,
        "problems": [problem.as_dict() for problem in made.problems],
        "undo": undo,
    }


def _preview_object(parent: SessionRef, new_id: str | None, seen: ForkPreview) -> dict[str, Any]:
    """What a fork would contain, with the field names of docs/cli-json.md."""
    return {
        "id": new_id,
        "path": None,
        "parent": parent.session_id,
        "turn": seen.turn,
        "messages": seen.messages,
        "events": None,
        "dry_run": True,
        "problems": [],
        "turns": seen.turns,
        "incomplete": seen.unanswered,
        "last_user_message": seen.last_user_message,
        "last_assistant_message": seen.last_assistant_message,
    }


def _previewed(parent: SessionRef, seen: ForkPreview, on_incomplete: str) -> Iterator[str]:
    """What a fork would contain."""
    yield f"Would create a new session from turns 1 to {seen.turn} of {seen.turns}"
    messages = formatting.count(seen.messages, "message")
    yield from changing.set_in(f"  of {one_line(parent.session_id)}: {messages}")
    for who, text in (("You", seen.last_user_message), ("Agent", seen.last_assistant_message)):
        if text:
            yield fit(f"  {who}: {one_line(text)}", output.width())
    if seen.unanswered:
        what = {"complete": "would get one", "remove": "would be left out"}[on_incomplete]
        yield f"  {formatting.count(seen.unanswered, 'tool call')} without a result {what}"
