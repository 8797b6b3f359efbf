"""`sync gc`: what lies on the remote and is needed by nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from sessionary.cli import formatting, output
from sessionary.cli.param_types import Finite
from sessionary.cli.progress import Progress, waiting
from sessionary.cli.sync import places
from sessionary.cli.sync.chosen import chosen
from sessionary.cli.sync.formatting import PARTLY, cost_line
from sessionary.cli.text import one_line
from sessionary.errors import SessionaryError
from sessionary.sync.gc.leftovers import Leftovers, count_leftovers
from sessionary.sync.gc.removal import RETENTION, Removal, Remover
from sessionary.sync.remote import collectable
from sessionary.sync.retry import RetryingRemote
from sessionary.sync.settings import Settings

LONGEST = 36500
"""Days: a hundred years. No clock goes back further than its first day."""

FEW = 5
"""So many files are named one by one."""

_CANNOT = "nothing can be removed from this remote: it does not offer that"


@click.command(
    "gc",
    epilog="""\b
Examples:
  sessionary sync gc
  sessionary sync gc --remove
  sessionary sync gc --remove --days 90 --json | jq .removed_size
""",
)
@places.settings_file
@click.option("--remove", is_flag=True, help="Remove what was put there long enough ago.")
@click.option(
    "--days",
    type=Finite(1, LONGEST),
    default=RETENTION.days,
    show_default=True,
    metavar="DAYS",
    help="How long ago that is.",
)
@places.as_json
def gc_command(settings_path: Path | None, remove: bool, days: float, json_: bool) -> int:
    """Count what lies on the remote and no session points to; with --remove, remove what is old of it.

    --remove also forgets what sessions were before they were rewound, and what trashed sessions consisted of, where
    that is as long ago, and a `gc --remove` on this machine has seen it as long ago too: no machine can bring it
    back from the remote any more. What it removes is kept on this machine for as long, and for 30 days at least, and
    put back if a push that was under way turns out to need it; so it waits some seconds to look again. If it is cut
    off, run it again, or push or pull.
    Exit code 3: something kept it from removing all of that, or blocks are missing that sessions need.

    There is no undo of --remove.
    """
    choice = chosen(settings_path)
    settings, inner = choice.settings, choice.connect()
    remote = RetryingRemote(inner)
    try:
        done = _removed(remote, settings, timedelta(days=days)) if remove else None
        found = done.found if done else _counted(remote)
    finally:
        inner.close()
    if json_:
        output.value({**_document(found, done or Removal()), "cost": asdict(remote.cost)})
    else:
        output.lines(_lines(found))
        output.lines(_told(done) if done else _not_asked(found))
        output.aside(cost_line(remote.cost))
    return PARTLY if found.holes or (done and not done.is_whole) else 0


def _counted(remote: RetryingRemote) -> Leftovers:
    with Progress("looking", None) as progress:
        return count_leftovers(remote, progress.reach)


def _removed(remote: RetryingRemote, settings: Settings, older: timedelta) -> Removal:
    """Remove; where that cannot be done, count and say so."""
    store = collectable(remote)
    if store is None:
        output.aside(_CANNOT)
        return Removal(_counted(remote), can=False)
    with Progress("removing", None) as progress:

        def rest(seconds: float) -> None:
            progress.pause()
            with waiting("waiting to look again"):
                time.sleep(seconds)

        return Remover(store, places.removed(settings), older=older, sleep=rest, tell=progress.reach).remove()


def _document(found: Leftovers, done: Removal) -> dict[str, Any]:
    counts = asdict(done)
    del counts["found"], counts["can"]
    return {**asdict(found), **counts, "spoilt": [error.as_dict() for error in done.spoilt]}


def _lines(found: Leftovers) -> Iterator[str]:
    dead = formatting.count(found.tombstones, "of them trashed", "of them trashed")
    yield f"{formatting.count(found.heads, 'session')} ({dead}), {_amount(found.blocks, found.size)}"
    yield f"  {_amount(found.lost_blocks, found.lost_size)} that no session points to"
    yield f"  {_amount(found.past_blocks, found.past_size)} from before a rewind"
    yield f"  {_amount(found.dead_blocks, found.dead_size)} of trashed sessions only"
    if found.unread:
        yield f"! {formatting.count(found.unread, 'session')} could not be read; what they point to is not known"
    if found.holes:
        blocks, spaces = formatting.count(found.holes, "block"), formatting.count(found.holed, "session")
        yield f"! {blocks} missing that {spaces}, with its forks, needs"
        yield "  `sessionary sync check --repair` puts them again, on a machine that has these sessions"


def _not_asked(found: Leftovers) -> Iterator[str]:
    yield "nothing was removed"
    if found.lost_blocks or found.past_blocks or found.dead_blocks:
        yield "next: sessionary sync gc --remove"


def _told(done: Removal) -> Iterator[str]:
    if done.trimmed or done.emptied:
        past = formatting.count(done.trimmed, "rewound session")
        yield f"forgot the past of {past} and the content of {formatting.count(done.emptied, 'trashed one')}"
    if done.unripe:
        yield f"  {formatting.count(done.unripe, 'session')} with more to forget, which was seen here only lately"
    if done.restored:
        yield f"! put {formatting.count(done.restored, 'block')} back that a session points to by now"
    if done.young:
        yield f"  {formatting.count(done.young, 'block')} that no session points to: too young"
    yield from _hindered(done)
    yield from _spoilt(done.spoilt)
    if done.can:
        yield output.paint("✓", "green") + f" removed {_amount(done.removed, done.removed_size)}"


def _hindered(done: Removal) -> Iterator[str]:
    """What kept it from removing more."""
    if done.found.unread:
        yield "! nothing was removed: what could not be read may need any block; a newer version may read it"
    if done.missing:
        yield f"! beside {formatting.count(done.missing, 'missing block')} nothing was removed"
    if done.found.closed or done.unkept:
        spaces = formatting.count(done.found.closed, "session")
        blocks = formatting.count(done.unkept, "block")
        yield f"! {spaces} with its forks, and {blocks} beside, stay: a block there cannot be opened with this key"
    if done.undated:
        yield f"! {formatting.count(done.undated, 'block')} of unknown age stay; `sync init` by the owner may help"


def _spoilt(errors: Sequence[SessionaryError]) -> Iterator[str]:
    """What this disk does not give back of what was kept: each file, as long as there are few of them."""
    if errors:
        yield f"! {formatting.count(len(errors), 'block')} not put back, though a session may need that"
    for error in errors[:FEW]:
        yield f"    {one_line(error.message)}: {one_line(error.path or '')}"
    if len(errors) > FEW:
        yield f"    and {len(errors) - FEW} more; --json lists all"
    yield from ("    " + one_line(hint) for hint in dict.fromkeys(error.hint for error in errors) if hint)


def _amount(blocks: int, size: int) -> str:
    return f"{formatting.count(blocks, 'block')} ({formatting.size(size)})"
