"""`sync gc`: remove data on the remote that no session needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from sessionary.cli import formatting, options, output
from sessionary.cli.lazy import command
from sessionary.cli.param_types import Finite
from sessionary.cli.progress import Progress, waiting
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import cost_line
from sessionary.cli.text import one_line
from sessionary.errors import SessionaryError
from sessionary.sync.gc.leftovers import Leftovers
from sessionary.sync.gc.removal import RETENTION, Removal
from sessionary.workspace.syncing import chosen, collect

LONGEST = 36500
"""Maximum of --days: a hundred years."""

FEW = 5
"""Maximum number of files that are listed one by one."""


@command(
    "gc",
    "sessionary sync gc",
    "sessionary sync gc --remove",
    "sessionary sync gc --remove --days 90 --json | jq .removed_size",
)
@places.settings_option
@options.flag("--remove", help="Remove unreferenced data older than --days.")
@click.option(
    "--days",
    type=Finite(1, LONGEST),
    default=RETENTION.days,
    show_default=True,
    metavar="DAYS",
    help="Minimum age of what is removed.",
)
@options.json_result
def gc_command(settings_path: Path | None, remove: bool, days: float) -> int:
    """Count unreferenced data on the remote, and remove it.

    Without --remove nothing is removed. --remove removes only data that is older than --days. This includes the
    content of sessions before a rewind, and of trashed sessions, if an earlier `gc --remove` on this machine saw
    it that long ago too; afterwards no machine can restore it from the remote. A copy of removed data is kept on
    this machine for the same time, at least for 30 days, and is uploaded again if a concurrent push needs it: the
    command waits some seconds and checks again. If interrupted, run it again, or push or pull. Exit code 3:
    something could not be removed, or blocks that sessions need are missing.

    --remove cannot be undone.
    """
    choice, older = chosen(settings_path), timedelta(days=days) if remove else None
    with Progress("removing" if remove else "looking", None) as progress:
        sleep = partial(_rest, progress)
        found, done, cost = collect(choice, older=older, sleep=sleep, on_progress=progress.reach)
    if output.is_json():
        output.value({**_document(found, done or Removal()), "cost": asdict(cost)})
    else:
        output.lines(_lines(found))
        output.lines(_removal_lines(done) if done else ["Nothing was removed."])
        if not done and (found.lost_blocks or found.past_blocks or found.dead_blocks):
            output.line("next: sessionary sync gc --remove")
        output.aside(cost_line(cost))
    return options.PARTLY if found.holes or (done and not done.is_whole) else 0


def _rest(progress: Progress, seconds: float) -> None:
    progress.pause()
    with waiting("waiting before the second look"):
        time.sleep(seconds)


def _document(found: Leftovers, done: Removal) -> dict[str, Any]:
    counts = asdict(done)
    del counts["found"]
    return {**asdict(found), **counts, "spoilt": [error.as_dict() for error in done.spoilt]}


def _lines(found: Leftovers) -> Iterator[str]:
    dead = formatting.count(found.tombstones, "of them trashed", "of them trashed")
    yield f"{formatting.count(found.heads, 'session')} ({dead}), {_amount(found.blocks, found.size)}"
    yield f"  {_amount(found.lost_blocks, found.lost_size)} that no session references"
    yield f"  {_amount(found.past_blocks, found.past_size)} from before a rewind"
    yield f"  {_amount(found.dead_blocks, found.dead_size)} of trashed sessions only"
    if found.unread:
        yield f"! {formatting.count(found.unread, 'session')} could not be read; their blocks are unknown"
    if found.holes:
        blocks, spaces = formatting.count(found.holes, "block"), formatting.count(found.holed, "session")
        yield f"! {blocks} missing that {spaces} with its forks needs"
        yield "  `sessionary sync check --repair` uploads them again, on a machine that has these sessions"


def _removal_lines(done: Removal) -> Iterator[str]:
    if done.trimmed or done.emptied:
        past = formatting.count(done.trimmed, "rewound session")
        yield f"removed the past of {past} and the content of {formatting.count(done.emptied, 'trashed one')}"
    if done.unripe:
        yield f"  {formatting.count(done.unripe, 'session')} with more to remove, seen by this machine too recently"
    if done.restored:
        yield f"! restored {formatting.count(done.restored, 'block')} that a session now references"
    if done.young:
        yield f"  {formatting.count(done.young, 'block')} that no session references: too young"
    yield from _hindered(done)
    yield from _spoilt(done.spoilt)
    yield output.paint("✓", "green") + f" removed {_amount(done.removed, done.removed_size)}"


def _hindered(done: Removal) -> Iterator[str]:
    """The reasons why more could not be removed."""
    if done.found.unread:
        yield "! nothing was removed: unreadable sessions may need any block; try a newer version of Sessionary"
    if done.missing:
        yield f"! nothing was removed in spaces with {formatting.count(done.missing, 'missing block')}"
    if done.found.closed or done.unkept:
        spaces = formatting.count(done.found.closed, "session")
        blocks = formatting.count(done.unkept, "block")
        yield f"! {spaces} with its forks, and {blocks} there, stay: this key cannot decrypt a block"
    if done.undated:
        yield f"! {formatting.count(done.undated, 'block')} of unknown age stay; try `sync init` as the owner"


def _spoilt(errors: Sequence[SessionaryError]) -> Iterator[str]:
    """Kept blocks that could not be read back from this disk: each file, up to a maximum."""
    if errors:
        yield f"! {formatting.count(len(errors), 'block')} not restored, though a session may need them"
    for error in errors[:FEW]:
        yield f"    {one_line(error.message)}: {one_line(error.path or '')}"
    if len(errors) > FEW:
        yield f"    and {len(errors) - FEW} more; --json lists all"
    yield from ("    " + one_line(hint) for hint in dict.fromkeys(error.hint for error in errors) if hint)


def _amount(blocks: int, size: int) -> str:
    return f"{formatting.count(blocks, 'block')} ({formatting.size(size)})"
