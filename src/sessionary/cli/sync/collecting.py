"""`sync gc`: what lies on the remote and is needed by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from sessionary.cli import output, phrases
from sessionary.cli.progress import Progress
from sessionary.cli.sync import places
from sessionary.cli.sync.telling import cost_line
from sessionary.sync.calls import PatientRemote
from sessionary.sync.leftovers import Leftovers, count_leftovers
from sessionary.sync.settings import load_settings


@click.command(
    "gc",
    epilog="""\b
Examples:
  sessionary sync gc
  sessionary sync gc --json | jq .lost_size
""",
)
@places.settings_file
@places.as_json
def gc_command(settings_path: Path | None, json_: bool) -> int:
    """Count what could be removed from the remote. Removes nothing: no remote can do that safely yet.

    A block that no session points to may belong to a push that is under way, on a machine that is asleep. This reads
    all that is stored, so it may be expensive.
    """
    settings = load_settings(places.settings_at(settings_path))
    inner = places.connect(settings)
    remote = PatientRemote(inner)
    try:
        with Progress("looking", None) as progress:
            found = count_leftovers(remote, progress.reach)
    finally:
        inner.close()
    if json_:
        output.value({**asdict(found), "removed": 0, "cost": asdict(remote.cost)})
    else:
        output.lines(_lines(found))
        output.aside("nothing was removed")
        output.aside(cost_line(remote.cost))
    return 0


def _lines(found: Leftovers) -> Iterator[str]:
    dead = phrases.count(found.tombstones, "of them trashed", "of them trashed")
    yield f"{phrases.count(found.heads, 'session')} ({dead}), {_amount(found.blocks, found.size)}"
    yield f"  {_amount(found.lost_blocks, found.lost_size)} that no session points to"
    yield f"  {_amount(found.past_blocks, found.past_size)} from before a rewind"
    yield f"  {_amount(found.dead_blocks, found.dead_size)} of trashed sessions only"
    if found.unread:
        yield f"! {phrases.count(found.unread, 'session')} could not be read; what they point to is not known"


def _amount(blocks: int, size: int) -> str:
    return f"{phrases.count(blocks, 'block')} ({phrases.size(size)})"
