"""`sessionary fork`: a new session that begins with the first turns of another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import Chosen, chosen, print_command
from sessionary.cli.choice import all_refs
from sessionary.cli.progress import waiting
from sessionary.cli.text import fit, one_line
from sessionary.errors import AlreadyExists, Invalid
from sessionary.layouts.amplifier import ForkResult, fork_session, get_fork_preview, is_top_level_session
from sessionary.layouts.amplifier.ids import check_new_id
from sessionary.workspace import Workspace


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
@click.argument("session", metavar="ID | DIR", shell_complete=completing.of_agents())
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
    parent = chosen(workspace, session, "fork")
    if new_id is not None and parent.word != parent.folder:
        _refuse_known(workspace, new_id)
    if dry_run:
        _preview(parent, turn, new_id, on_incomplete, json_)
        return 0
    with waiting("forking"):
        made = fork_session(
            parent.folder,
            turn=turn,
            new_session_id=new_id,
            include_events=not no_events,
            handle_orphaned_tools=on_incomplete,
            name=name,
        )
    word = str(made.session_dir) if parent.word == parent.folder else made.session_id
    undo = formatting.command(home, "trash", word)
    if json_:
        output.value(_made(parent, made, undo))
        return 0
    output.line(one_line(made.session_id))
    output.lines(_told(parent, made))
    if not is_top_level_session(made.session_id):
        output.aside("note: amplifier reads an id with an underscore as a sub-agent's and does not list it")
    print_command("show it", formatting.command(home, "show", word))
    print_command("undo", undo)
    return 0


def _refuse_known(workspace: Workspace, new_id: str) -> None:
    """Refuse an id that a session of another project has: neither could then be named by it.

    Raises:
        AlreadyExists: a session has this id.
    """
    for ref in all_refs(workspace)[0]:
        if ref.session_id == new_id:
            raise AlreadyExists(
                f"Session '{new_id}' exists already", operation="fork", session=new_id, path=ref.locator
            )


def _told(parent: Chosen, made: ForkResult) -> Iterator[str]:
    turns = formatting.count(made.forked_from_turn, "turn")
    yield from changing.set_in(f"  the first {turns} of {_short(parent)}")
    yield f"  {formatting.count(made.message_count, 'message')}, {formatting.count(made.events_count, 'event')}"
    if made.problems:
        yield "  could not be read, and were not copied:"
        yield from changing.not_read(made.problems)


def _made(parent: Chosen, made: ForkResult, undo: str) -> dict[str, Any]:
    return _object(parent, made.forked_from_turn, made.message_count) | {
        "id": made.session_id,
        "path": str(made.session_dir),
        "events": made.events_count,
        "problems": [problem.as_dict() for problem in made.problems],
        "undo": undo,
    }


def _object(parent: Chosen, turn: int, messages: int) -> dict[str, Any]:
    """The facts known with and without a dry run, with the field names of docs/cli-json.md."""
    return {
        "id": None,
        "path": None,
        "parent": parent.session_id,
        "turn": turn,
        "messages": messages,
        "events": None,
        "dry_run": False,
        "problems": [],
        "undo": None,
    }


def _preview(parent: Chosen, turn: int | None, new_id: str | None, on_incomplete: str, json_: bool) -> None:
    """Show what a fork would contain, and refuse what it would refuse."""
    if new_id is not None and os.path.lexists(os.path.join(parent.root, check_new_id(new_id))):
        raise AlreadyExists(f"Session '{new_id}' exists already", operation="fork", session=new_id)
    seen = get_fork_preview(parent.folder, turn)
    if on_incomplete == "error" and seen["has_orphaned_tools"]:
        raise Invalid(
            f"{seen['orphaned_tool_count']} tool calls without a result at the end of turn {seen['turn']}",
            operation="fork",
            hint="choose another turn, or use --on-incomplete complete",
        )
    if json_:
        output.value(
            _object(parent, seen["turn"], seen["message_count"])
            | {
                "id": new_id,
                "dry_run": True,
                "turns": seen["max_turns"],
                "incomplete": seen["orphaned_tool_count"],
                "last_user_message": seen["last_user_message"],
                "last_assistant_message": seen["last_assistant_message"],
            }
        )
        return
    output.line(f"Would create a new session from turns 1 to {seen['turn']} of {seen['max_turns']}")
    messages = formatting.count(seen["message_count"], "message")
    output.lines(changing.set_in(f"  of {_short(parent)}: {messages}"))
    for who, text in (("You", "last_user_message"), ("Agent", "last_assistant_message")):
        if seen[text]:
            output.line(fit(f"  {who}: {one_line(seen[text])}", output.width()))
    if seen["has_orphaned_tools"]:
        what = {"complete": "would get one", "remove": "would be left out"}[on_incomplete]
        calls = formatting.count(seen["orphaned_tool_count"], "tool call")
        output.line(f"  {calls} without a result {what}")
    output.aside("Nothing was written.")


def _short(parent: Chosen) -> str:
    return one_line(parent.session_id)
