"""The commands that change a session: `rename`, `fork`, `rewind` and `restore-backup`; and `tag` and `star`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import to_run
from sessionary.cli.lazy import command
from sessionary.cli.progress import waiting
from sessionary.cli.targets import to_change
from sessionary.cli.text import fit, one_line
from sessionary.layouts.amplifier.forks import ForkResult
from sessionary.layouts.amplifier.ids import is_top_level_session
from sessionary.layouts.amplifier.rewinding import Rewound
from sessionary.layouts.amplifier.transactions import Restored
from sessionary.layouts.base import Capability
from sessionary.model import PERSON, SessionRef
from sessionary.workspace import ForkPreview, Workspace, documents

_SHOWN = 12
"""Most turns that `rewind --dry-run` prints."""


@command(
    "rename",
    "sessionary rename 3f0c81d2 'The login race'",
    "sessionary rename latest --clear           the title is the first message again",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@click.argument("name", metavar="NAME", required=False)
@options.home
@options.flag("--clear", help="Remove the name.")
@options.json_result
def rename_command(session: str, name: str | None, clear: bool) -> int:
    """Set the name of a session, which is its title in lists. The id does not change.

    The name of a work session is its purpose, that of a feature is in its plan. The name of a brainstorm, or of a
    session that Sessionary can only read, is kept in the data folder, as tags are; their files stay unchanged.

    Undo: set the old name again; the command is printed.
    """
    if clear == (name is not None):
        raise click.UsageError("give a NAME, or --clear")
    if name is not None and not name.strip():
        raise click.UsageError("NAME is empty; --clear removes the name")
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, None)
    before = workspace.rename(ref, name)
    what = "has no name now" if name is None else f"is now named {one_line(name)}"
    return changing.finish(
        {"id": ref.session_id, "path": ref.locator, "name": name, "before": before},
        changing.done(f"{one_line(ref.session_id)} {what}"),
        undo=None
        if before == name
        else formatting.command("rename", word, "--clear" if before is None else before),
    )


@command(
    "fork",
    "sessionary fork 3f0c81d2                    all turns",
    "sessionary fork 3f0c81d2 --turn 3 --name 'Another way'",
    "sessionary fork 3f0c81d2 --turn 3 --dry-run",
    "sessionary fork 3f0c81d2 --json | jq -r .id",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions(Capability.FORK))
@options.home
@click.option("--turn", type=click.IntRange(1), metavar="N", help="The last turn to copy.  [default: all]")
@click.option("--id", "new_id", metavar="NEW", help="The id of the new session.  [default: a new UUID]")
@click.option("--name", metavar="TEXT", help="Name of the new session.  [default: that of its parent]")
@options.choice(
    "--on-incomplete",
    default="complete",
    among=["complete", "remove", "error"],
    help="Tool calls without a result: add one that says so, remove the calls, or refuse.",
)
@options.flag("--no-events", help="Do not copy the event log.")
@options.dry_run
@options.json_result
def fork_command(
    session: str,
    turn: int | None,
    new_id: str | None,
    name: str | None,
    on_incomplete: str,
    no_events: bool,
    dry_run: bool,
) -> int:
    """Create a session from the first turns of another one.

    The other session stays unchanged. The new session is in the same project. Name, working directory,
    configuration and the events of those turns are copied.

    Undo: move the new session to the trash; the command is printed.
    """
    if name is not None and not name.strip():
        raise click.UsageError("--name is empty")
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, Capability.FORK)
    by_path = word == ref.locator
    if dry_run:
        seen = workspace.preview_fork(
            ref, turn, session_id=new_id, on_incomplete=on_incomplete, unique=not by_path
        )
        return changing.finish(
            documents.of_fork_preview(ref, new_id, seen),
            _previewed(ref, seen, on_incomplete),
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
    undo = formatting.command("trash", new) if workspace.grants(ref, Capability.TRASH) else None
    asides = [to_run("show it", formatting.command("show", new))]
    if not is_top_level_session(made.session_id):
        asides.insert(
            0, "note: amplifier reads an id with an underscore as a sub-agent's and does not list it"
        )
    asides += [] if undo is None else [to_run("undo", undo)]
    document = documents.of_fork(ref, made) | {"undo": undo}
    return output.shown(document, _forked(ref, made), asides=asides)


def _forked(parent: SessionRef, made: ForkResult) -> Iterator[str]:
    yield one_line(made.session_id)
    turns = formatting.count(made.forked_from_turn, "turn")
    yield from changing.set_in(f"  the first {turns} of {one_line(parent.session_id)}")
    yield f"  {formatting.count(made.message_count, 'message')}, {formatting.count(made.events_count, 'event')}"
    if made.problems:
        yield "  could not be read, and were not copied:"
        yield from changing.not_read(made.problems)


def _previewed(parent: SessionRef, seen: ForkPreview, on_incomplete: str) -> Iterator[str]:
    """The preview of a fork."""
    yield f"Would create a new session from turns 1 to {seen.turn} of {seen.turns}"
    messages = formatting.count(seen.messages, "message")
    yield from changing.set_in(f"  of {one_line(parent.session_id)}: {messages}")
    for who, text in (("You", seen.last_user_message), ("Agent", seen.last_assistant_message)):
        if text:
            yield fit(f"  {who}: {one_line(text)}", output.width())
    if seen.unanswered:
        what = {"complete": "would get one", "remove": "would be left out"}[on_incomplete]
        yield f"  {formatting.count(seen.unanswered, 'tool call')} without a result {what}"


@command(
    "rewind",
    "sessionary rewind 3f0c81d2 3 --dry-run     show what would be removed",
    "sessionary rewind 3f0c81d2 3",
    "sessionary undo 3f0c81d2                   bring it back",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions(Capability.REWIND))
@click.argument("turn", type=click.IntRange(0), metavar="TURN")
@options.home
@options.dry_run
@options.json_result
def rewind_command(session: str, turn: int, dry_run: bool) -> int:
    """Rewind a session to the end of a turn.

    TURN 0 is the state before the first turn. Messages and events of later turns are removed, and kept for
    `sessionary undo`. There is no confirmation: use --dry-run first. Close the session in its agent before, and
    resume it afterwards. Sessions of sub-agents stay.

    The turns of a brainstorm are its iterations: it goes back as by `sessionary brainstorm back`, and later ones
    stay in its history.

    Undo: `sessionary undo ID`; the command is printed.
    """
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, Capability.REWIND)
    with waiting("rewinding"):
        done = workspace.rewind(ref, turn, dry_run=dry_run)
    going = list(_turns_behind(workspace, ref, turn)) if dry_run and done.messages_dropped else []
    return changing.finish(
        documents.of_rewound(ref, done) | ({"would_go": going} if dry_run else {}),
        _rewound(done, going),
        undo=formatting.command("undo", word) if done.kept_in is not None else None,
        dry_run=dry_run,
    )


def _turns_behind(workspace: Workspace, ref: SessionRef, turn: int) -> Iterator[dict[str, Any]]:
    """The turns that would be removed, each by what the user said."""
    for one in workspace.messages(ref):
        if one.message.origin == PERSON and one.turn > turn:
            text = one_line(one.message.text)[:200]
            yield {"turn": one.turn, "index": one.index, "timestamp": one.message.time, "text": text}


def _rewound(done: Rewound, going: list[dict[str, Any]]) -> Iterator[str]:
    if not done.changed:
        yield from changing.done(f"already ends with turn {done.to_turn}: nothing to do")
        return
    turns = formatting.count(done.turns_before - done.to_turn, "turn")
    if not done.messages_dropped:
        name = one_line(done.session_id)
        if done.dry_run:
            yield from changing.set_in(f"Would take {name} back {turns}, to turn {done.to_turn}")
        else:
            yield from changing.done(f"{name} is back at turn {done.to_turn}, by {turns}")
        yield "  no message is removed"
        return
    counts = f"{formatting.count(done.messages_dropped, 'message')}, {formatting.count(done.events_dropped, 'event')}"
    if done.dry_run:
        yield from changing.set_in(f"Would rewind {one_line(done.session_id)} to turn {done.to_turn}")
        yield f"  {turns} of {done.turns_before} would be removed: {counts}"
        yield from _removed_turns(going)
    else:
        yield from changing.done(f"{one_line(done.session_id)} now ends with turn {done.to_turn}")
        yield f"  {turns} of {done.turns_before} removed: {counts}"
    if done.events_dropped_by_time:
        yield f"  {done.events_dropped_by_time:,} of the events were matched by time alone"
    if not done.events_told:
        yield "  the events cannot be matched to turns: the event log is unchanged"
    yield f"  {formatting.count(done.messages_kept, 'message')} {'would stay' if done.dry_run else 'stay'}"


def _removed_turns(going: list[dict[str, Any]]) -> Iterator[str]:
    now = datetime.now(UTC)
    for one in going[:_SHOWN]:
        time = "" if one["timestamp"] is None else formatting.stamp(one["timestamp"], now) + "  "
        yield fit(f"    {one['turn']:>4}  {time}{one['text']}", output.width())
    if going[_SHOWN:]:
        yield f"    … {formatting.count(len(going) - _SHOWN, 'more turn')}"


@command(
    "restore-backup",
    "sessionary restore-backup 3f0c81d2 --dry-run",
    "sessionary restore-backup 3f0c81d2 --metadata",
    "sessionary undo 3f0c81d2                   as it was before",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions(Capability.REPAIR))
@options.home
@options.flag("--metadata", help="Restore metadata.json, not the transcript.")
@options.dry_run
@options.json_result
def restore_backup_command(session: str, metadata: bool, dry_run: bool) -> int:
    """Replace a transcript by its backup, which is older.

    The backup may lack the last messages. If a transcript is damaged, `sessionary repair` keeps more of it.

    Undo: `sessionary undo ID`; the command is printed.
    """
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, Capability.REPAIR)
    with waiting("restoring"):
        done = workspace.restore_backup(ref, "metadata" if metadata else "transcript", dry_run=dry_run)
    fields = asdict(done)
    return changing.finish(
        {"id": fields.pop("session_id"), "path": ref.locator} | fields,
        _restored(done),
        undo=formatting.command("undo", word) if done.kept_in is not None else None,
        dry_run=dry_run,
    )


def _restored(done: Restored) -> Iterator[str]:
    file = "metadata.json" if done.which == "metadata" else "transcript.jsonl"
    if not done.changed:
        yield from changing.done(f"{file} equals its backup: nothing to do")
        return
    name = one_line(done.session_id)
    if done.dry_run:
        yield from changing.set_in(f"Would restore {file} of {name}")
    else:
        yield from changing.done(f"{name}: {file} is restored")
    if done.which == "transcript":
        after = formatting.count(done.messages_after, "message")
        verb = "would be" if done.dry_run else "is" if done.messages_after == 1 else "are"
        yield from changing.set_in(f"  {after} {verb} in it; {done.messages_before:,} could be read before")


@command(
    "tag",
    "sessionary tag 3f0c81d2 bug login",
    "sessionary tag 3f0c81d2 --remove bug",
    "sessionary tag 3f0c81d2               print its tags",
    "sessionary list --tag login",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@options.home
@options.repeated("--remove", metavar="TAG", help="Remove this tag.")
@options.json_result
def tag_command(session: str, tags: tuple[str, ...], remove: tuple[str, ...]) -> int:
    """Add tags to a session of any agent, or remove them. Without tags: print those that it has.

    Tags are kept in the data folder of Sessionary; the files of the agent stay unchanged. A tag has no blanks and
    no commas.

    Undo: `sessionary tag` with what was removed, and --remove with what was added; the command is printed.
    """
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, None)
    before = workspace.tag(ref, tags, remove) if tags or remove else workspace.label(ref).tags
    after = workspace.label(ref).tags
    undo = None
    if before != after:
        again = [one for one in before if one not in after]
        gone = [part for one in after if one not in before for part in ("--remove", one)]
        undo = formatting.command("tag", word, *again, *gone)
    document = {"id": ref.session_id, "path": ref.locator, "tags": after, "before": before}
    name = one_line(ref.session_id)
    shown = one_line(" ".join(f"#{one}" for one in after))
    text = f"{name} has the tags {shown}" if after else f"{name} has no tags"
    return changing.finish(document, changing.done(text), undo=undo)


@command("star", "sessionary star 3f0c81d2", "sessionary star 3f0c81d2 --remove", "sessionary list --starred")
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@options.home
@options.flag("--remove", help="Remove the star.")
@options.json_result
def star_command(session: str, remove: bool) -> int:
    """Star a session of any agent, or remove the star.

    Stars are kept in the data folder of Sessionary; the files of the agent stay unchanged.

    Undo: the same command with --remove, or without; it is printed.
    """
    workspace = homes.workspace()
    ref, word = to_change(workspace, session, None)
    before = workspace.star(ref, on=not remove)
    undo = None
    if before == remove:
        undo = formatting.command("star", word, *(() if remove else ("--remove",)))
    document = {"id": ref.session_id, "path": ref.locator, "starred": not remove, "before": before}
    done = changing.done(f"{one_line(ref.session_id)} has {'no' if remove else 'a'} star")
    return changing.finish(document, done, undo=undo)
